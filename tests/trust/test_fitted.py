"""Signals that are fitted to true errors, on errors whose pattern is known."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from hybridworld.data.pairs import Pairs, evaluation_pairs
from hybridworld.surrogate.surrogate import Surrogate
from hybridworld.trust import fitted
from hybridworld.trust.fitted import ErrorHead, LocalConformal
from tests.surrogate.flows import OSCILLATOR, RING, Table, ones, tiny

HORIZONS = (1, 4)
SIZE = {1: 1.0, 4: 10.0}


def still(spec):
    """A surrogate before training: it predicts that nothing changes."""
    return Surrogate(spec, tiny(spec).surrogate, ones(spec)).eval()


def scale_of(states):
    """How wrong `still` is per cell, one frame ahead: more to the right."""
    return 0.05 + np.exp(states[:, 0]) / 10


def trajectories(spec, seed, count=400, noise=0.0):
    """Futures differ from what they were by scale_of(start) * SIZE[h], up to noise, in the first channel."""
    rng = np.random.default_rng(seed)
    states = np.repeat(rng.normal(size=(count, 1, *spec.shape)), 5, axis=1)
    for horizon, size in SIZE.items():
        error = size * scale_of(states[:, 0])
        states[:, horizon, 0] += error * np.exp(noise * rng.normal(size=error.shape)) * rng.choice([-1, 1], error.shape)
    return Table(replace(spec, frames=5), states, rng.uniform(0.1, 0.5, (count, 1)))


class FromStart(Table):
    """Pairs begin at frame 0, where the error is known: a later frame of these trajectories has no meaning."""

    def __init__(self, table):
        self.spec, self.frames, self._states, self._params = table.spec, 2, table._states, table._params


def tensors(batch):
    return tuple(torch.from_numpy(np.asarray(part, np.float32)) for part in (batch.states, batch.horizons, batch.params))


def pairs_from_start(table, horizon):
    """All pairs (frame 0, frame `horizon`)."""
    batch = evaluation_pairs(FromStart(table), 1, len(table.window(0)), seed=0)
    rows = np.arange(len(batch.states))
    return replace(batch, horizons=np.full(len(rows), horizon), futures=table.read(rows, np.full(len(rows), horizon)))


# A second network.


@pytest.mark.parametrize(("spec", "steps"), [(OSCILLATOR, 150), (RING, 60)], ids=["vector", "field"])
def test_an_error_head_learns_where_the_error_is(spec, steps):
    head = ErrorHead(still(spec)).fit(Pairs(FromStart(trajectories(spec, seed=0)), batch=64, horizons=[1]), steps, lr=3e-3)
    batch = pairs_from_start(trajectories(spec, seed=1), 1)
    with torch.no_grad():
        found = head(*tensors(batch))
    assert torch.equal(found.prediction, torch.from_numpy(batch.states))
    true = scale_of(batch.states)
    assert found.error_map.shape == true.shape and (found.error_map > 0).all()
    assert spearmanr(found.error_map.numpy().ravel(), true.ravel()).statistic > 0.5
    ratio = np.log(found.error_map.numpy() / true)
    assert np.median(np.abs(ratio)) < 0.5  # and about how large


def test_an_error_head_leaves_its_surrogate_as_it_is_and_needs_labels():
    net = still(OSCILLATOR)
    before = {name: values.clone() for name, values in net.state_dict().items()}
    head = ErrorHead(net).fit(Pairs(FromStart(trajectories(OSCILLATOR, 0)), batch=8, horizons=[1]), most_steps=2)
    assert all(torch.equal(values, before[name]) for name, values in net.state_dict().items())
    assert not any(parameter is other for parameter in head.parameters() for other in net.parameters())
    assert (head.cost.passes, head.cost.labels) == (2, True)
    assert not head.training


def test_an_error_head_is_repeatable_by_its_seed_and_leaves_the_random_numbers_alone():
    net = still(OSCILLATOR)
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    weights = [torch.nn.utils.parameters_to_vector(ErrorHead(net, seed).parameters()) for seed in (0, 0, 1)]
    assert torch.equal(torch.rand(3), expected)
    assert torch.equal(weights[0], weights[1]) and not torch.equal(weights[0], weights[2])


def head_on(pairs, **limits):
    return ErrorHead(still(OSCILLATOR)).fit(pairs, lr=3e-3, **limits)


def test_an_error_head_stops_when_held_out_pairs_improve_no_more(monkeypatch):
    """Few pairs are soon learned by heart: training on them goes on for ever, but not on the first batches it never sees."""
    monkeypatch.setattr(fitted, "CHECK", 10)
    pairs = Pairs(FromStart(trajectories(OSCILLATOR, 0, noise=2.0)), batch=8, horizons=[1])
    known = [pairs.batch(number) for number in (0, fitted.HELD_OUT)]
    seen = []

    class Few:
        def batch(self, number):
            seen.append(number)
            return pairs.batch(number) if number < fitted.HELD_OUT else known[1]

    head = head_on(Few(), most_steps=5_000)
    assert 10 * fitted.PATIENCE <= head.steps < 5_000
    assert head.cost.training == f"a network, {head.steps:,} steps"
    assert seen == list(range(fitted.HELD_OUT + head.steps))  # each is held out or trained on, never both

    monkeypatch.setattr(fitted, "PATIENCE", 1_000)
    held_out = [head._labelled(pairs.batch(number)) for number in range(fitted.HELD_OUT)]
    stubborn = head_on(Few(), most_steps=head.steps)
    assert head._loss_on(held_out) == pytest.approx(stubborn._loss_on(held_out))  # the best weights are kept, not the last
    assert head._loss_on(held_out) < head_on(Few(), most_steps=0)._loss_on(held_out)


def test_an_error_head_keeps_to_its_limits():
    pairs = Pairs(FromStart(trajectories(OSCILLATOR, 0)), batch=8, horizons=[1])
    assert head_on(pairs, most_steps=7).steps == 7
    assert head_on(pairs, most_steps=7, seconds=0).steps == 0


# Neighbours.


def conformal(spec, noise=0.0, count=2000):
    table = trajectories(spec, seed=0, count=count, noise=noise)
    return LocalConformal(still(spec), {horizon: pairs_from_start(table, horizon) for horizon in HORIZONS})


@pytest.mark.parametrize("horizon", HORIZONS)
def test_neighbours_recover_a_known_local_scale(horizon):
    batch = pairs_from_start(trajectories(OSCILLATOR, seed=1), horizon)
    batch = replace(batch, states=np.clip(batch.states, -1.5, 1.5))  # where there are neighbours
    found = conformal(OSCILLATOR, noise=0.3)(*tensors(batch)).score.detach().numpy()
    expected = SIZE[horizon] * scale_of(batch.states) * np.exp(0.3**2 / 2)  # the mean of a lognormal
    assert np.median(np.abs(found / expected - 1)) < 0.1
    assert np.abs(found / expected - 1).max() < 0.5
    assert spearmanr(found, expected).statistic > 0.9


def test_neighbours_of_cells_give_a_map():
    batch = pairs_from_start(trajectories(RING, seed=1, count=20), 1)
    found = conformal(RING, count=400)(*tensors(batch))
    assert found.error_map.shape == (20, 16)
    assert spearmanr(found.error_map.detach().numpy().ravel(), scale_of(batch.states).ravel()).statistic > 0.5


def test_each_state_is_judged_at_its_own_horizon():
    """Horizons that were not fitted are judged as the nearest in log2: 3 as 4, 1.5 as 1."""
    signal = conformal(OSCILLATOR)
    states, _, params = tensors(pairs_from_start(trajectories(OSCILLATOR, seed=1, count=4), 1))
    mixed = signal(states, torch.tensor([1.0, 4.0, 1.5, 3.0]), params).error_map.detach()
    for row, horizon in enumerate([1.0, 4.0, 1.0, 4.0]):
        one = slice(row, row + 1)
        alone = signal(states[one], torch.tensor([horizon]), params[one]).error_map.detach()
        torch.testing.assert_close(mixed[one], alone)
    assert (signal.cost.passes, signal.cost.labels) == (1, True)
