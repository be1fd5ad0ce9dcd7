"""`hybridworld train`: a surrogate from a dataset, or straight from the solver, for so many epochs or so many minutes."""

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from hybridworld.app.calibrate import calibrating
from hybridworld.app.durations import time_in_words
from hybridworld.app.progress import announce, stderr
from hybridworld.app.train_display import Board, Display, LiveDisplay, horizon_table, latest_auroc
from hybridworld.data.pairs import Batch
from hybridworld.errors import InvalidInput
from hybridworld.surrogate.bundle import Bundle
from hybridworld.surrogate.checkpoint import State
from hybridworld.surrogate.config import RELATIVE, known_settings
from hybridworld.surrogate.surrogate import Surrogate
from hybridworld.surrogate.train import METRICS, MODEL, Watch
from hybridworld.training.make import Learned, Making, prepare, wants_calibration, wants_comparison
from hybridworld.training.recipe import Request, recipe_for

CURVE, BOARD = "curve.png", "tensorboard"


def train_surrogate(asked: Request, tensorboard: bool = False) -> Bundle | None:
    """Train, or go on where a run was interrupted, then say how good it is.

    Returned is the model; under torchrun only the leader has it, and the others get None.
    """
    making = prepare(asked)
    display = display_for(f"{making.title}: {making.folder}")
    try:
        with ExitStack() as stack:
            watchers: list[Display | Board] = [stack.enter_context(display)]
            if tensorboard:
                watchers.append(board := Board(making.folder / BOARD))
                stack.callback(board.close)
            learned = making.learn(watch_with(watchers))
    except KeyboardInterrupt:
        raise KeyboardInterrupt(where_it_stopped(display)) from None
    if learned is None:
        return None
    bundle = conclude(making, learned)
    finish(learned.state, bundle, making.folder, making.title, display.was_finished)
    return bundle


def conclude(making: Making, learned: Learned) -> Bundle:
    """Calibrate, and under a budget compare with solvers, with a word about each."""
    bundle = making.load(learned)
    if wants_calibration(learned, bundle):
        announce("calibrating")
        with calibrating() as tell:
            bundle = making.calibrate(learned, bundle, tell)
    if wants_comparison(learned, bundle):
        announce("worth: the model against solvers")
        bundle = making.compare(learned, bundle)
    return bundle


# Who watches.


def display_for(title: str) -> Display:
    """The display of a training: a live one on the leader's terminal, else one that prints lines."""
    return LiveDisplay(title) if stderr.is_terminal and leads() else Display()


def leads() -> bool:
    """Whether this is the process that speaks, of those that torchrun started."""
    return int(os.environ.get("RANK", 0)) == 0


def watch_with(watchers: Sequence[Display | Board]) -> Watch:
    """A `Watch` that passes on to several watchers whatever happens, and measures the error map."""

    def map_quality(surrogate: Surrogate, pairs: Mapping[int, Batch]) -> dict[int, float]:
        from hybridworld.bench.map_quality import (
            auroc_of_error_map,  # takes seconds, which are not missed at the end of an epoch
        )

        return auroc_of_error_map(surrogate, pairs)

    def tell(subject: str, news: str) -> None:
        for each in watchers:
            each.tell(subject, news)

    def on_start(state: State) -> None:
        for each in watchers:
            each.on_start(state)

    def on_epoch(state: State, record: dict[str, Any]) -> None:
        for each in watchers:
            each.on_epoch(state, record)

    return Watch(on_start=on_start, on_epoch=on_epoch, map_quality=map_quality, tell=tell)


# What came of it.


def where_it_stopped(display: Display) -> str:
    """The sentence that an interrupted training ends with."""
    when = f"after step {display.state.step}" if display.state else "before the first step"
    return f"Interrupted {when}; run the same command to go on."


def finish(state: State, bundle: Bundle, folder: Path, title: str, was_finished: bool) -> None:
    """Draw the curves and print the validation errors of the best model."""
    from hybridworld.figures.learning_curves import draw_curves

    best, training, known = state.history[state.best_epoch - 1], state.config.training, bundle.provenance
    ended = f"{len(state.history)} of {training.epochs} epochs in {time_in_words(state.seconds)}"
    draw_curves(state.history, folder / CURVE, f"{title}\n{ended}")
    last, aurocs = latest_auroc(state.history)
    console = Console(highlight=False)
    console.print(f"[bold]{escape(title)}[/bold]  {'finished already: ' if was_finished else ''}{ended}", soft_wrap=True)
    console.print(f"  best in epoch {state.best_epoch}: validation MSE {best['mse']:.3g}", soft_wrap=True)
    console.print(Padding(horizon_table(best, aurocs), (0, 0, 0, 2), expand=False))
    if last not in (0, state.best_epoch):
        console.print(f"  [dim]AUROC of the error map is that of epoch {last}[/dim]")
    if RELATIVE in best:
        console.print(f"  its square error is {best[RELATIVE]:.2g} times that of its guide", soft_wrap=True)
    if state.began_with is not None:
        now = best[training.measure]
        better = "" if now < state.began_with else ": no better, keep the model that it began with"
        console.print(
            f"  {training.measure} was {state.began_with:.3g} at the beginning, and is {now:.3g}{better}", soft_wrap=True
        )
    if "minutes" in known:
        calibrated = max((each["trajectories"] for each in known.get("calibration", {}).values()), default=0)
        console.print(f"  {state.chosen_by} trajectories chose the epoch, {calibrated} calibrated", soft_wrap=True)
    for name in (MODEL, METRICS, CURVE):
        console.print(f"  {folder / name}", soft_wrap=True, markup=False)
    if "worth" in known:
        console.print(f"Worth it? {known['worth']}", soft_wrap=True, markup=False)


def show_settings(asked: Request) -> None:
    """Print every setting, its value for such states under this preset, and its meaning."""
    if asked.environment is None and asked.data is None:
        raise InvalidInput("Settings depend on the states: name a system, or give --data DIR.")
    values = recipe_for(asked).config.model_dump(mode="json")
    table = Table("setting", "value", "meaning", box=None, header_style="dim", padding=(0, 2, 0, 0))
    for name, meaning in known_settings().items():
        section, _, key = name.partition(".")
        table.add_row(name, setting_in_words(values[section][key]), escape(meaning))
    Console(highlight=False).print(table)


def setting_in_words(value: Any) -> str:
    """The value of a setting as `--set` takes it."""
    if isinstance(value, list):
        return ",".join(map(str, value))
    return {None: "-", True: "true", False: "false"}[value] if value is None or isinstance(value, bool) else f"{value}"
