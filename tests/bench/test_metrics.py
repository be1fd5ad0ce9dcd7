"""Metrics against independent implementations and closed forms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import r2_score, roc_auc_score, root_mean_squared_error

from hybridworld.bench.metrics import (
    aurc,
    auroc,
    auroc_at_tolerance,
    auroc_interval,
    bootstrap_weights,
    cut_above,
    cut_matched,
    cut_random,
    excess_aurc,
    relative_errors,
    weighted_auroc,
)

RNG = np.random.default_rng(0)


@given(st.integers(0, 10_000), st.booleans())
def test_weighted_auroc_is_that_of_scikit_learn(seed, ties):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 5, 40).astype(float) if ties else rng.normal(size=40)
    large, weights = rng.random(40) < 0.3, rng.integers(0, 4, (3, 40))
    large[0], large[1], weights[:, :2] = True, False, 1
    expected = [roc_auc_score(large, scores, sample_weight=row) for row in weights]
    np.testing.assert_allclose(weighted_auroc(scores, large, weights), expected, atol=1e-12)


@given(st.lists(st.sampled_from([0.0, 1.0, 2.0, np.inf, -np.inf, np.nan]), min_size=8, max_size=20), st.randoms())
def test_auroc_does_not_depend_on_the_order_of_the_answers(scores, random):
    scores, errors = np.array(scores), np.arange(len(scores), dtype=float)
    order = np.array(random.sample(range(len(scores)), len(scores)))
    assert auroc(scores[order], errors[order]) == pytest.approx(auroc(scores, errors))
    np.testing.assert_allclose(auroc_interval(scores[order], errors[order]), auroc_interval(scores, errors))
    ranked = np.select([np.isnan(scores), scores == np.inf, scores == -np.inf], [9.0, 8.0, -1.0], scores)
    assert auroc(scores, errors) == pytest.approx(roc_auc_score(errors > np.quantile(errors, 0.75), ranked))


def test_the_interval_contains_its_value_and_is_wider_when_answers_come_in_groups():
    errors = RNG.lognormal(size=100)
    scores = errors * RNG.lognormal(size=100)
    alone = auroc_interval(scores, errors, np.arange(100))
    assert alone.low < alone.value == auroc(scores, errors) < alone.high
    grouped = auroc_interval(np.repeat(scores, 10), np.repeat(errors, 10), np.repeat(np.arange(100), 10))
    blind = auroc_interval(np.repeat(scores, 10), np.repeat(errors, 10), np.arange(1000))
    assert grouped.high - grouped.low > 2 * (blind.high - blind.low)


def test_every_draw_has_as_many_groups_as_there_are():
    weights = bootstrap_weights(np.array([5, 5, 9, 7]), 50)
    assert (weights[:, 0] == weights[:, 1]).all() and (weights[:, [0, 2, 3]].sum(axis=1) == 3).all()


@given(st.integers(0, 10_000), st.floats(0, 1))
def test_the_oracle_cuts_most_and_a_threshold_is_matched_q_at_its_own_deferral(seed, q):
    rng = np.random.default_rng(seed)
    mse, scores = rng.lognormal(size=30), rng.normal(size=30)
    matched, oracle = cut_matched(scores, mse, q), cut_matched(mse, mse, q)
    assert matched.deferral == oracle.deferral and matched.cut <= oracle.cut + 1e-12
    found = cut_above(scores, mse, float(np.quantile(scores, q)))
    assert found.cut == pytest.approx(cut_matched(scores, mse, 1 - found.deferral).cut)
    assert 0 <= found.cut <= 1


def test_random_deferral_is_the_mean_over_draws():
    rmse = RNG.lognormal(size=200)
    drawn = [1 - rmse[RNG.random(200) < 0.75].sum() / rmse.sum() for _ in range(4000)]
    assert np.mean(drawn) == pytest.approx(cut_random(0.25).cut, abs=0.01)


def test_a_score_that_is_no_number_ranks_highest():
    errors = np.array([1.0, 2.0, 3.0, 9.0])
    assert auroc(np.array([1.0, 2.0, 3.0, np.nan]), errors) == 1.0
    assert auroc(np.array([np.nan, 2.0, 3.0, 4.0]), errors) == pytest.approx(2 / 3)
    assert np.isnan(auroc_at_tolerance(errors, errors, 10.0))


def test_a_score_that_is_no_number_is_deferred():
    assert cut_above(np.array([np.nan, 0.0]), np.array([3.0, 1.0]), 1.0).deferral == 0.5


def test_aurc_is_the_mean_error_of_the_kept_over_all_shares():
    scores, errors = RNG.permutation(50).astype(float), RNG.random(50)
    kept = [errors[scores <= threshold].mean() for threshold in np.sort(scores)]
    assert aurc(scores, errors) == pytest.approx(np.mean(kept))
    assert excess_aurc(errors, errors) == 0 < excess_aurc(scores, errors)
    assert excess_aurc(-errors, errors) == pytest.approx(aurc(-errors, errors) - aurc(errors, errors))


def test_relative_errors_are_those_of_scikit_learn():
    """VRMSE^2 is 1 - R^2; nRMSE the same without taking off the mean."""
    truth = 3 + RNG.normal(size=(4, 2, 8, 8))
    said = truth + 0.3 * RNG.normal(size=truth.shape)
    fields = [(said[i, c].ravel(), truth[i, c].ravel()) for i in range(4) for c in range(2)]
    vrmse = np.mean([np.sqrt(1 - r2_score(y, x)) for x, y in fields])
    nrmse = np.mean([root_mean_squared_error(y, x) / root_mean_squared_error(y, 0 * y) for x, y in fields])
    np.testing.assert_allclose(relative_errors(said, truth), (nrmse, vrmse))
