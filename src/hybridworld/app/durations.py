"""Durations in words."""


def time_in_words(seconds: float) -> str:
    """A duration in words, for example `3 minutes`."""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
