"""From a keep fraction to a threshold:   τ(h, q) = q-quantile of the scores at horizon h on validation data

The scores travel with the model, so any q has its threshold at once, and no threshold ever sees test data. Calibrated horizons
lie about a fifth apart; between two of them τ is interpolated in log2 h. Beyond the longest one answers are chains of shorter
forecasts (`deploy.hybrid`), each with the threshold of its own horizon.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from hybridworld.errors import InvalidInput
from hybridworld.trust.bounds import Residuals


class BeyondCalibration(UserWarning):
    """A threshold was asked for at a horizon outside of those that were calibrated."""


def flagged(scores: np.ndarray, threshold: float) -> np.ndarray:
    """The rule of the gate: a score above the threshold is deferred, and so is one that is no number."""
    return ~(np.asarray(scores) <= threshold)


@dataclass(frozen=True)
class Calibration:
    """Validation scores: horizon -> one score per trajectory, increasing."""

    scores: Mapping[float, np.ndarray]

    def __post_init__(self) -> None:
        if not self.scores or any(len(values) == 0 or (np.diff(values) < 0).any() for values in self.scores.values()):
            raise InvalidInput("A calibration needs increasing scores for at least one horizon.")

    def threshold(self, horizon: float, q: float) -> float:
        """A score above this is deferred; q = 1 keeps everything, q = 0 nothing."""
        if not 0 <= q <= 1:
            raise InvalidInput(f"The keep fraction q is {q:g}: it must be from 0 (always the solver) to 1 (never).")
        if not 0 < horizon < np.inf:
            raise InvalidInput(f"The horizon is {horizon:g} frames: it must be a positive number.")
        if q in (0, 1):
            return np.inf if q else -1.0
        low, high = min(self.scores), max(self.scores)
        if not low <= horizon <= high:
            warnings.warn(
                f"The horizon {horizon:g} is beyond the calibrated ones ({low:g} to {high:g} frames): "
                f"the threshold is that of {low if horizon < low else high:g}.",
                BeyondCalibration,
                stacklevel=3,
            )
        rungs = sorted(self.scores)
        return float(np.interp(np.log2(horizon), np.log2(rungs), [np.quantile(self.scores[rung], q) for rung in rungs]))

    def rank(self, horizon: float, scores: np.ndarray) -> np.ndarray:
        """The share of validation scores below each score at that horizon; between horizons they are interpolated as τ is."""
        rungs = sorted(self.scores)
        place = float(np.interp(np.log2(horizon), np.log2(rungs), np.arange(len(rungs))))
        below, share = int(place), place % 1
        known = self.scores[rungs[below]]
        if share:
            levels = np.linspace(0, 1, self.size)
            low, high = (np.quantile(self.scores[rung], levels) for rung in rungs[below : below + 2])
            known = low + share * (high - low)
        return np.searchsorted(known, scores) / len(known)

    @property
    def size(self) -> int:
        """Validation trajectories per horizon; each gave one score."""
        return min(len(values) for values in self.scores.values())

    @classmethod
    def of(cls, residuals: Residuals) -> Self:
        """The scores of validation answers, in increasing order."""
        return cls({h: np.sort(values) for h, values in residuals.scores.items()})
