"""`check_environment` names each fault in words a user understands."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import hybridworld as hw
from tests.physics.decay import RATE, SPEC, Decay


def test_a_good_system_has_no_findings():
    assert hw.check_environment(Decay()) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (dict(name="my system"), "not an identifier"),
        (dict(fields=()), "no fields"),
        (dict(fields=(hw.Field("x", ""),)), "'x' has no unit"),
        (dict(fields=(hw.Field("x", "m"), hw.Field("x", "m"))), "names repeat"),
        (dict(grid=(4, 4)), "grid has 2 axes"),
        (dict(grid=(0,)), "at least 1"),
        (dict(frame_step=0.0), "frame_step is 0"),
        (dict(frames=1), "at least 2"),
        (dict(draw="y"), "not a channel"),
        (dict(horizons=(1, 2, 64, 128)), "longest horizon is 128"),
        (dict(horizons=(1, 2, 6)), "lacks its half 3"),
        (dict(horizons=(2, 1)), "rising order"),
        (dict(kinds={"id": {"a": 0.5}}), "add up to 0.5"),
        (dict(parameters=(replace(RATE, unit=""),)), "'rate' has no unit"),
        (dict(parameters=(replace(RATE, ranges={"ood-far": ((3.0, 4.0),)}),)), "no range for the regime 'id'"),
        (dict(parameters=(replace(RATE, ranges={"id": ((1.0, 2.0),), "ood-near": ((1.5, 3.0),)}),)), "overlap"),
        (dict(parameters=(replace(RATE, ranges={"id": ((1.0, 20.0),)}),)), "leaves the allowed"),
        (dict(parameters=(replace(RATE, ranges={"id": ((2.0, 2.0),)}),)), "is empty"),
        (dict(parameters=(RATE, RATE)), "share a name"),
    ],
)
def test_faults_of_the_spec(change, words):
    assert any(words in finding for finding in hw.check_environment(Decay(replace(SPEC, **change))))


class Shape(Decay):
    def sample(self, rng, split):
        return hw.Sample(np.zeros(2), np.ones(1))


class NotFinite(Decay):
    def sample(self, rng, split):
        return hw.Sample(np.array([np.nan]), np.ones(1))


class Unseeded(Decay):
    def sample(self, rng, split):
        return super().sample(np.random.default_rng(), split)


class Repeated(Decay):
    def sample(self, rng, split):
        return hw.Sample(np.ones(1), np.ones(1))


class NeverShifted(Decay):
    def sample(self, rng, split):
        return super().sample(rng, "train")


class Raises(Decay):
    def sample(self, rng, split):
        raise KeyError("kind")


class TooManyParams(Decay):
    def sample(self, rng, split):
        return hw.Sample(rng.uniform(1, 2, size=1), np.ones(2))


class OutOfRange(Decay):
    def sample(self, rng, split):
        return hw.Sample(rng.uniform(1, 2, size=1), np.array([9.0]))


class InPlace(Decay):
    def advance(self, states, frames, params):
        states *= np.exp(-params * frames * 0.1)
        return states


class Random(Decay):
    def advance(self, states, frames, params):
        return states + np.random.default_rng().normal(size=states.shape)


class Mixed(Decay):
    def advance(self, states, frames, params):
        return super().advance(states, frames, params) + 0.1 * states.mean() * (frames > 0)


class NoSemigroup(Decay):
    def advance(self, states, frames, params):
        return states / (1 + params * frames**2)


class Identity(Decay):
    def advance(self, states, frames, params):
        return states.copy()


class BlowsUp(Decay):
    def advance(self, states, frames, params):
        return states / (frames < 20) if frames else states.copy()


class WrongShape(Decay):
    def advance(self, states, frames, params):
        return np.zeros((len(states), 2))


class OtherTwin(Decay):
    def advance_numpy(self, states, frames, params):
        return states


class BadConserved(Decay):
    def conserved(self, states, params):
        return {"energy": np.array([np.inf])}


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Shape, "state of shape (2,)"),
        (NotFinite, "not finite"),
        (Unseeded, "two different samples for one seed"),
        (Repeated, "same sample for two seeds"),
        (NeverShifted, "nothing is out of distribution"),
        (Raises, "raised KeyError: 'kind'"),
        (TooManyParams, "params of shape (2,)"),
        (OutOfRange, "draws rate = 9"),
        (InPlace, "changes its input in place"),
        (Random, "two different answers"),
        (Mixed, "must not meet"),
        (NoSemigroup, "5 frames differs from 2 frames and then 3"),
        (Identity, "changes nothing"),
        (BlowsUp, "left finite numbers"),
        (WrongShape, "the shape must stay"),
        (OtherTwin, "two forms of one scheme"),
        (BadConserved, "conserved()['energy']"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_faults_of_the_system(fault, words):
    findings = hw.check_environment(fault())
    assert any(words in finding for finding in findings), findings


class RaisesInAdvance(Decay):
    def advance(self, states, frames, params):
        raise KeyError("rate")


@pytest.mark.parametrize("fault", [Raises, RaisesInAdvance])
def test_what_raises_is_told_once_with_the_users_line(fault):
    (finding,) = hw.check_environment(fault())
    assert "raised KeyError: " in finding and f"({__file__}, line" in finding and "raise KeyError(" in finding


def test_a_false_symmetry_is_found():
    """A mirror is no symmetry of a drift to the right."""

    @dataclass(frozen=True)
    class Drift(Decay):
        @property
        def spec(self):
            return replace(SPEC, fields=(hw.Field("x", "m", "vector"),), draw="x_x")

        @property
        def symmetries(self):
            return (hw.Symmetry((0,), (-1,)),)

        def advance(self, states, frames, params):
            return states + 0.1 * frames

    assert any("does not carry solutions" in finding for finding in hw.check_environment(Drift()))


def test_a_class_in_place_of_an_instance():
    assert "an instance is needed" in hw.check_environment(Decay)[0]
