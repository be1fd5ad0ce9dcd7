"""From a keep fraction to a threshold:   τ(h, q) = q-quantile of the scores at horizon h on validation data

The scores travel with the model, so any q has its threshold at once, and no threshold ever sees test data. Whoever knows
whether a state begins its trajectory gets the quantile of such states alone, since a fresh blast is not like a developed flow.
Calibrated horizons lie about a fifth apart; between two of them τ is interpolated in log2 h. Beyond the longest one answers are
chains of shorter forecasts (`deploy.chain`), each with the threshold of its own horizon.
"""

import warnings
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import Any, Self

import numpy as np

from hybridworld.errors import InvalidInput
from hybridworld.physics.arguments import as_number, shown
from hybridworld.trust.bounds import APART, Residuals
from hybridworld.trust.drift import drift_p_value

HORIZONS = 256
"""Horizons whose scores are remembered."""


class BeyondCalibration(UserWarning):
    """A threshold was asked for at a horizon outside of those that were calibrated."""


def check_keep_fraction(q: Any) -> None:
    """Raise unless q is a share."""
    share = as_number(q)
    if share is None or not 0 <= share <= 1:
        raise InvalidInput(f"The keep fraction q is {shown(q)}: it must be from 0 (always the solver) to 1 (never).")


def flagged(scores: np.ndarray, threshold: float) -> np.ndarray:
    """The rule of the gate: a score above the threshold is deferred, and so is one that is no number."""
    return ~(np.asarray(scores) <= threshold)


@dataclass(frozen=True)
class Calibration:
    """Validation scores: horizon -> one score per trajectory, increasing."""

    scores: Mapping[float, np.ndarray]
    groups: tuple[Mapping[float, np.ndarray], ...] = ()
    """The scores of beginnings of trajectories and of later frames apart, where it is known which is which."""

    def __post_init__(self) -> None:
        for known in (self.scores, *self.groups):
            if not known or any(len(values) == 0 or (np.diff(values) < 0).any() for values in known.values()):
                raise InvalidInput("A calibration needs increasing scores for at least one horizon.")

    @classmethod
    def of(cls, residuals: Residuals, beginning: np.ndarray | None = None) -> Self:
        """The scores of validation answers; `beginning` tells which of them were asked at the beginning of a trajectory."""
        found = cls({h: np.sort(values) for h, values in residuals.scores.items()})
        if beginning is None or beginning.all() or not beginning.any():
            return found
        apart = ({h: np.sort(values[rows]) for h, values in residuals.scores.items()} for rows in (beginning, ~beginning))
        return cls(found.scores, tuple(apart))

    def threshold(self, horizon: float, q: float, beginning: bool | None = None) -> float:
        """A score above this is deferred; q = 1 keeps everything, q = 0 nothing.

        `beginning` says whether the states begin their trajectories; None: not known, so that all scores count.
        """
        check_keep_fraction(q)
        if not 0 < (as_number(horizon) or 0) < np.inf:
            raise InvalidInput(f"The horizon is {shown(horizon)} frames: it must be a positive number.")
        if q in (0, 1):
            return np.inf if q else -1.0
        known = self._known
        low, high = known[0], known[-1]
        if not low <= horizon <= high:
            warnings.warn(
                f"The horizon {horizon:g} is beyond the calibrated ones ({low:g} to {high:g} frames): "
                f"the threshold is that of {low if horizon < low else high:g}.",
                BeyondCalibration,
                stacklevel=3,
            )
        above = min(bisect_left(known, horizon), len(known) - 1)
        nearest = known[max(above - 1, 0) : above + 1]
        scores = self._scores_of(beginning)
        return float(np.interp(np.log2(horizon), np.log2(nearest), [_quantile(scores[h], q) for h in nearest]))

    def _scores_of(self, beginning: bool | None) -> Mapping[float, np.ndarray]:
        """The scores of beginnings (True) or of later frames (False), if these are known apart and enough; else all."""
        if beginning is None or not self.groups:
            return self.scores
        group = self.groups[0 if beginning else 1]
        return group if min(map(len, group.values())) >= APART else self.scores

    def ranks(self, horizon: float, scores: np.ndarray) -> np.ndarray:
        """The share of the validation scores of each group below each score, (scores, groups); interpolated as τ is."""
        return np.stack([np.searchsorted(known, scores) / len(known) for known in self._near(horizon)], axis=1)

    def _near(self, horizon: float) -> tuple[np.ndarray, ...]:
        """Increasing scores of each group at that horizon. Every answer asks for them: some are remembered."""
        found = self._remembered.get(horizon)
        if found is None:
            known = zip(self.groups or (self.scores,), self._even, strict=True)
            found = tuple(_between(*group, horizon) for group in known)
            if len(self._remembered) < HORIZONS:
                self._remembered[horizon] = found
        return found

    @cached_property
    def _remembered(self) -> dict[float, tuple[np.ndarray, ...]]:
        return {}

    @cached_property
    def _known(self) -> list[float]:
        """The calibrated horizons, increasing."""
        return sorted(self.scores)

    @cached_property
    def _even(self) -> list[dict[float, np.ndarray]]:
        """The same scores, as many at each horizon of a group: what lies between two horizons is between these."""
        groups = ((known, np.linspace(0, 1, min(map(len, known.values())))) for known in self.groups or (self.scores,))
        return [{h: np.quantile(values, levels) for h, values in known.items()} for known, levels in groups]

    def drift_p_value(self, ranks: np.ndarray) -> float:
        """How likely such ranks, of one or several horizons, are for answers like those of the validation data."""
        return drift_p_value(ranks, tuple(min(map(len, known.values())) for known in self.groups or (self.scores,)))

    @property
    def size(self) -> int:
        """Validation trajectories per horizon; each gave one score."""
        return min(len(values) for values in self.scores.values())


def _quantile(increasing: np.ndarray, q: float) -> float:
    """np.quantile of values that are sorted already, to the last bit, in a tenth of the time: every answer asks for it."""
    place = q * (len(increasing) - 1)
    share, (low, high) = place % 1, increasing[[int(place), ceil(place)]].tolist()
    return low + share * (high - low) if share < 0.5 else high - (1 - share) * (high - low)


def _between(known: Mapping[float, np.ndarray], even: Mapping[float, np.ndarray], horizon: float) -> np.ndarray:
    """Increasing scores: those of the horizon, or between the quantiles of the two nearest ones."""
    horizons = sorted(known)
    place = float(np.interp(np.log2(horizon), np.log2(horizons), np.arange(len(horizons))))
    below, share = int(place), place % 1
    here = known[horizons[below]]
    if share:
        low, high = (even[h] for h in horizons[below : below + 2])
        here = low + share * (high - low)
    return here
