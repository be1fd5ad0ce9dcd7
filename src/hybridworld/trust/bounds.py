"""From an error map to a magnitude:   error <= k(h, coverage) * (score + β)      for a share `coverage` of all answers

k is the conformal quantile of error / (score + β) on validation trajectories (crepes), one per horizon. Where the
validation data tell which answers were asked at the beginning of a trajectory and which later on, each of the two has its own
k, since a fresh blast is not like a developed flow. Whoever knows where a state stands in its trajectory (`beginning`) gets
that bound; otherwise the larger one counts. It holds for data like the validation data, whatever the network; under shift it
is a guess, and `deploy.gate` audits it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from crepes import ConformalRegressor

from hybridworld.errors import InvalidInput
from hybridworld.physics.arguments import as_number, number, shown

COVERAGE = 0.9
"""What is promised where nothing else is asked for, if there are trajectories enough."""

APART = 20
"""Trajectories of each kind below which beginnings and later frames are fitted together: so few cannot promise much alone."""

FLOOR = 0.1
"""β as a share of the median score: a map that is nearly zero by chance must not promise that there is no error."""

FACTORS = 1000
"""Factors k that are remembered: callers choose the coverage."""

ROUNDING = 1e-9
"""crepes counts (1 - coverage) * (scores + 1) and cuts: 19.999... must be 20, and the largest coverage is no infinite bound."""


@dataclass(frozen=True)
class Residuals:
    """Validation data, by horizon: scores and true errors of the same answers, in deviations of the training data."""

    scores: Mapping[float, np.ndarray]
    errors: Mapping[float, np.ndarray]

    def of(self, rows: np.ndarray) -> "Residuals":
        """The residuals of some of the answers of each horizon."""
        return Residuals(*({h: np.asarray(values)[rows] for h, values in each.items()} for each in (self.scores, self.errors)))

    def to_arrays(self, kind: str) -> dict[str, np.ndarray]:
        """The residuals as arrays of a model's file; `kind` is `trajectory` or `cell`."""
        parts = {"scores": self.scores, "errors": self.errors}
        return {f"{kind}.{part}.{h:g}": values for part, found in parts.items() for h, values in found.items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], kind: str) -> Self | None:
        """The residuals that `to_arrays` wrote; None where a model was never calibrated."""
        found: dict[str, dict[float, np.ndarray]] = {"scores": {}, "errors": {}}
        for name, values in arrays.items():
            begin, _, rest = name.partition(".")
            part, _, horizon = rest.partition(".")
            if begin == kind and part in found:
                found[part][float(horizon)] = values
        return cls(found["scores"], found["errors"]) if found["scores"] else None


def check_coverage(coverage: Any) -> None:
    """Raise unless it is a share that some calibration could promise."""
    if not 0 < (as_number(coverage) or 0.0) < 1:
        raise InvalidInput(f"The coverage is {shown(coverage)}: it must be a number above 0 and below 1.")


