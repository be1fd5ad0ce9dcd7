from tests.surrogate.conftest import one_thread  # noqa: F401 - networks here are too small for more threads
