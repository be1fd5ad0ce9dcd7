"""Bounds of the error that hold as often as they say."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybridworld.errors import InvalidInput
from hybridworld.trust.bounds import FLOOR, ErrorBound, Residuals


def drawn(count, seed, slope=1.0):
    """Exchangeable scores and errors: the error is as large as its score, up to noise with a heavy tail."""
    rng = np.random.default_rng(seed)
    scores = rng.lognormal(size=count)
    return scores, slope * scores * np.abs(rng.standard_t(4, size=count))


def bound_of(**by_horizon):
    found = {float(name[1:]): pair for name, pair in by_horizon.items()}
    return ErrorBound(Residuals({h: pair[0] for h, pair in found.items()}, {h: pair[1] for h, pair in found.items()}))


@pytest.mark.parametrize("coverage", [0.5, 0.9, 0.99])
def test_the_bound_covers_as_much_as_it_says_on_data_like_the_validation_data(coverage):
    """Random splits of one population into validation and test."""
    covered = []
    for split in range(20):
        scores, errors = drawn(2500, seed=split)
        bound = bound_of(h4=(scores[:500], errors[:500]))
        covered.append(np.mean(errors[500:] <= bound(scores[500:], 4, coverage)))
    assert abs(np.mean(covered) - coverage) < 0.02 * (1 if coverage == 0.9 else 1.5)


def test_each_horizon_has_a_bound_of_its_own_and_others_lie_between():
    one, eight = drawn(400, 0), drawn(400, 1, slope=20)
    both, scores = bound_of(h1=one, h8=eight), np.linspace(0, 3, 7)
    np.testing.assert_allclose(both(scores, 1), bound_of(h1=one)(scores, 1))
    np.testing.assert_allclose(both(scores, 8), bound_of(h8=eight)(scores, 8))
    for horizon, share in [(2, 1 / 3), (4, 2 / 3), (2**1.5, 0.5)]:
        np.testing.assert_allclose(both(scores, horizon), (1 - share) * both(scores, 1) + share * both(scores, 8))
    assert (both(scores, 8) > 5 * both(scores, 1)).all()


@pytest.mark.parametrize("horizon", [0.5, 8.5, 500])
def test_beyond_the_calibrated_horizons_there_is_no_bound(horizon):
    bound = bound_of(h1=drawn(40, 0), h8=drawn(40, 1))
    assert not bound.covers(horizon) and bound.covers(1) and bound.covers(3) and bound.covers(8)
    with pytest.raises(InvalidInput, match=f"no error bound at a horizon of {horizon:g} frames: .* 1 to 8"):
        bound(np.ones(3), horizon)


def test_many_residuals_of_few_trajectories_promise_no_more_than_the_trajectories():
    scores, errors = drawn(2000, 0)
    bound = ErrorBound(Residuals({2.0: scores}, {2.0: errors}), trajectories=9)
    bound.check(0.9)
    with pytest.raises(InvalidInput, match="with 9 validation trajectories"):
        bound.check(0.95)


@settings(max_examples=50)
@given(st.floats(0.001, 0.98), st.floats(0.001, 0.98), st.integers(100, 300))
def test_who_wants_more_coverage_has_a_larger_bound(coverage, other, count):
    bound, scores = bound_of(h2=drawn(count, seed=count)), np.linspace(0, 3, 5)
    low, high = (bound(scores, 2, share) for share in sorted((coverage, other)))
    assert (low <= high).all()


@settings(max_examples=50)
@given(st.integers(1, 3000))
def test_the_most_that_can_be_promised_is_the_worst_ratio_that_was_seen(count):
    """Coverage n / (n + 1) with n scores: a finite bound, whatever the rounding."""
    scores, errors = drawn(count, seed=count)
    floor = FLOOR * np.median(scores) + 1e-12
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = bound_of(h2=(scores, errors))(np.ones(1), 2, count / (count + 1))
    assert found[0] == pytest.approx((errors / (scores + floor)).max() * (1 + floor))


def test_beginnings_and_later_frames_are_each_covered():
    """A fresh blast and a developed flow, whose errors relate differently to their scores, each by its own bound.

    Whoever does not know which of the two a state is gets the larger bound, which covers either of them at least as often.
    """
    rng = np.random.default_rng(0)

    def mixed(count):
        hard = np.arange(count) % 2 == 0
        scores = rng.lognormal(np.where(hard, 0.5, 0), 0.5)
        return hard, scores, np.where(hard, 3.0, 0.5) * scores * rng.lognormal(0, 0.3, count)

    told, untold = [], []
    for _ in range(20):
        hard, scores, errors = mixed(400)
        bound = ErrorBound(Residuals({4.0: scores}, {4.0: errors}), beginning=hard)
        hard, scores, errors = mixed(2000)
        told.append([(errors <= bound(scores, 4, 0.9, begins))[hard == begins].mean() for begins in (True, False)])
        below = errors <= bound(scores, 4, 0.9)
        untold.append([below[hard == begins].mean() for begins in (True, False)])
    np.testing.assert_allclose(np.mean(told, axis=0), 0.9, atol=0.02)
    rarest, other = np.mean(untold, axis=0)
    assert abs(rarest - 0.9) < 0.02 and other > 0.95
    assert bound.most == 200 / 201


@pytest.mark.parametrize("beginning", [None, True, False])
def test_where_validation_does_not_tell_beginnings_apart_all_get_the_same_bound(beginning):
    bound, scores = bound_of(h2=drawn(100, 0)), np.linspace(0, 3, 5)
    np.testing.assert_array_equal(bound(scores, 2, 0.9, beginning), bound(scores, 2, 0.9))
    np.testing.assert_array_equal(bound.residuals(beginning).scores[2], drawn(100, 0)[0])


def test_a_share_that_is_a_whole_number_of_scores_is_not_rounded_away():
    """90 % of 199 + 1 is the 180th of the ratios; 0.1 * 200 is 19.999... in floating point."""
    scores, errors = np.ones(199), np.arange(1.0, 200)
    found = bound_of(h1=(scores, errors))(np.ones(1), 1, 0.9)
    assert found[0] == pytest.approx(180)


@pytest.mark.parametrize("shape", [(), (1,), (3,), (3, 4, 5), (0,)])
def test_bounds_have_the_shape_of_the_scores(shape):
    found = bound_of(h2=drawn(50, 0))(np.ones(shape, np.float32), 2)
    assert found.shape == shape


def test_a_score_of_zero_does_not_promise_that_there_is_no_error():
    assert bound_of(h2=drawn(50, 0))(np.zeros(1), 2)[0] > 0


@pytest.mark.parametrize("coverage", [0, -0.5, 0.97, 1, 2, float("nan")])
def test_a_coverage_that_cannot_be_promised_is_refused_with_what_can(coverage):
    bound = bound_of(h2=drawn(20, 0), h4=drawn(500, 0))
    with pytest.raises(InvalidInput, match=r"with 20 validation trajectories .* at most 0\.9524"):
        bound(np.ones(3), 4, coverage)
    assert np.isfinite(bound(np.ones(3), 4, 1e-17)).all()


def test_arrays_bring_back_the_residuals_of_their_kind():
    trajectories, cells = drawn(30, 0), drawn(40, 1)
    kept = {
        **Residuals({2.0: trajectories[0]}, {2.0: trajectories[1]}).to_arrays("trajectory"),
        **Residuals({2.0: cells[0], 0.5: cells[0]}, {2.0: cells[1], 0.5: cells[1]}).to_arrays("cell"),
        "scores.2": np.sort(trajectories[0]),
    }
    again = Residuals.from_arrays(kept, "trajectory")
    assert set(again.scores) == set(again.errors) == {2.0}
    np.testing.assert_array_equal(again.scores[2], trajectories[0])
    np.testing.assert_array_equal(again.errors[2], trajectories[1])
    assert set(Residuals.from_arrays(kept, "cell").scores) == {2.0, 0.5}
    assert Residuals.from_arrays(kept, "face") is None
