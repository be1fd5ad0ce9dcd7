"""A directory in The Well's layout, ours or a foreign one: states by (trajectory, frame), and the spec that its files tell.

ROOT/data/{train,valid,test,...}/*.hdf5|*.h5        each folder is a split; The Well's `valid` is our `val`
"""

import threading
from collections.abc import Iterator
from dataclasses import replace
from math import prod
from pathlib import Path

import numpy as np

from hybridworld.data.evidence import Recorded
from hybridworld.data.pairs import Block
from hybridworld.data.plan import FOLDERS
from hybridworld.data.verified import Verified
from hybridworld.data.well_file import WellFile
from hybridworld.errors import InvalidInput
from hybridworld.physics.arguments import checked_path, shown
from hybridworld.physics.spec import REGIMES, SPLITS, StateSpec

IN_MEMORY = 256 * 2**20
"""A split of fewer bytes than this is read once and kept."""

SUFFIXES = (".hdf5", ".h5")


class Dataset:
    """All splits below `root`, which must agree in fields, grid and frames."""

    def __init__(self, root: Path | str) -> None:
        root = checked_path("The folder of the dataset", root)
        verified = Verified(root)
        files = {split: [_opened(path, verified) for path in paths] for split, paths in _paths(root).items()}
        every = [file for group in files.values() for file in group]
        for file in every[1:]:
            file.check_like(every[0])
        known = [file for split, group in files.items() if REGIMES.get(split, "id") == "id" for file in group] or every
        self.spec = _with_observed_ranges(every[0].spec, np.concatenate([file.params for file in known]))
        self.ignored, self.identity = every[0].ignored, every[0].identity
        self._splits = {split: Split(self.spec, group, verified) for split, group in files.items()}

    @property
    def splits(self) -> tuple[str, ...]:
        """The names of the splits: ours in their usual order, then any others."""
        return tuple(self._splits)

    @property
    def frames(self) -> int:
        """States per trajectory."""
        return self.spec.frames

    def source(self, split: str) -> "Split":
        """The trajectories of one split, from which `Pairs` draws."""
        if split not in self.splits:
            raise InvalidInput(f"The dataset has no split '{split}': choose one of {', '.join(self.splits)}.")
        return self._splits[split]

    def count(self, split: str) -> int:
        """Trajectories of a split."""
        return self.source(split).count

    def nbytes(self, split: str) -> int:
        """What the states of a split take in memory, as float32."""
        return self.source(split).nbytes

    def params(self, split: str) -> np.ndarray:
        """Parameters of the dynamics, float64 (count, number of spec.params)."""
        return self.source(split).params(np.arange(self.count(split)))

    def read(self, split: str, trajectories: np.ndarray, frames: np.ndarray) -> np.ndarray:
        """One state per pair (trajectory, frame): float32 (batch, channels, *grid)."""
        return self.source(split).read(trajectories, frames)

    def trajectory(self, split: str, index: int) -> np.ndarray:
        """All states of one trajectory: float32 (frames, channels, *grid)."""
        return self.source(split).trajectory(index)


