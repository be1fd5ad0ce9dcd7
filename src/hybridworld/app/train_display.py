"""What a training shows while it runs, on stderr: a live table on a terminal, one line per epoch in a log.

Who watches a training has `tell`, `on_start` and `on_epoch`; the state that `on_start` brings is the training itself, and stays
so.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from hybridworld.app.durations import time_in_words
from hybridworld.app.progress import stderr
from hybridworld.errors import InvalidInput
from hybridworld.surrogate.checkpoint import State

WIDEST = 100  # columns: a longer bar says nothing more
QUIET = 10.0
"""Seconds between two lines of a log about the same preparation."""
HEADERS = ("horizon", "MSE", "no change", "ratio", "nRMSE", "no change", "AUROC")

Record = Mapping[str, Any]


class Display:
    """One line per epoch. Silent until it is told something, and only the leader of a team tells."""

    def __init__(self) -> None:
        self.state: State | None = None
        self.was_finished = False
        self._subject, self._said = "", 0.0

    def tell(self, subject: str, news: str) -> None:
        """Print what is being prepared: one line per subject, and more if it takes long."""
        now = time.monotonic()
        if subject != self._subject or now - self._said > QUIET:
            self._subject, self._said = subject, now
            stderr.print(f"{subject}: {news}", highlight=False, soft_wrap=True)

    def on_start(self, state: State) -> None:
        """Remember the state of the training, which begins here or goes on."""
        self.state, self.was_finished = state, state.finished
        self._first, self._began = state.step, time.monotonic()

    def on_epoch(self, state: State, record: Record) -> None:
        """Print a line about the epoch that ended."""
        stderr.print(epoch_in_words(state, record, self.time_left(state)), highlight=False, soft_wrap=True)

    def time_left(self, state: State) -> str:
        """How long the remaining steps take at the pace of this run, in words; training may end earlier."""
        steps = state.step - self._first
        if state.finished or not steps:
            return ""
        return f"{time_in_words((time.monotonic() - self._began) / steps * (state.config.training.steps - state.step))} left"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass


class LiveDisplay(Display):
    """Bar, loss and validation errors by horizon, drawn four times a second for as long as the training runs."""

    def __init__(self, title: str) -> None:
        super().__init__()
        self._title, self._doing = title, "preparing"
        self._live = Live(console=stderr, get_renderable=self._draw, transient=True)

    def tell(self, subject: str, news: str) -> None:
        self._doing = f"preparing: {subject}: {news}"

    def on_epoch(self, state: State, record: Record) -> None:
        pass

    def __enter__(self) -> Self:
        self._live.start(refresh=True)
        return self

    def __exit__(self, *error: object) -> None:
        self._live.stop()

    def _draw(self) -> RenderableType:
        title, state = Text.assemble((self._title, "bold")), self.state
        if state is None:
            return Group(title, Text(self._doing))
        lines: list[RenderableType] = [title, progress_line(state, self.time_left(state)), loss_line(state)]
        if state.history:
            lines += ["", horizon_table(state.history[-1], latest_auroc(state.history)[1])]
        return Group(*lines)


def progress_line(state: State, left: str) -> Table:
    """A line with epochs, bar, steps, rate and time left."""
    training, seen = state.config.training, state.loss_steps > 0
    rate = state.rate if seen else state.history[-1]["samples_per_second"] if state.history else 0.0
    line = Table.grid(padding=(0, 2, 0, 0), expand=False)
    line.width = min(stderr.width, WIDEST)
    for share in (None, 1, None):
        line.add_column(ratio=share, no_wrap=True)
    told = (f"step {state.step}/{training.steps}", rate_in_words(rate), left)
    line.add_row(
        f"epoch {min(state.epoch + 1, training.epochs)}/{training.epochs}",
        ProgressBar(training.steps, state.step),
        ", ".join(filter(None, told)),
    )
    return line


def rate_in_words(rate: float) -> str:
    """The rate in words, for example `3,260 samples/s`; empty if there is none yet."""
    return "" if not rate else f"{rate:.2g} samples/s" if rate < 10 else f"{rate:,.0f} samples/s"


def loss_line(state: State) -> str:
    """A line with the loss of this epoch so far, and the latest and the best validation error."""
    seen, history = state.loss_steps > 0, state.history
    parts = [f"learning rate {state.optimiser.param_groups[0]['lr']:.1e}"]
    if seen or history:
        parts.insert(0, f"loss {state.mean_loss if seen else history[-1]['loss']:.3g}")
    if history:
        best = history[state.best_epoch - 1]
        parts.append(f"validation {history[-1]['mse']:.3g}, best {best['mse']:.3g} (epoch {best['epoch']})")
    return "   ".join(parts)


def horizon_table(record: Record, aurocs: Mapping[int, float]) -> Table:
    """A row per horizon: the errors of one epoch, each beside that of no change, and how well the error map finds them."""
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
    for header in HEADERS:
        table.add_column(header, justify="right", style="dim" if header == "no change" else None)
    for horizon, errors in record["horizons"].items():
        still = errors["no_change"]
        found = aurocs.get(horizon)
        numbers = (errors["mse"], still["mse"], ratio(errors), errors["nrmse"], still["nrmse"])
        table.add_row(str(horizon), *(f"{number:.3g}" for number in numbers), "-" if found is None else f"{found:.3f}")
    return table


def ratio(errors: Record) -> float:
    """The MSE of a model over that of no change."""
    still = errors["no_change"]["mse"]
    return errors["mse"] / still if still else float("inf")


def latest_auroc(history: Sequence[Record]) -> tuple[int, Mapping[int, float]]:
    """The last epoch with an AUROC of the error map, and its values by horizon; epoch 0 if there was none."""
    return next(((record["epoch"], record["auroc"]) for record in reversed(history) if "auroc" in record), (0, {}))


def epoch_in_words(state: State, record: Record, left: str) -> str:
    """The line of a log about one epoch."""
    worst = max(record["horizons"], key=lambda horizon: ratio(record["horizons"][horizon]))
    parts = [
        f"loss {record['loss']:.3g}",
        f"validation MSE {record['mse']:.3g}",
        f"at worst {ratio(record['horizons'][worst]):.3g} of no change (horizon {worst})",
        rate_in_words(record["samples_per_second"]),
        left,
    ]
    return f"epoch {record['epoch']}/{state.config.training.epochs}: {', '.join(filter(None, parts))}"


class Board:
    """Writes the numbers of a training for TensorBoard, one point per epoch."""

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise InvalidInput(
                "--tensorboard needs a package that is not installed: pip install hybrid-world-models[tensorboard]"
            ) from error
        self._open = lambda epoch: SummaryWriter(str(folder), purge_step=epoch)
        self._writer: Any = None

    def tell(self, subject: str, news: str) -> None:
        """Do nothing: there is no curve of preparations."""

    def on_start(self, state: State) -> None:
        """Begin to write; points of epochs that will be made again are dropped."""
        if not state.finished:
            self._writer = self._open(state.epoch + 1)

    def on_epoch(self, state: State, record: Record) -> None:
        """Add a point to each curve."""
        values = {name: record[name] for name in ("loss", "lr", "mse")}
        values |= {f"mse by horizon/{horizon}": errors["mse"] for horizon, errors in record["horizons"].items()}
        values |= {f"auroc by horizon/{horizon}": value for horizon, value in record.get("auroc", {}).items()}
        for name, value in values.items():
            self._writer.add_scalar(name, value, record["epoch"])

    def close(self) -> None:
        """Write what is in memory."""
        if self._writer is not None:
            self._writer.close()
