"""Intervals: how often they hold the truth, and what they say where nothing varies."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, ttest_1samp

from hybridworld.bench.intervals import Interval, mean_interval, ratio_interval, share_interval
from hybridworld.bench.metrics import (
    auroc_interval,
    bootstrap_weights,
    cut_interval,
    cut_matched,
    frozen_cut,
    weighted_auroc,
)
from tests.bench.coverage_of_intervals import WORLDS, World, coverage, measured, table

RNG = np.random.default_rng(0)
SKEWED = World(noise=0.25)
FLOOR = 0.92


def percentile_bootstrap(scores, errors, groups, threshold):
    """What these intervals replace."""
    weights = bootstrap_weights(groups, 300)

    def ends(values):
        return Interval(np.nan, *np.nanpercentile(values, (2.5, 97.5)))

    deferred = scores > threshold
    return {
        "mean": ends(weights @ errors / weights.sum(axis=1)),
        "AUROC": ends(weighted_auroc(scores, errors > np.quantile(errors, 0.75), weights)),
        "cut, frozen threshold": ends(weights @ (errors * deferred) / (weights @ errors)),
    }


def test_few_trajectories_with_skewed_errors_are_covered_where_the_percentile_bootstrap_fails():
    ours, plain = coverage(SKEWED, 24, 500), coverage(SKEWED, 24, 500, find=percentile_bootstrap)
    assert all(share >= FLOOR for share in ours.values()), ours
    assert all(share < FLOOR for share in plain.values()), plain


def blind_to_groups(scores, errors, groups, threshold):
    return {"mean": mean_interval(errors), "deferral, frozen threshold": frozen_cut(scores, errors, threshold).deferral}


def test_answers_of_one_trajectory_count_as_one():
    grouped = World(answers=5)
    assert all(share >= 0.91 for share in coverage(grouped, 24, 200).values())
    alone = coverage(grouped, 24, 200, find=blind_to_groups)
    assert all(share < 0.85 for share in alone.values())


@pytest.mark.slow
def test_the_table_of_coverage():
    """Minutes. The mean of errors of a spread of 1.5 is beyond what 24 trajectories can tell."""
    rows = measured((2000, 1000, 500))
    print(table(rows))
    for name, size, found in rows:
        floors = {each: 0.87 if each == "mean" and WORLDS[name].spread > 1 else 0.91 for each in found}
        assert all(share > floors[each] for each, share in found.items()), (name, size, found)


# Against closed forms, and at the edges.


def test_the_interval_of_a_mean_of_normal_values_is_that_of_student():
    values = RNG.normal(size=400)
    expected = ttest_1samp(values, 0).confidence_interval()
    np.testing.assert_allclose(mean_interval(values)[1:], expected, atol=0.02)


def test_the_interval_of_a_share_is_that_of_wilson():
    flags = np.arange(500) < 30
    expected = binomtest(30, 500).proportion_ci(method="wilson")
    np.testing.assert_allclose(share_interval(flags)[1:], expected, rtol=0.02)
    repeated = share_interval(np.repeat(flags, 4), np.repeat(np.arange(500), 4))
    np.testing.assert_allclose(repeated, share_interval(flags), rtol=0.01)


@given(st.integers(0, 10_000), st.integers(4, 40), st.floats(0, 1))
def test_every_interval_holds_its_value_and_stays_in_range(seed, count, q):
    rng = np.random.default_rng(seed)
    errors, scores = rng.lognormal(size=count), rng.normal(size=count)
    groups = rng.integers(0, max(count // 2, 1), count)
    frozen = frozen_cut(scores, errors, float(np.quantile(scores, q)), groups)
    shares = [frozen.deferral, frozen.cut, auroc_interval(scores, errors, groups), cut_interval(scores, errors, q, groups)]
    for value, low, high in shares:
        assert 0 <= low <= value + 1e-12 and value <= high + 1e-12 <= 1 + 2e-12
    value, low, high = mean_interval(errors, groups)
    assert 0 <= low <= value <= high
    assert np.isnan(frozen.share.value) or frozen.share.value <= 1 + 1e-12


def test_nothing_deferred_or_a_perfect_ranking_is_no_certainty():
    errors = RNG.lognormal(size=24)
    none = frozen_cut(errors, errors, np.inf)
    assert none.deferral[:2] == none.cut[:2] == (0, 0) and 0.1 < none.cut.high < 0.2 and 0.1 < none.deferral.high < 0.2
    assert np.isnan(none.share.value)
    perfect = auroc_interval(errors, errors)
    assert perfect.value == perfect.high == 1 and 0.8 < perfect.low < 1


def test_one_trajectory_tells_nothing():
    errors, one = RNG.lognormal(size=10), np.zeros(10, int)
    assert auroc_interval(errors, errors, one)[1:] == frozen_cut(errors, errors, 1.0, one).cut[1:] == (0, 1)
    assert mean_interval(errors, one)[1:] == (0, np.inf)


def test_what_has_no_value_has_no_interval():
    equal = np.ones(8)
    assert np.isnan(auroc_interval(RNG.random(8), equal)).all()
    assert np.isnan(mean_interval(np.array([1.0, np.nan, 2.0]))[1:]).all()
    assert np.isnan(ratio_interval(np.zeros(4), np.zeros(4))).all()


def test_matched_q_is_what_cut_matched_says_and_sure_at_its_ends():
    errors, scores = RNG.lognormal(size=50), RNG.normal(size=50)
    assert cut_interval(scores, errors, 0.7).value == cut_matched(scores, errors, 0.7).cut
    assert cut_interval(scores, errors, 0.0) == (1, 1, 1) and cut_interval(scores, errors, 1.0) == (0, 0, 0)
