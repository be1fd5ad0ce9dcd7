"""Does a surrogate know where it is wrong? One number per horizon, while it is being trained."""

from collections.abc import Mapping

import numpy as np
import torch

from hybridworld.data.pairs import Batch
from hybridworld.evaluate.metrics import auroc
from hybridworld.surrogate.surrogate import Surrogate
from hybridworld.surrogate.validation import in_pieces
from hybridworld.trust.step_doubling import StepDoubling, distance

MOST = 200_000
"""Cells that enter an AUROC: its own error is then below 0.002, and sorting more takes longer than predicting them."""


def auroc_of_error_map(surrogate: Surrogate, pairs: Mapping[int, Batch]) -> dict[int, float]:
    """Horizon -> how well step-doubling picks out the worst quarter: of the cells, or of the trajectories of state vectors.

    Horizons at which all errors are equal have no such number.
    """
    found = {horizon: auroc(*scores_and_errors(surrogate, batch)) for horizon, batch in pairs.items()}
    return {horizon: value for horizon, value in found.items() if np.isfinite(value)}


def scores_and_errors(surrogate: Surrogate, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
    """The error map and the true error, at the same cells of all pairs."""
    signal, maps, errors = StepDoubling(surrogate, surrogate.std), [], []
    with torch.no_grad():
        for states, horizons, params, futures in in_pieces(batch, surrogate.mean.device):
            estimate = signal(states, horizons, params)
            maps.append(estimate.error_map.flatten().cpu().numpy())
            errors.append(distance(estimate.prediction, futures, surrogate.std).flatten().cpu().numpy())
    scores, truth = np.concatenate(maps), np.concatenate(errors)
    if len(scores) > MOST:
        some = np.random.default_rng(0).choice(len(scores), MOST, replace=False)
        return scores[some], truth[some]
    return scores, truth
