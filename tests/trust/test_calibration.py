"""From a keep fraction to a threshold."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hybridworld.errors import InvalidInput
from hybridworld.trust.bounds import Residuals
from hybridworld.trust.calibration import BeyondCalibration, Calibration, flagged

RNG = np.random.default_rng(0)
BASE = np.sort(RNG.lognormal(size=200))
KNOWN = Calibration({1.0: BASE, 4.0: 10 * BASE, 16.0: 30 * BASE})
shares = st.floats(0, 1)
inside = st.floats(1, 16)


def scores(minimum=1):
    values = st.floats(0, 1e3, allow_subnormal=False)
    return st.integers(minimum, 30).flatmap(lambda count: arrays(np.float64, count, elements=values)).map(np.sort)


# Thresholds.


@given(scores(), scores(), st.floats(0, 1, exclude_min=True, exclude_max=True))
def test_at_a_horizon_the_threshold_is_the_quantile_of_its_scores(first, second, q):
    known = Calibration({2.0: first, 8.0: second})
    assert known.threshold(2, q) == np.quantile(first, q)
    assert known.threshold(8, q) == np.quantile(second, q)


@given(inside, shares, shares)
def test_who_keeps_more_has_a_higher_threshold(horizon, q, other):
    low, high = sorted((q, other))
    assert KNOWN.threshold(horizon, low) <= KNOWN.threshold(horizon, high) + 1e-9


@given(scores(2), shares)
def test_a_share_q_of_the_validation_scores_is_kept(values, q):
    kept = np.sum(values <= Calibration({1.0: values}).threshold(1, q))
    distinct = len(np.unique(values)) == len(values)
    assert kept >= q * (len(values) - 1) - 1e-9
    assert not distinct or kept <= q * (len(values) - 1) + 1 + 1e-9


@pytest.mark.parametrize("few", [False, True])
def test_beginnings_and_later_frames_have_thresholds_of_their_own(few):
    beginning = np.arange(200) % (20 if few else 2) == 0
    values = np.where(beginning, 10.0, 1.0) * RNG.lognormal(size=200)
    known = Calibration.of(Residuals({4.0: values}, {4.0: values}), beginning)
    assert known.threshold(4, 0.75) == np.quantile(values, 0.75)
    for begins, rows in ((True, beginning), (False, ~beginning)):
        alone = values if few and begins else values[rows]  # ten beginnings are too few for a quantile of their own
        assert known.threshold(4, 0.75, begins) == pytest.approx(np.quantile(alone, 0.75))


@given(st.floats(0, 1), st.floats(0.01, 0.99))
def test_between_horizons_the_threshold_is_interpolated_in_log2_of_the_horizon(share, q):
    low, high = KNOWN.threshold(4, q), KNOWN.threshold(16, q)
    assert KNOWN.threshold(4 * 4**share, q) == pytest.approx(low + share * (high - low))


@pytest.mark.parametrize(("horizon", "nearest"), [(0.5, 1), (17, 16), (1000, 16)])
def test_beyond_the_horizons_it_stays_that_of_the_last_and_says_so(horizon, nearest):
    with pytest.warns(BeyondCalibration, match=f"horizon {horizon:g} .*that of {nearest}"):
        assert KNOWN.threshold(horizon, 0.7) == KNOWN.threshold(nearest, 0.7)


@given(inside, shares)
def test_within_the_horizons_nothing_is_said(horizon, q):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KNOWN.threshold(horizon, q)


def test_all_or_nothing_needs_no_scores():
    assert KNOWN.threshold(4, 1) == np.inf
    assert KNOWN.threshold(4, 0) == -1
    assert KNOWN.threshold(4, 1.0) == np.inf
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert KNOWN.threshold(1000, 1) == np.inf


@pytest.mark.parametrize("q", [-0.01, 1.01, 75, float("nan"), float("inf")])
def test_a_share_outside_of_0_to_1_is_refused(q):
    with pytest.raises(InvalidInput, match=r"keep fraction q is .* from 0"):
        KNOWN.threshold(4, q)


@pytest.mark.parametrize("horizon", [0, -1, float("nan"), float("inf")])
def test_a_horizon_that_cannot_be_is_refused(horizon):
    with pytest.raises(InvalidInput, match=r"horizon is .* positive"):
        KNOWN.threshold(horizon, 0.5)


@pytest.mark.parametrize("given_scores", [{}, {1.0: np.zeros(0)}, {1.0: np.array([2.0, 1.0])}])
def test_scores_must_be_there_and_increase(given_scores):
    with pytest.raises(InvalidInput, match="increasing"):
        Calibration(given_scores)


# Ranks.


@given(scores(), arrays(np.float64, 5, elements=st.floats(0, 1e3)))
def test_the_rank_is_the_share_of_validation_scores_below(values, asked):
    expected = [np.mean(values < one) for one in asked]
    np.testing.assert_allclose(Calibration({2.0: values}).ranks(2, asked)[:, 0], expected)
    np.testing.assert_allclose(Calibration({2.0: values}).ranks(77, asked)[:, 0], expected)  # the only one there is


@given(inside, st.floats(0.01, 0.99))
def test_the_rank_of_a_threshold_is_its_share_at_any_horizon(horizon, q):
    rank = KNOWN.ranks(horizon, np.array([KNOWN.threshold(horizon, q)]))[:, 0]
    assert abs(rank[0] - q) <= 1 / len(BASE) + 1e-9


@given(inside)
def test_ranks_rise_from_0_to_1(horizon):
    ranks = KNOWN.ranks(horizon, np.concatenate([[-1], np.geomspace(1e-3, 1e3, 50), [np.inf, np.nan]]))[:, 0]
    assert ranks[0] == 0 and ranks[-1] == ranks[-2] == 1
    assert (np.diff(ranks) >= 0).all()


def test_horizons_with_different_numbers_of_scores_are_interpolated_too():
    known = Calibration({1.0: np.linspace(0, 1, 11), 4.0: np.linspace(0, 3, 301)})
    assert known.size == 11
    assert known.ranks(2, np.array([0.999]))[0, 0] == pytest.approx(0.5, abs=0.1)
    assert known.threshold(2, 0.5) == pytest.approx(1.0)


# Whence it comes.


@given(scores(), scores())
def test_a_calibration_is_made_of_the_scores_of_validation_answers(first, second):
    shuffled = np.random.default_rng(0).permutation(first)
    known = Calibration.of(Residuals({0.5: shuffled, 64.0: second}, {0.5: first, 64.0: second}))
    assert set(known.scores) == {0.5, 64.0} and known.size == min(len(first), len(second))
    np.testing.assert_array_equal(known.scores[0.5], first)


@given(arrays(np.float64, 12, elements=st.one_of(st.floats(0, 2), st.just(np.inf), st.just(np.nan))), st.floats(-1, 3))
def test_the_rule_of_the_gate_defers_what_exceeds_the_threshold_or_is_no_number(values, threshold):
    expected = [bool(np.isnan(value) or value > threshold) for value in values]
    assert flagged(values, threshold).tolist() == expected


def test_two_groups_of_validation_answers_are_known_apart():
    values, beginning = np.arange(10.0), np.arange(10) % 2 == 0
    known = Calibration.of(Residuals({2.0: values}, {2.0: values}), beginning)
    assert [group[2.0].tolist() for group in known.groups] == [[0, 2, 4, 6, 8], [1, 3, 5, 7, 9]]
    np.testing.assert_allclose(known.ranks(2, np.array([0.5, 8.5])), [[0.2, 0.0], [1.0, 0.8]])
    assert known.threshold(2, 0.5) == 4.5
    assert not Calibration.of(Residuals({2.0: values}, {2.0: values}), np.ones(10, bool)).groups
