"""A training by the clock: how much of everything fits into so many seconds, from costs that were measured on this machine.

    solver time        V trajectories choose the epoch, M are learned from, C calibrate
    network time       a few steps of a training that is thrown away tell what a sample costs
    division           evidence and verdict get their shares, at most what the preset asks for; data and training get the rest

Everything is counted before the first step, so that a schedule is fixed: a training that goes on is that training.
"""

import time
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import count as count_from

import torch

from hybridworld.data.evidence import VECTORS, Solved, evidence_pairs
from hybridworld.data.pairs import Block
from hybridworld.errors import InvalidInput
from hybridworld.physics.environment import Environment
from hybridworld.surrogate.config import TrainingConfig
from hybridworld.surrogate.horizons import calibrated_horizons
from hybridworld.surrogate.objective import Objective
from hybridworld.surrogate.parallel import team
from hybridworld.surrogate.train import MAP_EVERY, Task, begin, pairs_for, update
from hybridworld.surrogate.validation import validation_errors

AIM = 0.97
"""The share of a budget that is given away: measured costs are rough."""
DATA, VALIDATION, CALIBRATION, VERDICT, TRAINING = 0.25, 0.08, 0.1, 0.07, 0.2
"""Shares of a budget; of data and training the first is the most, the last the least that makes sense."""
EPOCHS = (3, 10)
"""The fewest and the most: each ends with a validation, which may be expensive."""
PAIRS = 16
"""Pairs that are drawn from a trajectory at least: fewer trajectories serve as well as more of them."""
FEWEST = 8
"""Fields that are learned from, and that choose an epoch, at least; state vectors are solved 256 at once."""
FEWEST_CALIBRATING = 10
"""What it takes to promise a coverage of 90 %."""
TIMED, VALIDATED = 5, 2
"""Fields whose solving is timed, at most, and whose validation is."""
REFERENCE_CALLS = 8
"""Trajectories whose price a verdict has at least."""
FIRST_STEPS = 3
"""Training steps at the start of a process, which are slower than the others."""


@dataclass(frozen=True)
class Costs:
    """What things cost on this machine, in seconds."""

    trajectory: float
    """Seconds to solve one trajectory with all cores."""
    sample: float
    """Seconds of training per sample."""
    forward: float
    """Seconds of a forward pass per pair that is validated."""


@dataclass(frozen=True)
class Division:
    """How a budget is divided: the counts of a training that fit into it, and the time for what follows."""

    trajectories: int
    """Trajectories that are made to be learned from; 0 where they come from elsewhere."""
    epochs: int
    validation: int
    calibration: int
    verdict: float
    """Seconds that are kept for the verdict against solvers at the end."""
    calibrating: float
    """Seconds that calibration will take."""


def time_trajectories(environment: Environment, seconds: float) -> tuple[list[Block], float]:
    """A few training trajectories, kinds of initial state in their shares, and the seconds that each takes; compiles first."""
    first = environment.initial("train", 0)
    environment.solve(first.state, 1, first.params)
    began, blocks = time.perf_counter(), []
    for block in Solved(environment, "train").blocks(TIMED if environment.spec.is_field else VECTORS):
        blocks.append(block)
        if time.perf_counter() - began > seconds:
            break
    return blocks, (time.perf_counter() - began) / sum(len(block.states) for block in blocks)


def pace(task: Task, seconds: float) -> tuple[float, float]:
    """Seconds per training sample and per validated pair, from the first steps of a training that is thrown away."""
    us, training = team(), task.config.training
    few = VALIDATED if task.train.spec.is_field else VECTORS
    with torch.random.fork_rng():
        state = begin(replace(task, units=few), None, us)
        model = Objective(state.surrogate, training, task.solve)
        with closing(pairs_for(task, state, us).batches()) as batches:
            for step in count_from():
                if step == FIRST_STEPS:
                    began = time.perf_counter()
                if step > FIRST_STEPS and time.perf_counter() - began > seconds:
                    break
                update(state, model, next(batches), us)
        sample = (time.perf_counter() - began) / ((step - FIRST_STEPS) * training.batch)
        checks = evidence_pairs(task.val, training.horizons, few, training.seed)
        validation_errors(state.kept, checks)
        began = time.perf_counter()
        validation_errors(state.kept, checks)
        return sample, (time.perf_counter() - began) / sum(len(batch.states) for batch in checks.values())


def divide(
    budget: float, spent: float, costs: Costs, training: TrainingConfig, grid: bool, most: int | None, whose: str
) -> Division:
    """What fits into `budget` seconds of which `spent` are gone, with at most `most` new training trajectories (None: none).

    Raises where there is no sense in so short a training of `whose` system.
    """
    found = _divided(budget, spent, costs, training, grid, most)
    if found is None:
        enough = budget
        while not _divided(enough, spent, costs, training, grid, most):
            enough *= 1.1
        raise InvalidInput(
            f"{budget / 60:g} minutes are too short for {whose}, of which a trajectory takes {costs.trajectory:.2g} s and a "
            f"training sample {costs.sample:.2g} s here: give it {enough / 60:.2g} minutes."
        )
    return found


def _divided(
    budget: float, spent: float, costs: Costs, training: TrainingConfig, grid: bool, most: int | None
) -> Division | None:
    fewest = FEWEST if grid else VECTORS
    each = passing_seconds(costs, training)
    epochs = fitting((VALIDATION * budget / min(fewest, training.validation) - costs.trajectory) / each, *EPOCHS)
    choosing, calibrating = costs.trajectory + epochs * each, calibrating_seconds(costs, training)
    validation = fitting(VALIDATION * budget / choosing, fewest, training.validation)
    calibration = fitting(CALIBRATION * budget / calibrating, FEWEST_CALIBRATING if grid else VECTORS, training.calibration)
    verdict = max(VERDICT * budget, REFERENCE_CALLS * costs.trajectory)
    rest = AIM * budget - spent - verdict - validation * choosing - calibration * calibrating
    trajectories = 0
    if most is not None:
        trajectories = int(min(most, DATA * budget / costs.trajectory, rest / (costs.trajectory + PAIRS * costs.sample)))
    enough = rest - trajectories * costs.trajectory >= TRAINING * budget and (most is None or trajectories >= min(fewest, most))
    return Division(trajectories, epochs, validation, calibration, verdict, calibration * calibrating) if enough else None


def samples_within(budget: float, spent: float, costs: Costs, division: Division, training: TrainingConfig) -> int:
    """Samples per epoch that fill what is left once the data are there."""
    choosing = division.validation * (costs.trajectory + division.epochs * passing_seconds(costs, training))
    left = AIM * budget - spent - choosing - division.calibrating - division.verdict
    steps = int(left / (division.epochs * costs.sample * training.batch))
    return max(steps, 1) * training.batch


def passing_seconds(costs: Costs, training: TrainingConfig) -> float:
    """Seconds of one trajectory in one epoch: validated at all horizons, and now and then its error map drawn."""
    passes = 1 + (training.weighting == "guide") + 3 / MAP_EVERY
    return passes * len(training.horizons) * costs.forward


def calibrating_seconds(costs: Costs, training: TrainingConfig) -> float:
    """Seconds of one trajectory that calibrates: solved, and its error map drawn at each horizon."""
    return costs.trajectory + 3 * len(calibrated_horizons(training.horizons)) * costs.forward


def fitting(count: float, fewest: int, most: int) -> int:
    """The whole number of things that fit, at least `fewest`, and never more than `most`."""
    return min(max(int(count), fewest), most)
