"""A system whose reference runs on a finer grid: states stay on the system's own cells, as averages.

    record:  state -> prolong -> fine frame -> fine frame -> ...        the truth: averaged for the record alone
                                  | average     | average
    solve:   state -> prolong -> fine frames -> average                 forgets what lies below the cell

`prolong` gives each cell a limited linear field with the cell's average. It costs as much as a constant one, and its error
after prolonging a developed flow is 2 (Euler) to 6 (Oregonator) times smaller.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from hybridworld.errors import InvalidInput, SolverFailure
from hybridworld.physics.arguments import checked_params, first_non_finite, whole
from hybridworld.physics.brushes import Brush
from hybridworld.physics.environment import Environment, Sample
from hybridworld.physics.grids import coarsen, prolong, repeated
from hybridworld.physics.spec import StateSpec
from hybridworld.physics.symmetry import Symmetry


@dataclass(frozen=True)
class Resolved(Environment):
    """`system` with a reference on a grid `factor` times finer, computed in `dtype` where the system offers a choice.

    Single precision is the default: it is faster, and its error is far below that of the grid.
    """

    system: Environment
    factor: int
    dtype: str = "float32"
    semigroup = False

    def __post_init__(self) -> None:
        if not self.system.spec.is_field:
            raise InvalidInput(f"{self.system.spec.name} has no grid, so its reference cannot run on a finer one.")
        if isinstance(self.system, Resolved):
            raise InvalidInput(f"{self.system.spec.name} is resolved already: take its `unresolved` first.")
        object.__setattr__(self, "version", self.system.version)
        self.reference()

    @property
    def spec(self) -> StateSpec:
        spec = self.system.spec
        return replace(spec, title=f"{spec.title} (reference {self.factor}x finer)")

    @property
    def identity(self) -> dict[str, Any]:
        fine, _ = self.reference()
        precision = {"resolved_dtype": self.dtype} if fine.offers("dtype") else {}
        return {**self.system.identity, "resolved": self.factor, **precision}

    @property
    def unresolved(self) -> Environment:
        return self.system

    def resolved(self, factor: int) -> Environment:
        return self.system.resolved(factor)

    def reference(self) -> tuple[Environment, int]:
        """The solver on the finer grid, and how many of its frames make one of these."""
        fine, frames = self.system.refined(self.factor)
        return fine.in_precision(self.dtype) if fine.offers("dtype") else fine, frames

    def sample(self, rng: np.random.Generator, split: str) -> Sample:
        """A beginning on the system's own grid, burn-in included."""
        return self.system.sample(rng, split)

    def prolonged(self, states: np.ndarray) -> np.ndarray:
        """States (batch, channels, *grid) on the grid of the reference."""
        return prolonged(self.reference()[0], self.spec, states.astype(np.float64), self.factor)

    def averaged(self, states: np.ndarray) -> np.ndarray:
        """States of the reference on the cells of the system, as float64."""
        with np.errstate(over="ignore", invalid="ignore"):  # the caller tells what is not finite
            return coarsen(self.system.spec, states.astype(np.float64), self.factor)

    def advance(self, states: np.ndarray, frames: int, params: np.ndarray) -> np.ndarray:
        """Prolong, run the reference, average: what lay below the cells of `states` is lost at each call.

        So `solve(a + b)` is not `solve(b)` after `solve(a)`; `trajectory` and `record` stay on the finer grid.
        """
        if frames == 0:
            return states.astype(np.float64)
        fine, per_frame = self.reference()
        return self.averaged(fine.advance(self.prolonged(states), frames * per_frame, params))

    def trajectory(self, states: np.ndarray, frames: int, params: np.ndarray | None = None) -> Iterator[np.ndarray]:
        """The truth: one run of the reference on the finer grid, of which each frame is averaged on the way out."""
        batch, single = self.checked(states)
        rows = checked_params(self.spec, params, len(batch))
        fine, per_frame = self.reference()
        yield states
        now = self.prolonged(batch)
        for frame in range(1, whole(f"{self.spec.name}: frames", frames) + 1):
            now = fine.advance(now, per_frame, rows)
            answer = self.averaged(now)
            bad = first_non_finite(answer)
            if bad:
                raise self._failure(rows, bad[0], frame)
            yield answer[0] if single else answer

    def _failure(self, params: np.ndarray, row: int, frame: int) -> SolverFailure:
        told = super()._failure(params, row, frame)
        return SolverFailure(f"{told} If its step is too long for a grid {self.factor} times finer, define `with_steps`.")

    # The rest is the system's own.

    def resized(self, grid: tuple[int, ...]) -> Self:
        return replace(self, system=self.system.resized(grid))

    def offers(self, name: str) -> bool:
        return self.system.offers(name)

    def in_precision(self, dtype: str) -> Self:
        self.system.in_precision(dtype)  # refuses where there is no choice
        return replace(self, dtype=dtype)

    def with_steps(self, factor: float) -> tuple[Environment, float] | None:
        found = self.system.with_steps(factor)
        return None if found is None else (replace(self, system=found[0]), found[1])

    def exact(self, states: np.ndarray, frames: int, params: np.ndarray) -> np.ndarray | None:
        return self.system.exact(states, frames, params)

    def conserved(self, states: np.ndarray, params: np.ndarray) -> Mapping[str, np.ndarray]:
        return self.system.conserved(states, params)

    def check_physical(self, states: np.ndarray) -> None:
        self.system.check_physical(states)

    def blank(self) -> np.ndarray:
        return self.system.blank()

    @property
    def brushes(self) -> tuple[Brush, ...]:
        return self.system.brushes

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        return self.system.symmetries

    @property
    def presets(self) -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
        return self.system.presets


def prolonged(fine: Environment, spec: StateSpec, states: np.ndarray, factor: int) -> np.ndarray:
    """`prolong`, with slopes of a state halved, or left out at last, as long as the system `fine` calls it unphysical."""
    answer = prolong(spec, states, factor)
    for row, linear in enumerate(answer):
        constant = repeated(spec, states[row], factor)
        for share in (1, 0.5, 0.25, 0):
            answer[row] = linear if share == 1 else constant + share * (linear - constant)
            try:
                fine.check_physical(answer[row : row + 1])
                break
            except InvalidInput:
                continue
    return answer
