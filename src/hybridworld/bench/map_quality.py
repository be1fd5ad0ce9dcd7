"""Does a surrogate know where it is wrong? One number per horizon, while it is being trained."""

from collections.abc import Mapping

import numpy as np

from hybridworld.bench.metrics import auroc
from hybridworld.data.pairs import Batch
from hybridworld.surrogate.surrogate import Surrogate
from hybridworld.trust.judge import judge
from hybridworld.trust.step_doubling import StepDoubling

MOST = 200_000
"""Cells that enter an AUROC, about: its own error is then below 0.002, and sorting more takes longer than predicting them."""


def auroc_of_error_map(surrogate: Surrogate, pairs: Mapping[int, Batch]) -> dict[int, float]:
    """Horizon -> how well step-doubling picks out the worst quarter: of the cells, or of the trajectories of state vectors.

    Horizons at which all errors are equal have no such number.
    """
    found = {horizon: auroc(*scores_and_errors(surrogate, batch)) for horizon, batch in pairs.items()}
    return {horizon: value for horizon, value in found.items() if np.isfinite(value)}


def scores_and_errors(surrogate: Surrogate, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
    """The error map and the true error, at the same cells of all pairs."""
    share = min(1.0, MOST / batch.states[:, 0].size)
    judged = judge(surrogate, StepDoubling(surrogate, surrogate.std), batch, cells=share)
    return judged.cells[:, 1], judged.cells[:, 2]
