"""Ask for an error instead of a share: what is promised holds, whatever the tolerance."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybridworld.errors import InvalidInput
from hybridworld.trust.bounds import ErrorBound, Residuals
from hybridworld.trust.tolerance import check_tolerance, delivered, expected


def drawn(count, seed):
    """Errors that scores tell up to noise."""
    rng = np.random.default_rng(seed)
    scores = rng.lognormal(size=count)
    return scores, 0.1 * scores * rng.lognormal(0, 0.5, count)


def bound_of(count, seed):
    scores, errors = drawn(count, seed)
    return ErrorBound(Residuals({4.0: scores, 8.0: scores}, {4.0: errors, 8.0: 3 * errors}))


@pytest.mark.parametrize("coverage", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("tolerance", [0.03, 0.1, 0.3, 1.0])
def test_of_all_answers_at_most_the_promised_share_exceeds_the_tolerance(tolerance, coverage):
    """The mean over draws of validation and test data; one draw may lie above by chance."""
    found = []
    for draw in range(20):
        bound, (scores, errors) = bound_of(400, [draw, 1]), drawn(2000, [draw, 2])
        found.append(delivered(errors, bound(scores, 4, coverage), tolerance))
    exceeding = [each.exceeding for each in found]
    assert np.mean(exceeding) <= 1 - coverage + 2 * np.std(exceeding) / np.sqrt(20) + 1e-9


@settings(max_examples=50)
@given(st.integers(0, 10**6), st.floats(0.001, 10), st.floats(0.001, 10))
def test_shares_fit_together_and_who_tolerates_more_defers_less(seed, one, other):
    rng = np.random.default_rng(seed)
    errors, bounds = rng.lognormal(-2, 2, (2, 50))
    few, many = (delivered(errors, bounds, each) for each in sorted((one, other), reverse=True))
    assert few.deferred <= many.deferred
    for each in (few, many):
        assert 0 <= each.exceeding <= 1 - each.deferred + 1e-12
        if each.deferred < 1:
            assert each.exceeding == pytest.approx(each.exceeding_accepted * (1 - each.deferred))
        else:
            assert np.isnan(each.exceeding_accepted) and each.exceeding == 0


def test_what_is_no_number_is_deferred_and_counts_as_wrong():
    found = delivered(np.array([0.0, np.nan, 9.0, 0.0]), np.array([np.nan, 0.1, 0.1, 0.1]), 1.0)
    assert (found.deferred, found.exceeding, found.exceeding_accepted) == (0.25, 0.5, pytest.approx(2 / 3))


def test_the_validation_data_tell_what_to_expect_at_the_nearest_horizon():
    bound, (scores, errors) = bound_of(1000, 0), drawn(20_000, 1)
    for horizon, factor in ((4, 1), (5, 1), (7, 3), (8, 3)):
        said = expected(bound, horizon, 0.2, 0.9)
        nearest = 4 if factor == 1 else 8
        true = delivered(factor * errors, bound(scores, nearest, 0.9), 0.2)
        assert said.deferred == pytest.approx(true.deferred, abs=0.05)
        assert said.exceeding == pytest.approx(true.exceeding, abs=0.02)


@pytest.mark.parametrize("tolerance", [0, -1, float("nan"), float("inf")])
def test_a_tolerance_is_a_positive_number(tolerance):
    with pytest.raises(InvalidInput, match=r"tolerance is .* deviations: it must be a positive number"):
        check_tolerance(tolerance)
