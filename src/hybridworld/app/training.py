"""`hybridworld train`: a surrogate from a dataset, or straight from the solver."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from hybridworld.app.calibration import calibrate_model
from hybridworld.app.models import load_model
from hybridworld.app.progress import stderr
from hybridworld.app.training_display import Board, Display, LiveDisplay, horizon_table, latest_auroc
from hybridworld.app.words import time_in_words
from hybridworld.data.dataset import Dataset
from hybridworld.data.evidence import Recorded, Solved, Supplied
from hybridworld.data.manifest import Manifest, data_hash
from hybridworld.data.pairs import Batch, Evidence, TrajectorySource
from hybridworld.data.plan import FOLDERS
from hybridworld.data.provenance import provenance
from hybridworld.data.stream import Stream
from hybridworld.errors import InvalidInput
from hybridworld.physics.environment import Environment
from hybridworld.physics.spec import StateSpec
from hybridworld.surrogate.checkpoint import State
from hybridworld.surrogate.config import Config, configure, known_settings
from hybridworld.surrogate.parallel import threads_for
from hybridworld.surrogate.surrogate import Surrogate
from hybridworld.surrogate.train import METRICS, MODEL, Task, Watch, train

CURVE, BOARD = "curve.png", "tensorboard"


@dataclass(frozen=True)
class Material:
    """Where pairs come from, and what is known about it: the system may be unknown."""

    environment: Environment | None
    train: TrajectorySource
    val: Evidence
    origin: Mapping[str, str]
    """For the provenance; `data` tells one source of pairs from another, wherever it lies."""

    @property
    def spec(self) -> StateSpec:
        """Of the states at hand."""
        return self.train.spec


def train_surrogate(
    environment: Environment | None, data: Path | None, stream: bool, preset: str, wishes: Sequence[str],
    out: Path | None, tensorboard: bool, device: str | None = None,
) -> Path | None:  # fmt: skip
    """Train, or go on where a run was interrupted, then say how good it is: the model's file; None if interrupted again."""
    with ExitStack() as stack:
        material = find_material(environment, data, stream, stack)
        config = configure_for(material.spec, material.environment, preset, wishes)
        folder = out or Path("runs") / f"{material.spec.name}-{preset}"
        torch.set_num_threads(threads_for(material.spec))
        display = stack.enter_context(display_for(f"{material.spec.name}, {preset}: {folder}"))
        watchers: list[Display | Board] = [display]
        if tensorboard:
            watchers.append(board := Board(folder / BOARD))
            stack.callback(board.close)
        try:
            state = train(task_for(material, config, preset), folder, watch_with(watchers), device)
        except KeyboardInterrupt:
            stack.close()
            say_where_it_stopped(display)
            return None
    if state is not None:
        network = config.surrogate.backbone if ":" in config.surrogate.backbone else None
        if config.training.calibration and not load_model(folder / MODEL, network).arrays:
            calibrate_model(folder / MODEL, network, data, material.environment, device=device)
        finish(state, folder, f"{material.spec.name}, {preset}", display.was_finished)
    return folder / MODEL


# What to learn from.


def find_material(environment: Environment | None, data: Path | None, stream: bool, stack: ExitStack) -> Material:
    """The dataset or the solver at work, as the command says."""
    if (data is not None) == stream:
        raise InvalidInput("Say where the training pairs come from: --data DIR or --stream, one of them.")
    if data is not None:
        return from_dataset(data, environment)
    if environment is None:
        raise InvalidInput("--stream needs a system to solve: name it, for example `hybridworld train ball3d --stream`.")
    return stack.enter_context(from_solver(environment))


