"""What the commands `generate`, `train` and `calibrate` do, as functions that return what they made."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Any

from hybridworld.app.calibrate import calibrate_to_file
from hybridworld.app.generate import generate_dataset
from hybridworld.app.train import setting_in_words, train_surrogate
from hybridworld.data.dataset import Dataset
from hybridworld.data.plan import plan_for
from hybridworld.deploy.hybrid import HybridModel
from hybridworld.deploy.load import ready
from hybridworld.errors import HybridWorldError, InvalidInput
from hybridworld.physics.arguments import checked_path, number, shown, whole
from hybridworld.physics.environment import Environment
from hybridworld.physics.registry import find_system
from hybridworld.training.recipe import Request
from hybridworld.training.schedule import LEAST_MINUTES

System = Environment | str | Path
"""A system, its name, or path/to/file.py:Class."""


def generate(
    system: System,
    out: Path | str,
    scale: str | None = None,
    count: Mapping[str, int] | None = None,
    splits: Sequence[str] | None = None,
    dtype: str = "float32",
    workers: int | None = None,
    dask: str | None = None,
) -> Dataset:
    """A dataset of trajectories in the folder `out`: `count={"train": 400, "val": 50}`, or a scale (smoke, laptop, paper).

    An interrupted one goes on where it was.
    """
    if count is not None:
        if not isinstance(count, Mapping) or not count:
            raise InvalidInput(f"The count is {shown(count)}: give trajectories per split, as {{'train': 400, 'val': 50}}.")
        count = {split: whole(f"The count of {split}", n, 1) for split, n in count.items()}
    if isinstance(splits, str) or not isinstance(splits, Sequence | None) or (splits is not None and not splits):
        raise InvalidInput(f"The splits are {shown(splits)}: give a list, as ['train', 'val'].")
    folder = checked_path("out", out)
    workers = None if workers is None else whole("The number of workers", workers, 1)
    return generate_dataset(plan_for(_system(system), scale, count, splits, dtype), folder, workers, dask)


def train(
    system: System | None = None,
    data: Path | str | None = None,
    preset: str | None = None,
    settings: Mapping[str, Any] | None = None,
    minutes: float | None = None,
    start: str | None = None,
    out: Path | str | None = None,
    device: str | None = None,
) -> HybridModel:
    """A surrogate, trained on a dataset or, without one, straight from the solver; an interrupted training goes on.

    With `minutes`, a budget, it finds data, epochs and calibration by itself. `start` is a trained model to go on from.

    `settings` are those that `hybridworld train --settings` lists, as {"training.epochs": 5}. The run is in the folder `out`,
    by default runs/SYSTEM-PRESET.
    """
    if system is data is start is None:
        raise InvalidInput("There is nothing to train on: name a system, as hw.train('ball3d'), or give data.")
    environment = None if system is None else _system(system)
    if settings is not None and not isinstance(settings, Mapping):
        raise InvalidInput(f"The settings are {shown(settings)}: give them as {{'training.epochs': 5}}.")
    wishes = [f"{name}={setting_in_words(value)}" for name, value in (settings or {}).items()]
    root, folder = None if data is None else checked_path("data", data), None if out is None else checked_path("out", out)
    minutes = None if minutes is None else number("The number of minutes", minutes, LEAST_MINUTES)
    streams = root is None and minutes is None
    asked = Request(environment, root, streams, minutes, start, preset, wishes, folder, began=monotonic(), device=device)
    bundle = train_surrogate(asked)
    if bundle is None:
        raise HybridWorldError("Under torchrun only the leader has the trained model: load its file with hw.load.")
    return ready(bundle, environment, device=device)


def calibrate(
    model: Path | str,
    data: Path | str | None = None,
    system: System | None = None,
    count: int | None = None,
    out: Path | str | None = None,
    signal: str | None = None,
    backbone: str | None = None,
    device: str | None = None,
) -> HybridModel:
    """The model with thresholds and error bounds from `count` validation trajectories of its solver, or of a dataset.

    They are written into its file, or into `out`. `signal` names what draws the map. `system` is for one of your
    own, `backbone` (file.py:Class) likewise.
    """
    environment = None if system is None else _system(system)
    root, file = None if data is None else checked_path("data", data), None if out is None else checked_path("out", out)
    count = None if count is None else whole("The number of trajectories", count, 1)
    return calibrate_to_file(model, backbone, root, environment, count, file, signal, device)[1]


def _system(system: System) -> Environment:
    return system if isinstance(system, Environment) else find_system(system)
