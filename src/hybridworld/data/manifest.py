"""The manifest: which shards a dataset has, and the sha256 of each. What is not in it does not exist yet."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from hybridworld.data.atomic import write_atomically
from hybridworld.data.plan import Plan, Shard
from hybridworld.errors import InvalidInput
from hybridworld.physics.environment import difference

FILE = "manifest.json"
FORMAT = 2
READABLE = (1, 2)
"""Format 1 has no `identity`: of its solver only the version, the number of frames and the grid are known."""


@dataclass
class Manifest:
    """What a dataset directory holds; saved after each shard, so an interrupted run loses no more than shards under way."""

    system: str
    solver_version: str
    dtype: str
    frames: int
    grid: list[int]
    shard_size: int
    identity: dict[str, Any] = field(default_factory=dict)
    """`Environment.identity` of the solver: every setting that shapes a trajectory."""
    shards: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Path -> {sha256, bytes, split, first, count, moments}."""

    @classmethod
    def of(cls, plan: Plan) -> Self:
        """The manifest of a dataset that has no shard yet."""
        environment, spec = plan.environment, plan.environment.spec
        return cls(
            spec.name, environment.version, plan.dtype, spec.frames, list(spec.grid), plan.shard_size, environment.identity
        )

    @classmethod
    def load(cls, root: Path) -> Self | None:
        """The manifest in that directory, if there is one."""
        path = root / FILE
        if not path.exists():
            return None
        try:
            content = json.loads(path.read_text())
            if content.pop("format") not in READABLE:
                raise InvalidInput(f"{path} has another format than {' or '.join(map(str, READABLE))}: update hybridworld.")
            return cls(**content)
        except (ValueError, KeyError, TypeError) as error:
            if isinstance(error, InvalidInput):
                raise
            raise InvalidInput(f"{path} is damaged ({type(error).__name__}: {error}).") from error

    def save(self, root: Path) -> None:
        """Replace the manifest on disk in one step."""
        content = {"format": FORMAT, **asdict(self), "shards": dict(sorted(self.shards.items()))}
        write_atomically(root / FILE, (json.dumps(content, indent=1) + "\n").encode())

    def check_fits(self, plan: Plan, root: Path) -> None:
        """Raise unless a run of this plan may go on in that directory."""
        wanted = Manifest.of(plan)
        for name in ("system", "solver_version", "dtype", "frames", "grid", "shard_size"):
            here, there = getattr(self, name), getattr(wanted, name)
            if here != there:
                raise InvalidInput(
                    f"{root} already holds a dataset with {name.replace('_', ' ')} {here}, and this run has {there}: "
                    "choose another folder."
                )
        found = difference(self.identity, wanted.identity)
        if found:
            name, here, there = found
            raise InvalidInput(
                f"{root} already holds a dataset of a solver with {name} {here}, and this run has {there}: "
                "choose another folder."
            )
        planned = {str(shard.path): shard for shard in plan.shards}
        for path, entry in self.shards.items():
            if entry["split"] in plan.counts and (path not in planned or entry["count"] > planned[path].count):
                raise InvalidInput(
                    f"{root} already holds more trajectories of split '{entry['split']}' than the "
                    f"{plan.counts[entry['split']]} of this run: choose another folder."
                )

    def has(self, shard: Shard, root: Path) -> bool:
        """Whether this shard is done, with just these trajectories, and its file is there in its full length."""
        entry, path = self.shards.get(str(shard.path)), root / shard.path
        return (
            entry is not None
            and (entry["first"], entry["count"]) == (shard.first, shard.count)
            and path.is_file()
            and path.stat().st_size == entry["bytes"]
        )

    def verify(self, root: Path) -> Iterator[tuple[str, str | None]]:
        """Path and what is wrong with it (None: it is whole), file by file; then files that nobody knows."""
        for path, entry in sorted(self.shards.items()):
            yield path, fault_of(root / path, entry)
        for stray in sorted((root / "data").rglob("*")):
            name = stray.relative_to(root).as_posix()
            if stray.is_file() and name not in self.shards:
                unfinished = stray.suffix == ".part"
                yield name, "is the rest of an interrupted run" if unfinished else "is not in the manifest"


def fault_of(path: Path, entry: dict[str, Any]) -> str | None:
    """What is wrong with a shard on disk, in words; None where it is whole."""
    if not path.exists():
        return "is missing"
    if path.stat().st_size != entry["bytes"]:
        return f"has {path.stat().st_size} bytes, the manifest says {entry['bytes']}"
    if sha256(path) != entry["sha256"]:
        return "does not have the sha256 of the manifest: its bytes have changed"
    return None


def data_hash(root: Path) -> str:
    """sha256 that tells one dataset from another: of the shards' own hashes in the manifest, without reading the shards.

    A foreign directory has no manifest: there it is of the names and sizes of the files.
    """
    manifest = Manifest.load(root)
    if manifest:
        lines = [f"{path} {entry['sha256']}\n" for path, entry in sorted(manifest.shards.items())]
    else:
        files = sorted(path for path in root.glob("data/*/*") if path.suffix in (".hdf5", ".h5"))
        lines = [f"{path.relative_to(root).as_posix()} {path.stat().st_size}\n" for path in files]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def sha256(path: Path) -> str:
    """The sha256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
