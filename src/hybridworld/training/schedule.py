"""`hybridworld train --minutes N`: data, training, calibration and verdict within a budget.

Costs are measured first (`surrogate.budget`), and what follows from them is kept in RUN/schedule.json, so that a run that was
interrupted goes on with the same schedule. Without --data and --stream the training set is solved before the first step and
lies in RUN/data until the training has ended: every trajectory then serves until the end, no solver competes with the training
for the cores, so that its pace can be foreseen, and a run that goes on has nothing to solve again.
"""

import json
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Self

from hybridworld.data.atomic import make_folder, write_atomically
from hybridworld.data.dataset import Dataset
from hybridworld.data.evidence import VECTORS, Held, Solved
from hybridworld.data.generate import generate
from hybridworld.data.plan import Plan
from hybridworld.data.provenance import DATASET, OWN, STREAM
from hybridworld.data.room import size_in_words
from hybridworld.data.stream import PAIRS, default_buffer
from hybridworld.errors import InvalidInput
from hybridworld.physics.arguments import number
from hybridworld.physics.environment import Environment
from hybridworld.physics.threads import thread_count
from hybridworld.surrogate.budget import Costs, Division, divide, fitting, pace, samples_within, time_trajectories
from hybridworld.surrogate.config import TrainingConfig, parse_wishes
from hybridworld.surrogate.normalisation import MOST
from hybridworld.surrogate.parallel import team
from hybridworld.surrogate.train import Task
from hybridworld.training.material import Material, find_material, from_solver, in_words

FILE, DATA = "schedule.json", "data"
DISK = 16e9
"""Bytes of a training set at most, and a quarter of what the disk has free."""
TIMED_SHARE = 0.04
"""The share of a budget in which trajectories are timed, and again in which steps are."""
FILLING = 0.15
"""The share of a budget in which the window of a stream is filled."""
UNITS = 0.05
"""The share of a budget in which units are measured, where that takes trajectories of its own."""
FEWEST_UNITS = 8
LEAST_MINUTES = 0.05
MOST_MINUTES = 100_000
"""The smallest and the largest budget of a training: three seconds, and more than two months."""


@dataclass(frozen=True)
class Clock:
    """The time that a budget of `minutes` leaves, counted from `began` (of time.monotonic)."""

    minutes: float
    began: float

    def __post_init__(self) -> None:
        number("The number of minutes", self.minutes, 0, MOST_MINUTES)

    @property
    def budget(self) -> float:
        """The whole budget in seconds."""
        return 60 * self.minutes

    @property
    def spent(self) -> float:
        """Seconds since the command began."""
        return time.monotonic() - self.began

    @property
    def left(self) -> float:
        """Seconds until the budget is spent."""
        return self.budget - self.spent


@dataclass(frozen=True)
class Schedule:
    """What fits into the budget; what is 0 is not known yet, or not needed."""

    minutes: float
    source: str
    """Where its pairs come from: one of the three SOURCES."""
    costs: Costs
    division: Division
    pairs: int = 0
    """Pairs that each trajectory of a stream serves."""
    buffer: int = 0
    """Trajectories in the window of a stream."""
    units: int = MOST
    data_seconds: float = 0.0
    samples: int = 0
    """Training samples per epoch."""
    finished: bool = False
    """Whether the training has ended; the training set that was made for it is deleted then."""

    def save(self, folder: Path) -> None:
        """Write the schedule into the folder of the run."""
        make_folder(folder)
        write_atomically(folder / FILE, (json.dumps(asdict(self), indent=1) + "\n").encode())

    @classmethod
    def load(cls, folder: Path, minutes: float, source: str) -> Self | None:
        """The schedule of the run in this folder; None where there is none, and refused if minutes or source differ."""
        path = folder / FILE
        if not path.is_file():
            return None
        try:
            content = json.loads(path.read_text())
            found = cls(**content | {"costs": Costs(**content["costs"]), "division": Division(**content["division"])})
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidInput(f"{path} is damaged: delete {folder} to begin anew.") from error
        if (found.minutes, found.source) != (minutes, source):
            raise InvalidInput(
                f"{folder} holds a training of {found.minutes:g} minutes from {found.source}, and this one has {minutes:g} "
                f"minutes from {source}: choose another folder, or delete it."
            )
        return found

    def wishes(self, given: Sequence[str]) -> list[str]:
        """All settings as `section.key=value`: the given ones, and those that follow from the schedule."""
        settings = {
            "epochs": self.division.epochs, "samples": self.samples,
            "validation": self.division.validation, "calibration": self.division.calibration,
        }  # fmt: skip
        if "patience" not in parse_wishes(given).get("training", {}):
            settings["patience"] = self.division.epochs  # its last epochs are its best
        return [*given, *(f"training.{name}={value}" for name, value in settings.items())]


