"""The visual proofs: error map beside true error, and how well they agree over cells."""

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
        found = study.remember(("agreement", h), lambda h=h: correlation(study, h))  # type: ignore[misc]
        rows.append(Row("rank correlation", h, found["mean"], "test", found["low"], found["high"]))
    return rows


def correlation(study: Study, horizon: int) -> dict[str, float]:
    """Its mean and range over fields; of state vectors there is one number."""
    maps = mapped(study, horizon, SHOWN if study.environment.spec.grid else study.setting.pairs)
    if not study.environment.spec.grid:
        value = float(spearmanr(maps["error_map"], maps["error"]).statistic)
        return {"mean": value, "low": float("nan"), "high": float("nan")}
    each = [float(spearmanr(a.ravel(), b.ravel()).statistic) for a, b in zip(maps["error_map"], maps["error"], strict=True)]
    finite = [value for value in each if np.isfinite(value)] or [float("nan")]
    return {"mean": float(np.mean(finite)), "low": float(min(finite)), "high": float(max(finite))}


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
