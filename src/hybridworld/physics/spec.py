"""What a physical system is made of, in words and numbers: fields, axes, parameters, splits.

Everything above this room reads the spec and never the name of a system.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import Any, Literal, get_args

import numpy as np

from hybridworld.errors import InvalidInput, nearest

Interval = tuple[float, float]
Kind = Literal["scalar", "vector", "axial", "extent"]
Boundary = Literal["periodic", "open", "wall"]
Role = Literal["dynamics", "action", "start"]

SPLITS = ("train", "val", "test", "ood-near", "ood-far")
"""Where trajectories come from: three splits of one distribution, and two that are shifted out of it."""

REGIMES = {"train": "id", "val": "id", "test": "id", "ood-near": "ood-near", "ood-far": "ood-far"}
"""The parameter regime of each split: train, val and test are drawn alike (`id`), with different seeds."""


@dataclass(frozen=True)
class Field:
    """One physical quantity of the state: a scalar, or a vector with one channel per axis.

    An `axial` vector (a spin) keeps its sign where a mirror reverses an ordinary one, and the other way round. An `extent` is
    a body's half length, width and height along its own axes: one channel per axis as well, but no map of space changes it.
    """

    name: str
    unit: str
    kind: Kind = "scalar"
    allowed: Interval = (-inf, inf)
    """The values that physics permits, both ends included: answers of a network can be kept inside."""
    rate_of: str = ""
    """The field whose rate of change this one is: a network then corrects free motion instead of learning it."""

    def __post_init__(self) -> None:
        _check_name("A field", self.name)
        _check_choice(f"Field '{self.name}' has the kind", self.kind, get_args(Kind))
        _check_interval(f"Field '{self.name}': the allowed interval", self.allowed)


@dataclass(frozen=True)
class Axis:
    """One direction of space: from `low` to `high`, with what happens at its ends."""

    name: str
    low: float
    high: float
    boundary: Boundary

    def __post_init__(self) -> None:
        _check_name("An axis", self.name)
        _check_interval(f"Axis '{self.name}'", (self.low, self.high))
        if self.low == self.high:
            raise InvalidInput(f"Axis '{self.name}' runs from {self.low:g} to {self.high:g}: the first must be smaller.")
        _check_choice(f"Axis '{self.name}' has the boundary", self.boundary, get_args(Boundary))


@dataclass(frozen=True)
class Parameter:
    """A number drawn per trajectory.

    role `dynamics`: an argument of the solver, handed to surrogates as well; role `action`: the same, and an agent chooses it
    anew at each decision, to be held over the horizon; role `start`: it only shapes the initial state. `ranges` maps a
    regime to the intervals from which it is drawn, `allowed` is what physics permits. The components of a vector share a name
    before the axis, as `push_x` and `push_y`, and name their axis in `along`: a symmetry turns them together.
    """

    name: str
    unit: str
    meaning: str
    ranges: Mapping[str, tuple[Interval, ...]]
    allowed: Interval = (-inf, inf)
    role: Role = "dynamics"
    along: str = ""
    sets: str = ""
    """The channel of driven objects (`StateSpec.driven`) whose value an action stands for."""

    def __post_init__(self) -> None:
        _check_name("A parameter", self.name)
        _check_choice(f"Parameter '{self.name}' has the role", self.role, get_args(Role))
        _check_interval(f"Parameter '{self.name}': the allowed interval", self.allowed)
        if self.along and not self.name.endswith(f"_{self.along}"):
            raise InvalidInput(f"Parameter '{self.name}' is along {self.along}: call it '{self.name}_{self.along}'.")
        if not isinstance(self.ranges, Mapping):
            raise InvalidInput(f"Parameter '{self.name}': ranges must map a regime to its intervals.")
        for regime, intervals in self.ranges.items():
            _check_choice(f"Parameter '{self.name}' has a range for", regime, dict.fromkeys(REGIMES.values()))
            if not isinstance(intervals, tuple | list):
                raise InvalidInput(f"Parameter '{self.name}', {regime}: give intervals, as ((low, high), ...).")
            for interval in intervals:
                _check_interval(f"Parameter '{self.name}', {regime}: the interval", interval)

    def draw(self, rng: np.random.Generator, regime: str) -> float:
        """A value drawn uniformly from the union of the regime's intervals."""
        if not self.ranges.get(regime):
            raise InvalidInput(f"Parameter '{self.name}' has no range for '{regime}', so it cannot be drawn from there.")
        intervals = self.ranges[regime]
        lengths = np.array([high - low for low, high in intervals])
        low, high = intervals[rng.choice(len(intervals), p=lengths / lengths.sum())]
        return float(rng.uniform(low, high))

    def within(self, value: float, regime: str) -> bool:
        """Whether the value lies in one of the regime's intervals."""
        return any(low <= value <= high for low, high in self.ranges.get(regime, ()))


