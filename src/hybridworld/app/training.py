"""`hybridworld train`: a surrogate from a dataset, or straight from the solver, for so many epochs or so many minutes."""

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from hybridworld.app.calibration import calibrate_model
from hybridworld.app.continuation import Start, find_start
from hybridworld.app.material import Material, find_material
from hybridworld.app.minutes import Clock, Planner, Schedule, check_wishes, end
from hybridworld.app.models import load_hybrid, load_model
from hybridworld.app.progress import announce, stderr
from hybridworld.app.training_display import Board, Display, LiveDisplay, horizon_table, latest_auroc
from hybridworld.app.words import time_in_words
from hybridworld.data.dataset import Dataset
from hybridworld.data.pairs import Batch
from hybridworld.data.provenance import provenance
from hybridworld.errors import InvalidInput
from hybridworld.physics.environment import Environment
from hybridworld.physics.spec import StateSpec
from hybridworld.surrogate.bundle import Bundle, save_bundle
from hybridworld.surrogate.checkpoint import State
from hybridworld.surrogate.config import RELATIVE, Config, configure, known_settings, parse_wishes
from hybridworld.surrogate.leap import default_patch
from hybridworld.surrogate.parallel import threads_for
from hybridworld.surrogate.surrogate import Surrogate
from hybridworld.surrogate.train import METRICS, MODEL, Task, Watch, train

CURVE, BOARD = "curve.png", "tensorboard"
FINISHING = 3.0
"""Seconds for what comes after a verdict: curves and tables."""


@dataclass(frozen=True)
class Request:
    """What the command says."""

    environment: Environment | None = None
    data: Path | None = None
    stream: bool = False
    minutes: float | None = None
    start: str | None = None
    """A trained model to go on from."""
    preset: str | None = None
    wishes: Sequence[str] = ()
    out: Path | None = None
    tensorboard: bool = False
    began: float = 0.0
    """When the command began, by time.monotonic."""
    device: str | None = None


@dataclass(frozen=True)
class Recipe:
    """How to learn: what stands between the command and a `Task`."""

    environment: Environment | None
    spec: StateSpec
    preset: str
    wishes: Sequence[str] = ()
    start: Start | None = None
    known: Mapping[str, Any] | None = None
    """More for the provenance."""

    @property
    def config(self) -> Config:
        """All settings, with those that a known system adds."""
        presets = self.environment.presets if self.environment else None
        found = configure(self.spec, self.preset, self.wishes, presets)
        return self.start.configured(found, self.preset, self.wishes) if self.start else found

    def task(self, material: Material) -> Task:
        """The training, with what it takes to repeat it."""
        environment, config, start = material.environment, self.config, self.start
        known: dict[str, Any] = {"system": material.spec.name, "preset": self.preset, "seed": config.training.seed}
        known |= {**material.origin, **(self.known or {}), **provenance()}
        if start:
            start.check(material)
            known["from"] = start.told
            before = start.bundle.provenance.get("data seconds")
            known |= {} if before is None else {"data seconds": before + known.get("data seconds", 0.0)}
        return Task(
            config,
            material.train,
            material.val,
            environment.symmetries if environment else (),
            environment.solve if environment else None,
            system=environment,
            provenance=known,
            start=start.bundle if start else None,
            units=material.units,
        )


def train_surrogate(asked: Request) -> Path | None:
    """Train, or go on where a run was interrupted, then say how good it is: the model's file; None if interrupted again."""
    recipe, schedule = recipe_for(asked), None
    spec, name = recipe.spec, recipe.preset if asked.minutes is None else f"{asked.minutes:g}min"
    folder, title = asked.out or Path("runs") / f"{spec.name}-{name}", f"{spec.name}, {recipe.preset}"
    torch.set_num_threads(threads_for(spec))
    with ExitStack() as stack:
        display = stack.enter_context(display_for(f"{title}: {folder}"))
        watchers: list[Display | Board] = [display]
        if asked.tensorboard:
            watchers.append(board := Board(folder / BOARD))
            stack.callback(board.close)
        try:
            if asked.minutes is None:
                material = find_material(recipe.environment, asked.data, asked.stream, stack)
            else:
                check_wishes(asked.wishes)
                planner = Planner(Clock(asked.minutes, asked.began), folder, recipe.config.training, recipe.task, display.tell)
                schedule, material = planner.plan(recipe.environment, asked.data, asked.stream, stack)
                recipe = replace(recipe, wishes=schedule.wishes(asked.wishes), known={"minutes": asked.minutes})
            recipe = replace(recipe, environment=material.environment, spec=material.spec)
            state = train(recipe.task(material), folder, watch_with(watchers), asked.device)
        except KeyboardInterrupt:
            stack.close()
            say_where_it_stopped(display)
            return None
    if state is not None:
        if schedule:
            end(schedule, folder)
        bundle = conclude(asked, recipe, schedule, folder / MODEL)
        finish(state, bundle, folder, title, display.was_finished)
    return folder / MODEL


