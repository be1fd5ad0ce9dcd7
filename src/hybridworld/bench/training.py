"""How fast does training run, beside the loop that one would write by hand, and what makes it faster? All in one run.

    plain loop      batches in memory, loss, backward, clip, AdamW as torch has it: `plain_loops`
    our loop        `surrogate.train`, fed by a solver at work in the background, with checkpoints and callbacks

Loops take turns, a round of steps each, so that whatever else the machine does hits all of them alike; the median of the rounds
counts. In each of its rounds our loop has trajectories to solve and a checkpoint to write, more often than in a training.
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import inf
from pathlib import Path
from statistics import median

import torch
from torch import Tensor

from hybridworld.bench.plain_loops import (
    FEW,
    Loop,
    Tensors,
    network_alone,
    plain_step,
    prepare,
    same_threads_afterwards,
    take_turns,
    whole_batch,
)
from hybridworld.data.evidence import VECTORS, Solved, evidence_pairs
from hybridworld.data.pairs import Batch, Pairs
from hybridworld.data.stream import Stream
from hybridworld.physics.environment import Environment
from hybridworld.surrogate.checkpoint import State
from hybridworld.surrogate.config import Config, TrainingConfig, configure
from hybridworld.surrogate.normalisation import measure
from hybridworld.surrogate.objective import Objective
from hybridworld.surrogate.parallel import threads_for
from hybridworld.surrogate.pieces import rows_at_once
from hybridworld.surrogate.surrogate import Surrogate
from hybridworld.surrogate.train import Task, Watch, train
from hybridworld.surrogate.validation import to_tensors, validation_errors

BATCHES = 4  # that plain loops take in turn
PAIRS = 64  # per trajectory at most, as a stream has it

Tell = Callable[[str], None]


@dataclass(frozen=True)
class TrainTiming:
    """Rates are samples per second; what follows from them is computed here."""

    batch: int
    threads: int
    rounds: int
    plain_whole: float
    """The rate of the plain loop with the second term on the whole batch, as one writes it by hand."""
    plain_share: float
    """The rate of the plain loop with our objective."""
    plain_none: float
    """The rate of the plain loop without the second term of the objective."""
    ours: float
    forward_ms: float
    validation_s: float
    epochs: int
    samples: int  # per epoch
    net_batch: int
    net_rate: float
    variants: Mapping[str, float | None]
    """Rate of the network alone relative to `net_rate`; None: not available here."""

    @property
    def ratio(self) -> float:
        """The rate of our loop over that of the one written by hand."""
        return self.ours / self.plain_whole

    @property
    def ratio_same_objective(self) -> float:
        """What is left of the plain loop's rate once data, checkpoints and callbacks are paid for."""
        return self.ours / self.plain_share

    @property
    def validation_share(self) -> float:
        """The share of an epoch's time that validation takes."""
        return self.validation_s / (self.validation_s + self.samples / self.ours)

    @property
    def paper_hours(self) -> float:
        """Hours that all epochs of the paper take, each with its validation."""
        return self.epochs * (self.samples / self.ours + self.validation_s) / 3600

    def as_dict(self) -> dict[str, object]:
        """All numbers as plain data."""
        derived = ("ratio", "ratio_same_objective", "validation_share", "paper_hours")
        return asdict(self) | {name: getattr(self, name) for name in derived}


class Enough(Exception):
    """Ends a loop that is timed, once it has run all its rounds."""


def time_training(environment: Environment, seconds: float, steps: int | None, compiled: bool, tell: Tell) -> TrainTiming:
    """Give each loop so many seconds, or steps; the network alone gets half the time. `tell` hears what is being measured."""
    spec, config = environment.spec, configure(environment.spec, "paper", presets=environment.presets)
    training, threads = config.training, threads_for(spec)
    few = FEW if spec.is_field else training.batch
    pairs = min(training.validation, rows_at_once(spec))  # what one forward pass takes
    with same_threads_afterwards():
        tell("first trajectories")
        surrogate, batches, checks = material(environment, config, pairs)
        loops = loops_by_hand(surrogate, training, batches, checks, threads)
        tell("warm-up")
        rounds = prepare(loops.values(), seconds, steps)
        ours = beside_ours(environment, config, loops, rounds, tell)
        tell("warm-up of the network alone")
        alone = network_alone(surrogate, training, [first(few, *batch) for batch in batches], threads, compiled)
        working = [loop for loop in alone.values() if loop]
        for turn in range(prepare(working, seconds / 2, steps)):
            tell(f"the network alone, round {turn + 1}")
            take_turns(working)
    measured = {name: median(loop.seconds) for name, loop in loops.items()}
    rates = {name: training.batch / each for name, each in measured.items()}
    variants = {name: median(loop.seconds) if loop else None for name, loop in alone.items()}
    default = variants.pop("as used") or inf
    return TrainTiming(
        training.batch, threads, rounds, rates["whole"], rates["share"], rates["none"], training.batch / ours,
        1e3 * measured["forward"], measured["validation"] * training.validation / pairs,
        training.epochs, training.steps_per_epoch * training.batch,
        few, few / default, {name: default / each if each else None for name, each in variants.items()},
    )  # fmt: skip


