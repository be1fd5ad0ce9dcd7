"""States whose future is asked for: trajectories of a split, or a file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np

from hybridworld.data.room import check_memory
from hybridworld.data.trajectory import with_params
from hybridworld.data.well_file import WellFile, opened
from hybridworld.deploy.hybrid import HybridModel
from hybridworld.errors import InvalidInput
from hybridworld.physics.arguments import checked_params, checked_states
from hybridworld.physics.spec import StateSpec

FORECAST = "forecast"
"""The group of a file that says what its last frame is."""

WAIT, COPIES = 100_000, 8
"""Frames that are solved at most before a forecast, and arrays like the states that are in memory together."""


@dataclass(frozen=True)
class Question:
    """States whose future is asked for."""

    names: Sequence[str]
    states: np.ndarray  # (count, channels, *grid)
    params: np.ndarray  # (count, number of spec.params)
    beginning: bool | None = None  # are these beginnings of trajectories? None: not known
    file: Path | None = None  # where they come from, if not from the solver


def from_split(
    model: HybridModel, split: str, seed: int, count: int, frame: int, changes: Mapping[str, float] | None = None
) -> Question:
    """Trajectories seed, seed + 1 ... of a split, `frame` frames after their beginning; `changes` replace what was drawn."""
    environment = model.system
    if environment is None:
        raise InvalidInput(
            f"There is no solver for {model.spec.name} to make states: give --input FILE, or --system FILE.py:CLASS."
        )
    if frame < 0:
        raise InvalidInput(f"The frame is {frame}: it must be 0 or more.")
    if frame > WAIT:
        raise InvalidInput(f"The frame is {frame:,}: at most {WAIT:,} frames are solved before a forecast.")
    check_memory(COPIES * 8.0 * count * np.prod(model.spec.shape), f"{count:,} forecasts", "ask for fewer with --count")
    states, params = environment.initials(split, range(seed, seed + count))
    params = with_params(model.spec, params, changes or {})
    if frame and environment.semigroup:
        states = environment.solve(states, frame, params)
    elif frame:
        *_, states = environment.trajectory(states, frame, params)  # on the finer grid throughout
    return Question([f"{split} {number}" for number in range(seed, seed + count)], states, params, frame == 0)


def from_file(path: Path, spec: StateSpec, frame: int | None, changes: Mapping[str, float] | None = None) -> Question:
    """States in the layout of The Well (one of their frames), or as two datasets: `state` (count, ...) and `params`.

    By default the frame is the last one of a file that holds a forecast, which so goes on, and the first one of others.
    """
    states, params = _plain(path) or _well(path, spec, frame)
    batch, _ = checked_states(spec, states)
    if changes:
        names = [each.name for each in spec.params]
        if params is None and any(name not in changes for name in names):
            raise InvalidInput(f"{path} has no params: give all of {', '.join(names)} with --param.")
        params = with_params(spec, np.zeros((len(batch), len(names))) if params is None else params, changes)
    names = [f"{path.stem} {row}" for row in range(len(batch))]
    return Question(names, batch, checked_params(spec, params, len(batch)), file=path)


def _plain(path: Path) -> tuple[np.ndarray, np.ndarray | None] | None:
    """What the datasets `state` and `params` of a file hold; None where there is no `state`."""
    with opened(path) as file:
        if "state" not in file:
            return None
        return _numbers(path, file["state"]), _numbers(path, file["params"]) if "params" in file else None


def _numbers(path: Path, values: h5py.Dataset | h5py.Group) -> np.ndarray:
    kind = getattr(values, "dtype", None)
    if kind is None or kind.kind not in "fiu":
        raise InvalidInput(
            f"{path}: {values.name} is {'a group' if kind is None else kind}; expected a dataset of real numbers."
        )
    return values[()].astype(np.float64)


def _well(path: Path, spec: StateSpec, frame: int | None) -> tuple[np.ndarray, np.ndarray]:
    file = WellFile(path)
    if file.spec.shape != spec.shape:
        raise InvalidInput(f"{path} holds states of shape {file.spec.shape}; those of {spec.name} have shape {spec.shape}.")
    with opened(path) as content:
        default = file.spec.frames - 1 if FORECAST in content else 0
    frame = default if frame is None else frame
    if not -file.spec.frames <= frame < file.spec.frames:
        raise InvalidInput(f"The frame is {frame}: {path} has the frames 0 to {file.spec.frames - 1}.")
    states = np.empty((file.count, *spec.shape))
    for row, state in enumerate(states):
        file.fill(state, row, frame % file.spec.frames)
    return states, file.params
