"""Which answers of a surrogate go to the solver: those with a score above a threshold, or with a bound above a tolerance."""

from collections.abc import Callable

import numpy as np

from hybridworld.errors import InvalidInput
from hybridworld.physics.arguments import number
from hybridworld.trust.bounds import COVERAGE, ErrorBound, check_coverage
from hybridworld.trust.calibration import check_keep_fraction, flagged
from hybridworld.trust.tolerance import check_tolerance

KEEP = 0.75
"""The keep fraction q where none is given."""

Threshold = float | Callable[[float], float]
"""Above it a score is deferred: one number, or a function of the horizon, since a chain has links of several horizons."""

Deferral = Callable[[np.ndarray], tuple[np.ndarray, float | None]]
"""Scores -> which answers are deferred, and the threshold if that decided."""

Rule = Callable[[float, bool], Deferral]
"""Horizon, and whether it is the first link of a chain -> what is deferred there."""


def rule_for(
    calibrated: Callable[[float, float, bool | None], float],
    known_bound: Callable[[], ErrorBound],
    mode: int,
    q: float | None,
    threshold: Threshold | None,
    tolerance: float | None,
    coverage: float | None,
    beginning: bool | None,
) -> Rule:
    """The rule that these arguments of `HybridModel.predict` stand for; those that exclude each other are refused.

    `calibrated` gives the threshold of a horizon, a keep fraction q and a kind of states; `known_bound` the error bound.
    Both are asked where the rule needs them, and raise where the model has none.
    """

    def begins(first: bool) -> bool | None:
        return beginning if first or beginning is None else False  # later links go on from later frames

    keep = KEEP if q is None else q
    check_keep_fraction(keep)
    if coverage is not None:
        check_coverage(coverage)
    if threshold is not None and not callable(threshold):
        number("The threshold", threshold)
    if tolerance is None:

        def by_score(horizon: float, first: bool) -> Deferral:
            limit = calibrated(horizon, keep, begins(first)) if threshold is None else threshold
            limit = limit(horizon) if callable(limit) else limit
            return lambda score: (flagged(score, limit), limit)

        return by_score
    if q is not None or threshold is not None:
        raise InvalidInput("A tolerance decides by itself what goes to the solver: give it, or q, or a threshold, but one.")
    if mode == 1:
        raise InvalidInput("A tolerance hands to the solver what it cannot promise: it needs mode 2.")
    check_tolerance(tolerance)
    bound, share = known_bound(), COVERAGE if coverage is None else coverage
    bound.check(share)

    def by_bound(horizon: float, first: bool) -> Deferral:
        return lambda score: (flagged(bound.of_answers(score, horizon, share, begins(first)), tolerance), None)

    return by_bound
