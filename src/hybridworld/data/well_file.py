"""One HDF5 file in The Well's layout, ours or a foreign one: the spec that its header tells, and its states.

Foreign files become a spec as follows: a t0 field is a scalar, a t1 field a vector, a t2 field one scalar per component
(`stress_xy`); scalars that are constant in time are parameters of the dynamics. What is constant among the fields, or varies
among the scalars, is no part of a state: see `ignored`.
"""

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from math import floor, log10, prod
from pathlib import Path
from textwrap import shorten
from typing import Any

import h5py
import numpy as np

from hybridworld.data.well import BOUNDARY, IDENTITY, SPEC
from hybridworld.errors import InvalidInput
from hybridworld.physics.environment import difference
from hybridworld.physics.spec import Axis, Field, Parameter, StateSpec
from hybridworld.physics.spec_text import spec_from_text

OPEN_FILES = 256


@dataclass(frozen=True)
class _Stored:
    """Where the numbers of one field lie in a file, and which channels of a state they are."""

    name: str
    channels: slice
    per_trajectory: bool
    shape: tuple[int, ...]
    frame: tuple[int, ...]  # cells along each axis (1: the same everywhere along it), and the number of components
    dtype: np.dtype
    offset: int | None  # None: chunked or compressed, for HDF5 to read


class WellFile:
    """One HDF5 file: its header is read at once, its numbers on demand."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.changed = path.stat().st_mtime_ns if path.exists() else 0
        with opened(path) as file:
            try:
                self._read_header(file)
            except InvalidInput:
                raise
            except Exception as error:  # HDF5 has many words for a damaged file
                raise InvalidInput(
                    f"{path} is damaged, or not in The Well's layout ({type(error).__name__}: {shorten(str(error), 200)})."
                ) from error

    def _read_header(self, file: h5py.File) -> None:
        path = self.path
        fields = [(rank, name) for rank in range(3) for name in _names(_member(file, f"t{rank}_fields"), "field_names")]
        moving = [each for each in fields if _attribute(_field(file, *each), "time_varying")]
        scalars = _names(_member(file, "scalars"), "field_names")
        constant = [name for name in scalars if not _attribute(_member(file, f"scalars/{name}"), "time_varying")]
        self.ignored = (
            *(name for rank, name in fields if (rank, name) not in moving),
            *(name for name in scalars if name not in constant),
        )
        self.count = int(_attribute(file, "n_trajectories"))
        if self.count < 1:
            raise InvalidInput(f"{path} holds no trajectory: n_trajectories is {self.count}.")
        self.spec = _spec(file, moving, constant)
        self.identity: dict[str, Any] = json.loads(file.attrs.get(IDENTITY, "{}"))
        self.params = _params(file, self.spec, self.count)
        self._stored = [_stored(file, self.spec, self.count, *each) for each in moving]
        channels = self.spec.channels
        filled = [channel for each in self._stored for channel in channels[each.channels]]
        if len(set(filled)) < len(filled) or set(filled) != set(channels):
            raise InvalidInput(f"{path}: its fields do not fill each of the channels {', '.join(channels)} once.")

    def check_like(self, other: "WellFile") -> None:
        """Raise where this file does not continue the other."""
        mine, theirs = self.spec, other.spec
        for what, here, there in (
            ("the name is", mine.name, theirs.name),
            ("the channels are", mine.channels, theirs.channels),
            ("the grid is", mine.grid, theirs.grid),
            ("the boundaries are", [axis.boundary for axis in mine.axes], [axis.boundary for axis in theirs.axes]),
            ("the number of frames is", mine.frames, theirs.frames),
            ("the frame step is", f"{mine.frame_step:.4g}", f"{theirs.frame_step:.4g}"),
            ("the parameters are", [each.name for each in mine.params], [each.name for each in theirs.params]),
        ):
            if here != there:
                first = f"{other.path.parent.name}/{other.path.name}"
                raise InvalidInput(f"{self.path}: {what} {_shown(here)}, but {_shown(there)} in {first}.")
        found = difference(self.identity, other.identity)
        if found:
            name, here, there = found
            raise InvalidInput(f"{self.path}: its solver has {name} {here}, but {there} in {other.path}.")

    @property
    def kinds(self) -> list[str]:
        """The kind of initial state of each trajectory; none where the file does not tell."""
        with h5py.File(self.path) as file:
            return [name.decode() for name in file["origin/kind"][:]] if "origin/kind" in file else []

    def fill(self, out: np.ndarray, row: int, frame: int | slice) -> None:
        """Put one state into out (channels, *grid), or with slice(None) all of them into out (frames, channels, *grid)."""
        frames = out.shape[: out.ndim - len(self.spec.shape)]
        channels_last = np.moveaxis(out, len(frames), -1)
        for each in self._stored:
            values = self._numbers(each)[(row, frame) if each.per_trajectory else (frame,)]
            channels_last[..., each.channels] = values.reshape(*frames, *each.frame)
        if not np.isfinite(out).all():
            *when, channel = np.argwhere(~np.isfinite(out))[0][: len(frames) + 1]
            raise InvalidInput(
                f"{self.path}: {self.spec.channels[channel]} of trajectory {row} is not finite at frame {(*when, frame)[0]}."
            )

    def _numbers(self, each: _Stored) -> np.ndarray | h5py.Dataset:
        if each.offset is None:
            return _opened(self.path, self.changed, os.getpid())[each.name]
        return np.ndarray(each.shape, each.dtype, _mapped(self.path, self.changed), each.offset)


def opened(path: Path) -> h5py.File:
    """The HDF5 file at that place; where there is none, one sentence says so."""
    if not path.is_file():
        raise InvalidInput(f"There is no file {path}.")
    try:
        return h5py.File(path)
    except OSError as error:
        if isinstance(error, PermissionError):
            raise InvalidInput(f"{path} may not be read: permission denied.") from error
        raise InvalidInput(f"{path} cannot be read as HDF5: it is damaged, or another kind of file.") from error


@lru_cache(OPEN_FILES)  # a map takes a file descriptor, and those are few
def _mapped(path: Path, changed: int) -> np.memmap:
    return np.memmap(path, np.uint8, "r")


@lru_cache(OPEN_FILES)
def _opened(path: Path, changed: int, process: int) -> h5py.File:
    """The open file of a process: HDF5's caches must not be shared after a fork."""
    return h5py.File(path)


