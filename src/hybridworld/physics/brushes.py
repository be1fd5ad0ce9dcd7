"""Initial states made by hand: a brush turns a gesture into a state.

stroke    points along a line         paint a front
point     one place                   set off a blast
arrow     two points, from and to     throw a ball
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hybridworld.errors import InvalidInput
from hybridworld.physics.spec import Interval, StateSpec


@dataclass(frozen=True)
class Setting:
    """A number that a brush can be set to: from `low` to `high`, at first `value`."""

    name: str
    unit: str
    low: float
    high: float
    value: float


@dataclass(frozen=True)
class Brush:
    """A way to change a state by hand; `draw(state, points, *settings)` returns the new state, and keeps the old one."""

    name: str
    meaning: str
    gesture: Literal["stroke", "point", "arrow"]
    draw: Callable[..., np.ndarray]
    settings: tuple[Setting, ...] = ()

    def __call__(self, state: np.ndarray, points: np.ndarray, settings: Mapping[str, float] | None = None) -> np.ndarray:
        """The state (channels, *grid) after a gesture at points (number, axes); settings keep their value if not given."""
        expected = {"stroke": "at least 1", "point": "1", "arrow": "2"}[self.gesture]
        if len(points) < 1 or (expected != "at least 1" and len(points) != int(expected)):
            raise InvalidInput(f"The brush '{self.name}' takes {expected} points, and there are {len(points)}.")
        given = dict(settings or {})
        values = []
        for each in self.settings:
            value = given.pop(each.name, each.value)
            if not each.low <= value <= each.high:
                raise InvalidInput(f"The {each.name} of '{self.name}' is {value:g}: it must be {each.low:g} to {each.high:g}.")
            values.append(value)
        if given:
            known = ", ".join(each.name for each in self.settings) or "none"
            raise InvalidInput(f"The brush '{self.name}' has no setting '{next(iter(given))}': it has {known}.")
        return self.draw(state, np.asarray(points, float), *values)


def near(spec: StateSpec, points: np.ndarray, radius: float) -> np.ndarray:
    """Which cells (*grid) lie within `radius` of the line through the points; periodic axes have no end."""
    here = np.stack(np.meshgrid(*spec.centres(), indexing="ij"), axis=-1)  # (*grid, axes)
    found = np.zeros(spec.grid, bool)
    for start, end in zip(points, [*points[1:], points[-1]], strict=True):
        way, along = end - start, here - start
        for k, axis in enumerate(spec.axes[: len(spec.grid)]):
            if axis.boundary == "periodic":
                side = axis.high - axis.low
                along[..., k] = (along[..., k] + side / 2) % side - side / 2
        share = np.clip(along @ way / max(way @ way, 1e-300), 0, 1)
        found |= np.linalg.norm(along - share[..., None] * way, axis=-1) <= radius
    return found


def radius_setting(spec: StateSpec) -> Setting:
    """How wide a brush is: from one cell to a quarter of the shortest side."""
    side = min(axis.high - axis.low for axis in spec.axes[: len(spec.grid)])
    cell = max(spec.spacing)
    return Setting("radius", "", cell, max(side / 4, cell), max(side / 20, cell))


def painting(spec: StateSpec, range_of: Callable[[str], Interval]) -> tuple[Brush, ...]:
    """One brush for each scalar field on a grid: it sets the value within a radius. `range_of` tells where physics does not."""
    if not spec.is_field:
        return ()

    def brush(name: str, channel: int, allowed: Interval) -> Brush:
        low, high = allowed if np.isfinite(allowed).all() else range_of(name)

        def draw(state: np.ndarray, points: np.ndarray, value: float, radius: float) -> np.ndarray:
            drawn = np.array(state)
            drawn[channel, near(spec, points, radius)] = value
            return drawn

        value = Setting("value", spec_unit(spec, name), low, high, low + 2 / 3 * (high - low))
        return Brush(f"paint {name}", f"Set {name} along a line.", "stroke", draw, (value, radius_setting(spec)))

    return tuple(
        brush(each.name, spec.channels.index(each.name), each.allowed) for each in spec.fields if each.kind == "scalar"
    )


def spec_unit(spec: StateSpec, name: str) -> str:
    """The unit of the field of that name."""
    return next(each.unit for each in spec.fields if each.name == name)
