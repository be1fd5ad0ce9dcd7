from hypothesis import settings

settings.register_profile("unhurried", deadline=None)  # cores are shared, so a slow example proves nothing
settings.load_profile("unhurried")
