"""`hybridworld calibrate`: what a model's scores are like on validation data, written into its file."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from hybridworld.app.loading import load_model
from hybridworld.app.progress import announce, progress_bar
from hybridworld.data.atomic import make_place
from hybridworld.deploy.calibrate import calibrate_model
from hybridworld.deploy.hybrid import HybridModel
from hybridworld.deploy.load import find_model, ready, ships
from hybridworld.deploy.wrap import wrap
from hybridworld.errors import InvalidInput
from hybridworld.physics.environment import Environment
from hybridworld.surrogate.bundle import save_bundle
from hybridworld.trust.bounds import Residuals
from hybridworld.trust.calibrate import calibrated_signals, calibration_arrays
from hybridworld.trust.calibration import Calibration
from hybridworld.trust.step_doubling import StepDoubling

SHOWN = (0.5, 0.75, 0.9)  # keep fractions


def calibrate_to_file(
    model: str | Path, backbone: str | None, data: Path | None, environment: Environment | None, count: int | None = None,
    out: Path | None = None, signal: str | None = None, device: str | None = None, default: bool = False,
) -> tuple[Path, HybridModel]:  # fmt: skip
    """The calibrated model and its file, which is the model's own unless `out` names another.

    What ships with the package is never changed.
    """
    path = checked_target(out or find_model(model))
    bundle = load_model(model, backbone, environment, device)
    announce("calibrating")
    with calibrating() as tell:
        bundle = calibrate_model(bundle, data, environment, signal, count, tell=tell, name=str(model), default=default)
    save_bundle(path, bundle)
    return path, ready(bundle, environment, signal=signal, device=device, name=str(path))


def checked_target(path: Path) -> Path:
    """The file to write: none that ships with the package, in a folder that is there or can be made."""
    if ships(path):
        raise InvalidInput(f"{path.stem} ships with the package and is not overwritten: name a file with --out.")
    return make_place(path)


def calibrate_own(
    code: str, environment: Environment | None, horizons: str | None, data: Path | None, count: int | None,
    out: Path | None, signal: str | None, device: str | None,
) -> tuple[Path, HybridModel]:  # fmt: skip
    """The calibrated model that code of the user's own (`file.py:name`) makes, and its file.

    The file is called like that of the code unless `out` names another.
    """
    path = checked_target(out or Path(f"{Path(code.partition(':')[0]).stem}.safetensors"))
    answered = horizons_in(horizons)
    announce("calibrating")
    with calibrating() as tell:
        model = wrap(code, environment, answered, data, signal or StepDoubling.name, count, tell=tell, device=device)
    model.save(path)
    return path, model


def horizons_in(text: str | None) -> list[int] | None:
    """The horizons that a text lists: `1,2,4,8`, or `1-64` for every whole horizon between these."""
    if text is None:
        return None
    try:
        low, dash, high = text.partition("-")
        return list(range(int(low), int(high) + 1)) if dash else [int(part) for part in text.split(",")]
    except ValueError:
        raise InvalidInput(f"The horizons are '{text}': write them as 1,2,4,8 or as 1-64.") from None


@contextmanager
def calibrating() -> Iterator[Callable[[int, int], None]]:
    """A progress bar as a context: the function that it gives is told how many trajectories of how many are done."""
    with progress_bar() as bar:
        task = bar.add_task("calibrating: trajectories", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def show_calibration(path: Path, model: HybridModel) -> None:
    """Print thresholds and errors per horizon, for each signal that the model is calibrated for."""
    assert model.bundle is not None
    console, arrays = Console(highlight=False), model.bundle.arrays
    for signal in calibrated_signals(arrays):
        residuals = Residuals.from_arrays(calibration_arrays(arrays, signal), "trajectory")
        assert residuals is not None
        calibration = Calibration.of(residuals)
        table = Table("horizon", *(f"threshold, q = {q:g}" for q in SHOWN), "median true error", box=None, header_style="dim")
        for h in sorted(calibration.scores):
            numbers = (*(calibration.threshold(h, q) for q in SHOWN), float(np.median(residuals.errors[h])))
            table.add_row(f"{h:g}", *(f"{number:.3g}" for number in numbers))
        told = f"[bold]{path}[/bold]  {signal}, calibrated by {calibration.size:,} trajectories"
        console.print(told, soft_wrap=True)
        console.print(table)
    console.print("  [dim]in deviations of the training data; a score above its threshold goes to the solver in mode 2[/dim]")
