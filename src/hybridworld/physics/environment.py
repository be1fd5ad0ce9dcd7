"""The contract of a physical system: (state, frames, params) -> state.

A system is a frozen dataclass that derives from `Environment` and supplies three things: `spec`, `sample` and `advance`.
Everything else here is either derived from them or optional.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from hybridworld.errors import CodeFailure, HybridWorldError, InvalidInput, SolverFailure, raised
from hybridworld.physics.arguments import checked_params, checked_seed, checked_states, first_non_finite, shown, whole
from hybridworld.physics.brushes import Brush, painting
from hybridworld.physics.spec import SPLITS, StateSpec
from hybridworld.physics.symmetry import Symmetry
from hybridworld.physics.task import Task

MOST_FRAMES = 10**9
"""The largest number of frames of a question: a solver would never end with more."""


Solve = Callable[[np.ndarray, int, np.ndarray], np.ndarray]
"""A solver: (states, frames, params) -> states, each with a row per trajectory."""


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

    @property
    def lacks(self) -> str:
        """What has to be installed before it can be solved, in one sentence; empty where nothing is missing."""
        return ""

    def photograph(self, state: np.ndarray, params: np.ndarray, height: int, width: int) -> np.ndarray | None:
        """The state as a renderer of the system's own draws it, (height, width, 3); None where there is none."""
        return None

    def task(self, rng: np.random.Generator, state: np.ndarray) -> Task | None:
        """Something that an agent can bring about from that state; None where a system has nothing to bring about."""
        return None

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

    def initials(self, split: str, seeds: Iterable[int]) -> tuple[np.ndarray, np.ndarray]:
        """States (count, channels, *grid) and params (count, number of spec.params) of these trajectories of a split."""
        if not (isinstance(seeds, Iterable) and (numbers := list(seeds))):
            raise InvalidInput(f"The seeds are {shown(seeds)}: give the numbers of at least one trajectory, as range(8).")
        return stacked([self.initial(split, seed) for seed in numbers])

    def initial(self, split: str, seed: int) -> Sample:
        """The beginning of trajectory number `seed` of a split. No two pairs (split, seed) share their random numbers."""
        self.spec.regime(split)
        rng = np.random.default_rng([SPLITS.index(split), checked_seed(seed)])
        with self._blamed("sample"):
            return self.sample(rng, split)

    def solve(self, states: np.ndarray, frames: int, params: np.ndarray | None = None) -> np.ndarray:
        """The reference answer: one state or a batch of states, `frames` frames later."""
        batch, single = self.checked(states)
        frames = whole(f"{self.spec.name}: frames", frames)
        if frames > MOST_FRAMES:
            raise InvalidInput(f"{self.spec.name}: frames is {frames:.3g}; at most {MOST_FRAMES:,} are solved at once.")
        rows = checked_params(self.spec, params, len(batch))
        with self._blamed("advance"):
            answer = self.advance(batch, frames, rows)
        self._check_answer(batch, frames, rows, answer)
        return answer[0] if single else answer

    def checked(self, states: Any) -> tuple[np.ndarray, bool]:
        """One state or many that can exist, as numbers (batch, channels, *grid), and whether it was one."""
        batch, single = checked_states(self.spec, states)
        with self._blamed("check_physical"):
            self.check_physical(batch)
        return batch, single

    def trajectory(self, states: np.ndarray, frames: int, params: np.ndarray | None = None) -> Iterator[np.ndarray]:
        """The states now and after each of the next `frames` frames, one after the other."""
        yield states
        for _ in range(whole(f"{self.spec.name}: frames", frames)):
            states = self.solve(states, 1, params)
            yield states

    def halved_step(self) -> "tuple[Environment, int] | None":
        """The same physics with half the time step, and how many of its frames make one of these; None if unknown."""
        found = self.with_steps(2)
        return None if found is None else (found[0], int(found[1]))

    def resolved(self, factor: int) -> "Environment":
        """The same states with a reference on a grid `factor` times finer; factor 1 is the system itself. See `Resolved`."""
        from hybridworld.physics.resolved import Resolved

        return self if whole(f"{self.spec.name}: the factor of a finer reference", factor, 1) == 1 else Resolved(self, factor)

    @property
    def unresolved(self) -> "Environment":
        """The system whose reference runs on its own grid: this one, unless it is `Resolved`."""
        return self

    def resized(self, grid: tuple[int, ...]) -> Self:
        """The same physics on another grid over the same domain."""
        if not isinstance(grid, Iterable):
            raise InvalidInput(f"{self.spec.name}: the grid is {shown(grid)}: give the cells along each axis, as (64, 64).")
        cells = tuple(whole(f"{self.spec.name}: the number of cells", each, 1) for each in grid)
        if len(cells) != len(self.spec.grid):
            raise InvalidInput(f"{self.spec.name}: the grid {cells} has {len(cells)} axes, not {len(self.spec.grid)}.")
        return self._with("grid", cells)

    def in_precision(self, dtype: str) -> Self:
        """The same physics computed in `float64` or `float32`."""
        if dtype not in ("float64", "float32"):
            raise InvalidInput(f"The precision is {dtype}: choose float64 or float32.")
        return self._with("dtype", dtype)

    def coarsened(self, factor: int) -> Self:
        """The same physics on a grid with 1/factor as many cells along each axis."""
        grid, factor = self.spec.grid, whole(f"{self.spec.name}: the factor of a coarser grid", factor, 1)
        if not self.spec.is_field or any(cells % factor for cells in grid):
            shown = " x ".join(map(str, grid)) if self.spec.is_field else "no grid"
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

    @contextmanager
    def _blamed(self, what: str) -> Iterator[None]:
        """An error of the system's own code names the line that raised it, in one sentence."""
        try:
            yield
        except HybridWorldError:
            raise
        except (Exception, SystemExit) as error:
            raise CodeFailure(f"{self.spec.name}: {what} raised {raised(error)}.") from error

    def _check_answer(self, states: np.ndarray, frames: int, params: np.ndarray, answer: np.ndarray) -> None:
        """Raise where the answer is not finite, naming the parameters and the time at which it went wrong."""
        if np.shape(answer) != states.shape or np.asarray(answer).dtype.kind != "f":
            found = getattr(answer, "dtype", type(answer).__name__)
            raise CodeFailure(
                f"{self.spec.name}: advance maps states of shape {states.shape} to {np.shape(answer)} of type {found}; "
                "the shape must stay, and the numbers must be floating-point."
            )
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


def stacked(samples: Sequence[Sample]) -> tuple[np.ndarray, np.ndarray]:
    """The states and the params of several samples, with a row per sample."""
    return np.stack([sample.state for sample in samples]), np.stack([sample.params for sample in samples])


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
