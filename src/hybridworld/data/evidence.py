"""What a model is judged by: pairs from numbered trajectories that are solved, read out and dropped.

    val: numbers 0, 1, 2 ...            choose the epoch of a training
         numbers CALIBRATING, ...       calibrate thresholds and bounds
    test, ood-near, ood-far             judge, and choose nothing

Each trajectory gives one pair per horizon, so the number of pairs at a horizon is the number of independent trajectories
behind it.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import count as count_from
from itertools import islice

import numpy as np

from hybridworld.data.pairs import Batch, Block, Evidence, TrajectorySource
from hybridworld.errors import InvalidInput
from hybridworld.physics.environment import Environment, Sample, stacked
from hybridworld.physics.spec import StateSpec

CALIBRATING = 1_000_000
"""The first trajectory of `val` that calibrates; a dataset never reaches it, so none of these has chosen an epoch."""
VECTORS = 256
"""State vectors that are solved at once: one alone would take the time of all."""


@dataclass(frozen=True)
class Solved:
    """Evidence from the solver: trajectories of a split, from number `first` on, kinds of initial state in their shares."""

    environment: Environment
    split: str
    first: int = 0

    def blocks(self, count: int) -> Iterator[Block]:
        drawn = islice(samples_in_share(self.environment, self.split, self.first), count)
        return solved_blocks(self.environment, (sample for _, sample in drawn))


@dataclass(frozen=True)
class Recorded:
    """Evidence from trajectories on disk or in memory, from number `first` on, up to but not including `end`."""

    source: TrajectorySource
    first: int = 0
    end: int | None = None

    def blocks(self, count: int) -> Iterator[Block]:
        return recorded_blocks(self.source, list(self.source.window(0))[self.first : self.end][:count])


@dataclass(frozen=True)
class Supplied:
    """Evidence from a dataset of this system's split `val`; what the dataset lacks, the solver supplies."""

    source: TrajectorySource
    environment: Environment

    def blocks(self, count: int) -> Iterator[Block]:
        at_hand = len(self.source.window(0))
        drawn = list(islice(samples_in_share(self.environment, "val"), count))
        yield from recorded_blocks(self.source, [number for number, _ in drawn if number < at_hand])
        yield from solved_blocks(self.environment, (sample for number, sample in drawn if number >= at_hand))


@dataclass(frozen=True)
class Watched:
    """The same evidence; `tell` hears how many trajectories have come, beginning with 0."""

    evidence: Evidence
    tell: Callable[[int], None]

    def blocks(self, count: int) -> Iterator[Block]:
        done = 0
        self.tell(done)
        for block in self.evidence.blocks(count):
            done += len(block.states)
            self.tell(done)
            yield block


@dataclass(frozen=True)
class Until:
    """The same evidence as far as time allows: no block begins after `deadline` (of time.monotonic), but `fewest` are there."""

    evidence: Evidence
    deadline: float
    fewest: int

    def blocks(self, count: int) -> Iterator[Block]:
        done = 0
        for block in self.evidence.blocks(count):
            yield block
            done += len(block.states)
            if done >= self.fewest and time.monotonic() >= self.deadline:
                return


class Held:
    """Trajectories in memory as a `TrajectorySource`."""

    def __init__(self, spec: StateSpec, blocks: Sequence[Block]) -> None:
        self.spec, self.frames = spec, spec.frames
        self._params, self._states = (np.concatenate([getattr(each, part) for each in blocks]) for part in ("params", "states"))

    def window(self, drawn: int) -> range:
        return range(len(self._states))

    def params(self, trajectories: np.ndarray) -> np.ndarray:
        return self._params[trajectories]

    def read(self, trajectories: np.ndarray, frames: np.ndarray) -> np.ndarray:
        return self._states[trajectories, :, frames]

    def blocks(self, count: int) -> Iterator[Block]:
        return recorded_blocks(self, range(len(self._states))[:count])


def samples_in_share(environment: Environment, split: str, first: int = 0) -> Iterator[tuple[int, Sample]]:
    """Trajectory numbers from `first` on and how they begin, without end.

    Numbers are passed over where their kind of initial state already has its share: after n trajectories no kind was seen more
    than once too often, so that none is missing.
    """
    shares = environment.spec.kinds.get(environment.spec.regime(split), {})
    taken, total = Counter[str](), 0
    for number in count_from(first):
        sample = environment.initial(split, number)
        kind = str(sample.origin.get("kind"))
        if shares and kind not in shares:
            raise InvalidInput(
                f"{environment.spec.name}: trajectory {number} of '{split}' has the kind '{kind}', and spec.kinds lists "
                f"{', '.join(shares)}: `sample` must return one of them as origin['kind']."
            )
        if not shares or taken[kind] < shares[kind] * (total + 1):
            taken[kind] += 1
            total += 1
            yield number, sample


