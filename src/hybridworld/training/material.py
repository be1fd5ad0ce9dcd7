"""What a training learns from: a dataset, or the solver at work."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hybridworld.data.dataset import Dataset
from hybridworld.data.evidence import Recorded, Solved, Supplied
from hybridworld.data.manifest import Manifest, data_hash
from hybridworld.data.pairs import Evidence, TrajectorySource
from hybridworld.data.plan import FOLDERS
from hybridworld.data.provenance import DATASET, STREAM
from hybridworld.data.stream import PAIRS, Stream
from hybridworld.deploy.calibrate import with_reference
from hybridworld.errors import InvalidInput
from hybridworld.physics.environment import Environment
from hybridworld.physics.registry import find_system, known_systems
from hybridworld.physics.spec import StateSpec
from hybridworld.surrogate.normalisation import MOST


@dataclass(frozen=True)
class Material:
    """Where pairs come from, and what is known about it: the system may be unknown."""

    environment: Environment | None
    train: TrajectorySource
    val: Evidence
    origin: Mapping[str, Any]
    """What the provenance says about the data; `data` tells one source of pairs from another, wherever it lies."""
    identity: Mapping[str, Any] = field(default_factory=dict)
    """The identity of the solver that made the data; empty where that is not known."""
    units: int = MOST
    """Trajectories, at most, from which units are measured."""

    @property
    def spec(self) -> StateSpec:
        """The spec of the states."""
        return self.train.spec


def find_material(environment: Environment | None, data: Path | None, stream: bool, stack: ExitStack) -> Material:
    """The material that was asked for: the dataset `data`, or with `stream` the solver at work."""
    if (data is not None) == stream:
        raise InvalidInput("Say where the training pairs come from: --data DIR or --stream, one of them, or --minutes N alone.")
    if data is not None:
        return from_dataset(data, environment)
    if environment is None:
        raise InvalidInput("--stream needs a system to solve: name it, for example `hybridworld train ball3d --stream`.")
    return stack.enter_context(from_solver(environment))


def from_dataset(root: Path, environment: Environment | None) -> Material:
    """The material of a dataset: its splits train and val."""
    dataset = Dataset(root)
    for split in ("train", "val"):
        if split not in dataset.splits:
            folder = root / "data" / FOLDERS.get(split, split)
            raise InvalidInput(
                f"{root} has no split '{split}', which would be in {folder}: training needs train and val, "
                f"and there is {', '.join(dataset.splits)}."
            )
    manifest, source = Manifest.load(root), dataset.source("val")
    if environment is None and manifest and manifest.system in known_systems():
        environment = find_system(manifest.system)
    whole = "manifest" if manifest else "file names and sizes"
    solver = with_reference(environment.fitted(dataset.spec, str(root)), dataset, root) if environment else None
    val: Evidence = Recorded(source, end=max(1, source.count // 2))  # the second half is left for calibration
    if solver and manifest and manifest.system == solver.spec.name:
        val = Supplied(source, solver)
    origin = {"source": DATASET, "data": f"a dataset with the sha256 {data_hash(root)} of its {whole}"}
    return Material(solver, dataset.source("train"), val, origin, solver.identity if solver else dataset.identity or {})


@contextmanager
def from_solver(
    environment: Environment, buffer: int | None = None, pairs: int = PAIRS, units: int = MOST
) -> Iterator[Material]:
    """The material of a solver, as a context: a stream of trajectories that train, and others that validate."""
    with Stream(environment, "train", buffer, pairs) as training:
        origin = {"source": STREAM, "data": f"a stream from the solver with {in_words(environment)}"}
        yield Material(environment, training, Solved(environment, "val"), origin, environment.identity, units)


def in_words(environment: Environment) -> str:
    """The settings that tell this solver from another, in one line."""
    return ", ".join(f"{name} {value}" for name, value in environment.identity.items())
