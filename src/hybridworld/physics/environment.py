"""The contract of a physical system: (state, frames, params) -> state.

A system is a frozen dataclass that derives from `Environment` and supplies three things: `spec`, `sample` and `advance`.
Everything else here is either derived from them or optional.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from hybridworld.errors import InvalidInput, SolverFailure
from hybridworld.physics.brushes import Brush, painting
from hybridworld.physics.spec import SPLITS, StateSpec
from hybridworld.physics.symmetry import Symmetry


@dataclass(frozen=True)
class Sample:
    """The beginning of a trajectory: its state, the parameters of its dynamics, and how it came about."""

    state: np.ndarray  # (channels, *grid)
    params: np.ndarray  # (number of spec.params,)
    origin: Mapping[str, str | float] = field(default_factory=dict)
    """What else was drawn: the kind of initial state, and the parameters with role `start`."""


class Environment(ABC):
    """One physical system and its reference solver."""

    version: ClassVar[str] = "1"
    """Changes whenever the same seed or the same state would give another trajectory."""
    semigroup: ClassVar[bool] = True
    """Is `solve(a + b)` the same as `solve(b)` after `solve(a)`? Not where a state leaves out what its reference knows."""

    @property
    @abstractmethod
    def spec(self) -> StateSpec:
        """The shape and meaning of its states and parameters."""

    @abstractmethod
    def sample(self, rng: np.random.Generator, split: str) -> Sample:
        """The beginning of a random trajectory of that split; the same generator state gives the same sample."""

    @abstractmethod
    def advance(self, states: np.ndarray, frames: int, params: np.ndarray) -> np.ndarray:
        """States (batch, channels, *grid) `frames` frames later; params (batch, number of spec.params). Input stays as it is.

        Called by `solve`, which has checked the input. Call `solve`.
        """

    # What a system may add; tests, baselines and benchmarks discover it.

    def advance_numpy(self, states: np.ndarray, frames: int, params: np.ndarray) -> np.ndarray | None:
        """The same as `advance` in plain NumPy, to be read and to be compared with; None if there is no such form."""
        return None

    def exact(self, states: np.ndarray, frames: int, params: np.ndarray) -> np.ndarray | None:
        """The solution that the scheme approximates, where one is known."""
        return None

    def conserved(self, states: np.ndarray, params: np.ndarray) -> Mapping[str, np.ndarray]:
        """Quantities that the dynamics keep (until something crosses the boundary or hits a wall): name -> (batch, ...)."""
        return {}

    def record(self, states: np.ndarray, frames: int, params: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Whole trajectories from a batch of states, for storage: float32 (batch, channels, frames + 1, *grid).

        They are put into `out` if that is given: new memory of that size costs as much as the solver.
        """
        whole = room_for(states, frames) if out is None else out
        for frame, now in enumerate(self.trajectory(states, frames, params)):
            whole[:, :, frame] = now
        return whole

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """Maps of space that carry solutions to solutions; along periodic axes every shift does so as well."""
        return ()

    @property
    def presets(self) -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
        """What this system adds to a training preset: preset -> section -> setting -> value."""
        return {}

    def with_steps(self, factor: float) -> "tuple[Environment, float] | None":
        """The same physics with `factor` times as many steps (below 1: fewer), and how many of its frames make one of these.

        None where the system has no step to choose, or where the step would be too long to be stable.
        """
        return None

    def refined(self, factor: int) -> "tuple[Environment, int]":
        """The same physics on a grid `factor` times finer, and how many of its frames make one of these.

        It also takes `factor` times as many steps where there is a step to choose; override it where the grid sets the step.
        """
        fine = self.resized(tuple(factor * cells for cells in self.spec.grid))
        found = fine.with_steps(factor)
        return (fine, 1) if found is None else (found[0], int(found[1]))

    def variants(self) -> "Mapping[str, Environment]":
        """Other schemes for the same states and frames, by name, that a benchmark shall run as rivals."""
        return {}

    def check_physical(self, states: np.ndarray) -> None:
        """Raise `InvalidInput` where a finite state (batch, ...) cannot exist, say by a negative density."""

    def blank(self) -> np.ndarray:
        """A quiet state to draw on (channels, *grid)."""
        low, high = np.array(self.spec.allowed).T
        return np.broadcast_to(np.clip(0.0, low, high).reshape(-1, *[1] * len(self.spec.grid)), self.spec.shape).copy()

    @property
    def brushes(self) -> tuple[Brush, ...]:
        """Ways to draw an initial state by hand; of a field on a grid, every scalar can be painted."""

        def seen(field: str) -> tuple[float, float]:
            values = self.initial("val", 0).state[self.spec.channels.index(field)]
            low, high = float(values.min()), float(values.max())
            return (low, high) if low < high else (low - 1, high + 1)

        return painting(self.spec, seen)

    # What every system has.

    @property
    def identity(self) -> dict[str, Any]:
        """What tells this solver from another: its class, its version and all of its fields, as plain JSON values."""
        named = {"class": type(self).__name__, "version": self.version}
        if is_dataclass(self):
            return named | json.loads(json.dumps(asdict(self), default=_plain))
        return named | {"frame_step": self.spec.frame_step, "grid": list(self.spec.grid)}

    def initial(self, split: str, seed: int) -> Sample:
        """The beginning of trajectory number `seed` of a split. No two pairs (split, seed) share their random numbers."""
        self.spec.regime(split)
        if seed < 0:
            raise InvalidInput(f"The seed is {seed}: it must be 0 or more.")
        return self.sample(np.random.default_rng([SPLITS.index(split), seed]), split)

    def solve(self, states: np.ndarray, frames: int, params: np.ndarray | None = None) -> np.ndarray:
        """The reference answer: one state or a batch of states, `frames` frames later."""
        batch, single = checked_states(self.spec, states)
        if isinstance(frames, bool) or int(frames) != frames or frames < 0:
            raise InvalidInput(f"{self.spec.name}: frames is {frames}; it must be a whole number of at least 0.")
        self.check_physical(batch)
        rows = checked_params(self.spec, params, len(batch))
        answer = self.advance(batch, int(frames), rows)
        self._check_answer(batch, int(frames), rows, answer)
        return answer[0] if single else answer

    def trajectory(self, states: np.ndarray, frames: int, params: np.ndarray | None = None) -> Iterator[np.ndarray]:
        """The states now and after each of the next `frames` frames, one after the other."""
        yield states
        for _ in range(frames):
            states = self.solve(states, 1, params)
            yield states

    def halved_step(self) -> "tuple[Environment, int] | None":
        """The same physics with half the time step, and how many of its frames make one of these; None if unknown."""
        found = self.with_steps(2)
        return None if found is None else (found[0], int(found[1]))

    def resolved(self, factor: int) -> "Environment":
        """The same states with a reference on a grid `factor` times finer; factor 1 is the system itself. See `Resolved`."""
        from hybridworld.physics.resolved import Resolved

        return self if factor == 1 else Resolved(self, factor)

    @property
    def unresolved(self) -> "Environment":
        """The system whose reference runs on its own grid: this one, unless it is `Resolved`."""
        return self

    def resized(self, grid: tuple[int, ...]) -> Self:
        """The same physics on another grid over the same domain."""
        return self._with("grid", tuple(grid))

    def in_precision(self, dtype: str) -> Self:
        """The same physics computed in `float64` or `float32`."""
        return self._with("dtype", dtype)

    def coarsened(self, factor: int) -> Self:
        """The same physics on a grid with 1/factor as many cells along each axis."""
        grid = self.spec.grid
        if not grid or factor < 1 or any(cells % factor for cells in grid):
            shown = " x ".join(map(str, grid)) if grid else "no grid"
            raise InvalidInput(f"{self.spec.name} ({shown}) cannot be coarsened by {factor}: the factor must divide the grid.")
        return self.resized(tuple(cells // factor for cells in grid))

    def fitted(self, spec: StateSpec, whose: str) -> Self:
        """The same physics on the grid of other states; raises where those, of `whose`, are not states of this system."""
        mine = self.spec
        for what, here, there in (
            ("channels are", ", ".join(mine.channels), ", ".join(spec.channels)),
            ("parameters are", ", ".join(each.name for each in mine.params), ", ".join(each.name for each in spec.params)),
            ("frame step is", f"{mine.frame_step:.6g}", f"{spec.frame_step:.6g}"),
            ("number of grid axes is", len(mine.grid), len(spec.grid)),
        ):
            if here != there:
                raise InvalidInput(
                    f"{whose} does not fit the system {mine.name}: its {what} {there or 'none'}, not {here or 'none'}."
                )
        return self if mine.grid == spec.grid else self.resized(spec.grid)

    def offers(self, name: str) -> bool:
        """Is there a choice of `grid` or of `dtype`: is it a dataclass with such a field?"""
        return is_dataclass(self) and name in {each.name for each in fields(self)}

    def _with(self, name: str, value: Any) -> Self:
        if not self.offers(name):
            raise InvalidInput(f"{self.spec.name} has no choice of {name}: it is not a dataclass with a field `{name}`.")
        return replace(self, **{name: value})  # type: ignore[type-var]

    def _check_answer(self, states: np.ndarray, frames: int, params: np.ndarray, answer: np.ndarray) -> None:
        """Raise where the answer is not finite, naming the parameters and the time at which it went wrong."""
        bad = first_non_finite(answer)
        if not bad:
            return
        row = bad[0]
        state, frame = states[row : row + 1], 0
        while frame < frames and np.isfinite(state).all():
            state, frame = self.advance(state, 1, params[row : row + 1]), frame + 1
        raise self._failure(params, row, frame)

    def _failure(self, params: np.ndarray, row: int, frame: int) -> SolverFailure:
        """Says which state left finite numbers, and when."""
        spec = self.spec
        drawn = ", ".join(f"{each.name} = {value:g}" for each, value in zip(spec.params, params[row], strict=True))
        return SolverFailure(
            f"{spec.name}: the solver left finite numbers in state {row}"
            f"{f' ({drawn})' if drawn else ''} at frame {frame}, t = {frame * spec.frame_step:g} {spec.time_unit}."
        )


def difference(one: Mapping[str, Any], other: Mapping[str, Any]) -> tuple[str, Any, Any] | None:
    """The first field in which two identities differ, with both values; None also where one of them is unknown, so empty."""
    if not (one and other):
        return None
    names = [*one, *(name for name in other if name not in one)]
    return next(((name, one.get(name), other.get(name)) for name in names if one.get(name) != other.get(name)), None)


def _plain(value: Any) -> Any:
    """NumPy numbers and arrays as JSON has them, anything else as text."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def room_for(states: np.ndarray, frames: int) -> np.ndarray:
    """Memory for whole trajectories that begin at `states`."""
    return np.empty((*states.shape[:2], frames + 1, *states.shape[2:]), np.float32)


def record_with(
    run: Callable[..., np.ndarray], environment: Environment, states: np.ndarray, frames: int, params: np.ndarray, out
) -> np.ndarray:
    """`record` for a kernel that saves frames as it goes: run(states, frames, params, saved) fills all but the first."""
    whole = room_for(states, frames) if out is None else out
    whole[:, :, 0] = states
    for index in range(len(states)):
        one = slice(index, index + 1)
        last = run(states[one], frames, params[one], whole[one])
        if not (np.isfinite(last).all() and np.isfinite(whole[index].sum())):
            environment.solve(states[one], frames, params[one])  # says where and when
            raise SolverFailure(f"{environment.spec.name}: a recorded trajectory holds values that are not finite.")
    return whole


def first_non_finite(values: np.ndarray) -> tuple[int, ...] | None:
    """Index of the first value that is nan or infinite."""
    if np.isfinite(values).all():
        return None
    return tuple(int(i) for i in np.argwhere(~np.isfinite(values))[0])


def describe_cell(spec: StateSpec, states: np.ndarray, index: tuple[int, ...]) -> str:
    """For example `density of state 3 is -0.2 at cell (12, 40)`."""
    where = f" at cell {index[2:]}" if len(index) > 2 else ""
    return f"{spec.channels[index[1]]} of state {index[0]} is {states[index]:g}{where}"


def checked_params(spec: StateSpec, params: Any, count: int) -> np.ndarray:
    """Parameters as an array (count, number of spec.params) of values that physics permits; one row may stand for all."""
    names = ", ".join(parameter.name for parameter in spec.params) or "none"
    rows = np.zeros((count, 0)) if params is None else np.asarray(params, dtype=np.float64)
    if rows.ndim == 1:
        rows = np.broadcast_to(rows, (count, rows.size))
    if rows.shape != (count, len(spec.params)):
        raise InvalidInput(
            f"{spec.name}: params have shape {np.shape(params) if params is not None else 'none'}; "
            f"expected {(count, len(spec.params))}, one row per state with the values of: {names}."
        )
    for parameter, values in zip(spec.params, rows.T, strict=True):
        low, high = parameter.allowed
        outside = ~((values >= low) & (values <= high))  # so that nan counts as outside
        if outside.any():
            row = int(outside.argmax())
            raise InvalidInput(
                f"{spec.name}: parameter '{parameter.name}' of state {row} is {values[row]:g}; "
                f"allowed is {low:g} to {high:g} {parameter.unit}."
            )
    return rows


def checked_states(spec: StateSpec, states: np.ndarray) -> tuple[np.ndarray, bool]:
    """One state or many as finite numbers (batch, channels, *grid), and whether it was one."""
    states, shape = np.asarray(states), spec.shape
    if shape not in (states.shape, states.shape[1:]):
        raise InvalidInput(
            f"{spec.name}: the states have shape {states.shape}; expected {shape} for one state "
            f"or (batch, {', '.join(map(str, shape))}), with the channels {', '.join(spec.channels)}."
        )
    if not np.issubdtype(states.dtype, np.floating):
        raise InvalidInput(f"{spec.name}: the states have type {states.dtype}; expected floating-point numbers.")
    single = states.shape == shape
    batch = states[None] if single else states
    bad = first_non_finite(batch)
    if bad:
        raise InvalidInput(f"{spec.name}: {describe_cell(spec, batch, bad)}; every value must be finite.")
    return batch, single
