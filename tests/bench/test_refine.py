"""A refinement that is better is accepted, one that is worse is refused, and both are measured on what nothing learned from."""

import time

import numpy as np
import pytest

from hybridworld.bench import refine as bench
from hybridworld.bench.refine import Compared, compare_on, gated, meet_shift, refine
from hybridworld.data.generate import generate
from hybridworld.data.plan import Plan
from hybridworld.deploy import refine as deploy
from hybridworld.deploy.calibrate import calibrations
from hybridworld.errors import InvalidInput
from hybridworld.trust.judge import Judged
from tests.bench.shifted import SYSTEM, judged, kept, trained, wrong


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("model"))


@pytest.fixture(autouse=True)
def by_steps(monkeypatch):
    """So many steps, however slow the machine is."""
    monkeypatch.setattr(deploy, "steps_within", lambda task, seconds: 150)
    monkeypatch.setattr(deploy, "GENTLE", 0.5)  # this model has not learned long
    monkeypatch.setattr(deploy, "MOST", 256)
    monkeypatch.setattr(bench, "JUDGES", (64, 512))


def refined(model, log, **options):
    return refine(model, log, 1, time.monotonic(), given=SYSTEM, **options)


def test_a_better_model_is_accepted(model, tmp_path):
    found = refined(model, kept(tmp_path / "log"))
    assert found.accepted and found.deferred.ratio().high < 1
    assert found.learned + len(found.deferred.trajectories) == 3 * 240
    assert found.deferred.count == len(found.deferred.trajectories) / 3  # three horizons of each
    told = found.bundle.provenance["refined"]
    assert len(told) == 1 and told[0]["learned"] == found.learned
    assert calibrations(found.bundle).keys() == calibrations(model).keys()  # its thresholds are its own
    assert not np.array_equal(found.bundle.arrays["trajectory.scores.4"], model.arrays["trajectory.scores.4"])
    assert found.bundle.config == model.config  # so that it can be refined again


def test_a_log_that_the_solver_contradicts_is_refused(model, tmp_path):
    with pytest.raises(InvalidInput, match="are not what the solver of oscillator gives"):
        refined(model, kept(tmp_path / "log", wrong))


def test_poison_that_nobody_noticed_makes_no_model(model, tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "ALLOWED", 1.0)
    found = refined(model, kept(tmp_path / "log", wrong))
    assert not found.accepted and found.deferred.ratio().low > 1


def test_without_a_solver_poison_shows_in_distribution(model, tmp_path, monkeypatch):
    generate(Plan(SYSTEM, {"train": 128, "val": 64, "test": 64}), tmp_path / "data", 1)
    monkeypatch.setattr(bench, "solver_of", lambda bundle, given: None)
    monkeypatch.setattr(deploy, "BLENDS", (1.0,))
    found = refined(model, kept(tmp_path / "log", wrong, split="test"), data=tmp_path / "data")
    assert found.better and not found.no_worse and not found.accepted


def test_a_dataset_can_be_replayed(model, tmp_path):
    generate(Plan(SYSTEM, {"train": 128}), tmp_path / "data", 1)
    found = refined(model, kept(tmp_path / "log"), data=tmp_path / "data")
    assert found.accepted and "a dataset with the sha256" in found.bundle.provenance["refined"][0]["replay"]


def test_too_few_trajectories_are_refused(model, tmp_path):
    with pytest.raises(InvalidInput, match="keep more"):
        refined(model, kept(tmp_path / "log", count=20))


def test_a_shift_is_shown_from_beginning_to_end(model, tmp_path):
    asked, deferred = meet_shift(model, "ood-far", 200, tmp_path / "log", SYSTEM, print)
    assert asked == 200 * 5 and 0 < deferred <= asked
    after = refined(model, tmp_path / "log").bundle
    found = compare_on(("ood-far", "test"), (model, after), 200, SYSTEM, print)
    gates = found["ood-far"][1]
    assert gates.fall.value > 0.3 and gates.equal_error[1] < gates.equal_error[0]
    assert found["test"][0].ratio().low < 1 + bench.MARGIN


# What is measured.


class Limit:
    """A model whose threshold is known."""

    def __init__(self, value):
        self.value = value

    def threshold(self, horizon, q):
        return self.value


def test_deferral_at_equal_error_is_counted_by_hand():
    before = judged([1, 2, 3, 4], [0.2, 0.4, 0.6, 0.8])  # at a threshold of 2 it keeps a mean error of 0.3
    after = judged([4, 3, 2, 1], [0.7, 0.5, 0.3, 0.2])  # its best three have 0.33, its best two 0.25
    found = gated(Compared(before, after, np.arange(4)), Limit(2.0), Limit(1.0))
    assert found.deferral == (0.5, 0.75) and found.kept_error == (pytest.approx(0.3), pytest.approx(0.2))
    assert found.equal_error == (0.5, 0.5) and found.fall.value == 0
    better = judged([4, 3, 2, 1], [0.7, 0.35, 0.3, 0.2])
    assert gated(Compared(before, better, np.arange(4)), Limit(2.0), Limit(1.0)).equal_error == (0.5, 0.25)


def test_a_model_is_neither_better_nor_worse_than_itself():
    rng = np.random.default_rng(0)
    same = judged(rng.uniform(size=100), rng.uniform(size=100))
    both = Compared(same, same, np.arange(100))
    assert both.ratio().value == 1 and both.ratio().high == 1
    assert gated(both, Limit(0.5), Limit(0.5)).fall == (0, 0, 0)


def test_long_horizons_do_not_outweigh_short_ones():
    short, long = judged(np.ones(50), np.full(50, 0.01), 1), judged(np.ones(50), np.full(50, 1.0), 64)
    worse, same = judged(np.ones(50), np.full(50, 0.02), 1), long

    def together(a, b):
        names = ("horizons", "scores", "errors", "mse", "no_change")
        return Judged(*(np.concatenate([getattr(a, name), getattr(b, name)]) for name in names), a.cells)

    both = Compared(together(short, long), together(worse, same), np.tile(np.arange(50), 2))
    assert both.ratio().value == pytest.approx(1.5)
