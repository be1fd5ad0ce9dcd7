"""The visual proofs: error map beside true error, and how well they agree over cells."""

from functools import partial

import numpy as np
import torch
from scipy.stats import spearmanr

from hybridworld.data.pairs import Batch
from hybridworld.evaluate.proofs import Proof
from hybridworld.evaluate.reproduce.measures import Row
from hybridworld.evaluate.reproduce.study import Study
from hybridworld.surrogate.validation import in_pieces
from hybridworld.trust.signal import distance
from hybridworld.trust.step_doubling import StepDoubling

MAP, STEEPNESS = "error map", "steepness"
SHOWN = 16  # fields of which the agreement is measured
BALLS = 6
SWEPT: dict[bool, tuple[int, ...]] = {True: (2, 8, 32, 64), False: (8, 16, 32, 64)}  # on a grid, and for state vectors
PROVEN: dict[bool, tuple[int, ...]] = {True: (64,), False: (32,)}


def visual_proof(study: Study) -> list[Row]:
    """Agreement at the paper's horizon."""
    return agreement(study, PROVEN[bool(study.environment.spec.grid)])


def horizon_sweep(study: Study) -> list[Row]:
    """Agreement at four horizons."""
    return agreement(study, SWEPT[bool(study.environment.spec.grid)])


def agreement(study: Study, horizons: tuple[int, ...]) -> list[Row]:
    """Rank correlation of map and error: over the cells of each field (mean over fields), or over state vectors."""
    rows = []
    for h in horizons:
        for name, found in study.remember(("agreement of maps", h), partial(correlations, study, h)).items():
            rows.append(Row(f"rank correlation, {name}", h, found["mean"], "test", found["low"], found["high"]))
    return rows


def correlations(study: Study, horizon: int) -> dict[str, dict[str, float]]:
    """Of the true error with the error map; on a grid also with the steepness of the prediction: what an edge detector sees."""
    grid = bool(study.environment.spec.grid)
    maps = mapped(study, horizon, SHOWN if grid else study.setting.pairs)
    if not grid:
        value = float(spearmanr(maps["error_map"], maps["error"]).statistic)
        return {MAP: {"mean": value, "low": float("nan"), "high": float("nan")}}
    steep = steepness(study.surrogate().normalise(torch.from_numpy(maps["prediction"])).numpy())
    return {MAP: over_fields(maps["error_map"], maps["error"]), STEEPNESS: over_fields(steep, maps["error"])}


def over_fields(one: np.ndarray, other: np.ndarray) -> dict[str, float]:
    """Rank correlation over the cells of each field: its mean and range over fields."""
    each = [float(spearmanr(a.ravel(), b.ravel()).statistic) for a, b in zip(one, other, strict=True)]
    finite = [value for value in each if np.isfinite(value)] or [float("nan")]
    return {"mean": float(np.mean(finite)), "low": float(min(finite)), "high": float(max(finite))}


def steepness(fields: np.ndarray) -> np.ndarray:
    """(batch, channels, *grid) -> (batch, *grid): the length of the gradient, over channels."""
    slopes = np.gradient(fields, axis=tuple(range(2, fields.ndim)))
    return np.sqrt(sum((slope**2).sum(axis=1) for slope in slopes))


def mapped(study: Study, horizon: int, count: int) -> dict[str, np.ndarray]:
    """States, predictions, truth, error maps and true errors of the first test pairs."""
    batch = study.pairs("test", study.ladder)[horizon]
    some = Batch(batch.states[:count], batch.horizons[:count], batch.params[:count], batch.futures[:count])
    surrogate, found = study.surrogate(), []
    with torch.inference_mode():
        for states, horizons, params, futures in in_pieces(some, surrogate.mean.device):
            estimate = StepDoubling(surrogate, surrogate.std)(states, horizons, params)
            error = distance(estimate.prediction, futures, surrogate.std)
            parts = (states, estimate.prediction, futures, estimate.error_map, error)
            found.append([part.cpu().numpy() for part in parts])
    names = ("state", "prediction", "truth", "error_map", "error")
    return {name: np.concatenate(parts) for name, parts in zip(names, zip(*found, strict=True), strict=True)}


def proofs_of(study: Study, horizons: tuple[int, ...]) -> list[Proof]:
    """One row per horizon: a field, or six state vectors."""
    rows, count = (0, 1) if study.environment.spec.grid else (slice(BALLS), BALLS)
    found = []
    for h in horizons:
        maps = mapped(study, h, count)
        found.append(Proof(f"h = {h}", **{name: values[rows] for name, values in maps.items()}))
    return found