# What a header tells.


def _attribute(item: h5py.HLObject, name: str):
    if name not in item.attrs:
        raise InvalidInput(f"{item.file.filename}: {item.name} has no attribute '{name}'.")
    return item.attrs[name]


def _member(file: h5py.File, name: str) -> h5py.HLObject:
    if name not in file:
        raise InvalidInput(f"{file.filename} has no '{name}'.")
    return file[name]


def _names(item: h5py.HLObject, attribute: str) -> list[str]:
    return [name.decode() if isinstance(name, bytes) else str(name) for name in np.ravel(_attribute(item, attribute))]


def _field(file: h5py.File, rank: int, name: str) -> h5py.Dataset:
    return _member(file, f"t{rank}_fields/{name}")


def _unit(item: h5py.HLObject) -> str:
    return _names(item, "unit")[0] if "unit" in item.attrs else "1"


def _components(rank: int, name: str, dims: Iterable[str]) -> list[str]:
    """The channels of a field of that rank: for example stress_xx, stress_xy, stress_yx, stress_yy."""
    return [name if not rank else f"{name}_{''.join(letters)}" for letters in product(dims, repeat=rank)]


def _spec(file: h5py.File, moving: list[tuple[int, str]], constant: list[str]) -> StateSpec:
    """The spec that our writer left in the file, else what can be derived from the layout."""
    if SPEC in file.attrs:
        try:
            spec = spec_from_text(file.attrs[SPEC])
        except (TypeError, ValueError, KeyError) as error:
            raise InvalidInput(f"{file.filename}: the attribute {SPEC} is from another version ({error}).") from error
    else:
        spec = _derived_spec(file, moving, constant)
    frames = _member(file, "dimensions/time").shape[-1]
    if frames < 2:
        raise InvalidInput(f"{file.filename} has trajectories of {frames} frame: at least 2 are needed.")
    return replace(spec, frames=frames, horizons=tuple(each for each in spec.horizons if each < frames))


def _derived_spec(file: h5py.File, moving: list[tuple[int, str]], constant: list[str]) -> StateSpec:
    (name,) = _names(file, "dataset_name")
    dims = _names(_member(file, "dimensions"), "spatial_dims")
    fields: list[Field] = []
    for rank, title in moving:
        unit = _unit(_field(file, rank, title))
        if rank == 1:
            fields.append(Field(title, unit, "vector"))
        else:
            fields += [Field(component, unit) for component in _components(rank, title, dims)]
    if not fields:
        raise InvalidInput(f"{file.filename} has no field that varies in time.")
    spec = StateSpec(
        name=name,
        title=name,
        fields=tuple(fields),
        axes=tuple(_axis(file, dim) for dim in dims),
        grid=tuple(_member(file, f"dimensions/{dim}").shape[-1] for dim in dims),
        frame_step=_frame_step(file),
        time_unit=_unit(file["dimensions/time"]),
        frames=0,
        draw="",
        parameters=tuple(Parameter(each, _unit(file[f"scalars/{each}"]), "stored with the data", {}) for each in constant),
    )
    return replace(spec, draw=spec.channels[0])


