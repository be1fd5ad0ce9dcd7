"""A surrogate as a propagator, and the scales it is made with."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import hybridworld as hw
from hybridworld.errors import InvalidInput
from hybridworld.surrogate.normalisation import amplitude, measure
from hybridworld.surrogate.surrogate import Surrogate
from tests.surrogate.flows import OSCILLATOR, RING, Oscillator, Ring, Table, ones, surrogate, table, tiny

HORIZONS = (0.3, 1, 1.5, 100)
ANY = surrogate(OSCILLATOR), surrogate(RING)
positive = st.floats(2**-10, 2**10, width=32)


def random(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def scaled(spec, seed=0):
    """Scales that are all different."""
    rng, plain = np.random.default_rng(seed), ones(spec)
    return replace(
        plain,
        mean=rng.normal(size=plain.mean.shape).astype(np.float32),
        std=rng.uniform(0.5, 20, plain.std.shape).astype(np.float32),
        param_mean=rng.normal(size=plain.param_mean.shape).astype(np.float32),
        param_std=rng.uniform(0.5, 2, plain.param_std.shape).astype(np.float32),
        changes=np.sort(rng.uniform(0.1, 1, plain.changes.shape), axis=0).astype(np.float32),
    )


@pytest.fixture(params=[OSCILLATOR, RING], ids=["mlp", "unet"])
def net(request):
    torch.manual_seed(1)
    return surrogate(request.param, scales=scaled(request.param))


def inputs(net, batch=4):
    return random(batch, *net.spec.shape), random(batch, 1, seed=1)


# The propagator.


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), size=st.floats(1e-3, 1e3))
def test_denormalising_undoes_normalising(seed, size):
    for net in ANY:
        scales, states = scaled(net.spec, seed), size * random(3, *net.spec.shape, seed=seed)
        net.mean, net.std = torch.from_numpy(scales.mean), torch.from_numpy(scales.std)
        torch.testing.assert_close(net.denormalise(net.normalise(states)), states, rtol=1e-5, atol=1e-5)


def test_normalised_states_have_mean_zero_and_deviation_one():
    source = table(Oscillator())
    net = surrogate(source.spec, scales=measure(source.spec, source, (1, 2)).scales)
    everything = source.read(*(each.ravel() for each in np.indices((64, source.frames))))
    z = net.normalise(torch.from_numpy(everything))
    assert z.mean(dim=0).abs().max() < 0.1 and (z.std(dim=0) - 1).abs().max() < 0.1


@pytest.mark.parametrize("horizon", HORIZONS)
def test_any_positive_horizon_has_a_finite_answer(net, horizon):
    states, params = inputs(net)
    with torch.no_grad():
        answer = net(states, horizon, params)
        assert answer.shape == states.shape and answer.isfinite().all()
        torch.testing.assert_close(answer, net(states, torch.full((4,), horizon), params), rtol=0, atol=0)


@torch.no_grad()
@pytest.mark.parametrize("size", [0.1, 100])
def test_the_answer_is_the_state_and_a_change_in_the_unit_of_the_horizon(net, size):
    """For a field that varies more than usual, in the unit of its own amplitude."""
    states, params = inputs(net)
    states, horizons = size * states, torch.tensor([1.0, 2, 4, 8])
    z = net.normalise(states)
    change = net.backbone(z, net.conditioning(horizons, (params - net.param_mean) / net.param_std))
    spread = z.flatten(2).var(dim=2, correction=0).mean(dim=1).sqrt() if net.spec.grid else torch.ones(4)
    assert not net.spec.grid or (spread > 1).all() == (size > 1)
    unit = (net.changes * spread.clamp(min=1)[:, None]).reshape(4, -1, *[1] * len(net.spec.grid))
    torch.testing.assert_close(net(states, horizons, params), net.denormalise(z + unit * change))


@torch.no_grad()
def test_a_gated_answer_can_take_away_a_peak_and_never_more_than_its_horizon_allows():
    wishes = ("surrogate.backbone=leap", "surrogate.residual=gated")
    net = Surrogate(RING, tiny(RING, *wishes).surrogate, ones(RING)).eval()
    z, params = 1000 * random(3, *RING.shape), random(3, 1)
    assert torch.equal(net.advance(z, torch.full((3,), 8.0), params), z)  # it begins with no change
    net.backbone.last.conv.bias[: len(RING.channels)] = -1
    for horizon in (1e-3, 0.5, 8.0):
        share = net.unit_of_change(torch.tensor([horizon])).clamp(max=1)
        expected = z * (1 - share.reshape(1, -1, *[1] * len(RING.grid)))
        torch.testing.assert_close(net.advance(z, torch.full((3,), horizon), params), expected)


@torch.no_grad()
def test_an_answer_does_not_depend_on_the_batch_it_is_in(net):
    states, params = inputs(net, batch=7)
    horizons = torch.tensor([0.5, 1, 1.5, 3, 8, 20, 64])
    together = net(states, horizons, params)
    for row in range(7):
        alone = net(states[row : row + 1], horizons[row : row + 1], params[row : row + 1])[0]
        assert (alone - together[row]).abs().max() < 1e-5 * together[row].abs().max()


@torch.no_grad()
def test_as_the_horizon_goes_to_zero_so_does_the_change(net):
    states, params = inputs(net)
    for horizon in (1e-2, 1e-4, 1e-6):
        change = net.advance(states, torch.full((4,), horizon), params) - states
        assert change.abs().max() < 10 * horizon + 1e-6


@torch.no_grad()
@pytest.mark.parametrize("horizon", HORIZONS)
def test_channels_that_never_change_are_predicted_constant(horizon):
    torch.manual_seed(0)
    still = replace(scaled(OSCILLATOR), changes=np.array([[0.0, h] for h in (1, 2, 4, 8)], np.float32))
    net = surrogate(OSCILLATOR, scales=still)
    z, params = random(5, 2), random(5, 1)
    answer = net.advance(z, torch.full((5,), float(horizon)), params)
    assert torch.equal(answer[:, 0], z[:, 0]) and (answer[:, 1] != z[:, 1]).all()
    torch.testing.assert_close(net(z, horizon, params)[:, 0], z[:, 0], rtol=1e-5, atol=1e-5)


def test_the_spin_of_a_ball_is_found_to_be_constant():
    source = table(hw.system("ball3d"), count=32)
    scales = measure(source.spec, source, (1, 64)).scales
    assert (scales.changes[:, 6:] == 0).all() and (scales.changes[:, :6] > 0).all() and (scales.std[6:] > 1).all()


@torch.no_grad()
@pytest.mark.parametrize("spec", [OSCILLATOR, RING], ids=["mlp", "unet"])
def test_before_training_it_predicts_no_change_and_a_plain_one_noise(spec):
    scaled_one, plain = (
        Surrogate(spec, tiny(spec, f"surrogate.residual={kind}").surrogate, ones(spec)) for kind in ("scaled", "plain")
    )
    z, params = random(3, *spec.shape), random(3, 1)
    for horizons in (torch.full((3,), 0.5), torch.full((3,), 64.0)):
        assert torch.equal(scaled_one.advance(z, horizons, params), z)
        assert (plain.advance(z, horizons, params) - z).abs().max() > 1e-3


# Parameters.


def test_params_steer_the_answer(net):
    states, params = inputs(net)
    assert not torch.allclose(net(states, 1.0, params), net(states, 1.0, params + 1))


@pytest.mark.parametrize("params", [None, torch.zeros(4), torch.zeros(4, 2), torch.zeros(1, 1), torch.zeros(3, 1)])
def test_params_of_another_shape_are_refused_by_name(net, params):
    found = "none" if params is None else rf"\({', '.join(map(str, params.shape))},?\)"
    expected = rf"^{net.spec.name}: params have shape {found}; expected \(4, 1\), one row per state with .*: damping\.$"
    with pytest.raises(InvalidInput, match=expected):
        net(inputs(net)[0], 1.0, params)


@torch.no_grad()
@pytest.mark.parametrize("spec", [OSCILLATOR, RING], ids=["mlp", "unet"])
def test_a_network_that_sees_the_state_alone_does_not_see_params(spec):
    net = surrogate(spec, "surrogate.params=false")
    states, params = inputs(net)
    answer = net(states, 2.0)
    for other in (params, 1e6 * params, torch.full((4, 1), torch.nan), torch.zeros(9)):
        assert torch.equal(net(states, 2.0, other), answer)


def test_a_system_without_parameters_needs_none():
    spec = replace(OSCILLATOR, parameters=())
    assert surrogate(spec)(random(3, 2), 1.0).shape == (3, 2)


# Horizons.


@pytest.mark.parametrize("horizon", [0, -1, float("nan"), float("inf"), float("-inf")])
def test_a_horizon_must_be_positive_and_finite(net, horizon):
    states, params = inputs(net)
    for given_as in (horizon, torch.tensor([1.0, horizon, 2.0, 4.0])):
        with pytest.raises(InvalidInput, match=rf"^The horizon is {horizon:g} frames: it must be a positive number\.$"):
            net(states, given_as, params)


@st.composite
def units(draw):
    horizons = sorted(draw(st.sets(st.integers(1, 200), min_size=1, max_size=6)))
    changes = draw(st.lists(st.tuples(positive, positive), min_size=len(horizons), max_size=len(horizons)))
    return np.array(horizons, np.float32), np.array(changes, np.float32)


def unit_of(horizons, changes):
    net = ANY[0]
    net.horizons, net.changes = torch.from_numpy(horizons), torch.from_numpy(changes)
    return lambda horizons: net.unit_of_change(torch.as_tensor(horizons, dtype=torch.float32)).numpy()


@settings(max_examples=100, deadline=None)
@given(measured=units())
def test_the_unit_of_change_is_what_was_measured_at_its_horizons(measured):
    horizons, changes = measured
    np.testing.assert_allclose(unit_of(*measured)(horizons), changes, rtol=1e-6)


@settings(max_examples=100, deadline=None)
@given(measured=units())
def test_the_unit_of_change_runs_straight_from_horizon_to_horizon(measured):
    horizons, changes = measured
    unit = unit_of(*measured)
    for below in range(len(horizons) - 1):
        low, high = horizons[below : below + 2]
        found = unit(np.geomspace(low, high, 9))
        steps = np.diff(found, axis=0) * np.sign(changes[below + 1] - changes[below])
        assert (steps >= -1e-4 * changes[below : below + 2].max(axis=0)).all()
        assert (found <= changes[below : below + 2].max(axis=0) * (1 + 1e-5)).all()
        np.testing.assert_allclose(found[4], changes[below : below + 2].mean(axis=0), rtol=1e-3)


@settings(max_examples=100, deadline=None)
@given(measured=units(), share=st.floats(1e-6, 1), beyond=st.floats(1, 1e4))
def test_the_unit_of_change_is_linear_below_the_shortest_and_constant_above(measured, share, beyond):
    horizons, changes = measured
    unit = unit_of(*measured)
    np.testing.assert_allclose(unit([share * horizons[0]])[0], share * changes[0], rtol=1e-5)
    np.testing.assert_allclose(unit([beyond * horizons[-1]])[0], changes[-1], rtol=1e-6)


def test_the_unit_of_a_plain_residual_is_one():
    net = surrogate(OSCILLATOR, "surrogate.residual=plain", scales=scaled(OSCILLATOR))
    assert (net.unit_of_change(torch.tensor([0.1, 1.0, 3.0, 1e3])) == 1).all()


# What is measured.


def scales_of(source, horizons):
    return measure(source.spec, source, horizons).scales


def decays(rates, amplitudes, frames=9, spec=OSCILLATOR):
    """Trajectory i: amplitudes[i] * exp(-rates * frame), a rate per channel."""
    time = np.arange(frames)[:, None]
    states = np.asarray(amplitudes)[:, None, :] * np.exp(-np.asarray(rates) * time)
    return Table(replace(spec, frames=frames), states, np.linspace(0.2, 0.4, len(states))[:, None])


def test_measured_scales_are_those_of_the_flow():
    """A decay: state and change are known multiples of the amplitude, so all moments are geometric sums."""
    amplitudes = np.random.default_rng(0).normal([5, -3], [2, 1], size=(50, 2))
    rates = np.array([0.05, 0.3])
    found = scales_of(decays(rates, amplitudes), (4, 1, 2))
    weights = np.exp(-rates * np.arange(9)[:, None])
    mean = amplitudes.mean(axis=0) * weights.mean(axis=0)
    std = np.sqrt((amplitudes**2).mean(axis=0) * (weights**2).mean(axis=0) - mean**2)
    np.testing.assert_allclose(found.mean, mean, rtol=0.02)
    np.testing.assert_allclose(found.std, std, rtol=0.02)
    np.testing.assert_array_equal(found.horizons, [1, 2, 4])
    for horizon, changes in zip((1, 2, 4), found.changes, strict=True):
        starts = (weights[: 9 - horizon] ** 2).mean(axis=0)
        rms = np.sqrt((amplitudes**2).mean(axis=0) * starts) * (1 - np.exp(-rates * horizon))
        np.testing.assert_allclose(changes, rms / std, rtol=0.03)
    np.testing.assert_allclose(found.param_mean, [0.3], rtol=0.01)
    np.testing.assert_allclose(found.param_std, np.linspace(0.2, 0.4, 50).std(), rtol=0.01)


def test_measured_scales_on_a_grid_are_per_channel_and_float32():
    found = scales_of(table(Ring(), count=16), (1, 8))
    assert found.mean.shape == found.std.shape == (1,) and found.changes.shape == (2, 1)
    assert all(getattr(found, name).dtype == np.float32 for name in found.__dataclass_fields__)
    rough = table(Ring(), count=16).read(np.repeat(np.arange(16), 17), np.tile(np.arange(17), 16))
    assert found.std[0] == pytest.approx(rough.std(), rel=0.03)


def test_what_never_varies_has_the_deviation_one_and_never_changes():
    source = decays([0.0, 0.1], [[1e4, 1.0]] * 5)
    source._params[:] = 0.3
    found = measure(source.spec, source, (1, 2)).scales
    assert found.std[0] == 1 and found.param_std[0] == 1 and (found.changes[:, 0] == 0).all()
    assert found.std[1] < 1 and np.isfinite(found.changes).all()


def test_a_small_deviation_beside_a_large_mean_is_found():
    amplitudes = np.random.default_rng(0).normal([1e5, 0], [10, 1], size=(64, 2))
    found = scales_of(decays([0.0, 0.0], amplitudes), (1,))
    assert found.std[0] == pytest.approx(amplitudes[:, 0].std(), rel=0.05)


@pytest.mark.parametrize(("blast", "unit"), [(1, 1), (16, 1), (16_000, 400)])
def test_a_rare_blast_does_not_set_the_unit_for_everything_else(blast, unit):
    """All but 4 of 64 fields change by 1: the unit is the median, or a tenth of the root mean square if that is more."""
    states = np.zeros((64, 2, 1, 1000))
    states[:, 1] = np.resize([1, -1], 1000)
    states[:4, 1] *= blast
    found = scales_of(Table(replace(RING, grid=(1000,), frames=2), states, np.full((64, 1), 0.3)), (1,))
    assert found.changes[0, 0] * found.std[0] == pytest.approx(unit, rel=1e-3)


@pytest.mark.parametrize("shape", [(5, 2), (0, 2), (0, 2, 8), (5, 2, 8), (5, 2, 4, 4)])
def test_the_amplitude_of_a_field_is_one_at_least_and_its_own_where_it_is_large(shape):
    z = random(*shape)
    assert amplitude(0.1 * z).tolist() == [1.0] * shape[0]
    if len(shape) > 2:
        torch.testing.assert_close(amplitude(1000 * z), 2 * amplitude(500 * z))
        torch.testing.assert_close(amplitude(1000 * z + 7e3), amplitude(1000 * z), rtol=1e-3, atol=0)
    else:
        assert amplitude(1000 * z).tolist() == [1.0] * shape[0]


def test_measuring_twice_gives_the_same():
    one, other = (scales_of(table(Oscillator()), (1, 4)) for _ in range(2))
    for name in one.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_measuring_goes_on_until_the_deviations_are_stable_and_says_how_stable():
    """With a heavy tail over trajectories it takes more of them; the error that is told is that over repeats."""
    rng = np.random.default_rng(0)

    def told(spread, count=1024):
        found = []
        for _ in range(30):
            amplitudes = rng.lognormal(0, spread, size=(count, 2)) * rng.choice([-1, 1], size=(count, 2))
            found.append(measure(OSCILLATOR, decays([0.0, 0.0], amplitudes), (1,)))
        return found

    calm, wild = told(0.1), told(0.8)
    assert max(each.trajectories for each in calm) == 256 < min(each.trajectories for each in wild) <= 1024
    for group in (calm, wild):
        spread = np.std([np.log(each.scales.std) for each in group], axis=0).max()
        assert 0.5 < spread / np.mean([each.error for each in group]) < 2
