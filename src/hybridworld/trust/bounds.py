"""From an error map to a magnitude:   error <= k(h, coverage) * (score + β)      for a share `coverage` of all answers

k is the conformal quantile of error / (score + β) on validation data (crepes), one per horizon (Mondrian). It holds for data
like the validation data, whatever the network; under shift it is a guess, and `deploy.gate` audits it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from crepes import ConformalRegressor

from hybridworld.errors import InvalidInput

FLOOR = 0.1
"""β as a share of the median score: a map that is nearly zero by chance must not promise that there is no error."""

ROUNDING = 1e-9
"""crepes counts (1 - coverage) * (scores + 1) and cuts: 19.999... must be 20, and the largest coverage is no infinite bound."""


@dataclass(frozen=True)
class Residuals:
    """Validation data, by horizon: scores and true errors of the same answers, in deviations of the training data."""

    scores: Mapping[float, np.ndarray]
    errors: Mapping[float, np.ndarray]

    def to_arrays(self, kind: str) -> dict[str, np.ndarray]:
        """For a model's file; `kind` is `trajectory` or `cell`."""
        parts = {"scores": self.scores, "errors": self.errors}
        return {f"{kind}.{part}.{h:g}": values for part, found in parts.items() for h, values in found.items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], kind: str) -> Self | None:
        """Inverse of `to_arrays`; None where there are none."""
        found: dict[str, dict[float, np.ndarray]] = {"scores": {}, "errors": {}}
        for name, values in arrays.items():
            begin, _, rest = name.partition(".")
            part, _, horizon = rest.partition(".")
            if begin == kind and part in found:
                found[part][float(horizon)] = values
        return cls(found["scores"], found["errors"]) if found["scores"] else None


class ErrorBound:
    """Upper bounds of the error, from residuals on validation data."""

    def __init__(self, residuals: Residuals) -> None:
        self._horizons = np.array(sorted(residuals.scores))
        self._floor = {h: FLOOR * float(np.median(residuals.scores[h])) + 1e-12 for h in self._horizons}
        bins = np.concatenate([np.full(len(residuals.scores[h]), h) for h in self._horizons])
        sigmas = np.concatenate([np.asarray(residuals.scores[h], float) + self._floor[h] for h in self._horizons])
        errors = np.concatenate([np.asarray(residuals.errors[h], float) for h in self._horizons])
        self._regressor = ConformalRegressor().fit(errors, sigmas=sigmas, bins=bins)
        self._fewest = min(len(values) for values in residuals.scores.values())

    def __call__(self, scores: np.ndarray, horizon: float, coverage: float = 0.9) -> np.ndarray:
        """What the error does not exceed in a share `coverage` of cases; between horizons, by the nearest one in log2 h."""
        self.check(coverage)
        confidence = max(coverage - ROUNDING, ROUNDING)
        nearest = float(self._horizons[np.abs(np.log2(self._horizons) - np.log2(horizon)).argmin()])
        flat = np.asarray(scores, float).reshape(-1)
        interval = self._regressor.predict_int(
            np.zeros(len(flat)), sigmas=flat + self._floor[nearest], bins=np.full(len(flat), nearest), confidence=confidence
        )
        return interval[:, 1].reshape(np.shape(scores))

    def check(self, coverage: float) -> None:
        """Raise for a coverage that so much validation data cannot promise."""
        most = self._fewest / (self._fewest + 1)
        if not 0 < coverage <= most:
            raise InvalidInput(
                f"The coverage is {coverage:g}: with {self._fewest} validation scores per horizon it must be "
                f"above 0 and at most {most:.4f}."
            )
