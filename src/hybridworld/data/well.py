"""Trajectories in The Well's HDF5 layout, so that the field's own loaders read them.

    /dimensions            time, x, y ...                  /t0_fields   scalars (trajectory, time, *grid)
    /boundary_conditions   one group per axis              /t1_fields   vectors (trajectory, time, *grid, component)
    /scalars               the parameters of the dynamics  /t2_fields   always there, always empty
    /origin                ours: seed, initial-state kind and all else that was drawn, per trajectory

A state vector has no grid: its channels are scalars on an axis `x` of length 1. The root attribute `hybridworld_spec`, ours as
well, holds the StateSpec: neither that mark nor units, axial vectors and ranges have a place in the layout.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from hybridworld.physics.environment import Environment, Sample
from hybridworld.physics.spec import Axis, Field, Parameter, StateSpec

BLOCK = 2**18
BOUNDARY = {"periodic": "PERIODIC", "open": "OPEN", "wall": "WALL"}
SPEC = "hybridworld_spec"


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
    spec = environment.spec
    with h5py.File(path, "w") as file:
        file.attrs.update(
            dataset_name=spec.name,
            grid_type="cartesian",
            n_spatial_dims=max(len(spec.grid), 1),
            n_trajectories=len(states),
            split=split,
            solver_version=environment.version,
            **{SPEC: spec_to_text(spec)},
        )
        _write_dimensions(file, spec, states.shape[1])
        _write_boundaries(file, spec)
        _write_scalars(file, spec, samples)
        _write_fields(file, spec, states, dtype)
        _write_origin(file, seeds, samples)


def spec_to_text(spec: StateSpec) -> str:
    """The spec as JSON."""
    return json.dumps(asdict(spec), default=lambda number: number.item())


def spec_from_text(text: str) -> StateSpec:
    """Inverse of `spec_to_text`."""
    parts = _tuples(json.loads(text))
    for name, kind in (("fields", Field), ("axes", Axis), ("parameters", Parameter)):
        parts[name] = tuple(kind(**part) for part in parts[name])
    return StateSpec(**parts)


def _tuples(value: Any) -> Any:
    """JSON has lists where a spec has tuples."""
    if isinstance(value, dict):
        return {name: _tuples(part) for name, part in value.items()}
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _dimensions(spec: StateSpec) -> dict[str, np.ndarray]:
    """Cell centres by the axis' name."""
    if not spec.grid:
        return {"x": np.zeros(1)}
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
    for (name, centres), axis in zip(_dimensions(spec).items(), spec.axes, strict=False):
        condition = group.create_group(f"{name}_{axis.boundary}")
        condition.attrs.update(associated_dims=[name], associated_fields=[], bc_type=BOUNDARY[axis.boundary])
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


def _write_fields(file: h5py.File, spec: StateSpec, states: np.ndarray, dtype: str) -> None:
    groups = [file.create_group(f"t{rank}_fields") for rank in range(3)]
    names: list[list[str]] = [[], [], []]
    convert: Callable[[np.ndarray], np.ndarray] = partial(np.asarray, dtype=dtype)
    if dtype == "float16":
        from hybridworld.data.half import to_half as convert

    def write(rank: int, name: str, values: np.ndarray) -> None:
        names[rank].append(name)
        dataset = groups[rank].create_dataset(name, values.shape, dtype)
        for block in _blocks(values.shape):
            dataset[block] = convert(values[block])
        dataset.attrs["dim_varying"] = [True] * max(len(spec.grid), 1)
        _varying(dataset, sample=True, time=True)

    channel = 0
    for field in spec.fields:
        components = spec.components(field)
        values = states[:, :, channel : channel + len(components)]
        channel += len(components)
        if not spec.grid:
            for index, name in enumerate(components):
                write(0, name, values[:, :, index, None])
        elif field.kind == "scalar":
            write(0, field.name, values[:, :, 0])
        else:
            write(1, field.name, np.moveaxis(values, 2, -1))
    for group, listed in zip(groups, names, strict=True):
        group.attrs["field_names"] = np.array(listed, dtype=h5py.string_dtype())


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
