"""What is wrong with a dataset: every byte against the manifest, every file against The Well's layout."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np

from hybridworld.data.format_check import format_faults
from hybridworld.data.manifest import Manifest
from hybridworld.errors import InvalidInput


@dataclass(frozen=True)
class Verification:
    """What was found in a dataset."""

    files: int
    manifest: bool
    """Whether the bytes could be compared with a manifest."""
    faults: Mapping[str, str]
    """File -> what is wrong with it, in one line."""


def verify(root: Path, tell: Callable[[int, int], None] = lambda done, total: None) -> Verification:
    """The faults of all files of the dataset in `root`; `tell` hears how many files of how many are done."""
    manifest = Manifest.load(root)
    files = sorted(path for path in root.glob("data/*/*") if path.suffix in (".hdf5", ".h5"))
    if not files and manifest is None:
        raise InvalidInput(f"{root} holds no dataset: there is no manifest.json and no data/SPLIT/*.hdf5.")
    total = max(len(manifest.shards), len(files)) if manifest else len(files)
    faults: dict[str, str] = {}
    for done, (name, fault) in enumerate(manifest.verify(root) if manifest else (), 1):
        tell(done, total)
        if fault:
            faults[name] = fault
    for done, path in enumerate(files, 1):
        name = path.relative_to(root).as_posix()
        found = [] if name in faults else format_faults(path)
        if not found and not manifest:
            found = not_finite(path)
        if found:
            faults[name] = "; ".join(found)
        if not manifest:
            tell(done, total)
    return Verification(len(files), manifest is not None, faults)


def not_finite(path: Path) -> list[str]:
    """Fields of a foreign file that hold nan or infinity; ours were checked when they were made."""
    with h5py.File(path) as file:
        return [
            f"{name} holds values that are not finite"
            for rank in range(3)
            for name, field in file[f"t{rank}_fields"].items()
            if not all(np.isfinite(field[row]).all() for row in range(len(field)))
        ]
