"""Scores and true errors on validation pairs: what thresholds and error bounds are made of."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch

from hybridworld.data.pairs import Batch
from hybridworld.surrogate.surrogate import Surrogate
from hybridworld.surrogate.validation import in_pieces
from hybridworld.trust.bounds import Residuals
from hybridworld.trust.calibration import Calibration
from hybridworld.trust.signal import Estimate, TrustSignal, distance

CELLS = 2_000
"""Cells per horizon whose error travels with a model."""


@dataclass(frozen=True)
class Judged:
    """Answers to pairs with known futures: scores and errors, per trajectory and (fields) for random cells."""

    scores: np.ndarray  # (pairs,)
    errors: np.ndarray  # (pairs,): the mean over cells of what the map estimates
    mse: np.ndarray  # (pairs,): over cells and channels
    cell_scores: np.ndarray
    cell_errors: np.ndarray


def judge(surrogate: Surrogate, signal: TrustSignal, batch: Batch, seed: int = 0) -> Judged:
    """Ask the signal about each pair, and compare with the truth, in deviations of the training data."""
    found: list[tuple[np.ndarray, ...]] = []
    rng = np.random.default_rng(seed)
    share = CELLS / (len(batch.states) * batch.states[0, 0].size)
    with torch.inference_mode():
        for states, horizons, params, futures in in_pieces(batch, surrogate.mean.device):
            estimate = signal(states, horizons, params)
            truth = Estimate(estimate.prediction, distance(estimate.prediction, futures, surrogate.std))
            some = rng.random(tuple(truth.error_map.shape)) < share
            maps = (each.error_map.cpu().numpy()[some] for each in (estimate, truth))
            mse = Estimate(estimate.prediction, truth.error_map.square()).score / states.shape[1]
            found.append((estimate.score.cpu().numpy(), truth.score.cpu().numpy(), mse.cpu().numpy(), *maps))
    return Judged(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


def calibrate(
    surrogate: Surrogate, signal: TrustSignal, validation: Mapping[int, Batch], tell: Callable[[int], None] = lambda h: None
) -> dict[str, np.ndarray]:
    """The arrays of a model's file: `Calibration` for thresholds, `Residuals` per trajectory and per cell for bounds."""
    judged = {}
    for horizon, batch in validation.items():
        tell(horizon)
        judged[float(horizon)] = judge(surrogate, signal, batch)
    trajectories = Residuals({h: j.scores for h, j in judged.items()}, {h: j.errors for h, j in judged.items()})
    arrays = Calibration({h: np.sort(j.scores) for h, j in judged.items()}).to_arrays() | trajectories.to_arrays("trajectory")
    if surrogate.spec.grid:
        cells = Residuals({h: j.cell_scores for h, j in judged.items()}, {h: j.cell_errors for h, j in judged.items()})
        arrays |= cells.to_arrays("cell")
    return arrays
