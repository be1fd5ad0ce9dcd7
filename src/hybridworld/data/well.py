"""Trajectories in The Well's HDF5 layout, so that the field's own loaders read them.

    /dimensions            time, x, y ...                  /t0_fields   scalars (trajectory, time, *grid)
    /boundary_conditions   one group per axis              /t1_fields   vectors (trajectory, time, *grid, component)
    /scalars               the parameters of the dynamics  /t2_fields   always there, always empty
    /origin                ours: seed, initial-state kind and all else that was drawn, per trajectory

A state vector has no grid: its channels are scalars on an axis `x` of length 1. Those of a set of objects are scalars on an
axis `object`, which is called open since the layout has no word for an axis without ends. The root attribute
`hybridworld_spec`, ours as well, holds the StateSpec: neither that mark nor units, axial vectors and ranges have a place in
the layout. The attribute `hybridworld_identity` holds the identity of the solver (`Environment.identity`).
"""

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np

from hybridworld.physics.environment import Environment, Sample
from hybridworld.physics.spec import StateSpec
from hybridworld.physics.spec_text import spec_to_text

BLOCK = 2**18
ALIGNED = 2**16  # bytes: larger fields begin at a page, for those who map them
BOUNDARY = {"periodic": "PERIODIC", "open": "OPEN", "wall": "WALL"}
SPEC, IDENTITY = "hybridworld_spec", "hybridworld_identity"


def write_trajectories(
    path: Path,
    environment: Environment,
    split: str,
    seeds: Sequence[int],
    samples: Sequence[Sample],
    states: np.ndarray,
    dtype: str = "float32",
) -> None:
    """Write states (trajectory, time, channels, *grid) with all that is known about their origin."""
    spec, version, identity = environment.spec, environment.version, environment.identity
    path.write_bytes(file_image(spec, version, split, seeds, samples, states, dtype, identity=identity).data)


def file_image(
    spec: StateSpec,
    version: str,
    split: str,
    seeds: Sequence[int],
    samples: Sequence[Sample],
    states: np.ndarray,
    dtype: str = "float32",
    memory: Callable[[int], np.ndarray] | None = None,
    identity: Mapping[str, Any] | None = None,
) -> np.ndarray:
    """The bytes of such a file, in `memory(size)` or in memory of their own.

    HDF5 writes a skeleton with empty places for the fields, and the states go straight to their places: no second copy of
    them is made on the way to the disk, and they are hashed where they are.
    """
    skeleton = _Skeleton()
    with h5py.File(skeleton, "w", alignment_threshold=ALIGNED, alignment_interval=4096) as file:
        file.attrs.update(
            dataset_name=spec.name,
            grid_type="cartesian",
            n_spatial_dims=max(len(spec.grid), 1),
            n_trajectories=len(states),
            split=split,
            solver_version=version,
            **{SPEC: spec_to_text(spec)},
            **({IDENTITY: json.dumps(identity)} if identity else {}),
        )
        _write_dimensions(file, spec, states.shape[1])
        _write_boundaries(file, spec)
        _write_scalars(file, spec, samples)
        _write_origin(file, seeds, samples)
        places = _place_fields(file, spec, states, dtype)
    image = memory(skeleton.size) if memory else np.empty(skeleton.size, np.uint8)
    skeleton.fill_around(places, image)
    for start, room, values in places:
        whole = image[start : start + room.nbytes].view(dtype).reshape(room.shape)
        if room.vector:  # component by component: a copy with an inner loop of two steps takes more than twice as long
            for part, component in zip(np.moveaxis(whole, -1, 0), np.moveaxis(values, -1, 0), strict=True):
                _fill(part, component)
        else:
            _fill(whole, values)
    return image


class _Room(NamedTuple):
    """The shape of a field in the file, its bytes, and whether its last axis is that of a vector's components."""

    shape: tuple[int, ...]
    nbytes: int
    vector: bool


class _Skeleton(io.RawIOBase):
    """A file in memory that keeps what was written and no more: between the writes, where the fields will be, it is zero.

    A file on a disk would be at the mercy of that disk: HDF5 may crash where one fills up.
    """

    def __init__(self) -> None:
        self._written: list[tuple[int, bytes]] = []
        self._position = self.size = 0

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._position = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.size}[whence]
        return self._position

    def tell(self) -> int:
        return self._position

    def truncate(self, size: int | None = None) -> int:
        self.size = self._position if size is None else size
        return self.size

    def write(self, content: Any) -> int:
        self._written.append((self._position, bytes(content)))
        self._position += len(self._written[-1][1])
        self.size = max(self.size, self._position)
        return len(self._written[-1][1])

    def readinto(self, room: Any) -> int:
        """Fill the room from the position on."""
        found = memoryview(room).cast("B")
        found[:] = bytes(len(found))
        for start, content in self._written:
            first, last = max(start, self._position), min(start + len(content), self._position + len(found))
            if first < last:
                found[first - self._position : last - self._position] = content[first - start : last - start]
        self._position += len(found)
        return len(found)

    def fill_around(self, places: list[tuple[int, _Room, np.ndarray]], image: np.ndarray) -> None:
        """Copy the file to the image, except for the places of the fields."""
        self.seek(0)
        for start, end in [*sorted((start, start + room.nbytes) for start, room, _ in places), (image.size, image.size)]:
            self.readinto(image[self._position : start].data)
            self.seek(end)


