"""A model from beginning to end: prepare, learn, calibrate, and under a budget compare it with solvers.

making = prepare(request)               recipe and folder
learned = making.learn(watch)           goes on where a run in that folder was interrupted; an interruption is raised
bundle = making.load(learned)           the best model of the run
bundle = making.calibrate(learned, bundle)    if wants_calibration: its file may have one already
bundle = making.compare(learned, bundle)      if wants_comparison
"""

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from hybridworld.bench.worth.quick import quick_verdict
from hybridworld.deploy.calibrate import calibrate_model
from hybridworld.deploy.load import ready
from hybridworld.surrogate.bundle import Bundle, load_bundle, save_bundle
from hybridworld.surrogate.checkpoint import State
from hybridworld.surrogate.parallel import device_of, threads_for
from hybridworld.surrogate.train import MODEL, Watch, train
from hybridworld.training.material import find_material
from hybridworld.training.recipe import Recipe, Request, recipe_for
from hybridworld.training.schedule import Clock, Planner, Schedule, check_wishes, end

FINISHING = 3.0
"""Seconds for what comes after a comparison: curves and tables."""


@dataclass(frozen=True)
class Learned:
    """What the loop left: its state, and the recipe and the schedule that it followed."""

    state: State
    recipe: Recipe
    schedule: Schedule | None


@dataclass(frozen=True)
class Making:
    """A training that was asked for, ready to begin or to go on."""

    asked: Request
    recipe: Recipe
    folder: Path

    @property
    def title(self) -> str:
        """System and preset, in a few words."""
        return f"{self.recipe.spec.name}, {self.recipe.preset}"

    @property
    def path(self) -> Path:
        """The file of the model."""
        return self.folder / MODEL

    def learn(self, watch: Watch) -> Learned | None:
        """Train, or go on; under torchrun only the leader has an outcome."""
        asked, recipe, schedule = self.asked, self.recipe, None
        torch.set_num_threads(threads_for(recipe.spec))
        with ExitStack() as stack:
            if asked.minutes is None:
                material = find_material(recipe.environment, asked.data, asked.stream, stack)
            else:
                check_wishes(asked.wishes)
                clock = Clock(asked.minutes, asked.began)
                planner = Planner(clock, self.folder, recipe.config.training, recipe.task, watch.tell)
                schedule, material = planner.plan(recipe.environment, asked.data, asked.stream, stack)
                recipe = replace(recipe, wishes=schedule.wishes(asked.wishes), known={"minutes": asked.minutes})
            recipe = replace(recipe, environment=material.environment, spec=material.spec)
            state = train(recipe.task(material), self.folder, watch, asked.device)
        if state is None:
            return None
        if schedule:
            end(schedule, self.folder)
        return Learned(state, recipe, schedule)

    def load(self, learned: Learned) -> Bundle:
        """The best model of the training, which the loop wrote before the checkpoint that calls it the best."""
        network = learned.recipe.config.surrogate.backbone
        bundle = load_bundle(self.path, network if ":" in network else None, learned.recipe.environment)
        bundle.surrogate.to("cpu" if self.asked.device is None else device_of(self.asked.device))
        return bundle

    def calibrate(
        self, learned: Learned, bundle: Bundle, tell: Callable[[int, int], None] = lambda done, total: None
    ) -> Bundle:
        """The model with thresholds and bounds, as its file now has them; under a budget, from as many as time allows."""
        schedule, environment = learned.schedule, learned.recipe.environment
        deadline = time.monotonic() + self._left - schedule.division.verdict if schedule else None
        found = calibrate_model(bundle, self.asked.data, environment, deadline=deadline, tell=tell, name=str(self.path))
        save_bundle(self.path, found)
        return found

    def compare(self, learned: Learned, bundle: Bundle) -> Bundle:
        """The model with a verdict in its provenance, as its file now has it: is it worth it against solvers?"""
        schedule, environment = learned.schedule, learned.recipe.environment
        assert schedule is not None and environment is not None
        planned = schedule.division.verdict
        seconds = min(max(self._left - FINISHING, planned / 2), 2 * planned)
        model = ready(bundle, environment, device=self.asked.device, name=str(self.path))
        said = quick_verdict(environment, model, max(learned.recipe.config.training.horizons), seconds)
        found = replace(bundle, provenance={**bundle.provenance, "worth": said})
        save_bundle(self.path, found)
        return found

    @property
    def _left(self) -> float:
        """Seconds that are left of the budget."""
        return Clock(self.asked.minutes or 0.0, self.asked.began).left


def prepare(asked: Request) -> Making:
    """The recipe for what was asked, and the folder of the run: by default runs/SYSTEM-PRESET, or runs/SYSTEM-Nmin."""
    recipe = recipe_for(asked)
    name = recipe.preset if asked.minutes is None else f"{asked.minutes:g}min"
    return Making(asked, recipe, asked.out or Path("runs") / f"{recipe.spec.name}-{name}")


def wants_calibration(learned: Learned, bundle: Bundle) -> bool:
    """Whether the settings ask for a calibration that the model does not have yet."""
    return bool(learned.recipe.config.training.calibration) and not bundle.arrays


def wants_comparison(learned: Learned, bundle: Bundle) -> bool:
    """Whether a budget asks for a comparison with solvers that the model does not have yet."""
    return learned.schedule is not None and learned.recipe.environment is not None and "worth" not in bundle.provenance