# How to learn.


def recipe_for(asked: Request) -> Recipe:
    """From the command, and from the model that it goes on from."""
    start = find_start(asked.start, asked.wishes)
    environment = start.system(asked.environment) if start else asked.environment
    if environment is None and asked.data is None:
        if asked.stream:
            raise InvalidInput("--stream needs a system to solve: name it, for example `hybridworld train ball3d --stream`.")
        raise InvalidInput("Name a system, for example `hybridworld train ball3d --minutes 10`, or give --data DIR.")
    spec = Dataset(asked.data).spec if asked.data else environment.spec  # type: ignore[union-attr]
    preset = asked.preset or (start.preset if start else None)
    if preset is None:
        network = parse_wishes(asked.wishes).get("surrogate", {}).get("backbone", "leap")  # a guide is for leap alone
        guided = asked.minutes is not None and environment and network == "leap" and can_be_guided(environment, spec)
        preset = "guided" if guided else "laptop"
    return Recipe(environment, spec, preset, asked.wishes, start)


def can_be_guided(environment: Environment, spec: StateSpec) -> bool:
    """Has it a grid that can be coarsened, as a guide needs it?"""
    if not spec.grid:
        return False
    network = Recipe(environment, spec, "guided").config.surrogate
    patch = network.patch or default_patch(spec.grid)
    try:
        environment.unresolved.resized(spec.grid).coarsened(network.guide_factor or patch)
    except InvalidInput:
        return False
    return min(spec.grid) >= 2 * patch


# Who watches.


def display_for(title: str) -> Display:
    """On the leader's terminal a live one; the others of a team are never told anything."""
    return LiveDisplay(title) if stderr.is_terminal and leads() else Display()


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

    def tell(what: str) -> None:
        for each in watchers:
            each.tell(what)

    def on_start(state: State) -> None:
        for each in watchers:
            each.on_start(state)

    def on_epoch(state: State, record: dict[str, Any]) -> None:
        for each in watchers:
            each.on_epoch(state, record)

    return Watch(on_start=on_start, on_epoch=on_epoch, probe=probe, tell=tell)


# What came of it.


def say_where_it_stopped(display: Display) -> None:
    """One sentence, by the leader; nothing is lost."""
    if leads():
        when = f"after step {display.state.step}" if display.state else "before the first step"
        stderr.print(f"Stopped {when}; run the same command to go on.", highlight=False)


def conclude(asked: Request, recipe: Recipe, schedule: Schedule | None, path: Path) -> Bundle:
    """Calibrate, and under a budget say whether the model is worth it; what is in its file already is not done again."""
    config, environment = recipe.config, recipe.environment
    network = config.surrogate.backbone if ":" in config.surrogate.backbone else None
    bundle = load_model(path, network, environment)
    clock = Clock(asked.minutes or 0.0, asked.began)
    if config.training.calibration and not bundle.arrays:
        deadline = time.monotonic() + clock.left - schedule.division.verdict if schedule else None
        calibrate_model(path, network, asked.data, environment, deadline=deadline, device=asked.device)
        bundle = load_model(path, network, environment)
    if schedule and environment and "worth" not in bundle.provenance:
        from hybridworld.bench.worth.quick import quick_verdict

        announce("worth: the model against solvers")
        planned = schedule.division.verdict
        seconds = min(max(clock.left - FINISHING, planned / 2), 2 * planned)
        found = quick_verdict(environment, load_hybrid(str(path), environment, network), max(config.training.horizons), seconds)
        bundle = replace(bundle, provenance={**bundle.provenance, "worth": found})
        save_bundle(path, bundle)
    return bundle


def finish(state: State, bundle: Bundle, folder: Path, title: str, was_finished: bool) -> None:
    """Draw the curves and print the scores of the best model."""
    from hybridworld.figures.learning_curves import draw_curves

    best, training, known = state.history[state.best_epoch - 1], state.config.training, bundle.provenance
    ended = f"{len(state.history)} of {training.epochs} epochs in {time_in_words(state.seconds)}"
    draw_curves(state.history, folder / CURVE, f"{title}\n{ended}")
    probed, aurocs = latest_auroc(state.history)
    console = Console(highlight=False)
    console.print(f"[bold]{escape(title)}[/bold]  {'finished already: ' if was_finished else ''}{ended}", soft_wrap=True)
    console.print(f"  best in epoch {state.best_epoch}: validation MSE {best['mse']:.3g}", soft_wrap=True)
    console.print(Padding(horizon_table(best, aurocs), (0, 0, 0, 2), expand=False))
    if probed not in (0, state.best_epoch):
        console.print(f"  [dim]AUROC of the error map is that of epoch {probed}[/dim]")
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
    """Every setting, its value for such states under this preset, and its meaning."""
    if asked.environment is None and asked.data is None:
        raise InvalidInput("Settings depend on the states: name a system, or give --data DIR.")
    values = recipe_for(asked).config.model_dump(mode="json")
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
