"""Ask for an error instead of a share: an answer is accepted if its bound promises an error of at most the tolerance.

    accepted:   bound(score, horizon, coverage) <= tolerance            everything else goes to the solver
    promise:    P(accepted and error > tolerance) <= P(error > bound) <= 1 - coverage

The promise is about all answers. Among the accepted ones the share above the tolerance may be larger, the more so the fewer are
accepted: it is told beside. Like the bound it holds for data like the validation data.
"""

from dataclasses import dataclass

import numpy as np

from hybridworld.errors import InvalidInput
from hybridworld.physics.arguments import as_number, shown
from hybridworld.trust.bounds import ErrorBound
from hybridworld.trust.calibration import flagged


@dataclass(frozen=True)
class Delivered:
    """What a tolerance costs and delivers on answers whose errors are known; shares from 0 to 1."""

    deferred: float
    """Share of all answers that go to the solver."""
    exceeding: float
    """Share of all answers that are accepted with an error above the tolerance: what is promised to be small."""
    exceeding_accepted: float
    """The share of the accepted answers with an error above the tolerance; nan where none is accepted."""


def check_tolerance(tolerance: float) -> None:
    """Raise unless it is a positive number."""
    if not 0 < (as_number(tolerance) or 0.0) < np.inf:
        raise InvalidInput(f"The tolerance is {shown(tolerance)} deviations: it must be a positive number.")


def delivered(errors: np.ndarray, bounds: np.ndarray, tolerance: float) -> Delivered:
    """What a tolerance costs and delivers on answers with these true errors and bounds."""
    deferred = flagged(bounds, tolerance)
    wrong = ~deferred & flagged(errors, tolerance)
    accepted = int((~deferred).sum())
    return Delivered(float(deferred.mean()), float(wrong.mean()), int(wrong.sum()) / accepted if accepted else float("nan"))


def expected(bound: ErrorBound, horizon: float, tolerance: float, coverage: float, beginning: bool | None = None) -> Delivered:
    """What a tolerance costs and delivers on the validation data, at the calibrated horizon nearest to the given one."""
    known = bound.residuals(beginning)
    nearest = min(known.scores, key=lambda each: abs(np.log2(each / horizon)))
    return delivered(known.errors[nearest], bound(known.scores[nearest], nearest, coverage, beginning), tolerance)
