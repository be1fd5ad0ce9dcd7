"""Models of sets of objects: another number of them than in training, in a system, a scene or a dataset."""

import numpy as np
import pytest

import hybridworld as hw
from hybridworld.app import bench_trust
from hybridworld.bench.evaluation import evaluate
from hybridworld.data.dataset import Dataset
from hybridworld.data.generate import generate
from hybridworld.data.plan import Plan
from hybridworld.deploy.calibrate import calibrate_model
from hybridworld.deploy.gate import Gate
from hybridworld.deploy.gym import World
from hybridworld.physics.tabletop import Tabletop
from hybridworld.surrogate.bundle import load_bundle, save_bundle
from hybridworld.trust.registry import find_signal
from hybridworld.trust.signal import Ingredients
from tests.deploy.fakes import saved
from tests.deploy.own_engines import of_one_size
from tests.physics.mjcf import MINE

FEW, MORE = Tabletop(grid=(4,)), Tabletop(grid=(6,))
SAMPLE = MORE.initial("test", 0)
ASKED = SAMPLE.state, 4, SAMPLE.params


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A model of 4 objects."""
    path = tmp_path_factory.mktemp("model") / "model.safetensors"
    saved(path, FEW, count=24)
    return path


@pytest.fixture
def model(file):
    return hw.load(file, engine="eager")


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.xml"
    path.write_text(MINE)
    return Tabletop(scene=str(path))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A dataset of 6 objects."""
    root = tmp_path_factory.mktemp("data")
    generate(Plan(MORE, {"train": 2, "val": 4, "test": 2}), root, workers=1)
    return root


pytestmark = pytest.mark.filterwarnings("ignore::hybridworld.deploy.load.WeakModel")


def test_a_model_of_objects_takes_any_number_of_them(model):
    forecast = model.predict(*ASKED, threshold=-1.0)
    assert forecast.used_solver and forecast.error_map.shape == (6,)
    np.testing.assert_array_equal(forecast.state, MORE.solve(*ASKED))
    np.testing.assert_array_equal(model.solve(*ASKED), MORE.solve(*ASKED))
    assert model.errors(forecast.state, MORE.solve(*ASKED)) == 0
    links = list(model.rollout(SAMPLE.state, 2, 2, SAMPLE.params, threshold=-1.0))
    np.testing.assert_array_equal(links[-1].state, MORE.solve(MORE.solve(SAMPLE.state, 2, SAMPLE.params), 2, SAMPLE.params))


class Kept:
    """A signal that no registry knows."""

    name = "your own"

    def __init__(self, signal):
        self.cost, self._signal = signal.cost, signal

    def __call__(self, *asked):
        return self._signal(*asked)


@pytest.mark.parametrize("signal", ["step-doubling", "step-doubling + symmetries", "energy residual", "your own"])
def test_another_number_is_not_asked_of_an_engine_for_one_number(model, signal):
    own = signal == "your own"
    model.signal = Kept(model.signal) if own else find_signal(signal, Ingredients(model.surrogate, FEW))
    model.surrogate.engine = of_one_size(model.surrogate)
    for each in (model, model.resized((6,)), Gate(model)):
        assert each.predict(*ASKED).error_map.shape == (6,)
    world = World(MORE, "hybrid", model, horizon=2)
    world.reset(seed=0)
    assert world.step(np.zeros(2, np.float32))[4]["error_map"].shape == (6,)
    few = FEW.initial("test", 0)
    assert model.predict(few.state, 4, few.params).state.shape == (20, 4)


def test_what_another_number_means_is_told_and_bounds_are_withheld(model):
    few, more = FEW.initial("test", 0), model.predict(*ASKED, threshold=np.inf)
    known = model.predict(few.state, 4, few.params, threshold=np.inf)
    assert not known.notes and model.error_bounds(known, 0.5) > 0
    assert more.notes == (
        "Training and calibration had 4 objects, and here are 6: thresholds are those of 4, and there is no error bound.",
    )
    assert model.error_bounds(more, 0.5) is None and model.resized((6,)).error_bounds(more, 0.5) is None
    assert model.resized((6,)).delivers(4, 1.0, 0.5) is None and model.delivers(4, 1.0, 0.5) is not None
    with pytest.raises(hw.InvalidInput, match="of 6 objects: the bound per object holds for 4"):
        model.cell_bound(more.error_map, 4, 0.5)
    assert not model.resized((6,)).resized((4,)).predict(few.state, 4, few.params).notes


def test_with_a_tolerance_the_solver_answers_about_another_number(model):
    forecast = model.predict(*ASKED, tolerance=100.0, coverage=0.5)
    assert forecast.used_solver and "so with a tolerance the solver answers everything" in forecast.notes[0]
    gate = Gate(model, tolerance=100.0, coverage=0.5, audit=1.0)
    assert gate.predict(*ASKED).used_solver


def test_a_gate_audits_another_number(model):
    gate = Gate(model, q=1.0, audit=1.0)
    np.testing.assert_array_equal(gate.predict(*ASKED).state, MORE.solve(*ASKED))
    assert gate.health.audits == 1 and np.isnan(gate.health.coverage)
    assert gate.predict(SAMPLE.state[None], [4], SAMPLE.params[None]).state.shape == (1, 20, 6)


def test_what_is_kept_is_of_one_number(model, tmp_path):
    keeping = model.keeping(tmp_path / "kept")
    keeping.predict(*ASKED, threshold=-1.0)
    keeping.log.flush()
    assert not list((tmp_path / "kept").rglob("*.hdf5"))


def test_a_scene_of_ones_own_sizes_the_model(file, mine):
    model = hw.load(file, mine)
    sample = mine.initial("test", 0)
    found = model.predict(sample.state, 4, sample.params, threshold=-1.0)
    np.testing.assert_array_equal(found.state, mine.solve(sample.state, 4, sample.params))
    assert "4 objects, and here are 3" in found.notes[0]
    with pytest.raises(hw.InvalidInput, match=r"mine.xml has 3 objects, not 6"):
        model.predict(*ASKED)
    assert model.bundle.surrogate.spec.grid == (4,)  # what `save` writes is what was calibrated


def test_a_dataset_of_another_number_evaluates(file, data):
    found = evaluate(["model"], [load_bundle(file)], None, data, ["test"], [1, 4], 4)
    assert np.isfinite(found["test"]["4"]["mse"]).all()


def test_the_error_map_is_measured_on_a_dataset_of_another_number(file, data, monkeypatch):
    def measured(surrogates, horizons, solver, dataset, *more):
        assert surrogates[0].spec.grid == solver.spec.grid == dataset.spec.grid == (6,)
        raise KeyboardInterrupt

    monkeypatch.setattr(bench_trust, "measure_trust", measured)
    with pytest.raises(KeyboardInterrupt):
        bench_trust.report_trust(str(file), [], None, data, 4, 0.75, 0.5, as_json=True, out=None)


def test_a_calibration_with_another_number_is_a_model_of_that_number(file, data, mine, tmp_path):
    bundle = calibrate_model(load_bundle(file), data, count=4)
    assert calibrate_model(load_bundle(file), system=mine, count=4).surrogate.spec.grid == (3,)
    assert Dataset(data).spec.grid == bundle.surrogate.spec.grid == (6,)
    save_bundle(tmp_path / "more.safetensors", bundle)
    model = hw.load(tmp_path / "more.safetensors")
    forecast = model.predict(*ASKED, threshold=np.inf)
    assert not forecast.notes and model.error_bounds(forecast, 0.5) > 0
