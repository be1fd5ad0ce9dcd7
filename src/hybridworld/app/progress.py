"""One look for every progress bar. Bars go to stderr, so that stdout holds results alone."""

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

stderr = Console(stderr=True)


def announce(what: str) -> None:
    """A line about what begins now, where there is no terminal on which a bar would show it."""
    if not stderr.is_terminal:
        stderr.print(what, highlight=False, soft_wrap=True)


class RateColumn(ProgressColumn):
    """For example `3.4/s`."""

    def render(self, task: Task) -> Text:
        rate = task.finished_speed or task.speed
        return Text("" if rate is None else f"{rate:.3g}/s", style="progress.data.speed")


def progress_bar() -> Progress:
    """A bar with count, rate and time left; it shows nothing where stderr is not a terminal."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        RateColumn(),
        TimeRemainingColumn(),
        console=stderr,
        disable=not stderr.is_terminal,
    )
