"""One list of signals, found by name, each with a calibration of its own in a model's file."""

import numpy as np
import pytest
import torch

from hybridworld.data.pairs import Pairs
from hybridworld.errors import InvalidInput
from hybridworld.physics.ball3d import Ball3D
from hybridworld.physics.oregonator import Oregonator
from hybridworld.physics.tabletop import Tabletop
from hybridworld.surrogate.validation import validation_pairs
from hybridworld.trust import novelty, registry
from hybridworld.trust.calibrate import calibrated_signals, calibration_arrays, with_calibration
from hybridworld.trust.registry import find_signal, signals_for
from hybridworld.trust.signal import Cost, Estimate, Ingredients
from tests.deploy.fakes import seeded
from tests.surrogate.flows import RING, table

BALL, FIELD = Ball3D(), Oregonator(grid=(16, 16))


def given(environment):
    return Ingredients(seeded(environment.spec), environment)


def test_a_model_alone_has_the_signals_that_need_nothing_but_it():
    assert list(signals_for(Ingredients(seeded(RING)))) == [
        "step-doubling", "many splits", "random augmentation", "gradient magnitude", "input amplitude"
    ]  # fmt: skip


def test_a_system_adds_its_symmetries_and_its_physics():
    ball, field = (set(signals_for(given(each))) for each in (BALL, FIELD))
    physics = {"symmetries", "step-doubling + symmetries", "many splits + symmetries"}
    assert physics | {"energy residual", "Richardson, fixed-order"} <= ball and "gradient magnitude" not in ball
    assert physics | {"gradient magnitude"} <= field


def test_what_must_be_fitted_is_offered_where_there_is_something_to_fit_it_to():
    net = seeded(BALL.spec)
    fitted = {"ensemble", "learned error head", "density guard", "locally adaptive conformal"}
    assert not fitted & set(signals_for(Ingredients(net)))
    nothing = Ingredients(net, None, lambda: [net], lambda: None, dict)
    assert fitted <= set(signals_for(nothing))  # named, and not made yet


def test_every_signal_is_called_as_it_is_listed():
    for environment in (BALL, FIELD):
        known = signals_for(given(environment))
        assert {name: make().name for name, make in known.items()} == {name: name for name in known}


def test_every_signal_draws_a_map_of_objects(monkeypatch):
    monkeypatch.setattr(novelty, "PAIRS", {True: 8, False: 8})
    env = Tabletop(grid=(3,))
    net, known = seeded(env.spec), table(env, count=4)
    pairs = Pairs(known, 4, horizons=(1, 2))
    some = Ingredients(net, env, lambda: [net], lambda: pairs, lambda: validation_pairs(known, (1, 2), 8, 0), head_steps=1)
    (states, params), signals = map(torch.from_numpy, env.initials("test", range(2))), signals_for(some)
    asked = states.float(), torch.full((2,), 2.0), params.float()
    assert {"density guard", "learned error head", "momentum residual", "Richardson, fixed-order", "ensemble"} <= set(signals)
    shapes = {name: tuple(make()(*asked).error_map.shape) for name, make in signals.items()}
    assert shapes == dict.fromkeys(signals, (2, 3))


@pytest.mark.parametrize("name", ["step-doubling+symmetries", "step-doubling  +  symmetries", "step-doubling + symmetries"])
def test_names_are_joined_by_a_plus_however_it_is_written(name):
    signal = find_signal(name, given(BALL))
    assert signal.name == "step-doubling + symmetries" and signal.cost == Cost(7, equations="its symmetries", parts=True)


def test_an_unknown_name_lists_what_there_is():
    with pytest.raises(InvalidInput, match=r"no signal 'symetries' for the model of ball3d: .*Did you mean 'symmetries'"):
        find_signal("step-doubling + symetries", given(BALL))
    with pytest.raises(InvalidInput, match=r"choose 'step-doubling', .*'Richardson, fixed-order', .*, or several"):
        find_signal("guess", given(BALL))
    with pytest.raises(InvalidInput, match=r"no signal 'symmetries' for the model of ring: .*its system, .* is not known"):
        find_signal("symmetries", Ingredients(seeded(RING)))


def test_a_new_signal_is_a_class_and_a_line(monkeypatch):
    class Flat:
        name, cost = "flat", Cost(passes=1)

        def __init__(self, f):
            self._f = f

        @classmethod
        def offers(cls, given):
            return {cls.name: lambda: cls(given.surrogate)}

        def __call__(self, states, horizons, params):
            return Estimate(self._f(states, horizons, params), states[:, 0])

    monkeypatch.setattr(registry, "SIGNALS", (*registry.SIGNALS, Flat.offers))
    assert find_signal("flat + step-doubling", given(BALL)).name == "flat + step-doubling"


# Calibrations side by side.


def arrays(number):
    return {"trajectory.scores.4": np.full(3, number), "trajectory.beginning": np.ones(3), "cell.errors.4": np.full(2, number)}


def test_each_signal_has_arrays_of_its_own():
    both = with_calibration(with_calibration({}, "step-doubling", arrays(1)), "step-doubling + symmetries", arrays(2))
    assert calibrated_signals(both) == ("step-doubling", "step-doubling + symmetries")
    for signal, number in (("step-doubling", 1), ("step-doubling + symmetries", 2)):
        found = calibration_arrays(both, signal)
        assert found.keys() == arrays(0).keys() and (found["trajectory.scores.4"] == number).all()
    assert calibration_arrays(both, "symmetries") == {}


def test_arrays_of_a_file_that_knew_one_signal_are_those_of_step_doubling():
    assert calibrated_signals(arrays(1)) == ("step-doubling",)
    assert calibration_arrays(arrays(1), "step-doubling").keys() == arrays(1).keys()
    assert calibrated_signals({}) == ()


def test_a_new_calibration_replaces_that_of_its_signal_whole_and_no_other():
    both = with_calibration(with_calibration({}, "step-doubling", arrays(1)), "symmetries", arrays(2))
    for signal, other in (("step-doubling", "symmetries"), ("symmetries", "step-doubling")):
        again = with_calibration(both, signal, {"trajectory.scores.8": np.ones(1)})
        assert list(calibration_arrays(again, signal)) == ["trajectory.scores.8"]
        assert calibration_arrays(again, other).keys() == arrays(0).keys()
