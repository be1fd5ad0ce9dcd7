"""Bring your own model: any propagator with error map, thresholds, bounds, gate and rollouts.

    wrap(f, system)              calibrated against the system's solver, which then answers in mode 2
    wrap(f, data=DIR)            calibrated against recorded trajectories: mode 1, and the error map

Either is a `HybridModel` as `load` gives it.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from hybridworld.data.dataset import Dataset
from hybridworld.data.evidence import Recorded, Solved
from hybridworld.data.pairs import Evidence
from hybridworld.data.provenance import provenance
from hybridworld.deploy.calibrate import calibrate_bundle, calibrating_evidence, recorded_evidence, with_reference
from hybridworld.deploy.hybrid import HybridModel
from hybridworld.deploy.load import assemble, warn_if_weak
from hybridworld.errors import CodeFailure, InvalidInput
from hybridworld.physics.arguments import as_number, checked_path, checked_text, shown, whole
from hybridworld.physics.environment import Environment
from hybridworld.physics.registry import find_system
from hybridworld.physics.spec import StateSpec
from hybridworld.surrogate.bundle import Bundle
from hybridworld.surrogate.horizons import composed, listed
from hybridworld.surrogate.normalisation import measure
from hybridworld.surrogate.parallel import device_of
from hybridworld.surrogate.wrapped import Wrapped, model_from, name_of, takes_params, wrapped_config
from hybridworld.trust.bounds import Residuals
from hybridworld.trust.calibrate import calibrated_signals, calibration_arrays
from hybridworld.trust.step_doubling import StepDoubling

FIRST = 8
"""Trajectories that show, before the calibration, whether there is a map at all."""
ZERO = 1e-3
"""A map below that share of the true error is zero."""
INSTEAD = "take another signal (signal='symmetries', 'random augmentation'), or a model that answers several horizons directly"


def wrap(
    f: Callable[..., Any] | str,
    system: Environment | str | None = None,
    horizons: Sequence[int] | int | None = None,
    data: str | Path | None = None,
    signal: str = StepDoubling.name,
    count: int | None = None,
    params: bool | None = None,
    dask: str | None = None,
    tell: Callable[[int, int], None] = lambda done, total: None,
    device: str | torch.device | None = None,
) -> HybridModel:
    """The model `f`, ready to answer with an error map that is calibrated now.

    `f`: a torch module or a function (states, horizon[, params]) -> states, in NumPy or torch; a class or a function without
    arguments that makes it; or `path/to/file.py:name` of one of these, which is what `save` needs. States come as
    (batch, channels, *grid) in physical units, the horizon as a number of frames, params as (batch, number of parameters).
    `system`: what it approximates, or its name. Its solver calibrates and answers in mode 2. With `data`, a dataset, recorded
    trajectories calibrate instead: `train` gives the units, `val` the thresholds and bounds.
    `horizons`: the whole horizons that f answers; without it, every horizon up to the longest of the system, also fractions.
    `count`: trajectories that calibrate (200 fields, 2,000 state vectors). `params`: does f take parameters (default: by its
    arguments)? `tell` hears how many trajectories are done. `device` is where torch computes (default: where f is). What makes
    the model worth little is told as a warning.
    """
    if system is None and data is None:
        raise InvalidInput("A wrapped model is calibrated against something: give its system, or recorded data.")
    environment = find_system(system) if isinstance(system, str) else system
    if not isinstance(environment, Environment | None):
        raise InvalidInput(f"The system is {shown(system)}: give an hw.Environment, its name, or path/to/file.py:Class.")
    root = None if data is None else checked_path("data", data)
    count = None if count is None else whole("The number of trajectories", count, 1)
    checked_text("The signal", signal)
    place = None if device is None else device_of(device)
    bundle, environment = raw_bundle(f, environment, horizons, root, params)
    bundle.surrogate.to(place)
    check_composes(bundle, signal)
    if root is None:
        evidence, origin = calibrating_evidence(bundle, None, environment)
    else:
        evidence, origin = recorded_evidence(root, whole=True)
    check_maps(calibrate_bundle(bundle, signal, evidence, origin, environment, FIRST))
    model = assemble(calibrate_bundle(bundle, signal, evidence, origin, environment, count, tell), environment, dask)
    warn_if_weak(model, 3)
    return model


def raw_bundle(
    f: Callable[..., Any] | str,
    system: Environment | None,
    horizons: Sequence[int] | int | None,
    data: Path | None,
    params: bool | None,
) -> tuple[Bundle, Environment | None]:
    """The model with its units, not calibrated yet, and the system on the grid of the states."""
    training: Evidence
    if data is None:
        assert system is not None
        spec, training = system.spec, Solved(system, "train")
    else:
        dataset = Dataset(data)
        spec, training = dataset.spec, Recorded(dataset.source("train" if "train" in dataset.splits else "val"))
        system = system and with_reference(system.fitted(spec, str(data)), dataset, data)
    answered = checked_horizons(spec, horizons)
    usual = [h for h in spec.horizons if h < spec.frames and (answered is None or h in answered)]
    evaluated = sorted({*usual, *(answered or ())[-1:]})
    model = model_from(f)
    config = wrapped_config(spec, name_of(f), takes_params(model) if params is None else params, evaluated)
    first = next(training.blocks(1))
    surrogate = Wrapped(
        model, spec, config.surrogate, measure(spec, training, evaluated).scales, model is not f, answered,
        example=(first.states[0, :, 0], first.params[0]),
    )  # fmt: skip
    origin = {"system": spec.name, "wrapped": config.surrogate.backbone, **provenance()}
    return Bundle(surrogate, config, provenance=origin, reference=system.identity if system else {}), system


def checked_horizons(spec: StateSpec, horizons: Sequence[int] | int | None) -> tuple[int, ...] | None:
    """Whole horizons that trajectories of such states can show, increasing; None for all of them."""
    if horizons is None:
        return None
    given = list(horizons) if isinstance(horizons, Iterable) else [horizons]
    if not given or any(as_number(each) not in range(1, spec.frames) for each in given):
        raise InvalidInput(
            f"The horizons are {', '.join(map(str, given)) or 'none'}: with {spec.frames} frames they must be whole numbers "
            f"from 1 to {spec.frames - 1}."
        )
    return tuple(sorted({int(each) for each in given}))


def check_composes(bundle: Bundle, signal: str) -> None:
    """Raise where step-doubling has nothing to compare because of the horizons that are answered."""
    answered = bundle.surrogate.answered
    if StepDoubling.name not in signal or answered is None or composed(answered):
        return
    if len(answered) == 1:
        raise InvalidInput(
            f"The model answers {listed(answered)}, and longer horizons by repeating that step: both ways of step-doubling are "
            f"then the same, and its map is zero by construction; {INSTEAD}."
        )
    raise InvalidInput(
        f"Step-doubling compares one pass with two shorter ones, and the model answers {listed(answered)}, of which none is "
        f"the sum of two: {INSTEAD}."
    )


def check_maps(bundle: Bundle) -> None:
    """Raise where the only map so far is zero though the answers are wrong, or where these are no numbers."""
    (signal,) = calibrated_signals(bundle.arrays)
    residuals = Residuals.from_arrays(calibration_arrays(bundle.arrays, signal), "trajectory")
    assert residuals is not None
    scores, errors = (np.concatenate(list(each.values())) for each in (residuals.scores, residuals.errors))
    if not (np.isfinite(scores).all() and np.isfinite(errors).all()):
        raise CodeFailure("The model gives values that are not finite to states of the validation data.")
    if np.median(scores) <= ZERO * np.median(errors):
        why = "it merely repeats one step, so that" if StepDoubling.name in signal else "for such a model"
        raise InvalidInput(
            f"The model is wrong by {np.median(errors):.2g} deviations, and its map by {signal} is {np.median(scores):.2g}: "
            f"{why} the map is zero by construction; {INSTEAD}."
        )
