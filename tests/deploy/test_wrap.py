"""Anybody's model with error map, thresholds, bounds, gate and rollouts."""

import warnings

import numpy as np
import pytest
import torch
from safetensors import safe_open
from torch import nn

import hybridworld as hw
from hybridworld.data.generate import generate
from hybridworld.data.plan import Plan
from hybridworld.deploy.load import WeakModel
from hybridworld.surrogate.horizons import halves
from hybridworld.surrogate.wrapped import makes_a_model, name_of, takes_params
from hybridworld.trust.registry import find_signal
from hybridworld.trust.signal import Ingredients
from tests.deploy import foreign
from tests.surrogate.flows import Oscillator, Ring

ENV = Oscillator(longest=8)
FILE = foreign.__file__


def question(environment=ENV, count=24, split="test"):
    samples = [environment.initial(split, seed) for seed in range(count)]
    return tuple(np.stack([getattr(sample, part) for sample in samples]) for part in ("state", "params"))


STATES, PARAMS = question()


@pytest.fixture(scope="module")
def model():
    return hw.wrap(foreign.leap, ENV, count=200)


# What is wrapped answers as itself.


@pytest.mark.parametrize(
    "f",
    [foreign.leap, foreign.leap_in_torch, foreign.Leap(), foreign.Leap, f"{FILE}:leap", f"{FILE}:Leap"],
    ids=["function", "torch", "module", "class", "name", "class name"],
)
def test_numpy_or_torch_function_module_class_or_name_give_the_same_answers(f):
    found = hw.wrap(f, ENV, count=20)
    expected = foreign.leap(STATES, 8, PARAMS)
    np.testing.assert_allclose(found.predict(STATES, 8, PARAMS, mode=1).state, expected, rtol=1e-5, atol=1e-5)
    one = found.predict(STATES[0], 2.5, PARAMS[0], mode=1).state
    np.testing.assert_allclose(one, foreign.leap(STATES[:1], 2.5, PARAMS[:1])[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("f", [foreign.undamped, foreign.quarter])
def test_a_model_without_parameters_is_asked_without(f):
    found = hw.wrap(f, ENV, count=20)
    np.testing.assert_allclose(found.predict(STATES, 4, mode=1).state, foreign.undamped(STATES, 4), rtol=1e-5, atol=1e-5)
    assert found.predict(STATES, 4, PARAMS).used_solver.any()  # the solver has its parameters


@pytest.mark.parametrize(
    ("f", "takes"),
    [
        (lambda s, h: s, False),
        (lambda s, h, p: s, True),
        (lambda s, h, params=None: s, True),
        (lambda s, h, verbose=False: s, False),
        (lambda *inputs: inputs[0], True),
        (foreign.Leap(), True),
    ],
)
def test_the_arguments_tell_if_parameters_are_wanted(f, takes):
    assert takes_params(f) is takes


def test_a_name_stands_for_a_model_or_for_what_makes_it():
    assert [makes_a_model(each) for each in (foreign.load, foreign.leap, lambda s, h, params=None: s)] == [True, False, False]
    assert name_of("some/where/fno.py:load") == "fno.py:load"
    assert name_of(foreign.leap) == "foreign.py:leap" and name_of(foreign.Leap()) == "foreign.py:Leap"
    assert ":" not in name_of(lambda s, h: s)
    assert hw.wrap(f"{FILE}:load", ENV, count=20).surrogate.f.rate.item() == pytest.approx(0.9)


def test_fields_work_as_vectors_do():
    ring = Ring()

    def shifted(states, horizon, params):
        return np.roll(states, horizon // 2, axis=2) * np.exp(-0.1 * horizon * params)[..., None]

    found = hw.wrap(shifted, ring, horizons=(2, 4, 8), count=20)
    states, params = question(ring)
    forecast = found.predict(states, 4, params)
    assert forecast.error_map.shape == (24, 16)
    assert (found.cell_bound(forecast.error_map, 4) >= 0).all()
    np.testing.assert_allclose(found.solve(states, 8, params), ring.solve(states, 8, params))


def test_a_model_may_write_into_what_it_is_given_and_answer_in_memory_of_its_own():
    room = np.empty((4096, 2), np.float32)

    def careless(states, horizon, params):
        room[: len(states)] = foreign.leap(states, horizon, params)
        states[:] = 7
        return room[: len(states)]

    found, other = (hw.wrap(f, ENV, count=20) for f in (careless, foreign.leap))
    one, two = (each.predict(STATES, 8, PARAMS) for each in (found, other))
    np.testing.assert_allclose(one.state, two.state, rtol=1e-6)
    np.testing.assert_allclose(one.score, two.score, rtol=1e-3, atol=1e-6)


# It has all that a trained model has.


def test_the_map_compares_one_pass_with_two(model):
    forecast = model.predict(STATES, 7, PARAMS)
    first, second = (float(each) for each in halves(torch.tensor(7.0)))
    twice = foreign.leap(foreign.leap(STATES, first, PARAMS), second, PARAMS)
    std = model.surrogate.std.numpy()
    expected = np.linalg.norm((foreign.leap(STATES, 7, PARAMS) - twice) / std, axis=1)
    np.testing.assert_allclose(forecast.score, expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(forecast.used_solver, forecast.score > model.threshold(7, 0.75))
    np.testing.assert_array_equal(forecast.state[forecast.used_solver], ENV.solve(STATES, 7, PARAMS)[forecast.used_solver])


def test_its_errors_are_in_deviations_of_the_training_data(model):
    states, params = ENV.initials("train", range(200))
    expected = ENV.record(states, ENV.spec.frames - 1, params).std(axis=(0, 2))
    np.testing.assert_allclose(model.surrogate.std, expected, rtol=0.1)


def test_its_bounds_hold_on_trajectories_that_nothing_has_seen(model):
    states, params = question(count=600)
    forecast = model.predict(states, 6, params, q=1)
    errors = model.errors(forecast.state, ENV.solve(states, 6, params))
    assert np.mean(errors <= model.error_bounds(forecast, 0.9)) > 0.86
    assert np.mean(errors <= model.error_bounds(forecast, 0.5)) < 0.9  # and are no empty promise


def test_gate_and_rollout_take_it(model):
    gate = hw.Gate(model, q=0.5, audit=0.5)
    gate.predict(STATES, 4, PARAMS)
    assert gate.health.answers == 24 and gate.health.audits > 0
    links = list(model.rollout(STATES, 4, 3, PARAMS, q=0))
    np.testing.assert_allclose(links[-1].state, ENV.solve(STATES, 12, PARAMS), rtol=1e-9)


def test_horizons_beyond_the_longest_are_chains(model):
    assert [link.horizon for link in model.predict(STATES, 20, PARAMS).links] == [7, 7, 6]


# What it is worth.


def test_a_model_that_hardly_beats_no_change_is_told_so(tmp_path):
    with pytest.warns(WeakModel, match="hardly beats no change") as told:
        found = hw.wrap(f"{FILE}:resting", ENV, count=60)
    assert told[0].filename == __file__
    states, params = ENV.initials("val", range(400))
    truth, known = ENV.solve(states, 8, params), found.bundle.validation["horizons"]["8"]
    expected = ((0.99 * states - truth) ** 2).mean() / ((states - truth) ** 2).mean()
    assert known["mse"] / known["no_change"]["mse"] == pytest.approx(expected, abs=0.01)
    found.save(tmp_path / "resting.safetensors")
    with pytest.warns(WeakModel, match="hardly beats no change"):
        hw.load(tmp_path / "resting.safetensors", ENV, f"{FILE}:resting")


def test_few_trajectories_are_told_so_and_a_good_model_is_not():
    with pytest.warns(WeakModel, match="calibrated by 8 trajectories, which promise little"):
        hw.wrap(foreign.leap, ENV, count=8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hw.wrap(foreign.leap, ENV, count=60)


def test_an_error_that_no_line_of_the_users_raised_names_none():
    class Narrow(nn.Module):
        def forward(self, states):
            return states

    with pytest.raises(hw.CodeFailure, match="takes 2 positional arguments") as caught:
        hw.wrap(Narrow(), ENV, params=False)
    assert ", line " not in str(caught.value)


# What it answers.


def test_declared_horizons_are_asked_and_no_others():
    asked = set()

    def picky(states, horizon, params):
        asked.add(horizon)
        return foreign.leap(states, horizon, params)

    found = hw.wrap(picky, ENV, horizons=(1, 2, 4, 8), count=20)
    assert set(found.calibration.scores) == {2, 4, 8}  # one frame has no halves
    found.predict(STATES, 12, PARAMS)
    found.predict(STATES, 7, PARAMS, mode=1)
    assert asked == {1, 2, 4, 8} and all(type(each) is int for each in asked)
    assert [link.horizon for link in found.predict(STATES, 7, PARAMS, mode=1).links] == [4, 2, 1]
    (note,) = found.predict(STATES, 12, PARAMS).notes
    assert "12 frames are not answered in one pass, as 1, 2, 4, 8 frames are: the answer is a chain of 8 + 4" in note
    with pytest.raises(hw.InvalidInput, match="horizon is 7 frames: the model answers 2, 4, 8 frames, and sums of these"):
        found.predict(STATES, 7, PARAMS)  # with a map it would take a link of one frame
    with pytest.raises(hw.InvalidInput, match=r"horizon is 2\.5 frames: the model answers 1, 2, 4, 8 frames"):
        found.predict(STATES, 2.5, PARAMS, mode=1)


def test_a_range_of_horizons_is_calibrated_about_four_times_per_octave():
    found = hw.wrap(foreign.leap, Oscillator(longest=16), horizons=range(1, 17), count=20)
    assert set(found.calibration.scores) == {2, 3, 4, 5, 6, 7, 8, 10, 11, 13, 16}
    assert found.predict(STATES, 9, PARAMS).links == () and found.threshold(9, 0.5) > 0


def test_parts_that_add_up_need_not_be_equal():
    found = hw.wrap(foreign.leap, ENV, horizons=(2, 3, 5), count=20)
    twice = foreign.leap(foreign.leap(STATES, 2, PARAMS), 3, PARAMS)
    expected = np.linalg.norm((foreign.leap(STATES, 5, PARAMS) - twice) / found.surrogate.std.numpy(), axis=1)
    np.testing.assert_allclose(found.predict(STATES, 5, PARAMS).score, expected, rtol=1e-4)


@pytest.mark.parametrize(
    ("f", "horizons", "says"),
    [
        (foreign.repeated, None, "merely repeats one step, so that the map is zero by construction; take another signal"),
        (foreign.leap, 1, "answers 1 frame, and longer horizons by repeating that step: .* its map is zero by construction"),
        (foreign.leap, (4,), "answers 4 frames, and longer horizons by repeating"),
        (foreign.leap, (4, 6), "answers 4, 6 frames, of which none is the sum of two"),
    ],
)
def test_step_doubling_is_refused_where_its_map_would_be_zero_or_absent(f, horizons, says):
    with pytest.raises(hw.InvalidInput, match=says):
        hw.wrap(f, ENV, horizons, count=20)


def test_one_step_that_is_repeated_may_have_another_signal():
    found = hw.wrap(foreign.leap, ENV, horizons=1, signal="random augmentation", count=20)
    forecast = found.predict(STATES, 3, PARAMS, q=0.5)
    assert [link.horizon for link in forecast.links] == [1, 1, 1] and 0 < forecast.used_solver.mean() < 1


# Against recorded data.


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorded") / "data"
    generate(Plan(ENV, {"train": 40, "val": 60, "test": 40}), folder, workers=1)
    return folder


def test_recorded_data_give_mode_1_and_the_map_alone(data):
    found = hw.wrap(foreign.leap, data=data)
    assert found.calibration.size == 60 and found.system is None
    forecast = found.predict(STATES, 4, PARAMS, mode=1, error_map=True)
    assert not forecast.used_solver.any() and forecast.score.shape == (24,) and forecast.state.dtype == np.float32
    assert (found.error_bounds(forecast, 0.8) > 0).all()
    np.testing.assert_array_equal(forecast.state, found.predict(STATES, 4, PARAMS, mode=1).state)
    with pytest.raises(hw.InvalidInput, match=r"need a solver, and there is none for oscillator: .*error_map=True"):
        found.predict(STATES, 4, PARAMS)


def test_with_a_system_beside_the_data_its_solver_answers_in_mode_2(data):
    found = hw.wrap(foreign.leap, ENV, data=data)
    assert found.calibration.size == 60
    np.testing.assert_array_equal(found.predict(STATES, 4, PARAMS, q=0).state, ENV.solve(STATES, 4, PARAMS))
    with pytest.raises(hw.InvalidInput, match="does not fit the system ring"):
        hw.wrap(foreign.leap, Ring(), data=data)


# As a file.


def sha256(path):
    """Of all that a model's file holds; the order of its metadata is left to chance."""
    with safe_open(path, "numpy") as file:
        return file.metadata()["sha256"]


@pytest.mark.parametrize("f", [foreign.Leap(), f"{FILE}:load", foreign.leap, foreign.load])
def test_it_is_saved_and_loaded_with_its_code(f, tmp_path):
    before = hw.wrap(f, ENV, horizons=(1, 2, 4, 8), count=50)
    path = tmp_path / "mine.safetensors"
    before.save(path)
    name = before.surrogate.config.backbone
    with pytest.raises(hw.InvalidInput, match=rf"is about the model {name}: give its code .* --backbone {name}"):
        hw.load(path)
    after = hw.load(path, solver=ENV, backbone=f"{FILE}:{name.partition(':')[2]}")
    for horizon in (4, 12):
        one, other = (each.predict(STATES, horizon, PARAMS) for each in (before, after))
        np.testing.assert_array_equal(one.state, other.state)
        np.testing.assert_array_equal(one.score, other.score)
    assert after.mapped_horizons == (2, 4, 8)
    assert (after.trained, after.threshold(4, 0.5)) == (before.trained, before.threshold(4, 0.5))
    after.save(tmp_path / "again.safetensors")
    assert sha256(tmp_path / "again.safetensors") == sha256(path)


def test_a_signal_that_needs_no_parts_of_a_horizon_maps_every_horizon_that_is_answered():
    found = hw.wrap(foreign.leap, ENV, horizons=(1, 2, 4, 8), count=50)
    amplitude = found.with_signal(find_signal("input amplitude", Ingredients(found.surrogate)))
    assert (found.mapped_horizons, amplitude.mapped_horizons) == ((2, 4, 8), (1, 2, 4, 8))
    assert len(amplitude.predict(STATES, 1, PARAMS, mode=1, error_map=True).score) == len(STATES)
    assert amplitude.with_signal(found.signal).mapped_horizons == (2, 4, 8)


def test_weights_travel_in_the_file_and_win_over_those_of_the_code(tmp_path):
    trained = foreign.Leap()
    nn.init.constant_(trained.rate, 0.5)
    hw.wrap(trained, ENV, count=50).save(tmp_path / "mine.safetensors")
    after = hw.load(tmp_path / "mine.safetensors", solver=ENV, backbone=foreign.Leap)
    assert after.surrogate.f.rate.item() == 0.5


def test_code_that_answers_otherwise_than_when_it_was_calibrated_is_refused(tmp_path):
    hw.wrap(foreign.leap, ENV, count=50).save(tmp_path / "mine.safetensors")
    with pytest.raises(hw.InvalidInput, match=r"foreign.py:leap is not the model that was calibrated: .*Calibrate it again"):
        hw.load(tmp_path / "mine.safetensors", solver=ENV, backbone=lambda s, h, p: 1.1 * foreign.leap(s, h, p))


@pytest.mark.parametrize(
    ("f", "says"),
    [
        (lambda s, h, p: foreign.leap(s, h, p), "stands in no file under a name of its own"),
        (foreign.Sized(0.7), "foreign.py:Sized cannot be made without arguments .*write a function that returns it"),
    ],
)
def test_what_another_program_could_not_find_is_not_saved(f, says, tmp_path):
    with pytest.raises(hw.InvalidInput, match=says):
        hw.wrap(f, ENV, count=50).save(tmp_path / "mine.safetensors")
    assert not list(tmp_path.iterdir())


# What cannot be.


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"system": None}, "give its system, or recorded data"),
        ({"f": 7}, "The model is 7: it must be a function"),
        ({"f": "leap"}, "The model is 'leap': name it as path/to/file.py:name"),
        ({"f": f"{FILE}:nothing"}, "foreign.py has no 'nothing'"),
        (
            {"f": f"{FILE}:broken"},
            r"foreign.py:broken makes no model: .*OSError: there are no weights here \(.*foreign.py",
        ),
        ({"f": f"{FILE}:number"}, "foreign.py:number makes 7"),
        ({"f": lambda s, h, p: s[:, :1]}, r"answered states of shape \(1, 2\) with an array of shape \(1, 1\)"),
        ({"f": lambda s, h, p: None}, "with None of type object: it must return as many states of the same shape"),
        ({"f": lambda s, h, p: "later"}, "with 'later' of type <U5"),
        ({"f": lambda s, h, p: s + 1j}, r"with an array of shape \(1, 2\) of type complex128"),
        ({"f": lambda s, h, p: s.unknown}, r"cannot answer .* with NumPy arrays AttributeError.*with torch tensors Attrib"),
        ({"f": lambda s, h, p: s * np.nan}, "values that are not finite"),
        ({"horizons": (0, 1)}, "The horizons are 0, 1: with 17 frames they must be whole numbers from 1 to 16"),
        ({"horizons": ()}, "The horizons are none"),
        ({"horizons": (1, 2.5)}, "horizons are 1, 2.5"),
        ({"horizons": (8, 99)}, "horizons are 8, 99"),
        ({"horizons": "few"}, "horizons are f, e, w"),
        ({"horizons": (float("nan"),)}, "horizons are nan"),
        ({"system": ENV.spec}, "give an hw.Environment, its name, or"),
        ({"signal": "symmetries"}, "There is no signal 'symmetries' for the model of oscillator: choose 'step-doubling', '"),
        ({"signal": "step-dubling"}, "Did you mean 'step-doubling'"),
    ],
)
def test_bad_wishes_are_refused_in_words(change, says):
    with pytest.raises(hw.HybridWorldError, match=says):
        hw.wrap(**{"f": foreign.leap, "system": ENV, "count": 20, **change})


def test_an_error_of_the_model_is_told_with_its_line_and_remains_the_cause():
    calls = []

    def failing(states, horizon, params):
        calls.append(horizon)
        if len(calls) > 3:
            raise ZeroDivisionError("as its author wrote it")
        return foreign.leap(states, horizon, params)

    with pytest.raises(
        hw.CodeFailure, match=r"raised ZeroDivisionError: as its author wrote it \(.*, line \d+: raise Zero"
    ) as caught:
        hw.wrap(failing, ENV, count=20)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_a_forecast_names_no_training_that_nobody_knows(model):
    assert model.predict(STATES, 3, PARAMS).notes == model.predict(STATES, 8, PARAMS).notes == ()