@dataclass(frozen=True)
class StateSpec:
    """The shape and meaning of a state, and of a trajectory of states.

    A state has shape (channels, *grid); `grid` is empty for a state vector. Grid axes come in the order of `axes`.

    With `objects` a state is a set of things in space: `grid` is their number, and their order means nothing; `axes` are those
    of the space that they are in.
    """

    name: str
    title: str
    fields: tuple[Field, ...]
    axes: tuple[Axis, ...]
    grid: tuple[int, ...]
    frame_step: float
    time_unit: str
    frames: int
    draw: str
    parameters: tuple[Parameter, ...] = ()
    horizons: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64)
    kinds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Regime -> how often each kind of initial state is drawn there."""
    counts: Mapping[str, int] = field(
        default_factory=lambda: {"train": 1000, "val": 100, "test": 100, "ood-near": 100, "ood-far": 100}
    )
    """Trajectories per split in a dataset of full size."""
    gamma: float | None = None
    """The ratio of specific heats, where the fields are density, momentum (a vector) and energy of an ideal gas."""
    objects: bool = False
    """Is the grid an axis of objects, without order and without neighbours?"""
    driven: tuple[str, float] | None = None
    """A channel and its value in the objects that move as actions say (`Parameter.sets`): networks see them move so."""

    @property
    def is_field(self) -> bool:
        """Are there cells of space, side by side? Not in a state vector, and not in a set of objects."""
        return bool(self.grid) and not self.objects

    @property
    def boundaries(self) -> tuple[str, ...]:
        """What lies at the ends of each grid axis: `periodic`, `open` or `wall`, or `objects` for the axis that has no ends."""
        return ("objects",) if self.objects else tuple(axis.boundary for axis in self.axes[: len(self.grid)])

    @cached_property
    def channels(self) -> tuple[str, ...]:
        """Names of the channels: a vector field `momentum` gives `momentum_x`, `momentum_y`."""
        return tuple(name for each in self.fields for name in self.components(each))

    @property
    def allowed(self) -> tuple[Interval, ...]:
        """The values that physics permits, for each channel."""
        return tuple(each.allowed for each in self.fields for _ in self.components(each))

    def components(self, each: Field) -> tuple[str, ...]:
        """The channel names of one field."""
        return (each.name,) if each.kind == "scalar" else tuple(f"{each.name}_{axis.name}" for axis in self.axes)

    @property
    def rates(self) -> tuple[tuple[int, int], ...]:
        """Pairs of channels: one, and the other that is its rate of change."""
        by_name = {each.name: self.components(each) for each in self.fields}
        return tuple(
            (self.channels.index(place), self.channels.index(speed))
            for each in self.fields
            if each.rate_of in by_name
            for place, speed in zip(by_name[each.rate_of], by_name[each.name], strict=True)
        )

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Shape of one state."""
        return (len(self.channels), *self.grid)

    @property
    def spacing(self) -> tuple[float, ...]:
        """Cell size along each grid axis; objects have none."""
        if self.objects:
            return ()
        return tuple((axis.high - axis.low) / cells for axis, cells in zip(self.axes, self.grid, strict=False))

    @cached_property
    def params(self) -> tuple[Parameter, ...]:
        """The parameters of the dynamics, actions among them, in the order in which `solve` takes them."""
        return tuple(parameter for parameter in self.parameters if parameter.role != "start")

    @property
    def actions(self) -> tuple[Parameter, ...]:
        """Those of the parameters of the dynamics that an agent chooses."""
        return tuple(parameter for parameter in self.params if parameter.role == "action")

    @property
    def position(self) -> Field | None:
        """The field that is a place in a box over three axes: of a state vector or of objects, the first vector in metres."""
        if self.is_field or len(self.axes) != 3:
            return None
        return next((each for each in self.fields if each.kind == "vector" and each.unit == "m"), None)

    def centres(self) -> tuple[np.ndarray, ...]:
        """Cell centres along each grid axis; of objects, their numbers."""
        if self.objects:
            return tuple(np.arange(float(count)) for count in self.grid)
        return tuple(
            axis.low + (np.arange(cells) + 0.5) * step
            for axis, cells, step in zip(self.axes, self.grid, self.spacing, strict=False)
        )

    def parameter(self, name: str) -> Parameter:
        """The parameter of that name."""
        found = next((parameter for parameter in self.parameters if parameter.name == name), None)
        if found is None:
            names = [parameter.name for parameter in self.parameters]
            choices = f"there are {', '.join(names)}" if names else "there is none"
            raise InvalidInput(f"{self.name} has no parameter '{name}': {choices}.{nearest(str(name), names)}")
        return found

    def regime(self, split: str) -> str:
        """The parameter regime of a split."""
        if split not in SPLITS:
            raise InvalidInput(f"Unknown split '{split}': choose one of {', '.join(SPLITS)}.")
        return REGIMES[split]

    def draw_kind(self, rng: np.random.Generator, split: str) -> str:
        """A kind of initial state, as often as the split's regime has it."""
        shares = self.kinds[self.regime(split)]
        return str(rng.choice(list(shares), p=list(shares.values())))


def _check_name(what: str, name: Any) -> None:
    if not isinstance(name, str) or not name:
        raise InvalidInput(f"{what} has the name {name!r}: it must be a text.")


def _check_choice(what: str, value: Any, known: Iterable[str]) -> None:
    if value not in known:
        raise InvalidInput(f"{what} '{value}': choose one of {', '.join(known)}.{nearest(str(value), known)}")


def _check_interval(what: str, interval: Any) -> None:
    """Two real numbers, the first not above the second; they may be infinite, or the same."""
    try:
        low, high = interval
        if isinstance(low, str) or isinstance(high, str):
            raise TypeError
        low, high = float(low), float(high)
    except (TypeError, ValueError):
        raise InvalidInput(f"{what} is {interval!r}: give two numbers, as (low, high).") from None
    if not low <= high:
        raise InvalidInput(f"{what} runs from {low:g} to {high:g}: the first must not be larger.")
