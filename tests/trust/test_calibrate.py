"""Scores and true errors on validation trajectories, as they travel with a model."""

import numpy as np
import pytest
import torch

from hybridworld.data.evidence import Recorded, evidence_pairs
from hybridworld.surrogate.validation import to_tensors
from hybridworld.trust import calibrate as module
from hybridworld.trust.bounds import ErrorBound, Residuals
from hybridworld.trust.calibrate import calibrate
from hybridworld.trust.calibration import Calibration
from hybridworld.trust.judge import judge
from hybridworld.trust.signal import distance
from hybridworld.trust.step_doubling import StepDoubling
from tests.surrogate.flows import Oscillator, Ring, surrogate, table


def asked(environment, count=40):
    """A surrogate that does something, its signal, and trajectories with known futures."""
    torch.manual_seed(0)
    source = table(environment, "val", count)
    net = surrogate(source.spec)
    return net, StepDoubling(net, net.std), Recorded(source)


@pytest.fixture(params=[Oscillator(), Ring()], ids=["vector", "field"])
def case(request):
    return asked(request.param)


def test_scores_are_those_of_the_signal_and_errors_those_of_the_prediction(case):
    net, signal, evidence = case
    pairs = evidence_pairs(evidence, (1, 4), 40, seed=0)
    found = judge(net, signal, pairs[4])
    *inputs, futures = to_tensors(pairs[4], net.mean.device)
    with torch.no_grad():
        estimate = signal(*inputs)
        error = distance(net(*inputs), futures, net.std).reshape(40, -1).mean(dim=1)
    np.testing.assert_allclose(found.scores, estimate.score, rtol=1e-4)
    np.testing.assert_allclose(found.errors, error, rtol=1e-4)
    assert (found.horizons == 4).all() and len(found.at(4).scores) == 40 and len(found.at(1).scores) == 0


def test_who_looks_sees_every_pair_once(case):
    net, signal, evidence = case
    pairs = evidence_pairs(evidence, (1, 4), 40, seed=0)
    seen = []
    judge(net, signal, pairs.values(), look=lambda states, estimate, futures, error: seen.append((futures, error)))
    np.testing.assert_array_equal(torch.cat([each for each, _ in seen]), np.concatenate([b.futures for b in pairs.values()]))
    assert sum(len(error) for _, error in seen) == 80


def test_cells_are_a_random_share_of_all():
    net, signal, evidence = asked(Ring())
    pairs = evidence_pairs(evidence, (1, 4), 40, seed=0)
    found = judge(net, signal, pairs[1], cells=0.25).cells
    assert 100 < len(found) < 220 and (found[:, 0] == 1).all()  # of 640
    every = judge(net, signal, pairs[1], cells=1.0)
    assert len(every.cells) == 640
    np.testing.assert_allclose(every.cells[:, 2].reshape(40, 16).mean(axis=1), every.errors, rtol=1e-4)
    assert set(found[:, 2]) <= set(every.cells[:, 2])


def test_the_arrays_of_a_model_hold_thresholds_and_bounds_and_are_the_same_each_time(case, monkeypatch):
    monkeypatch.setattr(module, "CELLS", 160)
    net, signal, evidence = case
    told = []
    found, again = (calibrate(net, signal, evidence, (1, 4), 40, tell=told.append) for _ in range(2))
    assert told[-1] == 40 and told == sorted(told[: len(told) // 2]) * 2
    assert {name: values.tobytes() for name, values in found.items()} == {
        name: values.tobytes() for name, values in again.items()
    }
    known = Calibration.of(Residuals.from_arrays(found, "trajectory"))
    assert set(known.scores) == {1.0, 4.0} and known.size == 40
    kinds = ["trajectory", "cell"] if net.spec.grid else ["trajectory"]
    for kind in ("trajectory", "cell"):
        residuals = Residuals.from_arrays(found, kind)
        assert (residuals is not None) == (kind in kinds)
        if residuals is not None:
            bound = ErrorBound(residuals)(residuals.scores[4], 4, 0.8)
            assert np.mean(residuals.errors[4] <= bound) >= 0.8


def test_evidence_that_runs_out_gives_as_many_scores_as_it_has_trajectories(case):
    net, signal, _ = case
    few = calibrate(net, signal, Recorded(table(Ring() if net.spec.grid else Oscillator(), "val", 5)), (1,), 40)
    assert len(Residuals.from_arrays(few, "trajectory").scores[1]) == 5