def _axis(file: h5py.File, name: str) -> Axis:
    """Half a cell beyond the outermost centres, with the boundary of the condition that is about the fewest axes."""
    centres = np.atleast_2d(np.asarray(_member(file, f"dimensions/{name}"), np.float64))[0]
    step = (centres[-1] - centres[0]) / (len(centres) - 1) if len(centres) > 1 else 1.0
    if not step:
        raise InvalidInput(f"{file.filename}: the axis '{name}' has no extent.")
    extent = abs(step) * len(centres)

    found = []
    for condition in _member(file, "boundary_conditions").values():
        (kind,) = _names(condition, "bc_type")
        if kind.upper() not in BOUNDARY.values():
            raise InvalidInput(
                f"{file.filename}: bc_type of {condition.name} is '{kind}'; allowed are {', '.join(BOUNDARY.values())}."
            )
        dims = _names(condition, "associated_dims")
        if name in dims:
            found.append((len(dims), list(BOUNDARY.values()).index(kind.upper())))
    if not found:
        raise InvalidInput(f"{file.filename} has no boundary condition for the axis '{name}'.")
    low, high = (_without_noise(end, extent) for end in (centres[0] - step / 2, centres[-1] + step / 2))
    boundary: Any = tuple(BOUNDARY)[min(found)[1]]
    return Axis(name, low, high, boundary)


def _frame_step(file: h5py.File) -> float:
    time = np.atleast_2d(np.asarray(_member(file, "dimensions/time"), np.float64))
    steps = np.diff(time)
    step = float(steps.mean()) if steps.size else 1.0
    if not (step > 0 and np.allclose(steps, step, rtol=0.05, atol=0)):
        raise InvalidInput(f"{file.filename}: the frames are not evenly spaced in time, so a horizon has no duration.")
    return _without_noise(step, step)


def _without_noise(value: float, scale: float) -> float:
    """Six digits below the scale: the layout's coordinates are float32, which has no more."""
    return round(float(value), 6 - floor(log10(scale)))


def _params(file: h5py.File, spec: StateSpec, count: int) -> np.ndarray:
    """The parameters of the dynamics: (count, number of spec.params)."""
    rows = np.empty((count, len(spec.params)))
    for column, parameter in enumerate(spec.params):
        values = np.asarray(_member(file, f"scalars/{parameter.name}"), np.float64).ravel()
        if len(values) not in (1, count):
            raise InvalidInput(
                f"{file.filename}: the scalar '{parameter.name}' has {len(values)} values; expected 1 or {count}."
            )
        rows[:, column] = values
    return rows


def _stored(file: h5py.File, spec: StateSpec, count: int, rank: int, name: str) -> _Stored:
    dataset = _field(file, rank, name)
    dims = _names(_member(file, "dimensions"), "spatial_dims")
    components = _components(rank, name, dims)
    if components[0] not in spec.channels:
        raise InvalidInput(f"{file.filename}: the field '{name}' is none of the channels {', '.join(spec.channels)}.")
    per_trajectory = bool(_attribute(dataset, "sample_varying"))
    varying = np.ravel(_attribute(dataset, "dim_varying"))
    cells = [n if varies else 1 for n, varies in zip(spec.grid, varying, strict=False)]
    lead = (count, spec.frames) if per_trajectory else (spec.frames,)
    fits = dataset.shape[: len(lead)] == lead and dataset.size == prod((*lead, *cells, len(components)))
    if not fits or dataset.dtype.kind != "f":
        raise InvalidInput(
            f"{file.filename}: the field '{name}' is {dataset.dtype} of shape {dataset.shape}; expected floating-point numbers "
            f"of shape {(*lead, *cells, *[len(dims)] * rank)}."
        )
    start = spec.channels.index(components[0])
    plain = (
        dataset.id.get_create_plist().get_layout() == h5py.h5d.CONTIGUOUS
        and dataset.external is None
        and dataset.id.get_storage_size() == dataset.nbytes  # else nothing was ever written
    )
    return _Stored(
        dataset.name,
        slice(start, start + len(components)),
        per_trajectory,
        dataset.shape,
        (*cells, len(components)),
        dataset.dtype,
        dataset.id.get_offset() if plain else None,
    )


def _shown(value) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
