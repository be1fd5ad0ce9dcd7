"""What the solver answered in mode 2, kept to be learned from: a bounded log in The Well's layout.

    LOG/h16/data/train/WHEN-WHO-COUNT.hdf5        trajectories of two frames: the state, and the solver's answer 16 frames later

Each folder LOG/h... is a dataset of its own. A file is written aside and renamed, and its name is that of no other process, so
any number of processes may add to a log at once, and whatever ends them leaves whole files. Once a log holds more pairs than it
may, its oldest files are deleted. What waits for its file to be full is in memory: that much is lost by SIGKILL.
"""

import atexit
import hashlib
import os
import secrets
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from hybridworld.data.atomic import make_folder, write_atomically
from hybridworld.data.pairs import Batch
from hybridworld.data.well import file_image
from hybridworld.data.well_file import WellFile, opened
from hybridworld.errors import InvalidInput
from hybridworld.physics.arguments import checked_path
from hybridworld.physics.environment import Sample, difference
from hybridworld.physics.spec import StateSpec

BYTES, MOST = 10**9, 100_000
"""A log has as many pairs as fit into so many bytes, but no more than that, unless it is said how many."""
FULL_PAIRS, FULL_BYTES, PATIENCE = 64, 2**20, 10.0
"""A file is written once so much waits for it, or something for so many seconds when the next pair comes."""
ABANDONED = 3600.0
"""Seconds after which a file that stands aside has lost its writer."""
HELD_OUT = 4
"""One of so many trajectories is never learned from."""


class NotKept(UserWarning):
    """The solver's answers could not be written down."""