@dataclass(frozen=True)
class Planner:
    """Finds the schedule and the material of a training by the clock."""

    clock: Clock
    folder: Path
    training: TrainingConfig
    """The settings of the training as they would be without a budget."""
    task: Callable[[Material], Task]
    tell: Callable[[str, str], None]

    def plan(
        self, environment: Environment | None, data: Path | None, stream: bool, stack: ExitStack
    ) -> tuple[Schedule, Material]:
        """Schedule and material: those of an interrupted run in this folder, or new ones."""
        if team().world > 1:
            raise InvalidInput("--minutes is for one process: under torchrun give --data or --stream, and training.epochs.")
        if data is None and environment is None:
            raise InvalidInput("--minutes needs a system to solve, or --data DIR: name one.")
        source = DATASET if data else STREAM if stream else OWN
        found = Schedule.load(self.folder, self.clock.minutes, source)
        if data is not None:
            material = find_material(environment, data, stream, stack)
            return found or self._for_dataset(material), material
        assert environment is not None
        if stream:
            found = found or self._for_stream(environment)
            return found, stack.enter_context(from_solver(environment, found.buffer, found.pairs, found.units))
        found = self._with_data(environment, found or self._for_own_data(environment))
        origin = {
            "source": OWN,
            "data": f"{found.division.trajectories} trajectories from the solver with {in_words(environment)}",
            "data seconds": round(found.data_seconds, 1),
        }
        if found.finished:
            train = stack.enter_context(from_solver(environment)).train  # nothing is drawn from it
        else:
            train = Dataset(self.folder / DATA).source("train")
        return found, Material(environment, train, Solved(environment, "val"), origin, environment.identity)

    def _measured(self, environment: Environment) -> Costs:
        """The seconds that a trajectory, a sample and a validated pair take on this machine."""
        self.tell("timing the solver", "a few trajectories")
        blocks, each = time_trajectories(environment, TIMED_SHARE * self.clock.budget)
        held = Held(environment.spec, blocks)
        return Costs(each, *self._pace(Material(environment, held, held, {}, environment.identity)))

    def _pace(self, material: Material) -> tuple[float, float]:
        self.tell("timing the training", "a few steps")
        return pace(self.task(material), TIMED_SHARE * self.clock.budget)

    def _divided(self, costs: Costs, most: int | None, grid: bool, whose: str, more: float = 0.0) -> Division:
        found = divide(self.clock.budget, self.clock.spent + more, costs, self.training, grid, most, whose)
        self._say(found)
        return found

    def _say(self, found: Division) -> None:
        def share(count: int, wanted: int) -> str:
            return f"{count}" if count >= wanted else f"{count} (of {wanted} without a budget)"

        choose = share(found.validation, self.training.validation)
        calibrate = share(found.calibration, self.training.calibration)
        self.tell(f"budget of {self.clock.minutes:g} min", f"{choose} trajectories choose the epoch, {calibrate} calibrate")

    def _scheduled(self, found: Schedule, more: float = 0.0) -> Schedule:
        """The schedule with its samples per epoch, which follow from all else; it is saved."""
        spent = self.clock.spent + more
        samples = samples_within(self.clock.budget, spent, found.costs, found.division, self.training)
        rate = 1 / found.costs.sample
        self.tell("schedule", f"{found.division.epochs} epochs of {samples} samples, at {rate:.3g} samples per second")
        found = replace(found, samples=samples)
        found.save(self.folder)
        return found

    def _for_dataset(self, material: Material) -> Schedule:
        environment, spec = material.environment, material.spec
        sample, forward = self._pace(replace(material, val=material.train))
        self.tell("timing the solver", "a few trajectories")
        began = time.perf_counter()
        if environment:
            _, each = time_trajectories(environment, TIMED_SHARE * self.clock.budget)
        else:
            next(iter(material.val.blocks(1)))
            each = time.perf_counter() - began
        costs = Costs(each, sample, forward)
        return self._scheduled(
            Schedule(self.clock.minutes, DATASET, costs, self._divided(costs, None, spec.is_field, spec.name))
        )

    def _for_stream(self, environment: Environment) -> Schedule:
        """A schedule in which a trajectory serves so many pairs that the solver is busy half of the time."""
        costs, budget, cores, spec = self._measured(environment), self.clock.budget, thread_count(), environment.spec
        alone = cores * costs.trajectory  # a stream solves on one core, at best as fast as all of them take
        if spec.is_field:
            pairs = max(PAIRS, round(2 * alone / costs.sample))
            buffer = min(max(int(FILLING * budget / alone), 4), default_buffer(spec))
        else:
            pairs, buffer = PAIRS, default_buffer(spec, VECTORS)
        own = time_trajectories(environment.unresolved, 0.0)[1]
        units = fitting(UNITS * budget / own, FEWEST_UNITS if spec.is_field else VECTORS, MOST)
        busy = alone / (pairs * costs.sample) / cores  # the share of the cores that the solver takes from the training
        costs = replace(costs, sample=costs.sample * (1 + busy))
        before = (buffer * alone if spec.is_field else 0.0) + units * own
        division = self._divided(costs, None, spec.is_field, spec.name, before)
        self.tell("stream", f"{pairs} pairs per trajectory, {buffer} at hand")
        return self._scheduled(Schedule(self.clock.minutes, STREAM, costs, division, pairs, buffer, units), before)

    def _for_own_data(self, environment: Environment) -> Schedule:
        """A schedule that says how many trajectories to make; its samples are known once these are there."""
        costs, spec = self._measured(environment), environment.spec
        make_folder(self.folder)
        room = min(DISK, shutil.disk_usage(self.folder).free / 4)
        most = max(int(room / Plan(environment, {"train": 1}).trajectory_bytes), 1)
        found = Schedule(self.clock.minutes, OWN, costs, self._divided(costs, most, spec.is_field, spec.name))
        found.save(self.folder)
        return found

    def _with_data(self, environment: Environment, found: Schedule) -> Schedule:
        """The whole schedule, after what is missing of the training set was made."""
        if found.finished:
            return found
        plan, done, began = Plan(environment, {"train": found.division.trajectories}), 0, time.monotonic()
        total, size = found.division.trajectories, size_in_words(plan.nbytes)

        def report(count: int) -> None:
            nonlocal done
            done += count
            self.tell("training data", f"{done} of {total} trajectories ({size} in {self.folder / DATA} until it has ended)")

        report(0)
        generate(plan, self.folder / DATA, thread_count(), report=lambda shard: report(shard.count))
        if found.samples:
            return found
        return self._scheduled(replace(found, data_seconds=found.data_seconds + time.monotonic() - began))


def end(found: Schedule, folder: Path) -> None:
    """Delete the training set that was made for this run: the training has ended."""
    if found.division.trajectories and not found.finished:
        replace(found, finished=True).save(folder)
        shutil.rmtree(folder / DATA)


def check_wishes(wishes: Sequence[str]) -> None:
    """Refuse settings that the budget decides about."""
    for name in ("epochs", "samples"):
        if name in parse_wishes(wishes).get("training", {}):
            raise InvalidInput(f"--minutes decides about training.{name}: leave out one of the two.")