def _dimensions(spec: StateSpec) -> dict[str, np.ndarray]:
    """Cell centres by the axis' name; of objects, their numbers."""
    if not spec.grid:
        return {"x": np.zeros(1)}
    if spec.objects:
        return {"object": spec.centres()[0]}
    return {axis.name: centres for axis, centres in zip(spec.axes, spec.centres(), strict=True)}


def _varying(dataset: h5py.Dataset | h5py.Group, *, sample: bool, time: bool) -> None:
    dataset.attrs["sample_varying"], dataset.attrs["time_varying"] = sample, time


def _write_dimensions(file: h5py.File, spec: StateSpec, frames: int) -> None:
    group = file.create_group("dimensions")
    group.attrs["spatial_dims"] = list(_dimensions(spec))
    time = group.create_dataset("time", data=np.arange(frames) * spec.frame_step, dtype="f4")
    _varying(time, sample=False, time=True)
    for name, centres in _dimensions(spec).items():
        _varying(group.create_dataset(name, data=centres, dtype="f4"), sample=False, time=False)


def _write_boundaries(file: h5py.File, spec: StateSpec) -> None:
    group = file.create_group("boundary_conditions")
    ends = ["open"] if spec.objects else [axis.boundary for axis in spec.axes]
    for (name, centres), end in zip(_dimensions(spec).items(), ends, strict=False):
        condition = group.create_group(f"{name}_{end}")
        condition.attrs.update(associated_dims=[name], associated_fields=[], bc_type=BOUNDARY[end])
        _varying(condition, sample=False, time=False)
        mask = np.zeros(len(centres), dtype=bool)
        mask[[0, -1]] = True
        condition["mask"] = mask


def _write_scalars(file: h5py.File, spec: StateSpec, samples: Sequence[Sample]) -> None:
    group = file.create_group("scalars")
    names = [parameter.name for parameter in spec.params]
    group.attrs["field_names"] = file.attrs["simulation_parameters"] = np.array(names, dtype=h5py.string_dtype())
    for column, name in enumerate(names):
        values = np.array([sample.params[column] for sample in samples])
        # A row (lowest, highest): of fixed size, where an attribute holds 64 kB at most, and in two dimensions, so that
        # WellDataset.to_xarray passes over it instead of replacing the values below.
        file.attrs[name] = [[values.min(), values.max()]]
        _varying(group.create_dataset(name, data=values, dtype="f8"), sample=True, time=False)


def _place_fields(file: h5py.File, spec: StateSpec, states: np.ndarray, dtype: str) -> list[tuple[int, _Room, np.ndarray]]:
    """Make the datasets without their values: where each begins in the file, its room, and the view of the states it gets."""
    groups = [file.create_group(f"t{rank}_fields") for rank in range(3)]
    names: list[list[str]] = [[], [], []]
    places = []

    def place(rank: int, name: str, values: np.ndarray) -> None:
        names[rank].append(name)
        dataset = groups[rank].create_dataset(name, values.shape, dtype)
        dataset.attrs["dim_varying"] = [True] * max(len(spec.grid), 1)
        _varying(dataset, sample=True, time=True)
        dataset[(0,) * dataset.ndim] = 0  # HDF5 gives a dataset its place when it is first written to
        places.append((dataset.id.get_offset(), _Room(dataset.shape, dataset.nbytes, rank == 1), values))

    channel = 0
    for field in spec.fields:
        components = spec.components(field)
        values = states[:, :, channel : channel + len(components)]
        channel += len(components)
        if not spec.is_field:
            for index, name in enumerate(components):
                place(0, name, values[:, :, index] if spec.objects else values[:, :, index, None])
        elif field.kind == "scalar":
            place(0, field.name, values[:, :, 0])
        else:
            place(1, field.name, np.moveaxis(values, 2, -1))
    for group, listed in zip(groups, names, strict=True):
        group.attrs["field_names"] = np.array(listed, dtype=h5py.string_dtype())
    return places


def _fill(room: np.ndarray, values: np.ndarray) -> None:
    """room[:] = values, piece by piece."""
    convert: Callable[[np.ndarray], np.ndarray] = np.asarray
    if room.dtype == np.float16:
        from hybridworld.data.float16 import to_half as convert
    for block in _blocks(values.shape):
        room[block] = convert(values[block])


def _blocks(shape: tuple[int, ...]) -> Iterator[tuple[slice, slice]]:
    """Pieces (trajectories, frames) of about BLOCK values, which stay in the cache while they are rearranged and written."""
    frame = int(np.prod(shape[2:]))
    rows = max(BLOCK // (frame * shape[1]), 1)
    frames = shape[1] if rows > 1 else max(BLOCK // frame, 1)
    for row in range(0, shape[0], rows):
        for start in range(0, shape[1], frames):
            yield slice(row, row + rows), slice(start, start + frames)


def _write_origin(file: h5py.File, seeds: Sequence[int], samples: Sequence[Sample]) -> None:
    group = file.create_group("origin")
    group["seed"] = np.asarray(seeds, dtype=np.int64)
    for name in sorted({name for sample in samples for name in sample.origin}):
        drawn = [sample.origin.get(name) for sample in samples]
        if any(isinstance(value, str) for value in drawn):
            group.create_dataset(name, data=["" if value is None else value for value in drawn], dtype=h5py.string_dtype())
        else:
            group[name] = np.array([np.nan if value is None else value for value in drawn], dtype=np.float64)