def numbers_in_share(environment: Environment, split: str, count: int, first: int = 0) -> list[int]:
    """The first `count` trajectory numbers, from `first` on, at which kinds of initial state are in their shares."""
    if not environment.spec.kinds:
        return list(range(first, first + count))
    return [number for number, _ in islice(samples_in_share(environment, split, first), count)]


def solved_blocks(environment: Environment, samples: Iterable[Sample]) -> Iterator[Block]:
    """Whole trajectories that begin with these samples: one field, or 256 state vectors, at a time."""
    waiting = iter(samples)
    while some := list(islice(waiting, 1 if environment.spec.grid else VECTORS)):
        states, params = stacked(some)
        yield Block(params, environment.record(states, environment.spec.frames - 1, params))


def recorded_blocks(source: TrajectorySource, numbers: Sequence[int]) -> Iterator[Block]:
    """Whole trajectories of a source, by their numbers: one field, or 256 state vectors, at a time."""
    size = 1 if source.spec.grid else VECTORS
    for begin in range(0, len(numbers), size):
        rows = np.array(numbers[begin : begin + size])
        states = source.read(np.repeat(rows, source.frames), np.tile(np.arange(source.frames), len(rows)))
        yield Block(source.params(rows), np.moveaxis(states.reshape(len(rows), source.frames, *states.shape[1:]), 1, 2))


def pairs_of(
    blocks: Iterable[Block], horizons: Sequence[int], rng: np.random.Generator, beginnings: bool = False
) -> Iterator[Batch]:
    """A batch per block: one pair per trajectory and horizon, at uniform starts; all pairs of a horizon stand together.

    With `beginnings` every second trajectory, the first among them, is asked at its beginning: that is where most questions of
    users start, and it is no typical state of a trajectory.
    """
    seen = 0
    for block in blocks:
        rows, frames = np.arange(len(block.states)), block.states.shape[2]
        if max(horizons) >= frames:
            raise InvalidInput(f"The horizon is {max(horizons)}: with {frames} frames it must be among 1 to {frames - 1}.")
        starts = np.stack([rng.integers(0, frames - h, len(rows)) for h in horizons])
        if beginnings:
            starts[:, (seen + rows) % 2 == 0] = 0
        seen += len(rows)
        spans, trajectories = np.repeat(horizons, len(rows)), np.tile(rows, len(horizons))
        now, later = (block.states[trajectories, :, frame].copy() for frame in (starts.ravel(), starts.ravel() + spans))
        yield Batch(now, spans, block.params[trajectories].astype(np.float32), later)


def by_horizon(batches: Iterable[Batch]) -> dict[int, Batch]:
    """Horizon -> all pairs of that horizon, in the order of their trajectories."""
    found: dict[int, list[Batch]] = {}
    for batch in batches:
        for horizon in dict.fromkeys(batch.horizons.tolist()):
            rows = batch.horizons == horizon
            found.setdefault(horizon, []).append(Batch(*(getattr(batch, each.name)[rows] for each in fields(Batch))))
    return {
        horizon: Batch(*(np.concatenate([getattr(part, each.name) for part in parts]) for each in fields(Batch)))
        for horizon, parts in found.items()
    }


def evidence_pairs(evidence: Evidence, horizons: Sequence[int], count: int, seed: int) -> dict[int, Batch]:
    """Horizon -> one pair from each of the first `count` trajectories, fewer if there are fewer; the same at each call."""
    return by_horizon(pairs_of(evidence.blocks(count), horizons, np.random.default_rng(seed)))


def fresh_pairs(
    environment: Environment, split: str, numbers: Sequence[int], horizons: Sequence[int], seed: int = 0
) -> dict[int, Batch]:
    """Horizon -> one pair from each of these trajectories, solved now; the same at each call."""
    samples = (environment.initial(split, number) for number in numbers)
    return by_horizon(pairs_of(solved_blocks(environment, samples), horizons, np.random.default_rng(seed)))
