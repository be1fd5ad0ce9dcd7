"""Signals of novelty: what lies far from the training data scores high."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from hybridworld.data.pairs import Pairs
from hybridworld.errors import InvalidInput
from hybridworld.surrogate.surrogate import Surrogate
from hybridworld.trust import novelty
from hybridworld.trust.novelty import DensityGuard, InputAmplitude, bands
from tests.surrogate.flows import OSCILLATOR, RING, Oscillator, Ring, ones, surrogate, table, tiny


@pytest.fixture(autouse=True)
def few_pairs(monkeypatch):
    monkeypatch.setattr(novelty, "PAIRS", {True: 300, False: 3000})


def guard(environment, net, horizons=(1, 4)):
    return DensityGuard(net, Pairs(table(environment), 32, horizons=horizons))


def asked(signal, states, horizon):
    states = torch.as_tensor(np.asarray(states), dtype=torch.float32)
    with torch.no_grad():
        return signal(states, torch.full((len(states),), float(horizon)), torch.full((len(states), 1), 0.3))


def test_the_amplitude_is_the_norm_in_deviations_and_the_prediction_that_of_the_surrogate():
    scales = ones(OSCILLATOR)
    scales = replace(scales, mean=np.array([1.0, 0.0], np.float32), std=np.array([2.0, 1.0], np.float32))
    net = surrogate(OSCILLATOR, scales=scales)
    found = asked(InputAmplitude(net), [[1.0, 0.0], [7.0, 4.0]], 2)
    torch.testing.assert_close(found.score, torch.tensor([0.0, 5.0]))
    with torch.no_grad():
        torch.testing.assert_close(found.prediction, net(torch.tensor([[1.0, 0.0], [7.0, 4.0]]), 2.0, torch.full((2, 1), 0.3)))


class Features(nn.Module):
    """A backbone whose features are its input."""

    def __init__(self, channels, boundaries, condition, width=1):
        super().__init__()
        self.last = nn.Conv1d(channels, channels, 1) if boundaries else nn.Linear(channels, channels)

    def forward(self, x, condition):
        return self.last(x)


def test_the_distance_is_that_of_mahalanobis():
    net = Surrogate(OSCILLATOR, tiny(OSCILLATOR).surrogate, ones(OSCILLATOR), Features).eval()
    pairs = Pairs(table(Oscillator(), count=400), 100, horizons=(4,))
    seen = np.concatenate([pairs.batch(number).states for number in range(30)]).astype(float)
    states = np.array([[0.0, 0.0], [3.0, -1.0], [0.2, 5.0]])
    apart = states - seen.mean(axis=0)
    expected = np.sqrt(np.einsum("ni,ij,nj->n", apart, np.linalg.inv(np.cov(seen.T)), apart))
    found = asked(DensityGuard(net, pairs), states, 4).score.numpy()
    np.testing.assert_allclose(found, expected, rtol=2e-3)


def test_states_unlike_those_of_the_training_stand_out():
    net = surrogate(OSCILLATOR)
    signal = guard(Oscillator(), net)
    known = table(Oscillator(), "test", 40).read(np.arange(40), np.zeros(40, int))
    near, far = asked(signal, known, 4).score, asked(signal, 6 * known, 4).score
    assert (far > near).float().mean() > 0.9 and far.median() > 1.5 * near.median()
    assert not net.backbone.last._forward_pre_hooks  # nothing is left behind
    assert signal.cost.passes == 1 and not signal.cost.labels


def test_the_map_of_a_field_shows_the_cell_that_is_unlike_the_others():
    net = Surrogate(RING, tiny(RING).surrogate, ones(RING), Features).eval()
    known = table(Ring(), "test", 5).read(np.arange(5), np.zeros(5, int))
    strange = known.copy()
    strange[:, 0, 3] = 30
    before, after = (asked(guard(Ring(), net), states, 4).error_map for states in (known, strange))
    assert before.shape == (5, 16) and (after[:, 3] > 5 * before.max()).all()
    others = np.arange(16) != 3
    torch.testing.assert_close(after[:, others], before[:, others])


def test_a_trained_architecture_for_fields_can_be_watched():
    found = asked(guard(Ring(), surrogate(RING)), table(Ring()).read(np.arange(5), np.zeros(5, int)), 4)
    assert found.error_map.shape == (5, 16) and found.error_map.isfinite().all() and found.error_map.std() > 0


def test_a_horizon_is_judged_by_the_training_pairs_nearest_to_it():
    assert bands(torch.tensor([1.0, 3.0, 5.0, 6.0, 64.0])).tolist() == [0, 2, 2, 3, 6]
    signal = guard(Oscillator(), surrogate(OSCILLATOR), horizons=(1, 8))
    states = torch.tensor([[1.0, 0.5], [1.0, 0.5]])
    with torch.no_grad():
        mixed = signal(states, torch.tensor([1.0, 8.0]), torch.full((2, 1), 0.3)).error_map
    for row, horizon in enumerate((1, 8)):
        torch.testing.assert_close(mixed[row : row + 1], asked(signal, states[row : row + 1], horizon).error_map)
    asked(signal, states, 100)  # none is so long: the nearest serves


def test_a_backbone_that_hides_its_last_layer_cannot_be_watched():
    class Closed(Features):
        def __init__(self, *arguments, **more):
            super().__init__(*arguments, **more)
            self.only = self.last
            del self.last

        def forward(self, x, condition):
            return self.only(x)

    net = Surrogate(OSCILLATOR, tiny(OSCILLATOR).surrogate, ones(OSCILLATOR), Closed)
    with pytest.raises(InvalidInput, match="does not name its last layer"):
        guard(Oscillator(), net)
