"""Promises over fresh draws: kept by data like the validation data, broken where the test data differ."""

import numpy as np
import pytest
from scipy.stats import betabinom

from hybridworld.bench.promises import APART, band, keep_promises
from hybridworld.errors import InvalidInput
from tests.deploy.fakes import seeded
from tests.surrogate.flows import OSCILLATOR, Oscillator


class Shifted(Oscillator):
    """Test trajectories are tiny beside those of validation."""

    def sample(self, rng, split):
        found = super().sample(rng, split)
        found.state[:] *= 0.02 if split == "test" else 1
        return found


def kept(environment, **options):
    return keep_promises(seeded(OSCILLATOR), environment, (1, 2, 4, 8, 16), (3, 5, 8, 16), **{"trajectories": 400, **options})


def test_deferral_coverage_and_alarm_are_as_promised_on_and_between_the_calibrated_horizons():
    found = kept(Oscillator(), draws=5)
    assert found.deferral.shape == found.coverage.shape == (5, 2, 4) and found.alarms.shape == (5, 2)
    low, _ = band(0.9, 200, 200)
    assert np.mean(found.coverage >= low) > 0.93 and 0.89 < found.coverage.mean() < 0.96
    assert abs(found.deferral.mean() - 0.25) < 0.04
    assert found.alarms.mean() <= 0.01


def test_states_unlike_the_validation_data_break_them():
    found = kept(Shifted(), draws=2)
    assert found.deferral.mean() < 0.05 and found.alarms.min() == 1


@pytest.mark.parametrize(("share", "calibrating", "testing"), [(0.9, 200, 200), (0.75, 2000, 2000), (0.5, 20, 40)])
def test_the_band_is_that_of_a_conformal_bound(share, calibrating, testing):
    """Simulated: the share of test scores below the right order statistic of the calibration scores."""
    rng = np.random.default_rng(0)
    rank = int(np.ceil((calibrating + 1) * share))
    bounds = np.sort(rng.random((20_000, calibrating)), axis=1)[:, rank - 1]
    found = rng.binomial(testing, bounds) / testing
    low, high = band(share, calibrating, testing)
    assert 0.94 < np.mean((found >= low) & (found <= high)) < 0.985
    assert betabinom.mean(testing, rank, calibrating + 1 - rank) / testing == pytest.approx(share, abs=1 / calibrating)


def test_draws_must_not_overlap():
    with pytest.raises(InvalidInput, match="at most 100000"):
        kept(Oscillator(), trajectories=APART + 1)
