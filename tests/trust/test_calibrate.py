"""Scores and true errors on validation pairs, as they travel with a model."""

import numpy as np
import pytest
import torch

from hybridworld.surrogate.validation import to_tensors, validation_pairs
from hybridworld.trust import calibrate as module
from hybridworld.trust.bounds import ErrorBound, Residuals
from hybridworld.trust.calibrate import calibrate, judge
from hybridworld.trust.calibration import Calibration
from hybridworld.trust.signal import distance
from hybridworld.trust.step_doubling import StepDoubling
from tests.surrogate.flows import Oscillator, Ring, surrogate, table


def asked(environment, count=40):
    """A surrogate that does something, its signal, and pairs with known futures."""
    torch.manual_seed(0)
    source = table(environment, "val", 16)
    net = surrogate(source.spec)
    return net, StepDoubling(net, net.std), validation_pairs(source, (1, 4), count, seed=0)


@pytest.fixture(params=[Oscillator(), Ring()], ids=["vector", "field"])
def case(request):
    return asked(request.param)


def test_scores_are_those_of_the_signal_and_errors_those_of_the_prediction(case):
    net, signal, pairs = case
    found = judge(net, signal, pairs[4])
    *inputs, futures = to_tensors(pairs[4], net.mean.device)
    with torch.no_grad():
        estimate = signal(*inputs)
        error = distance(net(*inputs), futures, net.std).reshape(40, -1).mean(dim=1)
    np.testing.assert_allclose(found.scores, estimate.score, rtol=1e-4)
    np.testing.assert_allclose(found.errors, error, rtol=1e-4)


def test_cells_are_a_random_share_of_all(monkeypatch):
    monkeypatch.setattr(module, "CELLS", 160)
    net, signal, pairs = asked(Ring())
    found = judge(net, signal, pairs[1])
    assert found.cell_scores.shape == found.cell_errors.shape
    assert 100 < len(found.cell_scores) < 220  # of 640
    monkeypatch.setattr(module, "CELLS", 10_000)
    every = judge(net, signal, pairs[1])
    assert len(every.cell_errors) == 640
    np.testing.assert_allclose(every.cell_errors.reshape(40, 16).mean(axis=1), every.errors, rtol=1e-4)
    assert set(found.cell_errors) <= set(every.cell_errors)


def test_the_arrays_of_a_model_hold_thresholds_and_bounds_and_are_the_same_each_time(case):
    net, signal, pairs = case
    told = []
    found, again = calibrate(net, signal, pairs, told.append), calibrate(net, signal, pairs)
    assert told == [1, 4]
    assert {name: values.tobytes() for name, values in found.items()} == {
        name: values.tobytes() for name, values in again.items()
    }
    known = Calibration.from_arrays(found)
    assert set(known.scores) == {1.0, 4.0} and known.size == 40
    kinds = ["trajectory", "cell"] if net.spec.grid else ["trajectory"]
    for kind in ("trajectory", "cell"):
        residuals = Residuals.from_arrays(found, kind)
        assert (residuals is not None) == (kind in kinds)
        if residuals is not None:
            bound = ErrorBound(residuals)(residuals.scores[4], 4, 0.8)
            assert np.mean(residuals.errors[4] <= bound) >= 0.8
