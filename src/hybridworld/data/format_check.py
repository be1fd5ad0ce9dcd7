"""What a file lacks of The Well's layout, told in sentences; `hybridworld data verify` prints them."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np

CONDITIONS = ("WALL", "OPEN", "PERIODIC")
KINDS = {
    "a text": lambda value: isinstance(value, str),
    "a whole number above 0": lambda value: isinstance(value, np.integer) and value > 0,
    "true or false": lambda value: isinstance(value, np.bool_),
    "a list of names": lambda value: np.ndim(value) == 1 and all(isinstance(name, str) for name in value),
    "a list of true or false": lambda value: np.ndim(value) == 1 and value.dtype == bool,
}


def format_faults(path: Path) -> list[str]:
    """All that keeps The Well's loader from reading the file, ours or a foreign one, as it was meant; empty if nothing does."""
    try:
        with h5py.File(path) as file:
            return _Inspection(file).faults
    except OSError as error:
        return [f"it cannot be read as HDF5 ({error})"]


class _Inspection:
    """One walk through a file that gathers sizes; a shape is judged if its sizes are known, else their lack was told."""

    def __init__(self, file: h5py.File) -> None:
        self.faults: list[str] = []
        self.sizes: dict[str, int] = {}
        self.dims: list[str] = []
        self._root(file)
        parts = {"dimensions": self._dimensions, "boundary_conditions": self._conditions, "scalars": self._numbers}
        for name, inspect in (parts | {f"t{rank}_fields": self._numbers for rank in range(3)}).items():
            if isinstance(file.get(name), h5py.Group):
                inspect(file[name])
            else:
                self.faults.append(f"the group /{name} is missing")

    def _root(self, file: h5py.File) -> None:
        for name in ("dataset_name", "grid_type"):
            self._attribute(file, name, "a text")
        for name, axis in (("n_trajectories", "trajectories"), ("n_spatial_dims", "components")):
            if (count := self._attribute(file, name, "a whole number above 0")) is not None:
                self.sizes[axis] = int(count)
        for name in self._attribute(file, "simulation_parameters", "a list of names", ()):
            if name not in file.attrs or f"scalars/{name}" not in file:
                self.faults.append(f"the parameter '{name}' must be both a root attribute and a dataset in /scalars")

    def _dimensions(self, group: h5py.Group) -> None:
        self.dims = list(self._attribute(group, "spatial_dims", "a list of names", ()))
        if self.dims and self.sizes.get("components", len(self.dims)) != len(self.dims):
            self.faults.append(f"n_spatial_dims is {self.sizes['components']}, but spatial_dims lists {', '.join(self.dims)}")
        for name in ("time", *self.dims):
            dataset = group.get(name)
            if not isinstance(dataset, h5py.Dataset) or not dataset.shape or dataset.dtype.kind != "f":
                self.faults.append(f"/dimensions has no dataset '{name}' with a row of floating-point numbers")
                continue
            self.sizes[name] = dataset.shape[-1]
            leading = self._varying(dataset)
            if name == "time" and leading is not None and "time" not in leading:
                self.faults.append("time_varying of /dimensions/time is false: it must be true")
            else:
                self._check_shape(dataset, leading, *([] if name == "time" else [name]))

    def _conditions(self, group: h5py.Group) -> None:
        for condition in group.values():
            kind = self._attribute(condition, "bc_type", "a text", "OPEN")
            if kind.upper() not in CONDITIONS:
                self.faults.append(f"bc_type of {condition.name} is '{kind}': allowed are {', '.join(CONDITIONS)}")
            self._attribute(condition, "associated_fields", "a list of names")
            dims = self._attribute(condition, "associated_dims", "a list of names", ())
            strangers = [dim for dim in dims if self.dims and dim not in self.dims]
            self.faults += [f"{condition.name} is about '{dim}', which spatial_dims does not list" for dim in strangers]
            leading = self._varying(condition)
            mask = condition.get("mask") if isinstance(condition, h5py.Group) else None
            if not isinstance(mask, h5py.Dataset) or mask.dtype != bool:
                self.faults.append(f"{condition.name} has no dataset 'mask' of true and false")
                continue
            self._check_shape(mask, leading if len(dims) else None, *dims)
            if mask.ndim == 1 and mask.size and not (mask[0] or mask[-1]):
                self.faults.append(f"{mask.name} is true at neither end: the loader would take the axis as open")

    def _numbers(self, group: h5py.Group) -> None:
        """Scalars, or fields whose rank is in the name of the group."""
        names = list(self._attribute(group, "field_names", "a list of names", group.keys()))
        self.faults += [f"{group.name} has no dataset '{name}', which field_names lists" for name in names if name not in group]
        self.faults += [f"{group.name} has '{name}', which field_names does not list" for name in group if name not in names]
        for dataset in (group[name] for name in names if isinstance(group.get(name), h5py.Dataset)):
            leading = self._varying(dataset)
            if group.name == "/scalars":
                self._check_shape(dataset, leading)
                continue
            if dataset.dtype.kind != "f":
                self.faults.append(f"{dataset.name} holds {dataset.dtype}: it must hold floating-point numbers")
            used = self._attribute(dataset, "dim_varying", "a list of true or false", ())
            dims = [dim for dim, varies in zip(self.dims, used, strict=False) if varies]
            if len(used) == len(self.dims):
                self._check_shape(dataset, leading, *dims, *["components"] * int(group.name[2]))
            elif self.dims and len(used):
                self.faults.append(f"dim_varying of {dataset.name} has {len(used)} entries for {len(self.dims)} dimensions")

    def _attribute(self, item: h5py.HLObject, name: str, kind: str, otherwise: Any = None) -> Any:
        """The attribute; `otherwise` where it is missing or of another kind, which is then told."""
        owner = "the root" if item.name == "/" else item.name
        if name not in item.attrs:
            self.faults.append(f"{owner} has no attribute '{name}'")
        elif not KINDS[kind](value := item.attrs[name]):
            self.faults.append(f"the attribute '{name}' of {owner} is {value!r}: it must be {kind}")
        else:
            return value
        return otherwise

    def _varying(self, item: h5py.HLObject) -> list[str] | None:
        """The axes before those of space; None where the item does not tell."""
        flags = [self._attribute(item, name, "true or false") for name in ("sample_varying", "time_varying")]
        return None if None in flags else [axis for axis, flag in zip(("trajectories", "time"), flags, strict=True) if flag]

    def _check_shape(self, dataset: h5py.Dataset, leading: list[str] | None, *trailing: str) -> None:
        axes = [*(leading or ()), *trailing]
        if leading is None or not set(axes) <= self.sizes.keys():
            return
        expected = tuple(self.sizes[axis] for axis in axes)
        if dataset.shape != expected:
            self.faults.append(f"{dataset.name} has shape {dataset.shape}: it must be {expected}, by ({', '.join(axes)})")