def from_dataset(root: Path, environment: Environment | None) -> Material:
    """The splits train and val of a directory."""
    dataset = Dataset(root)
    for split in ("train", "val"):
        if split not in dataset.splits:
            folder = root / "data" / FOLDERS.get(split, split)
            raise InvalidInput(
                f"{root} has no split '{split}', which would be in {folder}: training needs train and val, "
                f"and there is {', '.join(dataset.splits)}."
            )
    manifest, source = Manifest.load(root), dataset.source("val")
    whole = "manifest" if manifest else "file names and sizes"
    solver = with_reference(environment.fitted(dataset.spec, str(root)), dataset, root) if environment else None
    val: Evidence = Recorded(source, end=max(1, source.count // 2))  # the second half is left for calibration
    if solver and manifest and manifest.system == solver.spec.name:
        val = Supplied(source, solver)
    origin = {"data": f"a dataset with the sha256 {data_hash(root)} of its {whole}"}
    return Material(solver, dataset.source("train"), val, origin)


def with_reference(environment: Environment, dataset: Dataset, root: Path) -> Environment:
    """The system with the reference on which the dataset was recorded; one that contradicts it is refused."""
    recorded = (dataset.identity or {}).get("resolved", 1)
    asked = environment.identity.get("resolved", recorded)
    if asked != recorded:
        raise InvalidInput(f"{root} was recorded with --resolved {recorded}, and this run has {asked}: take the same.")
    return environment.resolved(recorded)


@contextmanager
def from_solver(environment: Environment) -> Iterator[Material]:
    """A stream of trajectories for training, and others for validation that are solved once."""
    reference = ", ".join(f"{name} {value}" for name, value in environment.identity.items())
    with Stream(environment, "train") as training:
        origin = {"data": f"a stream from the solver with {reference}"}
        yield Material(environment, training, Solved(environment, "val"), origin)


# How to learn.


def configure_for(spec: StateSpec, environment: Environment | None, preset: str, wishes: Sequence[str]) -> Config:
    """All settings, with those that a known system adds."""
    return configure(spec, preset, wishes, environment.presets if environment else None)


def task_for(material: Material, config: Config, preset: str) -> Task:
    """The training, with what it takes to repeat it."""
    environment = material.environment
    known: dict[str, Any] = {"system": material.spec.name, "preset": preset, "seed": config.training.seed}
    return Task(
        config,
        material.train,
        material.val,
        environment.symmetries if environment else (),
        environment.solve if environment else None,
        system=environment,
        provenance={**known, **material.origin, **provenance()},
    )


# Who watches.


def display_for(title: str) -> Display:
    """On the leader's terminal a live one; the others of a team are never told anything."""
    if not leads():
        return Display()
    return LiveDisplay(title) if stderr.is_terminal else Display(title)


def leads() -> bool:
    """Is this the process that speaks, of those that torchrun started?"""
    return int(os.environ.get("RANK", 0)) == 0


def watch_with(watchers: Sequence[Display | Board]) -> Watch:
    """Tell each of them."""

    def probe(surrogate: Surrogate, pairs: Mapping[int, Batch]) -> dict[int, float]:
        from hybridworld.bench.map_quality import (
            auroc_of_error_map,  # takes seconds, which are not missed at the end of an epoch
        )

        return auroc_of_error_map(surrogate, pairs)

    def on_start(state: State) -> None:
        for each in watchers:
            each.on_start(state)

    def on_epoch(state: State, record: dict[str, Any]) -> None:
        for each in watchers:
            each.on_epoch(state, record)

    return Watch(on_start=on_start, on_epoch=on_epoch, probe=probe)


# What came of it.


def say_where_it_stopped(display: Display) -> None:
    """One sentence, by the leader; nothing is lost."""
    if leads():
        when = f"after step {display.state.step}" if display.state else "before the first step"
        stderr.print(f"Stopped {when}; run the same command to go on.", highlight=False)


def finish(state: State, folder: Path, title: str, was_finished: bool) -> None:
    """Draw the curves and print the scores of the best model."""
    from hybridworld.figures.learning_curves import draw_curves

    best, epochs = state.history[state.best_epoch - 1], state.config.training.epochs
    ended = f"{len(state.history)} of {epochs} epochs in {time_in_words(state.seconds)}"
    draw_curves(state.history, folder / CURVE, f"{title}\n{ended}")
    probed, aurocs = latest_auroc(state.history)
    console = Console(highlight=False)
    console.print(f"[bold]{escape(title)}[/bold]  {'finished already: ' if was_finished else ''}{ended}", soft_wrap=True)
    console.print(f"  best in epoch {state.best_epoch}: validation MSE {best['mse']:.3g}", soft_wrap=True)
    console.print(Padding(horizon_table(best, aurocs), (0, 0, 0, 2), expand=False))
    if probed not in (0, state.best_epoch):
        console.print(f"  [dim]AUROC of the error map is that of epoch {probed}[/dim]")
    for name in (MODEL, METRICS, CURVE):
        console.print(f"  {folder / name}", soft_wrap=True, markup=False)


def show_settings(environment: Environment | None, data: Path | None, preset: str, wishes: Sequence[str]) -> None:
    """Every setting, its value for such states under this preset, and its meaning."""
    if environment is None and data is None:
        raise InvalidInput("Settings depend on the states: name a system, or give --data DIR.")
    spec = Dataset(data).spec if data else environment.spec  # type: ignore[union-attr]
    values = configure_for(spec, environment, preset, wishes).model_dump(mode="json")
    table = Table("setting", "value", "meaning", box=None, header_style="dim", padding=(0, 2, 0, 0))
    for name, meaning in known_settings().items():
        section, _, key = name.partition(".")
        table.add_row(name, setting_in_words(values[section][key]), escape(meaning))
    Console(highlight=False).print(table)


def setting_in_words(value: Any) -> str:
    """As `--set` takes it."""
    if isinstance(value, list):
        return ",".join(map(str, value))
    return {None: "-", True: "true", False: "false"}[value] if value is None or isinstance(value, bool) else f"{value}"
