"""One trajectory of a system: how it began, and the states that the reference solver made of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridworld.data.atomic import make_place
from hybridworld.data.room import check_memory
from hybridworld.data.well import write_trajectories
from hybridworld.errors import InvalidInput
from hybridworld.physics.arguments import as_number, checked_path, shown, whole
from hybridworld.physics.environment import Environment, Sample
from hybridworld.physics.registry import find_system
from hybridworld.physics.spec import StateSpec

if TYPE_CHECKING:
    from hybridworld.figures.style import Page

COPIES, EACH = 4, 200
"""States and their copies, float64, that are in memory together while a trajectory is made and written; and bytes per array."""


@dataclass(frozen=True, repr=False)
class Trajectory:
    """States (frames + 1, channels, *grid) of one system, the first of which is its beginning."""

    environment: Environment
    split: str
    seed: int
    sample: Sample
    states: np.ndarray = field(compare=False)

    @property
    def spec(self) -> StateSpec:
        """What its states mean."""
        return self.environment.spec

    @property
    def params(self) -> np.ndarray:
        """The parameters of its dynamics."""
        return self.sample.params

    @property
    def title(self) -> str:
        """Which trajectory it is, and on a second line what was drawn for it."""
        return describe_sample(self.spec, self.split, self.seed, self.sample)

    def __len__(self) -> int:
        return len(self.states)

    def __repr__(self) -> str:
        name, _, drawn = self.title.partition("\n")
        shape, frames = " x ".join(map(str, self.states.shape)), f"{len(self) - 1} frame{'' if len(self) == 2 else 's'}"
        return f"<Trajectory of {name}{f' ({drawn})' if drawn else ''}: {frames}, states {shape}>"

    def plot(self) -> "Page":
        """Its states at a few times, or its time series, as `hybridworld simulate` draws them."""
        from hybridworld.figures.trajectories import trajectory_page

        return trajectory_page(self.spec, self.states, self.title)

    def save(self, path: Path | str) -> None:
        """Write it as HDF5 in The Well's layout."""
        write_trajectories(
            make_place(checked_path("The file", path)),
            self.environment,
            self.split,
            [self.seed],
            [self.sample],
            self.states[None],
        )


def simulate(
    system: Environment | str | Path,
    split: str = "test",
    seed: int = 0,
    frames: int | None = None,
    params: Mapping[str, float] | None = None,
    tell: Callable[[int], None] = lambda done: None,
) -> Trajectory:
    """Trajectory number `seed` of a split, by the reference solver; by default all of its frames.

    `params` replace what was drawn, by name. `tell` hears how many frames are done.
    """
    environment = system if isinstance(system, Environment) else find_system(system)
    spec = environment.spec
    count = spec.frames - 1 if frames is None else whole("The number of frames", frames, 1)
    size = COPIES * 8 * int(np.prod(spec.shape)) + EACH
    check_memory((count + 1) * size, f"A trajectory of {count:,} frames", "ask for fewer frames")
    sample = environment.initial(split, seed)
    sample = replace(sample, params=with_params(spec, sample.params, {} if params is None else params))
    states: list[np.ndarray] = []
    for state in environment.trajectory(sample.state, count, sample.params):
        tell(len(states))
        states.append(state)
    return Trajectory(environment, split, seed, sample, np.stack(states))


def with_params(spec: StateSpec, params: np.ndarray, changes: Mapping[str, Any]) -> np.ndarray:
    """Parameters of the dynamics (..., number of spec.params), with some of them replaced by name."""
    if not isinstance(changes, Mapping):
        raise InvalidInput(f"{spec.name}: params are {shown(changes)}; give them by name, as {{'gravity': -3}}.")
    params, names = np.array(params, np.float64), [each.name for each in spec.params]
    for name, value in changes.items():
        parameter = spec.parameter(name)
        if name not in names:
            raise InvalidInput(f"{spec.name}: {name} only shapes the beginning of a trajectory, and cannot be given.")
        found, (low, high) = as_number(value), parameter.allowed
        if found is None or not low <= found <= high:
            raise InvalidInput(f"{spec.name}: {name} is {shown(value)}; allowed is {low:g} to {high:g} {parameter.unit}.")
        params[..., names.index(name)] = found
    return params


def describe_sample(spec: StateSpec, split: str, seed: int, sample: Sample) -> str:
    """Which trajectory it is, and on a second line what was drawn for it."""
    drawn = [
        f"{parameter.name} = {value:.3g}{'' if parameter.unit == '1' else ' ' + parameter.unit}"
        for parameter, value in zip(spec.params, sample.params, strict=True)
    ]
    drawn += [f"{name} = {value:.3g}" for name, value in sample.origin.items() if not isinstance(value, str)]
    kind = sample.origin.get("kind")
    return f"{spec.name}, {split} {seed}{f': {kind}' if kind else ''}\n{', '.join(drawn)}"