class ErrorBound:
    """Upper bounds of the error, from residuals on validation data.

    `trajectories` is the number of independent trajectories behind the residuals of each horizon, where there are several
    residuals per trajectory: cells of one field resemble each other. `beginning` tells which residuals are of beginnings.
    """

    def __init__(self, residuals: Residuals, trajectories: int | None = None, beginning: np.ndarray | None = None) -> None:
        self._apart: dict[bool | None, Residuals] = {None: residuals}
        if beginning is not None and min(beginning.sum(), (~beginning).sum()) >= APART:
            self._apart |= {True: residuals.of(beginning), False: residuals.of(~beginning)}
        self._horizons = np.array(sorted(residuals.scores))
        groups = {begins: _Group(each) for begins, each in self._apart.items() if len(self._apart) == 1 or begins is not None}
        self._groups: dict[bool | None, list[_Group]] = {
            begins: [groups[begins]] if begins in groups else list(groups.values()) for begins in (None, True, False)
        }
        self.trajectories = trajectories or min(len(values) for values in residuals.scores.values())
        fewest = min(self.trajectories, *(group.fewest for group in groups.values()))
        self.most = fewest / (fewest + 1)
        """The largest coverage that so many trajectories can promise."""
        self.default = min(COVERAGE, self.most)

    def covers(self, horizon: float) -> bool:
        """Does the horizon lie in the calibrated range? Beyond it there is no bound."""
        return bool(self._horizons[0] <= horizon <= self._horizons[-1])

    def residuals(self, beginning: bool | None = None) -> Residuals:
        """The validation data, or those of beginnings (True) or of later frames (False) where these are told apart."""
        return self._apart.get(beginning, self._apart[None])

    def __call__(
        self, scores: np.ndarray, horizon: float, coverage: float | None = None, beginning: bool | None = None
    ) -> np.ndarray:
        """What the error does not exceed in a share `coverage` of cases; between two calibrated horizons, linear in log2 h.

        Without a coverage it is `default`. `beginning` says whether the states begin their trajectories; None: not known.
        """
        coverage = self.default if coverage is None else coverage
        self.check(coverage)
        scores, horizon = np.asarray(scores), number("The horizon", horizon)
        if scores.dtype.kind not in "fiu" or not (scores >= 0).all():
            raise InvalidInput(
                f"The scores reach down to {scores.min() if scores.dtype.kind in 'fiu' else scores.dtype}: a score "
                "is a number of at least 0."
            )
        if not self.covers(horizon):
            raise InvalidInput(
                f"There is no error bound at a horizon of {horizon:g} frames: the calibrated ones are "
                f"{self._horizons[0]:g} to {self._horizons[-1]:g}."
            )
        above = int(np.searchsorted(self._horizons, horizon))
        high = float(self._horizons[above])
        if high == horizon:
            return self._at(scores, high, coverage, beginning)
        low = float(self._horizons[above - 1])
        share = np.log2(horizon / low) / np.log2(high / low)
        return (1 - share) * self._at(scores, low, coverage, beginning) + share * self._at(scores, high, coverage, beginning)

    def of_answers(
        self, scores: np.ndarray, horizon: float, coverage: float | None = None, beginning: bool | None = None
    ) -> np.ndarray:
        """The bounds of a surrogate's answers; infinite where it gave no number, and so no score."""
        return self(np.where(scores != scores, np.inf, scores), horizon, coverage, beginning)

    def _at(self, scores: np.ndarray, horizon: float, coverage: float, beginning: bool | None) -> np.ndarray:
        """The bound at a calibrated horizon: the larger one of the groups that the states may belong to."""
        confidence = max(coverage - ROUNDING, ROUNDING)
        first, *others = (group.bound(scores, horizon, confidence) for group in self._groups[beginning])
        for each in others:
            first = np.maximum(first, each)
        return first

    def check(self, coverage: float) -> None:
        """Raise for a coverage that so few validation trajectories cannot promise."""
        if not 0 < (as_number(coverage) or 0.0) <= self.most:
            raise InvalidInput(
                f"The coverage is {shown(coverage)}: with {self.trajectories} validation trajectories per horizon it must be "
                f"above 0 and at most {self.most:.4f}."
            )


class _Group:
    """Residuals of one kind of answers, fitted."""

    def __init__(self, residuals: Residuals) -> None:
        scores = {h: np.asarray(values, float) for h, values in residuals.scores.items()}
        self.fewest = min(map(len, scores.values()))
        self._floor = {h: FLOOR * float(np.median(values)) + 1e-12 for h, values in scores.items()}
        self._fitted = {
            h: ConformalRegressor().fit(np.asarray(residuals.errors[h], float), sigmas=values + self._floor[h])
            for h, values in scores.items()
        }
        self._factors: dict[tuple[float, float], float] = {}

    def bound(self, scores: np.ndarray, horizon: float, confidence: float) -> np.ndarray:
        """What the errors of such answers do not exceed, in the shape of the scores."""
        return self._factor(horizon, confidence) * (np.asarray(scores, float) + self._floor[horizon])

    def _factor(self, horizon: float, confidence: float) -> float:
        """k: the upper end of the interval around a prediction of 0 whose difficulty is 1. Every answer asks for it."""
        if (horizon, confidence) not in self._factors:
            if len(self._factors) >= FACTORS:
                self._factors.clear()
            interval = self._fitted[horizon].predict_int(np.zeros(1), sigmas=np.ones(1), confidence=confidence)
            self._factors[horizon, confidence] = float(interval[0, 1])
        return self._factors[horizon, confidence]
