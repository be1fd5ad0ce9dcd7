"""A model's calibration: how its scores and errors lie on trajectories that chose nothing, for one signal."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from hybridworld.data.dataset import Dataset, check_fits
from hybridworld.data.evidence import CALIBRATING, Recorded, Solved, Until
from hybridworld.data.manifest import data_hash
from hybridworld.data.pairs import Evidence
from hybridworld.deploy.load import SIGNAL, default_signal, solver_of
from hybridworld.errors import InvalidInput
from hybridworld.physics.environment import Environment
from hybridworld.surrogate.budget import FEWEST_CALIBRATING
from hybridworld.surrogate.bundle import Bundle
from hybridworld.surrogate.horizons import calibrated_among, calibrated_horizons, composed
from hybridworld.surrogate.wrapped import Wrapped
from hybridworld.trust.bounds import ErrorBound, Residuals
from hybridworld.trust.calibrate import arrays_of, judge_evidence, with_calibration
from hybridworld.trust.judge import Judged
from hybridworld.trust.registry import find_signal
from hybridworld.trust.signal import Ingredients, TrustSignal


def calibrate_model(
    bundle: Bundle,
    data: Path | None = None,
    system: Environment | None = None,
    signal: str | None = None,
    count: int | None = None,
    deadline: float | None = None,
    tell: Callable[[int, int], None] = lambda done, total: None,
    name: str = "The model",
    default: bool = False,
) -> Bundle:
    """The model with thresholds and error bounds from validation trajectories that chose nothing.

    `signal` is what draws the error map (default: `default_signal`); with `default` it will be where none is named.

    They come from its solver where that is known (`system` is for one of the user's own), else from the dataset `data`. After
    `deadline` (of time.monotonic) there are no more of them than it takes to promise anything. `name` is how messages call the
    model. A model of objects becomes one for as many as the data or the system have.
    """
    if data is not None:
        check_fits(name, bundle.surrogate.spec, data, Dataset(data).spec)
    given = Dataset(data).spec if data is not None else system.spec if system is not None else bundle.surrogate.spec
    sized = bundle.like(given)
    if sized is not bundle:  # what another number of objects has calibrated promises nothing here
        bundle = replace(sized, arrays={}, provenance={**bundle.provenance, "calibration": {}})
    solver = solver_of(bundle, system)
    evidence, origin = calibrating_evidence(bundle, data, solver)
    if deadline is not None:
        evidence = Until(evidence, deadline, FEWEST_CALIBRATING)
    signal = signal or default_signal(bundle, solver)
    if default:
        bundle = replace(bundle, provenance={**bundle.provenance, SIGNAL: signal})
    return calibrate_bundle(bundle, signal, evidence, origin, solver, count, tell)


def calibrate_bundle(
    bundle: Bundle,
    signal: str,
    evidence: Evidence,
    origin: str,
    system: Environment | None = None,
    count: int | None = None,
    tell: Callable[[int, int], None] = lambda done, total: None,
) -> Bundle:
    """The same model with the calibration of that signal, beside those of other signals that it has.

    `origin` says where the evidence comes from, `system` may be needed by the signal. `count` trajectories are asked for
    (default: as the training was set); `tell` hears how many of them are done.
    """
    surrogate, training = bundle.surrogate, bundle.config.training
    found = find_signal(signal, Ingredients(surrogate, system))
    count, horizons = count or training.calibration or 1, horizons_for(bundle, found)
    judged = judge_evidence(surrogate, found, evidence, horizons, count, training.seed, lambda done: tell(done, count))
    arrays = arrays_of(judged, horizons)
    residuals = Residuals.from_arrays(arrays, "trajectory")
    assert residuals is not None
    known = {found.name: {"trajectories": ErrorBound(residuals).trajectories, "data": origin}}
    provenance = {**bundle.provenance, "calibration": calibrations(bundle) | known}
    arrays = {name: np.asarray(values, np.float32) for name, values in arrays.items()}  # as a file holds them
    validation = validation_of(judged, horizons) if isinstance(surrogate, Wrapped) else bundle.validation
    arrays = with_calibration(bundle.arrays, found.name, arrays)
    return replace(bundle, arrays=arrays, provenance=provenance, validation=validation)


def validation_of(judged: Judged, horizons: Sequence[int]) -> dict[str, Any]:
    """The validation errors of a model that was not trained here, as a training leaves them."""
    by_horizon = {str(h): judged.at(h) for h in horizons}
    errors = {
        h: {"mse": float(at.mse.mean()), "no_change": {"mse": float(at.no_change.mean())}} for h, at in by_horizon.items()
    }
    return {"mse": float(np.mean([at.mse.mean() for at in by_horizon.values()])), "horizons": errors}


def calibrations(bundle: Bundle) -> dict[str, Any]:
    """Signal -> how many trajectories calibrated it, and where they come from."""
    known = dict(bundle.provenance.get("calibration", {}))
    return {known.pop("signal"): known} if "signal" in known else known  # there was one once


def horizons_for(bundle: Bundle, signal: TrustSignal) -> tuple[int, ...]:
    """The horizons at which a signal is calibrated."""
    answered = bundle.surrogate.answered
    if answered is None:
        return calibrated_horizons(bundle.config.training.horizons)
    return calibrated_among(composed(answered) if signal.cost.parts else answered)


def calibrating_evidence(bundle: Bundle, data: Path | None, system: Environment | None) -> tuple[Evidence, str]:
    """Trajectories of `val` that chose no epoch, and where they come from: the solver where there is one, else the dataset."""
    spec = bundle.surrogate.spec
    if system is not None:
        return Solved(system, "val", CALIBRATING), f"the solver of {spec.name}, version {system.version}"
    if data is None:
        raise InvalidInput(f"There is no solver for {spec.name}: give --data DIR, or name its system with --system.")
    return recorded_evidence(data, whole=isinstance(bundle.surrogate, Wrapped))


def recorded_evidence(data: Path, whole: bool) -> tuple[Evidence, str]:
    """The split `val` of a dataset: the `whole` of it for a model that was not trained here, else what chose no epoch."""
    dataset, sha256 = Dataset(data), f"val of a dataset with the sha256 {data_hash(data)}"
    if "val" not in dataset.splits:
        raise InvalidInput(f"{data} has no split 'val' to calibrate with: there is {', '.join(dataset.splits)}.")
    source = dataset.source("val")
    if whole:
        return Recorded(source), sha256
    if source.count < 2:
        raise InvalidInput(f"{data} has one trajectory in the split 'val', which chose the epoch: calibration needs others.")
    return Recorded(source, first=source.count // 2), f"the second half of {sha256}"


def with_reference(environment: Environment, dataset: Dataset, root: Path) -> Environment:
    """The system with the reference on which the dataset was recorded; one that contradicts it is refused."""
    recorded = (dataset.identity or {}).get("resolved", 1)
    asked = environment.identity.get("resolved", recorded)
    if asked != recorded:
        raise InvalidInput(f"{root} was recorded with --resolved {recorded}, and this run has {asked}: take the same.")
    return environment.resolved(recorded)