class Split:
    """The trajectories of one split: a `TrajectorySource` all of whose trajectories are at hand at any time."""

    def __init__(self, spec: StateSpec, files: list["WellFile"], verified: Verified) -> None:
        self.spec, self.frames = spec, spec.frames
        self._files, self._verified = files, verified
        self._ends = np.cumsum([file.count for file in files])
        self._params = np.concatenate([file.params for file in files])
        self._whole: np.ndarray | None = None
        self._loading = threading.Lock()

    @property
    def count(self) -> int:
        """Number of trajectories."""
        return int(self._ends[-1])

    @property
    def nbytes(self) -> int:
        """What all states take in memory, as float32."""
        return 4 * self.count * self.frames * prod(self.spec.shape)

    @property
    def kinds(self) -> list[str]:
        """The kind of initial state of each trajectory; none where the files do not tell."""
        found = [kind for file in self._files for kind in file.kinds]
        return found if len(found) == self.count else []

    def window(self, drawn: int) -> range:
        """All trajectories, however many pairs were drawn."""
        return range(self.count)

    def params(self, trajectories: np.ndarray) -> np.ndarray:
        """Parameters of the dynamics, float64 (batch, number of spec.params)."""
        return self._params[_checked(trajectories, self.count, "trajectory")]

    def read(self, trajectories: np.ndarray, frames: np.ndarray) -> np.ndarray:
        """One state per pair (trajectory, frame): float32 (batch, channels, *grid)."""
        trajectories, frames = _checked(trajectories, self.count, "trajectory"), _checked(frames, self.frames, "frame")
        if self.nbytes < IN_MEMORY:
            return self._in_memory()[trajectories, frames]
        states = np.empty((len(trajectories), *self.spec.shape), np.float32)
        for state, trajectory, frame in zip(states, trajectories.tolist(), frames.tolist(), strict=True):
            self._fill(state, trajectory, frame)
        return states

    def blocks(self, count: int) -> Iterator[Block]:
        """The first `count` trajectories, or all."""
        return Recorded(self).blocks(count)

    def trajectory(self, index: int) -> np.ndarray:
        """All states of one trajectory: float32 (frames, channels, *grid)."""
        _checked(np.array([index]), self.count, "trajectory")
        states = np.empty((self.frames, *self.spec.shape), np.float32)
        self._fill(states, index, slice(None))
        return states

    def _fill(self, out: np.ndarray, trajectory: int, frame: int | slice) -> None:
        number = int(np.searchsorted(self._ends, trajectory, side="right"))
        file = self._files[number]
        self._verified.check(file.path)
        file.fill(out, trajectory - int(self._ends[number]) + file.count, frame)

    def _in_memory(self) -> np.ndarray:
        """(trajectories, frames, channels, *grid)"""
        with self._loading:
            if self._whole is None:
                whole = np.empty((self.count, self.frames, *self.spec.shape), np.float32)
                for trajectory, states in enumerate(whole):
                    self._fill(states, trajectory, slice(None))
                self._whole = whole
        return self._whole


def _opened(path: Path, verified: Verified) -> WellFile:
    """The file with its header read; where that fails, a damaged shard is called so."""
    try:
        return WellFile(path)
    except InvalidInput:
        verified.check(path)
        raise


def _paths(root: Path) -> dict[str, list[Path]]:
    """Split -> its files."""
    data = root / "data"
    if not data.is_dir():
        raise InvalidInput(f"There is no folder {data}: a dataset has its files in data/train/*.hdf5 and the like.")
    splits = {folder: split for split, folder in FOLDERS.items()}
    found: dict[str, list[Path]] = {}
    for folder in sorted(path for path in data.iterdir() if path.is_dir() and not path.name.startswith(".")):
        files = sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES and not path.name.startswith("."))
        if not files:
            raise InvalidInput(f"The folder {folder} has no file that ends in {' or '.join(SUFFIXES)}.")
        found.setdefault(splits.get(folder.name, folder.name), []).extend(files)
    if not found:
        raise InvalidInput(f"The folder {data} is empty: a dataset has its files in data/train/*.hdf5 and the like.")
    return {split: found[split] for split in sorted(found, key=lambda split: (*SPLITS, split).index(split))}


def _checked(numbers: np.ndarray, count: int, what: str) -> np.ndarray:
    numbers = np.asarray(numbers)
    if numbers.size and numbers.dtype.kind not in "iu":
        raise InvalidInput(f"The {what} is {shown(numbers.tolist())}: it must be a whole number.")
    outside = (numbers < 0) | (numbers >= count)
    if outside.any():
        raise InvalidInput(f"There is no {what} {numbers[outside][0]}: they are numbered 0 to {count - 1}.")
    return numbers


def _with_observed_ranges(spec: StateSpec, rows: np.ndarray) -> StateSpec:
    """Parameters that come without ranges get the one in which they were seen."""
    seen = {each.name: (float(column.min()), float(column.max())) for each, column in zip(spec.params, rows.T, strict=True)}
    parameters = (each if each.ranges else replace(each, ranges={"id": (seen[each.name],)}) for each in spec.parameters)
    return replace(spec, parameters=tuple(parameters))


def check_fits(model: str | Path, here: StateSpec, data: Path, there: StateSpec) -> None:
    """Raise unless a model with the spec `here` and a dataset with the spec `there` are about the same states.

    Sets of objects may differ in their number.
    """
    sets = here.objects and there.objects
    if here.channels != there.channels or (here.grid != there.grid and not sets):
        raise InvalidInput(
            f"{model} is about {here.name} with {', '.join(here.channels)} on the grid {here.grid or 'none'}; "
            f"{data} holds {there.name} with {', '.join(there.channels)} on {there.grid or 'none'}."
        )
