"""The guide: what it computes, how a surrogate corrects it, and that it is never fed with an impossible state."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

import hybridworld as hw
from hybridworld.data.pairs import Pairs
from hybridworld.errors import InvalidInput
from hybridworld.physics.grids import coarsen
from hybridworld.surrogate.bundle import Bundle, load_bundle, save_bundle
from hybridworld.surrogate.config import configure
from hybridworld.surrogate.guide import Guide
from hybridworld.surrogate.horizons import halves
from hybridworld.surrogate.objective import Objective
from hybridworld.surrogate.surrogate import Surrogate
from hybridworld.surrogate.train import Task, train
from hybridworld.surrogate.variables import gas_state, gas_variables, signed_log
from tests.surrogate.flows import RING, Drift, ones, table

EULER = hw.system("euler2d").resized((16, 16))
OREGONATOR = hw.system("oregonator").resized((16, 16))
GUIDED = ("surrogate.backbone=leap", "surrogate.guide=true", "surrogate.variables=physical", "surrogate.patch=4")


def random(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def guided(environment, *wishes, attach=True):
    """A surrogate with random last weights."""
    torch.manual_seed(0)
    config = configure(environment.spec, "smoke", [*GUIDED, *wishes]).surrogate
    net = Surrogate(environment.spec, config, ones(environment.spec)).eval()
    torch.nn.init.normal_(net.backbone.last.conv.weight, std=0.1)
    if attach:
        net.attach_guide(environment)
    return net


def starts(environment, count=4):
    samples = [environment.initial("test", seed) for seed in range(count)]
    return [np.stack([getattr(each, name) for each in samples]).astype(np.float32) for name in ("state", "params")]


# The coarse run.


@pytest.mark.parametrize("environment", [EULER, OREGONATOR, Drift()])
def test_the_guide_is_the_coarse_solver_row_by_row(environment):
    states, params = starts(environment)
    horizons = np.array([3.0, 1, 3, 5])
    found = Guide(environment, 4)(states, horizons, params)
    coarse = environment.coarsened(4)
    for row, horizon in enumerate(horizons):
        expected = coarse.solve(coarsen(environment.spec, states[row], 4), int(horizon), params[row])
        np.testing.assert_allclose(found[row], expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("horizon", "frames"), [(0.5, 1), (1.5, 2), (2.75, 3), (4.0, 4)])
def test_a_system_with_a_step_to_set_is_run_for_real_horizons(horizon, frames):
    states, params = starts(EULER)
    found = Guide(EULER, 4)(states, np.full(4, horizon), params)
    slower = replace(EULER.coarsened(4).in_precision("float32"), frame_step=EULER.frame_step * horizon / frames)
    np.testing.assert_array_equal(found, slower.solve(coarsen(EULER.spec, states, 4), frames))


def test_more_steps_per_frame_are_shorter_steps():
    states, params = starts(OREGONATOR)
    found = Guide(OREGONATOR, 4, steps=2)(states, np.full(4, 3.0), params)
    finer = replace(OREGONATOR.coarsened(4).in_precision("float32"), frame_step=OREGONATOR.frame_step / 2)
    np.testing.assert_array_equal(found, finer.solve(coarsen(OREGONATOR.spec, states, 4), 6, params))


def test_a_guide_runs_the_scheme_that_is_named_and_never_the_finer_grid():
    states, params = starts(EULER)
    horizons, coarse = np.full(4, 3.0), coarsen(EULER.spec, states, 4)
    name, other = next(iter(EULER.variants().items()))
    found = Guide(EULER.resolved(2), 4, scheme=name)(states, horizons, params)
    np.testing.assert_array_equal(found, other.coarsened(4).in_precision("float32").solve(coarse, 3))
    assert not np.allclose(found, Guide(EULER.resolved(2), 4)(states, horizons, params))
    with pytest.raises(InvalidInput, match=f"euler2d has no scheme 'third order' for a guide: there is {name}"):
        Guide(EULER, 4, scheme="third order")


def test_a_system_of_whole_frames_is_interpolated_between_them():
    states, params = starts(Drift())
    half, before, after = (Guide(Drift(), 4)(states, np.full(4, h), params) for h in (2.25, 2.0, 3.0))
    np.testing.assert_allclose(half, 0.75 * before + 0.25 * after, rtol=1e-5, atol=1e-6)


def test_a_grid_that_cannot_be_coarsened_has_no_guide():
    with pytest.raises(InvalidInput, match=r"drift \(30\) cannot be coarsened by 4"):
        Guide(Drift((30,)), 4)


# The surrogate.


@torch.no_grad()
@pytest.mark.parametrize("environment", [EULER, OREGONATOR, Drift()])
def test_a_known_answer_of_the_guide_gives_the_same_prediction(environment):
    net, (states, params) = guided(environment), map(torch.from_numpy, starts(environment))
    horizons = torch.tensor([1.0, 2, 0.5, 3])
    then = torch.from_numpy(net.guide(states.numpy(), horizons.numpy(), params.numpy()))
    answer = net(states, horizons, params)
    assert torch.equal(net(states, horizons, params, then), answer)
    z = net.advance(net.normalise(states), horizons, params, then)
    torch.testing.assert_close(net.denormalise(z), answer, rtol=1e-3, atol=1e-4)
    assert not torch.allclose(net(states, horizons, params, then + 0.1), answer)


@torch.no_grad()
def test_where_nothing_changes_an_untrained_one_returns_the_state():
    """A gas at rest stays as it is; at first the correction is zero, and all details of the state remain."""
    config = configure(EULER.spec, "smoke", GUIDED).surrogate
    net = Surrogate(EULER.spec, config, ones(EULER.spec))
    net.attach_guide(EULER)
    rest = torch.zeros(1, 4, 16, 16)
    rest[:, 0], rest[:, 3] = 1 + 0.1 * random(16, 16).abs(), 2.5  # pressure is even, density is not
    torch.testing.assert_close(net(rest, 4.0), rest, rtol=0.02, atol=0.02)


def test_a_state_that_does_not_change_has_finite_gradients():
    net = guided(EULER)
    rest = torch.zeros(1, 4, 16, 16)
    rest[:, 0], rest[:, 3] = 1.0, 2.5
    z = net.normalise(rest).requires_grad_()
    net.advance(z, torch.ones(1)).square().sum().backward()
    assert z.grad.isfinite().all() and z.grad.abs().max() > 0


def test_an_unattached_one_says_what_it_needs():
    net = guided(EULER, attach=False)
    with pytest.raises(InvalidInput, match=r"euler2d is guided by the solver of its system: give it, as load\(\.\.\., solver="):
        net(torch.from_numpy(starts(EULER)[0]), 1.0)


def test_only_leap_has_a_guide():
    with pytest.raises(InvalidInput, match=r"^surrogate\.guide is for the backbone leap, not for unet"):
        configure(EULER.spec, "smoke", ["surrogate.guide=true"])


@pytest.mark.parametrize(
    ("wishes", "words"),
    [
        (["training.weighting=guide"], r"^training\.weighting=guide needs surrogate\.guide=true"),
        (
            [*GUIDED, "training.weighting=guide", "training.dagger_kind=solver"],
            r"^training\.weighting=guide needs training\.dagger_kind=chain, or training\.dagger=0",
        ),
        (
            [*GUIDED, "training.weighting=guide", "training.objective=self-consistency"],
            r"^training\.weighting=guide needs training\.objective=supervised",
        ),
    ],
)
def test_a_loss_relative_to_the_guide_needs_one_and_the_trajectory_s_own_future(wishes, words):
    with pytest.raises(InvalidInput, match=words):
        configure(EULER.spec, "smoke", wishes)


@torch.no_grad()
def test_a_file_of_a_known_system_has_its_guide_and_one_of_another_asks_for_it(tmp_path):
    for environment in (EULER, Drift()):
        net = guided(environment)
        config = configure(environment.spec, "smoke", GUIDED)
        save_bundle(tmp_path / "model.safetensors", Bundle(net, config))
        loaded = load_bundle(tmp_path / "model.safetensors").surrogate
        states, params = map(torch.from_numpy, starts(environment))
        if environment is not EULER:
            assert loaded.guide is None
            with pytest.raises(InvalidInput, match="drift is guided by the solver of its system: give that as `solver`"):
                hw.load(tmp_path / "model.safetensors")
            loaded = hw.load(tmp_path / "model.safetensors", solver=environment).surrogate.cpu()
        assert torch.equal(loaded(states, 2.0, params), net(states, 2.0, params))


# States that can exist.


@settings(max_examples=200)
@given(
    scale=st.sampled_from([1.0, 10, 1e3, 1e6, 1e30]), seed=st.integers(0, 2**32 - 1),
    spread=st.lists(st.floats(0, 1), min_size=4, max_size=4),
)  # fmt: skip
def test_any_finite_answer_is_a_gas_that_can_exist(scale, seed, spread):
    z = scale * random(2, 4, 16, 16, seed=seed) * torch.tensor(spread).reshape(4, 1, 1)
    states = gas_state(z, 1.4)
    assert states.isfinite().all()
    EULER.check_physical(states.numpy())
    coarse = coarsen(EULER.spec, states.numpy(), 4)  # what the guide computes with, in float32
    EULER.check_physical(coarse)
    kinetic = 0.5 * (coarse[:, 1:3] ** 2 / coarse[:, :1]).sum(axis=1)
    assert (coarse[:, 3] - kinetic > 0).all()


@given(z=st.floats(-1e6, 1e6, width=32))
def test_the_signed_logarithm_is_odd_rises_and_keeps_what_is_small(z):
    values = torch.tensor([z, -z, z + abs(z) / 8 + 1e-3, z / max(abs(z), 1) / 1e3])
    one, negative, above, small = signed_log(values)
    tiny = torch.finfo(values.dtype).tiny
    assert one == -negative and above > one and abs(small - values[3]) <= 1e-3 * abs(values[3]) + tiny


def test_a_network_that_sees_signed_logarithms_answers_in_channels():
    """What it sees of a value a million times the usual is small, and what it begins with is no change of it."""
    spec, seen = RING, []
    config = configure(spec, "smoke", ["surrogate.backbone=leap", "surrogate.variables=signed log", "surrogate.patch=2"])
    net, states = Surrogate(spec, config.surrogate, ones(spec)).eval(), 1e6 * random(2, *spec.shape, seed=1)
    net.backbone.stem.register_forward_pre_hook(lambda _, given: seen.append(float(given[0].abs().max())))
    torch.testing.assert_close(net(states, 4.0, torch.full((2, 1), 0.2)), states)
    assert seen[0] < 30


def test_a_guided_network_does_not_see_signed_logarithms():
    with pytest.raises(InvalidInput, match="signed log is for networks without a guide"):
        configure(EULER.spec, "guided", ["surrogate.variables=signed log"])


@settings(max_examples=50)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_variables_of_a_gas_are_invertible(seed):
    z = random(2, 4, 8, 8, seed=seed) * torch.tensor([2.0, 1, 1, 0.5]).reshape(4, 1, 1)
    torch.testing.assert_close(gas_variables(gas_state(z, 1.4), 1.4), z, rtol=1e-2, atol=1e-2)


@torch.no_grad()
@settings(max_examples=20)
@given(size=st.sampled_from([0.1, 10.0, 1e6]), seed=st.integers(0, 2**32 - 1))
@example(size=1e6, seed=2658)
def test_whatever_the_weights_predictions_can_be_chained(size, seed):
    for environment in (EULER, OREGONATOR):
        net = guided(environment)
        torch.nn.init.normal_(net.backbone.last.conv.weight, std=size, generator=torch.Generator().manual_seed(seed))
        states, params = map(torch.from_numpy, starts(environment, 2))
        answer = net(states, 1.0, params).numpy()
        environment.check_physical(answer)
        for channel, (low, high) in enumerate(environment.spec.allowed):
            assert (answer[:, channel] >= low).all() and (answer[:, channel] <= high).all()
        Guide(environment, 4)(answer, np.full(2, 1e-6), params.numpy())


@torch.no_grad()
@pytest.mark.parametrize("environment", [EULER, OREGONATOR])
def test_a_pure_leap_answers_with_states_that_can_exist_too(environment):
    wishes = ("surrogate.backbone=leap", "surrogate.variables=physical")
    net = Surrogate(environment.spec, configure(environment.spec, "smoke", wishes).surrogate, ones(environment.spec)).eval()
    states, params = map(torch.from_numpy, starts(environment))
    torch.testing.assert_close(net(states, 2.0, params), states, rtol=1e-3, atol=1e-4)  # before training: no change
    torch.nn.init.normal_(net.backbone.last.conv.weight, std=100)
    answer = net(states, 2.0, params).numpy()
    environment.check_physical(answer)
    for channel, (low, high) in enumerate(environment.spec.allowed):
        assert (answer[:, channel] >= low).all() and (answer[:, channel] <= high).all()
    assert np.abs(answer - states.numpy()).max() > 0.5


# Training.


def test_batches_carry_the_answers_of_the_guide():
    environment = Drift()
    guide = Guide(environment, 4)
    batch = Pairs(table(environment, count=4), 6, symmetries=(), shifts=True, guide=guide).batch(0)
    np.testing.assert_array_equal(batch.guide, guide(batch.states, batch.horizons, batch.params))


@torch.no_grad()
@pytest.mark.parametrize("dagger", [0, 0.5])
def test_the_loss_is_relative_to_the_error_of_the_guide(dagger):
    """Of one pass, and of two for the first half of the batch; the second asks the guide about the answer of the first."""
    environment = Drift()
    net = guided(environment)
    torch.nn.init.zeros_(net.backbone.last.conv.weight)
    config = configure(environment.spec, "smoke", [*GUIDED, "training.weighting=guide", f"training.dagger={dagger}"]).training
    batch = Pairs(table(environment, count=4), 6, guide=net.guide).batch(0)
    inputs = [torch.from_numpy(each) for each in (batch.states, batch.horizons.astype(np.float32), batch.params, batch.futures)]
    loss = Objective(net, config)(*inputs, torch.from_numpy(batch.guide))
    first, rest = halves(inputs[1])
    twice = net(net(inputs[0], first, inputs[2]), rest, inputs[2])
    errors, chained = ((each - inputs[3]).square().mean(dim=(1, 2)) for each in (net(*inputs[:3]), twice))
    coarse = (net.backbone.base(torch.from_numpy(batch.guide)) - inputs[3]).square().mean(dim=(1, 2)) + 0.01
    expected = (1 - dagger) * (errors / coarse).mean() + dagger * (chained / coarse)[:3].mean()
    torch.testing.assert_close(loss, expected, rtol=1e-4, atol=1e-5)


def test_training_makes_it_better_than_its_guide(tmp_path):
    environment = Drift()
    wishes = (
        *GUIDED, "surrogate.width=16", "training.weighting=guide", "training.dagger=0", "training.lr=5e-3", "training.batch=16",
        "training.ema=0.9", "training.samples=480", "training.epochs=3", "training.horizons=1,2,4,8", "training.augment=true",
    )  # fmt: skip
    config = configure(environment.spec, "smoke", wishes)
    state = train(Task(config, table(environment), table(environment, "val", 16), system=environment), tmp_path)
    net, source = state.kept.eval(), table(environment, "test", 32)
    states, futures = (torch.from_numpy(source.read(np.arange(32), np.full(32, frame))) for frame in (0, 8))
    params = torch.from_numpy(source.params(np.arange(32))).float()
    with torch.no_grad():
        coarse = net.backbone.base(net.normalise(net.ask_guide(states, torch.full((32,), 8.0), params)))
        errors = [(net.denormalise(each) - futures).square().mean() for each in (coarse, net.advance(
            net.normalise(states), torch.full((32,), 8.0), params))]  # fmt: skip
    assert errors[1] < 0.5 * errors[0]


def test_a_guided_training_needs_the_system(tmp_path):
    environment = Drift()
    config = configure(environment.spec, "smoke", GUIDED)
    with pytest.raises(InvalidInput, match=r"surrogate\.guide=true needs the solver of the system"):
        train(Task(config, table(environment, count=4), table(environment, "val", 4)), tmp_path)
