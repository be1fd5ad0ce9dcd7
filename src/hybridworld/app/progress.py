"""One look for every progress bar. Bars go to stderr, so that stdout holds results alone."""

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

stderr = Console(stderr=True)


def progress_bar() -> Progress:
    """A bar with count and time left; it shows nothing where stderr is not a terminal."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=stderr,
        disable=not stderr.is_terminal,
    )
