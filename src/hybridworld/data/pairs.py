"""What a surrogate learns from: a state, a horizon, the parameters, and the state that many frames later.

Batch number k is a pure function of (seed, k): a run that resumes at batch k sees what an uninterrupted one would have seen.
"""

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count as count_from
from typing import Protocol

import numpy as np

from hybridworld.errors import InvalidInput
from hybridworld.physics.spec import StateSpec
from hybridworld.physics.symmetry import Symmetry


@dataclass(frozen=True)
class Block:
    """Whole trajectories, few enough to be in memory together."""

    params: np.ndarray  # (rows, number of spec.params)
    states: np.ndarray  # float32 (rows, channels, frames, *grid)


class Evidence(Protocol):
    """Trajectories one after the other, each seen once: what units are measured from, and what a model is judged by."""

    def blocks(self, count: int) -> Iterator[Block]:
        """The first `count` trajectories, or as many as there are; the same at each call."""


class TrajectorySource(Evidence, Protocol):
    """Numbered trajectories of equal length, of which some are at hand at a time: a split on disk, or a solver at work."""

    @property
    def spec(self) -> StateSpec:
        """What their states mean."""

    @property
    def frames(self) -> int:
        """States per trajectory."""

    def window(self, drawn: int) -> range:
        """The trajectories at hand once `drawn` pairs were drawn; `params` and `read` are about these, until the next call."""

    def params(self, trajectories: np.ndarray) -> np.ndarray:
        """Parameters of the dynamics, float64 (batch, number of spec.params)."""

    def read(self, trajectories: np.ndarray, frames: np.ndarray) -> np.ndarray:
        """One state per pair (trajectory, frame), float32 (batch, channels, *grid), in memory that is the caller's."""


@dataclass(frozen=True)
class Batch:
    """futures[i] = solution `horizons[i]` frames after states[i], for the dynamics with params[i]."""

    states: np.ndarray  # float32 (batch, channels, *grid)
    horizons: np.ndarray  # int64 (batch,), in frames
    params: np.ndarray  # float32 (batch, number of spec.params)
    futures: np.ndarray  # float32 (batch, channels, *grid)


@dataclass(frozen=True)
class GuidedBatch(Batch):
    """A batch with what a guide makes of its states."""

    guide: np.ndarray  # float32 (batch, channels, *latent grid)