class DeferredLog:
    """Where a model's deferred questions and the solver's answers go.

    `identity` is that of the solver (`Environment.identity`), `most` the number of pairs that are kept.
    """

    def __init__(
        self,
        root: Path | str,
        spec: StateSpec,
        identity: Mapping[str, Any] | None = None,
        version: str = "none",
        most: int | None = None,
    ) -> None:
        size = 8 * int(np.prod(spec.shape))
        folder = checked_path("The folder", root)
        self.root, self.spec, self.most = make_folder(folder), spec, most or min(MOST, max(BYTES // size, 1))
        self._identity, self._version = dict(identity or {}), version
        self._full = min(FULL_PAIRS, max(FULL_BYTES // size, 1))
        self._waiting: dict[int, list[tuple[Sample, np.ndarray]]] = {}  # horizon -> what begins so, and the answer
        self._since, self._lock = 0.0, Lock()
        atexit.register(self.flush)

    def add(
        self, states: np.ndarray, horizon: int, params: np.ndarray, answers: np.ndarray, began: np.ndarray | None = None
    ) -> None:
        """Keep pairs (state, answer after `horizon` frames) of trajectories that began with `began` (default: here)."""
        rows = zip(states, params, answers, states if began is None else began, strict=True)
        pairs = [
            (Sample(np.array(state), np.array(given), {"began": name_of(first, given), "horizon": horizon}), np.array(answer))
            for state, given, answer, first in rows
        ]
        with self._lock:
            if not self._waiting:
                self._since = time.monotonic()
            waiting = self._waiting.setdefault(int(horizon), [])
            waiting += pairs
            if time.monotonic() - self._since > PATIENCE:
                self._write_all()
            elif len(waiting) >= self._full:
                self._write(int(horizon), self._waiting.pop(int(horizon)))

    def flush(self) -> None:
        """Write what waits."""
        with self._lock:
            self._write_all()

    def _write_all(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for horizon, pairs in waiting.items():
            self._write(horizon, pairs)

    def _write(self, horizon: int, pairs: list[tuple[Sample, np.ndarray]]) -> None:
        """One file; a disk that is full costs the pairs, not the answer that somebody waits for."""
        samples = [sample for sample, _ in pairs]
        states = np.stack([np.stack([sample.state, answer]) for sample, answer in pairs])
        leap = replace(self.spec, frame_step=self.spec.frame_step * horizon, frames=2)
        numbers = range(len(samples))
        image = file_image(leap, self._version, "train", numbers, samples, states, identity=self._identity)
        name = f"{time.time_ns():020d}-{os.getpid():x}{secrets.token_hex(3)}-{len(samples)}.hdf5"
        try:
            folder = make_folder(self.root / f"h{horizon}" / "data" / "train")
            write_atomically(folder / name, image.tobytes())
            self._forget()
        except (OSError, InvalidInput) as error:
            warnings.warn(f"{len(pairs)} answers of the solver could not be kept: {error}", NotKept, stacklevel=2)

    def _forget(self) -> None:
        """Delete the oldest files until no more than `most` pairs are left; others may be deleting the same."""
        left = 0
        for path in sorted(files_of(self.root), key=lambda path: path.name, reverse=True):
            left += count_of(path)
            if left > self.most:
                path.unlink(missing_ok=True)
        for aside in self.root.glob("h*/data/train/.*.part"):
            with suppress(FileNotFoundError):
                if time.time() - aside.stat().st_mtime > ABANDONED:
                    aside.unlink()


@dataclass(frozen=True)
class Deferred:
    """Pairs of a log, oldest first, and the trajectories that they belong to, by name."""

    pairs: Batch
    trajectories: np.ndarray  # str (pairs,)

    def __len__(self) -> int:
        return len(self.trajectories)

    def of(self, rows: np.ndarray) -> "Deferred":
        """The pairs of these rows, with their trajectories."""
        parts = {each.name: getattr(self.pairs, each.name)[rows] for each in fields(Batch)}
        return Deferred(Batch(**parts), self.trajectories[rows])

    @property
    def held_out(self) -> np.ndarray:
        """Which pairs judge and are never learned from: all of one trajectory in four, for ever the same."""
        return np.array([int(name, 16) % HELD_OUT == 0 for name in self.trajectories], bool)


def read_log(root: Path, spec: StateSpec, identity: Mapping[str, Any] | None = None) -> Deferred:
    """All pairs of a log, which must be about such states and from such a solver."""
    parts = list(_read_files(root, spec, identity or {}))
    if not parts:
        raise InvalidInput(
            f"There is nothing to learn from in {root}: a log is written by `hybridworld serve --keep {root}` or "
            f"`hybridworld predict MODEL --keep {root}` where the solver answers."
        )
    columns = {each.name: np.concatenate([getattr(part.pairs, each.name) for part in parts]) for each in fields(Batch)}
    return Deferred(Batch(**columns), np.concatenate([part.trajectories for part in parts]))


def _read_files(root: Path, spec: StateSpec, identity: Mapping[str, Any]) -> Iterator[Deferred]:
    for path in sorted(files_of(root), key=lambda path: path.name):
        try:
            yield _read(path, spec, identity)
        except (InvalidInput, OSError):
            if path.exists():  # else whoever writes this log has just dropped it
                raise


def _read(path: Path, spec: StateSpec, identity: Mapping[str, Any]) -> Deferred:
    file = WellFile(path)
    for what, here, there in (
        ("system", file.spec.name, spec.name),
        ("channels", file.spec.channels, spec.channels),
        ("grid", file.spec.grid, spec.grid),
        ("parameters", [each.name for each in file.spec.params], [each.name for each in spec.params]),
    ):
        if here != there:
            raise InvalidInput(f"{path} has the {what} {here}, and the model {there}: take the log of this model.")
    found = difference(file.identity, identity)
    if found:
        name, here, there = found
        raise InvalidInput(f"{path} has answers of a solver with {name} {here}, and that of the model has {there}.")
    both = np.empty((file.count, 2, *spec.shape), np.float32)
    for row, states in enumerate(both):
        file.fill(states, row, slice(None))
    with opened(path) as content:
        if "origin/began" not in content or "origin/horizon" not in content:
            raise InvalidInput(f"{path} is not part of a log of deferred questions.")
        began, horizons = content["origin/began"].asstr()[:], content["origin/horizon"][:].astype(np.int64)
    return Deferred(Batch(both[:, 0], horizons, file.params.astype(np.float32), both[:, 1]), began.astype(str))


def files_of(root: Path) -> Iterator[Path]:
    """The files of a log."""
    return root.glob("h*/data/train/[0-9]*.hdf5")


def count_of(path: Path) -> int:
    """The pairs in a file, by its name."""
    number = path.stem.rpartition("-")[2]
    return int(number) if number.isdigit() else 0


def name_of(state: np.ndarray, params: np.ndarray) -> str:
    """What tells one trajectory from another: 16 hexadecimal digits from its beginning."""
    content = np.ascontiguousarray(state, np.float32).tobytes() + np.ascontiguousarray(params, np.float64).tobytes()
    return hashlib.sha256(content).hexdigest()[:16]
