"""The alarm: rare on answers like the validation data, however their groups mix, and sure on others."""

import numpy as np
import pytest

from hybridworld.trust.bounds import Residuals
from hybridworld.trust.calibration import Calibration


def drawn(rng, count, share, shift=0.0):
    """Scores of two groups, of which the first is four times as large; `share` of them are of the first."""
    return rng.lognormal(shift, 0.5, count) * np.where(rng.random(count) < share, 4.0, 1.0)


def alarms(share, shift=0.0, apart=True, size=1000, window=500, repeats=300, level=0.01):
    rng, found = np.random.default_rng(1), []
    for _ in range(repeats):
        beginning = np.arange(size) % 2 == 0
        scores = rng.lognormal(0, 0.5, size) * np.where(beginning, 4.0, 1.0)
        known = Calibration.of(Residuals({4.0: scores}, {4.0: scores}), beginning if apart else None)
        found.append(known.drift_p_value(known.ranks(4, drawn(rng, window, share, shift))) < level)
    return np.mean(found)


@pytest.mark.parametrize("share", [0, 0.3, 0.5, 1])
def test_no_mixture_of_the_two_groups_raises_the_alarm_more_often_than_stated(share):
    assert alarms(share) <= 0.02


def test_without_groups_another_mixture_is_a_drift():
    assert alarms(0.5, apart=False) <= 0.03 and alarms(1, apart=False) > 0.99


@pytest.mark.parametrize(("share", "shift"), [(1, 0.4), (0, -0.4), (0.5, 1.0)])
def test_what_no_mixture_explains_raises_it(share, shift):
    assert alarms(share, shift, repeats=50) > 0.95
