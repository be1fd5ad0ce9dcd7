"""`hybridworld calibrate`: what a model's scores are like on validation data, written into its file."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from hybridworld.app.models import check_fits, load_model
from hybridworld.app.progress import announce, progress_bar
from hybridworld.data.atomic import make_folder
from hybridworld.data.dataset import Dataset
from hybridworld.data.evidence import CALIBRATING, Recorded, Solved
from hybridworld.data.manifest import data_hash
from hybridworld.data.pairs import Evidence
from hybridworld.deploy.load import MODELS, find_model, solver_of
from hybridworld.errors import InvalidInput
from hybridworld.physics.environment import Environment
from hybridworld.surrogate.bundle import Bundle, save_bundle
from hybridworld.surrogate.horizons import calibrated_horizons
from hybridworld.trust.bounds import ErrorBound, Residuals
from hybridworld.trust.calibrate import calibrate
from hybridworld.trust.calibration import Calibration
from hybridworld.trust.step_doubling import StepDoubling

SHOWN = (0.5, 0.75, 0.9)  # keep fractions


def calibrate_model(
    model: str | Path, backbone: str | None, data: Path | None, environment: Environment | None, count: int | None = None,
    out: Path | None = None, device: str | None = None,
) -> Path:  # fmt: skip
    """Judge validation trajectories that chose nothing: thresholds and error bounds then follow from the file.

    They are written into the model's own file unless `out` names another; what ships with the package is never changed.
    """
    path = out or find_model(model)
    if path.resolve().is_relative_to(MODELS):
        raise InvalidInput(f"{path.stem} ships with the package and is not overwritten: name a file with --out.")
    make_folder(path.parent)
    bundle = load_model(model, backbone, environment, device)
    surrogate, training = bundle.surrogate, bundle.config.training
    count = count or training.calibration or 1
    evidence, origin = calibrating_evidence(model, bundle, data, environment)
    announce(f"calibrating by {count:,} trajectories")
    with progress_bar() as bar:
        task = bar.add_task("calibrating: trajectories", total=count)
        arrays = calibrate(
            surrogate, StepDoubling(surrogate, surrogate.std), evidence, calibrated_horizons(training.horizons), count,
            training.seed, lambda done: bar.update(task, completed=done),
        )  # fmt: skip
    residuals = Residuals.from_arrays(arrays, "trajectory")
    assert residuals is not None
    known = {"trajectories": ErrorBound(residuals).trajectories, "signal": StepDoubling.name, "data": origin}
    save_bundle(path, replace(bundle, arrays=arrays, provenance={**bundle.provenance, "calibration": known}))
    return path


def calibrating_evidence(
    model: str | Path, bundle: Bundle, data: Path | None, environment: Environment | None
) -> tuple[Evidence, str]:
    """Trajectories of `val` that chose no epoch, and where they come from: the solver where there is one, else the dataset."""
    spec = bundle.surrogate.spec
    if data is not None:
        check_fits(model, spec, data, Dataset(data).spec)
    solver = solver_of(bundle, environment)
    if solver is not None:
        return Solved(solver, "val", CALIBRATING), f"the solver of {spec.name}, version {solver.version}"
    if data is None:
        raise InvalidInput(f"There is no solver for {spec.name}: give --data DIR, or name its system with --system.")
    source = Dataset(data).source("val")
    if source.count < 2:
        raise InvalidInput(f"{data} has one trajectory in the split 'val', which chose the epoch: calibration needs others.")
    return Recorded(source, first=source.count // 2), f"the second half of val of a dataset with the sha256 {data_hash(data)}"


def show_calibration(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Thresholds and errors per horizon."""
    residuals = Residuals.from_arrays(arrays, "trajectory")
    assert residuals is not None
    calibration = Calibration.of(residuals)
    table = Table("horizon", *(f"threshold, q = {q:g}" for q in SHOWN), "median true error", box=None, header_style="dim")
    for h in sorted(calibration.scores):
        numbers = (*(calibration.threshold(h, q) for q in SHOWN), float(np.median(residuals.errors[h])))
        table.add_row(f"{h:g}", *(f"{number:.3g}" for number in numbers))
    console = Console(highlight=False)
    console.print(f"[bold]{path}[/bold]  calibrated by {calibration.size:,} trajectories", soft_wrap=True)
    console.print(table)
    console.print("  [dim]in deviations of the training data; a score above its threshold goes to the solver in mode 2[/dim]")
