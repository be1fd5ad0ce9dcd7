"""What a dataset will hold: how many trajectories per split, in which shards, in how many bytes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hybridworld.errors import InvalidInput
from hybridworld.physics.environment import Environment
from hybridworld.physics.spec import SPLITS

SHARD_BYTES = 64 * 2**20
LARGEST_SHARD = 1000  # trajectories
DTYPES = ("float32", "float16")

SCALES = ("smoke", "laptop", "paper")
SMOKE_CELLS = 32  # along the longest axis
FOLDERS = {"val": "valid"}
"""Splits that The Well calls otherwise."""


@dataclass(frozen=True)
class Shard:
    """Trajectories first, first + 1, ... of a split, in one file."""

    system: str
    split: str
    index: int
    first: int
    count: int

    @property
    def path(self) -> Path:
        """The path of the file, relative to the dataset's root."""
        return Path("data") / FOLDERS.get(self.split, self.split) / f"{self.system}-{self.index:05d}.hdf5"

    @property
    def seeds(self) -> range:
        """The numbers of its trajectories within the split."""
        return range(self.first, self.first + self.count)


@dataclass(frozen=True)
class Plan:
    """All shards of a dataset."""

    environment: Environment
    counts: Mapping[str, int]
    dtype: str = "float32"

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise InvalidInput(f"dtype is '{self.dtype}': choose {' or '.join(DTYPES)}.")
        for split, count in self.counts.items():
            self.environment.spec.regime(split)
            if count < 1:
                raise InvalidInput(f"The count of split '{split}' is {count}: it must be at least 1.")
        if not self.counts:
            raise InvalidInput("There is nothing to generate: name at least one split.")

    @property
    def trajectory_bytes(self) -> int:
        """Bytes of one trajectory in a file."""
        spec = self.environment.spec
        return int(np.prod(spec.shape)) * spec.frames * np.dtype(self.dtype).itemsize

    @property
    def shard_size(self) -> int:
        """Trajectories per shard; it depends on system and dtype alone, so that a larger count leaves full shards alone."""
        return int(np.clip(SHARD_BYTES // self.trajectory_bytes, 1, LARGEST_SHARD))

    @property
    def shards(self) -> list[Shard]:
        """All shards, in the order of the splits."""
        name, size = self.environment.spec.name, self.shard_size
        return [
            Shard(name, split, index, first, min(size, self.counts[split] - first))
            for split in SPLITS
            if split in self.counts
            for index, first in enumerate(range(0, self.counts[split], size))
        ]

    @property
    def nbytes(self) -> int:
        """The bytes of all trajectories, without the few kilobytes of metadata per shard."""
        return sum(self.counts.values()) * self.trajectory_bytes


def at_scale(environment: Environment, scale: str) -> tuple[Environment, dict[str, int]]:
    """The system and the trajectories per split: `paper` as in the spec, `laptop` a tenth, `smoke` a few on a tiny grid.

    State vectors cost next to nothing, so `laptop` has all of them.
    """
    if scale not in SCALES:
        raise InvalidInput(f"The scale is '{scale}': choose one of {', '.join(SCALES)}.")
    spec = environment.spec
    if scale == "paper" or (scale == "laptop" and not spec.grid):
        return environment, dict(spec.counts)
    if scale == "laptop":
        return environment, {split: max(count // 10, 2) for split, count in spec.counts.items()}
    factor = max(spec.grid) // SMOKE_CELLS if spec.grid else 1
    small = environment.coarsened(factor) if factor > 1 else environment
    return small, {split: max(count // 100, 2) if spec.grid else 32 for split, count in spec.counts.items()}


def plan_for(
    environment: Environment,
    scale: str | None = None,
    counts: Mapping[str, int] | None = None,
    splits: Sequence[str] | None = None,
    dtype: str = "float32",
) -> Plan:
    """The plan of a dataset with these counts, or at a scale (by default `laptop`); with `splits`, of these alone."""
    if scale and counts:
        raise InvalidInput("Give --scale or --count, not both.")
    if not counts:
        environment, counts = at_scale(environment, scale or "laptop")
    for split in splits or ():
        environment.spec.regime(split)
    return Plan(environment, {split: n for split, n in counts.items() if not splits or split in splits}, dtype)


def parse_counts(text: str) -> dict[str, int]:
    """Split -> count, from a text like `train=400,val=50`."""
    counts = {}
    for part in text.split(","):
        split, _, number = part.strip().partition("=")
        if split not in SPLITS or not number.isdigit():
            raise InvalidInput(
                f"--count has '{part.strip()}': write for example train=400,val=50; the splits are {', '.join(SPLITS)}."
            )
        counts[split] = int(number)
    return counts