class Pairs:
    """An endless sequence of random batches, each of which can be had by its number.

    Trajectory and start are uniform, and so is the horizon unless `probabilities` (one per horizon) are given.
    With `symmetries` (those of the environment) each pair is seen through a random one of them; with `shifts` it is also moved
    by a random number of cells along the periodic axes, which is right wherever
    the dynamics are the same everywhere. `shard` = (rank, world) is for `world` processes at once: rank takes the samples
    rank, rank + world, ... of the batch that one process with a batch `world` times as large would have drawn. A `guide`
    (states, horizons, params) -> coarse futures is run on each batch, in the thread that prepares it. A `share` of the samples
    comes from the pairs `given` instead, whose horizons are their own.
    """

    def __init__(
        self,
        source: TrajectorySource,
        batch: int = 8,
        seed: int = 0,
        horizons: Sequence[int] | None = None,
        symmetries: Sequence[Symmetry] = (),
        shifts: bool = False,
        shard: tuple[int, int] = (0, 1),
        probabilities: Sequence[float] | None = None,
        guide: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray] | None = None,
        given: Batch | None = None,
        share: float = 0.5,
    ) -> None:
        spec, (rank, world) = source.spec, shard
        drawn = tuple(spec.horizons if horizons is None else horizons)
        if batch < 1:
            raise InvalidInput(f"The batch size is {batch}: it must be at least 1.")
        if seed < 0:
            raise InvalidInput(f"The seed is {seed}: it must be 0 or more.")
        if not drawn or min(drawn) < 1 or max(drawn) >= source.frames:
            raise InvalidInput(
                f"The horizons are {', '.join(map(str, drawn)) or 'none'}: with {source.frames} frames per trajectory "
                f"they must be among 1 to {source.frames - 1}."
            )
        if not 0 <= rank < world:
            raise InvalidInput(f"The shard is {rank} of {world}: the rank must be among 0 to {world - 1}.")
        for each in symmetries:
            if len(each.axes) != len(spec.axes) or (
                spec.is_field and tuple(spec.grid[axis] for axis in each.axes) != spec.grid
            ):
                raise InvalidInput(f"The symmetry {each.name} does not map the grid {spec.grid} of {spec.name} onto itself.")
        self.source, self.seed, self.horizons = source, seed, np.array(drawn)
        self._probabilities = None if probabilities is None else np.asarray(probabilities)
        self.symmetries, self.guide, self._given = tuple(symmetries), guide, given
        self._taken = np.diff(np.floor(share * np.arange(batch * world + 1) + 0.5)) > 0  # spread evenly over a batch
        self.shifted = [axis for axis, each in enumerate(spec.axes) if each.boundary == "periodic" and spec.is_field and shifts]
        self._size, self._mine = batch * world, slice(rank, None, world)
        self._one_at_a_time = threading.Lock()  # a source has one window

    def batch(self, number: int) -> Batch:
        """The batch of that number."""
        if number < 0:
            raise InvalidInput(f"The batch number is {number}: it must be 0 or more.")
        spec, frames, size = self.source.spec, self.source.frames, self._size
        rng = np.random.default_rng([self.seed, number])
        with self._one_at_a_time:
            window = self.source.window(number * size)
            # All processes draw for all of them; what augments comes last, so that it leaves the choice of pairs alone.
            trajectories = rng.integers(window.start, window.stop, size)[self._mine]
            horizons = rng.choice(self.horizons, size, p=self._probabilities)
            starts = rng.integers(0, frames - horizons)[self._mine]
            horizons = horizons[self._mine]
            turns = rng.integers(max(len(self.symmetries), 1), size=size)[self._mine]
            shifts = rng.integers(0, [spec.grid[axis] for axis in self.shifted], (size, len(self.shifted)))[self._mine]
            params = self.source.params(trajectories)
            both = self.source.read(np.tile(trajectories, 2), np.concatenate([starts, starts + horizons]))
        if self._given is not None:
            places = np.flatnonzero(self._taken[self._mine])
            rows = rng.integers(len(self._given.states), size=size)[self._mine][places]
            horizons[places], params[places] = self._given.horizons[rows], self._given.params[rows]
            both[places], both[len(starts) + places] = self._given.states[rows], self._given.futures[rows]
        self._turn(both, np.tile(turns, 2), Symmetry.apply)
        self._turn(params, turns, Symmetry.apply_params)
        self._shift(both, np.tile(shifts, (2, 1)))
        states, futures = both[: len(starts)], both[len(starts) :]
        params = params.astype(np.float32)
        if self.guide is None:
            return Batch(states, horizons, params, futures)
        return GuidedBatch(states, horizons, params, futures, self.guide(states, horizons, params))

    def batches(self, start: int = 0, prefetch: int = 2) -> Generator[Batch]:
        """Batches start, start + 1 ... without end; a thread prepares the next `prefetch` of them until the iterator is closed.

        Its `close` (or `contextlib.closing`) ends the thread; so does an error, which is raised here.
        """
        if prefetch < 1:
            yield from map(self.batch, count_from(start))
            return
        with ThreadPoolExecutor(1, "pairs") as thread:
            try:
                ahead = deque(thread.submit(self.batch, number) for number in range(start, start + prefetch))
                for number in count_from(start + prefetch):
                    ready = ahead.popleft().result()
                    ahead.append(thread.submit(self.batch, number))
                    yield ready
            finally:
                thread.shutdown(cancel_futures=True)

    def _turn(self, values: np.ndarray, turns: np.ndarray, apply: Callable[..., np.ndarray]) -> None:
        """Map each state, or its parameters, by its symmetry, in place: all of one symmetry at once."""
        for number, symmetry in enumerate(self.symmetries):
            rows = np.flatnonzero(turns == number)
            if len(rows):
                values[rows] = apply(symmetry, self.source.spec, values[rows])

    def _shift(self, states: np.ndarray, shifts: np.ndarray) -> None:
        """Move each state (channels, *grid) around the periodic axes, in place."""
        if self.shifted:
            for state, shift in zip(states, shifts.tolist(), strict=True):
                state[:] = np.roll(state, shift, [1 + axis for axis in self.shifted])


def evaluation_pairs(source: TrajectorySource, horizon: int, count: int, seed: int) -> Batch:
    """The same `count` pairs at each call: trajectories in turn, so that all serve equally often, at uniform starts."""
    if not 1 <= horizon < source.frames:
        raise InvalidInput(f"The horizon is {horizon}: with {source.frames} frames it must be among 1 to {source.frames - 1}.")
    if count < 1:
        raise InvalidInput(f"The number of pairs is {count}: it must be at least 1.")
    window = source.window(0)
    trajectories = window.start + np.arange(count) % len(window)
    starts = np.random.default_rng(seed).integers(0, source.frames - horizon, count)
    params = source.params(trajectories).astype(np.float32)
    states, futures = (source.read(trajectories, frames) for frames in (starts, starts + horizon))
    return Batch(states, np.full(count, horizon), params, futures)
