"""A trained model, ready to answer."""

from dataclasses import replace

import numpy as np
import pytest

from hybridworld.deploy import load as module
from hybridworld.deploy.load import default_signal, load
from hybridworld.errors import InvalidInput
from hybridworld.physics.ball3d import Ball3D
from hybridworld.physics.euler2d import Euler2D
from hybridworld.physics.oregonator import Oregonator
from hybridworld.surrogate.bundle import Bundle, save_bundle
from hybridworld.trust.bounds import Residuals
from hybridworld.trust.calibrate import with_calibration
from hybridworld.trust.calibration import Calibration
from tests.deploy.fakes import saved, seeded
from tests.surrogate.flows import OSCILLATOR, RING, Oscillator, Ring, surrogate, tiny

GUIDED = ("surrogate.backbone=leap", "surrogate.guide=true", "surrogate.patch=4")


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """A package that ships one model: ball3d."""
    monkeypatch.setattr(module, "MODELS", tmp_path / "models")
    return saved(tmp_path / "models" / "ball3d.safetensors", Ball3D())


def start(environment):
    sample = environment.initial("test", 0)
    return sample.state, sample.params


def test_a_shipped_model_loads_by_name_with_its_calibration_and_its_solver(shipped):
    model = load("ball3d")
    known = Calibration.of(Residuals.from_arrays(shipped, "trajectory"))
    assert model.threshold(4, 0.75) == pytest.approx(known.threshold(4, 0.75))
    assert model.bound(np.ones(1), 4)[0] > 0
    state, params = start(Ball3D())
    np.testing.assert_array_equal(model.predict(state, 4, params, q=0).state, Ball3D().solve(state, 4, params))
    assert model.predict(state, 4, params, q=1).state.shape == (9,)


def test_a_file_loads_as_the_name_does(shipped):
    state, params = start(Ball3D())
    expected = load("ball3d").predict(state, 4, params)
    path = module.MODELS / "ball3d.safetensors"
    for other in (load(path), load(str(path))):
        np.testing.assert_array_equal(other.predict(state, 4, params).state, expected.state)
        assert other.predict(state, 4, params).threshold == expected.threshold


def test_an_unknown_name_lists_what_ships_and_what_it_resembles(shipped):
    with pytest.raises(InvalidInput, match=r"no model 'bal3d': shipped are ball3d; .*Did you mean 'ball3d'\?"):
        load("bal3d")


def test_where_nothing_ships_it_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "MODELS", tmp_path / "nowhere")
    with pytest.raises(InvalidInput, match="no model 'ball3d': shipped are none"):
        load("ball3d")
    with pytest.raises(InvalidInput, match=r"There is no model .*mine\.safetensors"):
        load(tmp_path / "mine.safetensors")


def test_a_model_of_an_unknown_system_loads_for_mode_1(tmp_path):
    saved(tmp_path / "mine.safetensors", Oscillator())
    model = load(tmp_path / "mine.safetensors")
    state, params = start(Oscillator())
    assert model.predict(state, 4, params, mode=1).state.shape == (2,)
    with pytest.raises(InvalidInput, match=r"no.* for oscillator: name its system, or use mode 1"):
        model.predict(state, 4, params)
    whole = load(tmp_path / "mine.safetensors", solver=Oscillator())
    np.testing.assert_array_equal(whole.predict(state, 4, params, q=0).state, Oscillator().solve(state, 4, params))


def test_a_model_that_was_never_calibrated_loads_and_says_so_when_asked(tmp_path):
    saved(tmp_path / "raw.safetensors", Ball3D(), count=0)
    model = load(tmp_path / "raw.safetensors")
    assert model.calibration is None and model.bound is None
    with pytest.raises(InvalidInput, match="no validation scores"):
        model.predict(*start(Ball3D())[:1], 4, start(Ball3D())[1])


def test_the_solver_is_put_on_the_grid_of_the_model(tmp_path):
    small = Oregonator(grid=(16, 16))
    saved(tmp_path / "small.safetensors", small, count=2)
    model = load(tmp_path / "small.safetensors")  # the registered one has 256 x 256
    state, params = start(small)
    np.testing.assert_array_equal(model.predict(state, 1, params, q=0).state, small.solve(state, 1, params))


@pytest.mark.parametrize(
    ("solver", "says"),
    [
        (Oscillator(), "model of ball3d does not fit the system oscillator: its channels are .*velocity"),
        (Ball3D(frame_step=0.02), "its frame step is 0.01, not 0.02"),
    ],
)
def test_a_solver_of_something_else_is_refused_in_words(shipped, solver, says):
    with pytest.raises(InvalidInput, match=says):
        load("ball3d", solver=solver)


def test_a_solver_with_other_parameters_or_another_kind_of_grid_is_refused_in_words():
    with pytest.raises(InvalidInput, match="its parameters are none, not damping"):
        Oscillator().fitted(replace(OSCILLATOR, parameters=()), "It")
    for grid in ((), (4, 4)):
        with pytest.raises(InvalidInput, match=r"number of grid axes is .*, not 1"):
            Ring().fitted(replace(RING, grid=grid), "It")
    with pytest.raises(InvalidInput, match="ring has no choice of grid"):
        Ring().fitted(replace(RING, grid=(32,)), "It")
    assert Ring().fitted(RING, "It") == Ring()


def test_a_model_knows_how_fine_its_reference_is(tmp_path):
    small = Oregonator(grid=(8, 8))
    path = tmp_path / "fine.safetensors"
    save_bundle(path, Bundle(seeded(small.spec), tiny(small.spec), reference=small.resolved(2).identity))
    model = load(path)
    state, params = start(small)
    expected = small.resolved(2).solve(state[None], 2, params[None])
    np.testing.assert_array_equal(model.solve(state[None], 2, params[None]), expected)
    assert load(path, solver=small).system == small.resolved(2) == load(path, solver=small.resolved(2)).system
    with pytest.raises(InvalidInput, match=r"reference 2 times finer than its states, .* one 3 times finer"):
        load(path, solver=small.resolved(3))


def test_a_model_without_a_calibration_is_meant_for_step_doubling_and_a_guided_one_for_symmetries():
    gas = Euler2D(grid=(16, 16))
    guided, pure = (Bundle(surrogate(gas.spec, *more), tiny(gas.spec, *more)) for more in (GUIDED, ()))
    assert [default_signal(each, gas) for each in (guided, pure)] == ["symmetries", "step-doubling"]
    assert default_signal(guided, None) == "step-doubling"  # whose symmetries would they be?
    known = replace(guided, arrays=with_calibration({}, "many splits", {"trajectory.errors.4": np.ones(3)}))
    assert default_signal(known, gas) == "many splits"
    assert default_signal(replace(known, provenance={module.SIGNAL: "step-doubling"}), gas) == "step-doubling"
