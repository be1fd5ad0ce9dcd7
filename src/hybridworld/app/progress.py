"""One look for every progress bar. Bars go to stderr, so that stdout holds results alone; a log gets lines in their place."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

stderr = Console(stderr=True)
EVERY = 20.0
"""Seconds between two lines about one piece of work in a log."""


def announce(what: str) -> None:
    """Print a line about what begins now, unless a terminal shows it by itself."""
    if not stderr.is_terminal:
        stderr.print(what, highlight=False, markup=False, soft_wrap=True)


@contextmanager
def stages() -> Iterator[Callable[[str], None]]:
    """What hears the stage that a command is in: a terminal shows it while it lasts, a log has a line every EVERY seconds."""
    last = time.monotonic()
    with stderr.status("") as status:

        def tell(stage: str) -> None:
            nonlocal last
            status.update(stage)
            if time.monotonic() - last >= EVERY:
                last = time.monotonic()
                announce(stage)

        yield tell


class RateColumn(ProgressColumn):
    """The rate of a task, for example `3.4/s`."""

    def render(self, task: Task) -> Text:
        rate = task.finished_speed or task.speed
        return Text("" if rate is None else f"{rate:.3g}/s", style="progress.data.speed")


class Bar(Protocol):
    """What commands ask of a progress bar: a context with tasks that move on."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: Any) -> None: ...

    def add_task(self, description: str, *, total: float | None = None) -> Any:
        """Begin a task; its number names it from here on."""

    def update(
        self, task_id: Any, *, completed: float | None = None, total: float | None = None, description: str | None = None
    ) -> None:
        """Say how far a task is."""

    def advance(self, task_id: Any, advance: float = 1) -> None:
        """Say how much further a task is."""


class Lines:
    """A progress bar for a log: a line per task every EVERY seconds, so that short tasks say nothing."""

    def __init__(self) -> None:
        self._tasks: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    def add_task(self, description: str, *, total: float | None = None) -> int:
        self._tasks.append({"description": description, "total": total, "completed": 0.0, "said": time.monotonic()})
        return len(self._tasks) - 1

    def update(self, task_id: int, **known: Any) -> None:
        task = self._tasks[task_id]
        task.update({name: value for name, value in known.items() if value is not None})
        if time.monotonic() - task["said"] >= EVERY:
            of = "" if task["total"] is None else f" {task['completed']:,.0f} of {task['total']:,.0f}"
            announce(f"{task['description']}{of}")
            task["said"] = time.monotonic()

    def advance(self, task_id: int, advance: float = 1) -> None:
        self.update(task_id, completed=self._tasks[task_id]["completed"] + advance)


def progress_bar() -> Bar:
    """A progress bar with count, rate and time left; where stderr is not a terminal, one that prints lines."""
    if not stderr.is_terminal:
        return Lines()
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        RateColumn(),
        TimeRemainingColumn(),
        console=stderr,
    )
