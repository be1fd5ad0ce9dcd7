"""`hybridworld calibrate`: what a model's scores are like on validation data, written into its file."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from hybridworld.app.models import check_fits, load_model
from hybridworld.app.progress import progress_bar
from hybridworld.data.dataset import Dataset
from hybridworld.data.manifest import data_hash
from hybridworld.data.pairs import TrajectorySource
from hybridworld.data.stream import Stream
from hybridworld.deploy.load import find_model, find_solver
from hybridworld.errors import InvalidInput
from hybridworld.physics.environment import Environment
from hybridworld.physics.spec import StateSpec
from hybridworld.surrogate.bundle import save_bundle
from hybridworld.surrogate.validation import validation_pairs
from hybridworld.trust.bounds import Residuals
from hybridworld.trust.calibrate import calibrate
from hybridworld.trust.calibration import Calibration
from hybridworld.trust.step_doubling import StepDoubling

BLOCKS = 16
"""Of a stream: trajectories on a grid, or 256 times as many state vectors."""
SHOWN = (0.5, 0.75, 0.9)  # keep fractions


def calibrate_model(
    model: str | Path, backbone: str | None, data: Path | None, environment: Environment | None, count: int | None = None,
    out: Path | None = None,
) -> Path:  # fmt: skip
    """Score validation pairs, of a dataset or fresh from the solver: thresholds and error bounds then follow from the file."""
    bundle, path = load_model(model, backbone, environment), out or find_model(model)
    surrogate, training = bundle.surrogate, bundle.config.training
    count = count or training.calibration or 1
    with progress_bar() as bar:
        task = bar.add_task(f"calibrating, {count} pairs per horizon", total=len(training.horizons))
        with validation_source(model, surrogate.spec, data, environment) as (source, origin):
            pairs = validation_pairs(source, training.horizons, count, training.seed + 1)  # not those that chose the model
        arrays = calibrate(surrogate, StepDoubling(surrogate, surrogate.std), pairs, lambda _: bar.advance(task))
    known = {"pairs per horizon": count, "signal": StepDoubling.name, "data": origin}
    save_bundle(path, replace(bundle, arrays=arrays, provenance={**bundle.provenance, "calibration": known}))
    return path


@contextmanager
def validation_source(
    model: str | Path, spec: StateSpec, data: Path | None, environment: Environment | None
) -> Iterator[tuple[TrajectorySource, str]]:
    """Trajectories of the split `val`, and where they come from."""
    if data is not None:
        dataset = Dataset(data)
        check_fits(model, spec, data, dataset.spec)
        yield dataset.source("val"), f"a dataset with the sha256 {data_hash(data)} of its manifest or file names"
        return
    solver = find_solver(spec, environment)
    if solver is None:
        raise InvalidInput(f"There is no solver for {spec.name}: give --data DIR, or name its system with --system.")
    with Stream(solver, "val", BLOCKS) as stream:
        yield stream, f"a stream from the solver of {spec.name}, version {solver.version}"


def show_calibration(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Thresholds and bounds per horizon."""
    calibration, residuals = Calibration.from_arrays(arrays), Residuals.from_arrays(arrays, "trajectory")
    assert calibration is not None and residuals is not None
    horizons = sorted(calibration.scores)
    table = Table("", *(f"h = {h:g}" for h in horizons), box=None, header_style="dim", padding=(0, 0, 0, 2))
    for q in SHOWN:
        table.add_row(f"threshold, q = {q:g}", *(f"{calibration.threshold(h, q):.3g}" for h in horizons))
    table.add_row("median true error", *(f"{np.median(residuals.errors[h]):.3g}" for h in horizons))
    console = Console(highlight=False)
    console.print(f"[bold]{path}[/bold]  {calibration.size} validation scores per horizon", soft_wrap=True)
    console.print(table)
    console.print("  [dim]in deviations of the training data; a score above its threshold goes to the solver in mode 2[/dim]")