def material(environment: Environment, config: Config, pairs: int) -> tuple[Surrogate, list[Tensors], dict[int, Batch]]:
    """The network with its scales, batches as tensors, and validation pairs: all that a loop by hand has in memory."""
    training = config.training
    with Stream(environment) as source:
        measured = measure(environment.spec, source, training.horizons, training.seed)
        surrogate = Surrogate(environment.spec, config.surrogate, measured.scales)
        draw = Pairs(source, training.batch, training.seed, training.horizons)
        batches = [to_tensors(draw.batch(number), torch.device("cpu")) for number in range(BATCHES)]
        return surrogate, batches, evidence_pairs(Solved(environment, "val"), training.horizons, pairs, training.seed)


def first(count: int, states: Tensor, horizons: Tensor, params: Tensor, futures: Tensor) -> Tensors:
    """The first samples of a batch."""
    return states[:count], horizons[:count], params[:count], futures[:count]


def loops_by_hand(
    surrogate: Surrogate, training: TrainingConfig, batches: Sequence[Tensors], checks: Mapping[int, Batch], threads: int
) -> dict[str, Loop]:
    """The three plain loops, and what else is timed between them: validation, and one state alone."""
    state, horizon, params, _ = first(1, *batches[0])

    def forward() -> Tensor:
        with torch.no_grad():
            return surrogate(state, horizon, params)

    def our_objective(net: Surrogate, batch: Tensors) -> Iterator[Tensor]:
        yield Objective(net, training)(*batch)

    return {
        "whole": Loop(plain_step(surrogate, training, batches, whole_batch(training.dagger)), threads),
        "share": Loop(plain_step(surrogate, training, batches, our_objective), threads),
        "none": Loop(plain_step(surrogate, training, batches, whole_batch(0.0)), threads),
        "validation": Loop(lambda: validation_errors(surrogate, checks), threads, share=0.2),
        "forward": Loop(forward, threads, share=0.2),
    }


def beside_ours(environment: Environment, config: Config, loops: Mapping[str, Loop], rounds: int, tell: Tell) -> float:
    """Seconds per step of our loop, which has as many steps as the plain one with its objective, and takes turns with all.

    Between two of its steps a training stands still, so the other loops run there, while the clock of ours is stopped.
    """
    like = loops["share"]
    endless = config.training.model_copy(update={"samples": 10**9, "validation": 1})  # validation is timed apart
    seconds: list[float] = []
    began, due = 0.0, False

    def on_step(state: State, loss: float) -> None:
        nonlocal began, due
        due = False
        tell(f"round {len(seconds) + 1}, step {state.step}, loss {loss:.3g}")
        if (state.step - 1) % like.steps:  # the first step is the warm-up
            return
        if state.step > 1:
            seconds.append((time.perf_counter() - began) / like.steps)
        if len(seconds) == rounds:
            raise Enough
        take_turns(loops.values())
        torch.set_num_threads(like.threads)
        due = True  # the round begins with a checkpoint
        began = time.perf_counter()

    block = 1 if environment.spec.is_field else VECTORS
    fresh = min(max(like.steps * endless.batch // block, 1), PAIRS)  # pairs: each round uses up a block of trajectories
    with (
        tempfile.TemporaryDirectory() as folder,
        Stream(environment, pairs_per_trajectory=fresh) as source,
    ):
        known = config.model_copy(update={"training": endless})
        task = Task(known, source, Solved(environment, "val"), environment.symmetries, environment.solve)
        try:
            train(task, Path(folder), Watch(on_step=on_step, checkpoint_due=lambda elapsed: due))
        except Enough:
            return median(seconds)
    raise AssertionError("A training without end has ended.")
