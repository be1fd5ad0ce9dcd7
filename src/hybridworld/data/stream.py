"""Trajectories straight from the solver: training pairs with no dataset at all.

    trajectory j = environment.initial(split, j), solved over spec.frames - 1 frames

A sliding window of trajectories is in memory. Where it stands depends only on how many pairs were drawn, so that what `Pairs`
draws is reproducible; a thread solves what comes into it next while the caller computes.
"""

import threading
from collections.abc import Iterator
from typing import Self

import numpy as np

from hybridworld.data.evidence import VECTORS, Solved
from hybridworld.data.pairs import Block
from hybridworld.errors import HybridWorldError, InvalidInput, SolverFailure
from hybridworld.physics.environment import Environment
from hybridworld.physics.spec import StateSpec
from hybridworld.physics.threads import thread_limit

AHEAD = 2
"""Blocks that are solved before the window reaches them."""

MEMORY = 10**9
"""Bytes that the window takes at most, unless that would be fewer than four blocks; it has no more than 32."""

PAIRS = 64
"""Pairs that a trajectory serves, unless it is said how many."""


def default_buffer(spec: StateSpec, block: int = 1) -> int:
    """The number of blocks, of so many trajectories each, in the window of a stream."""
    return int(np.clip(MEMORY // (4 * block * spec.frames * int(np.prod(spec.shape))), 4, 32))


class Stream:
    """A `TrajectorySource` whose window moves on by one trajectory per `pairs_per_trajectory` pairs.

    Trajectories come in blocks that are solved at once: one on a grid, 256 state vectors. The window has `buffer` blocks, and
    there is memory for AHEAD more, no matter how long it runs. The thread gives the solver `threads` cores and leaves the rest
    to the caller. Use it as a context, or `close` it.
    """

    def __init__(
        self,
        environment: Environment,
        split: str = "train",
        buffer: int | None = None,
        pairs_per_trajectory: int = PAIRS,
        threads: int = 1,
        block: int | None = None,
    ) -> None:
        self.spec = environment.spec
        self.frames = self.spec.frames
        self.spec.regime(split)
        block = (1 if self.spec.grid else VECTORS) if block is None else block
        buffer = default_buffer(self.spec, block) if buffer is None else buffer
        for name, value in {
            "buffer": buffer,
            "number of pairs per trajectory": pairs_per_trajectory,
            "number of threads": threads,
            "block": block,
        }.items():
            if value < 1:
                raise InvalidInput(f"The {name} of a stream is {value}: it must be at least 1.")
        self._environment, self._split, self._threads = environment, split, threads
        self._buffer, self._block, self._pairs = buffer, block, pairs_per_trajectory
        channels, *grid = self.spec.shape
        self._states = np.empty((buffer + AHEAD, block, channels, self.frames, *grid), np.float32)  # block b is at b % len
        self._solved: dict[int, np.ndarray | HybridWorldError] = {}  # block -> its params, or why there is none
        self._first = 0
        self._closed = False
        self._changed = threading.Condition()  # guards all of the above
        self._thread: threading.Thread | None = None

    def window(self, drawn: int) -> range:
        """The `buffer` blocks that follow those that have served their pairs."""
        with self._changed:
            self._check_open()
            self._first = drawn // (self._pairs * self._block)
            self._solved = {block: found for block, found in self._solved.items() if block in self._kept}
            self._changed.notify_all()
            if self._thread is None:  # not before it is known where to begin
                self._thread = threading.Thread(target=self._solve_ahead, name="stream", daemon=True)
                self._thread.start()
            return range(self._first * self._block, (self._first + self._buffer) * self._block)

    def params(self, trajectories: np.ndarray) -> np.ndarray:
        """Parameters of the dynamics, float64 (batch, number of spec.params)."""
        blocks, rows = np.divmod(trajectories, self._block)
        with self._changed:
            params = self._wait_for(blocks)
            return np.stack([params[block][row] for block, row in zip(blocks.tolist(), rows.tolist(), strict=True)])

    def read(self, trajectories: np.ndarray, frames: np.ndarray) -> np.ndarray:
        """One state per pair (trajectory, frame) of the window: float32 (batch, channels, *grid)."""
        if ((frames < 0) | (frames >= self.frames)).any():
            raise InvalidInput(f"The frames reach from {min(frames)} to {max(frames)}: allowed are 0 to {self.frames - 1}.")
        blocks, rows = np.divmod(trajectories, self._block)
        with self._changed:  # until all is copied, nothing may take its place
            self._wait_for(blocks)
            return self._states[blocks % len(self._states), rows, :, frames]

    def blocks(self, count: int) -> Iterator[Block]:
        """The first `count` trajectories whose kinds stand in their shares, for units; they are solved apart from the window.

        A reference on a finer grid is not needed for units: the system's own solver gives them at a fraction of the price.
        """
        return Solved(self._environment.unresolved, self._split).blocks(count)

    def close(self) -> None:
        """End the thread (it finishes the block under way) and give the memory back."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()
        self._states = self._states[:0].copy()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def _kept(self) -> range:
        return range(self._first, self._first + self._buffer + AHEAD)

    def _check_open(self) -> None:
        if self._closed:
            raise InvalidInput(f"The stream of {self.spec.name} is closed.")

    def _wait_for(self, blocks: np.ndarray) -> dict[int, np.ndarray]:
        """The params of these blocks, once they are solved."""
        needed = set(blocks.tolist())

        def outside() -> bool:
            return not all(self._first <= block < self._first + self._buffer for block in needed)

        self._changed.wait_for(lambda: self._closed or outside() or needed <= self._solved.keys())
        self._check_open()
        if outside():
            raise InvalidInput(f"The stream of {self.spec.name} has moved on: its window begins at block {self._first}.")
        params = {}
        for block in sorted(needed):
            found = self._solved[block]
            if isinstance(found, HybridWorldError):
                raise found
            params[block] = found
        return params

    def _next(self) -> int | None:
        return next((block for block in self._kept if block not in self._solved), None)

    def _solve_ahead(self) -> None:
        with thread_limit(self._threads):
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self._closed or self._next() is not None)
                    block = self._next()
                    if self._closed or block is None:
                        return
                seeds = range(block * self._block, (block + 1) * self._block)
                found = self._solve(seeds, self._states[block % len(self._states)])
                with self._changed:
                    if block in self._kept:
                        self._solved[block] = found
                        self._changed.notify_all()

    def _solve(self, seeds: range, room: np.ndarray) -> np.ndarray | HybridWorldError:
        """Put trajectories into room (len(seeds), channels, frames, *grid); returns their params, or why there are none."""
        try:
            states, params = self._environment.initials(self._split, seeds)
            self._environment.record(states, self.frames - 1, params, room)
            return params
        except Exception as error:
            if len(seeds) == 1:
                why = str(error) if isinstance(error, HybridWorldError) else f"{type(error).__name__}: {error}"
                failure = SolverFailure(f"{self.spec.name}: trajectory {seeds[0]} of split '{self._split}' failed: {why}")
                failure.__cause__ = error
                return failure
        rows = []
        for row in range(len(seeds)):  # which of them fails?
            found = self._solve(seeds[row : row + 1], room[row : row + 1])
            if isinstance(found, HybridWorldError):
                return found
            rows.append(found)
        return np.concatenate(rows)
