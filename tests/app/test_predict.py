"""`hybridworld calibrate` and `hybridworld predict` as a user runs them."""

from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
from PIL import Image

import hybridworld as hw
from hybridworld.app.loading import load_model
from hybridworld.data.generate import generate
from hybridworld.data.plan import Plan
from hybridworld.data.well_file import WellFile
from hybridworld.physics.ball3d import Ball3D
from hybridworld.physics.euler2d import Euler2D
from hybridworld.surrogate.bundle import load_bundle, save_bundle
from tests.app.commands import command, predict, run
from tests.surrogate import flows

SMALL = [
    "training.epochs=1",
    "training.samples=16",
    "training.validation=4",
    "training.calibration=16",
    "training.horizons=1,4",
]


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A trained model of a small Euler 2D, and its dataset: training ended with a calibration."""
    folder = tmp_path_factory.mktemp("small")
    generate(Plan(Euler2D(grid=(16, 16)), {"train": 4, "val": 4}), folder / "data", workers=1)
    wishes = [part for wish in SMALL for part in ("--set", wish)]
    command("train", "euler2d", "--data", folder / "data", "--preset", "smoke", *wishes, "--out", folder / "run")
    return folder / "run/model.safetensors", folder / "data"


def test_a_ball_with_the_model_that_ships(tmp_path):
    out = command("predict", "ball3d", "--horizon", 64, "--count", 8, "--check", "--out", tmp_path)
    assert "went to the solver" in out and "surrogate's error" in out and "test 7" in out
    with Image.open(tmp_path / "ball3d-h64-mode2.png") as image:
        assert image.width > 1000


def test_the_answers_are_those_of_the_python_interface(tmp_path):
    told = predict("ball3d", "--horizon", 16, "--q", 0.5, "--count", 12, "--seed", 3, "--check", "--out", tmp_path)
    env, model = hw.system("ball3d"), hw.load("ball3d")
    samples = [env.initial("test", seed) for seed in range(3, 15)]
    states, params = (np.stack([getattr(sample, part) for sample in samples]) for part in ("state", "params"))
    forecast = model.predict(states, 16, params, q=0.5)
    rows = told["trajectories"]
    assert [row["used_solver"] for row in rows] == forecast.used_solver.tolist() and 0 < told["deferred"] < 12
    np.testing.assert_allclose([row["score"] for row in rows], forecast.score, rtol=1e-5)
    assert all((row["error"] == 0) == row["used_solver"] for row in rows)
    with h5py.File(told["files"]["data"]) as file:
        np.testing.assert_array_equal(file["forecast/truth"], env.solve(states, 16, params))
        np.testing.assert_array_equal(file["forecast/used_solver"], forecast.used_solver)
    kept = WellFile(tmp_path / "ball3d-h16-mode2.hdf5")
    later = np.empty((12, 9))
    for row in range(12):
        kept.fill(later[row], row, 1)
    np.testing.assert_array_equal(later[forecast.used_solver], env.solve(states, 16, params)[forecast.used_solver])


def test_a_tolerance_is_told_with_its_promise_and_what_came_of_it(tmp_path):
    asked = ("ball3d", "--horizon", 16, "--tolerance", 0.3, "--count", 24, "--check", "--out", tmp_path)
    told = predict(*asked)
    model = hw.load("ball3d")
    accepted = [row for row in told["trajectories"] if not row["used_solver"]]
    assert 0 < len(accepted) < 24 and all(row["error_bound"] <= 0.3 for row in accepted) and "q" not in told
    assert (
        told["validation"]["deferred"] == model.delivers(16, 0.3, beginning=True).deferred
        and told["validation"]["exceeding"] < 0.1
    )
    above = sum(row["error"] > 0.3 for row in accepted)
    said = command(*("predict", *asked))
    assert "no bound promises 0.3 for them" in said and "of all answers a share of at most 0.1 exceeds 0.3" in said
    assert f"here {above} of {len(accepted)} accepted ones" in said
    beyond = predict("ball3d", "--horizon", 90, "--tolerance", 0.3, "--count", 2, "--out", tmp_path)
    assert beyond["deferred"] == 2 and beyond["validation"] is None and "no error bound at 90 frames" in beyond["notes"][0]


def test_a_signal_is_chosen_by_its_name(tmp_path):
    usual, better = (
        predict("ball3d", "--horizon", 16, "--count", 8, "--out", tmp_path, *more)
        for more in ((), ("--signal", "step-doubling + symmetries"))
    )
    assert (usual["signal"], better["signal"]) == ("step-doubling", "step-doubling + symmetries")
    assert usual["threshold"] != better["threshold"] and better["calibrated_by"] == 2000
    model = hw.load("ball3d", signal="step-doubling + symmetries")
    assert model.signal.cost.passes == 7 and model.threshold(16, 0.75, beginning=True) == pytest.approx(better["threshold"])


def test_the_map_in_mode_1(tmp_path):
    told = predict("ball3d", "--horizon", 16, "--count", 3, "--mode", 1, "--map", "--out", tmp_path)
    assert all("score" in row and "error_bound" in row and not row["used_solver"] for row in told["trajectories"])


def test_a_forecast_is_the_input_of_the_next(tmp_path):
    first = predict("ball3d", "--horizon", 8, "--count", 3, "--mode", 1, "--out", tmp_path)
    assert all("score" not in row and not row["used_solver"] for row in first["trajectories"])
    second = predict("ball3d", "--input", first["files"]["data"], "--frame", 1, "--horizon", 2, "--out", tmp_path / "next")
    assert [row["name"] for row in second["trajectories"]] == [f"ball3d-h8-mode1 {row}" for row in range(3)]


def test_a_forecast_is_not_written_over_its_own_input(tmp_path):
    asked = ("--horizon", 8, "--mode", 1, "--out", tmp_path)
    file = Path(predict("ball3d", "--count", 2, *asked)["files"]["data"])
    before = file.read_bytes()
    with pytest.raises(hw.InvalidInput, match="would be written over its input"):
        predict("ball3d", "--input", file, *asked)
    assert file.read_bytes() == before and not list(tmp_path.glob(".*"))


def test_what_is_told_fits_how_many_there_are(tmp_path):
    asked = ("predict", "ball3d", "--count", 2, "--out", tmp_path)
    none = command(*asked, "--horizon", 1, "--q", 0.9999)
    assert "1 frame ahead" in none and "0 of 2 went to the solver: no score exceeds" in none
    assert "0 of 2 went to the solver: all bounds promise 50" in command(*asked, "--horizon", 8, "--tolerance", 50)
    assert "2 of 2 went to the solver: their scores exceed" in command(*asked, "--horizon", 8, "--q", 0.0001)
    short = hw.simulate("ball3d", frames=1)
    assert "1 frame, states" in repr(short)
    assert "1 frame ahead" in repr(hw.load("ball3d").predict(short.states[0], 1, short.params, mode=1))


def test_states_of_ones_own(tmp_path):
    env = hw.system("ball3d")
    samples = [env.initial("val", seed) for seed in range(2)]
    with h5py.File(tmp_path / "mine.h5", "w") as file:
        file["state"] = np.stack([sample.state for sample in samples])
        file["params"] = np.stack([sample.params for sample in samples])
    found = predict("ball3d", "--input", tmp_path / "mine.h5", "--horizon", 4, "--out", tmp_path)
    other = predict("ball3d", "--split", "val", "--count", 2, "--horizon", 4, "--out", tmp_path)
    assert [row["score"] for row in found["trajectories"]] == [row["score"] for row in other["trajectories"]]


def test_training_ends_with_a_calibration(small):
    model, _ = small
    bundle = load_bundle(model)
    assert (
        bundle.arrays["trajectory.scores.3"].shape == (16,)
        and bundle.provenance["calibration"]["step-doubling"]["trajectories"] == 16
    )
    hybrid = hw.load(model)
    assert hybrid.bound is not None and hybrid.cell_bound(np.ones((2, 16, 16)), 4).shape == (2, 16, 16)
    assert hybrid.threshold(1, 0.25) < hybrid.threshold(1, 0.75)


def test_fields_with_and_without_a_check(small, tmp_path):
    model, _ = small
    told = predict(model, "--horizon", 4, "--count", 2, "--frame", 2, "--out", tmp_path, "--check")
    with h5py.File(told["files"]["data"]) as file:
        assert file["forecast/error_map"].shape == (2, 16, 16)
    told = predict(model, "--horizon", 2.5, "--count", 1, "--mode", 1, "--out", tmp_path)
    with Image.open(told["files"]["picture"]) as image:
        assert image.width > 300
    assert told["notes"] and "No training has seen a horizon of 2.5 frames" in told["notes"][0]


def test_beyond_the_trained_horizons_the_command_says_that_it_chains(small, tmp_path):
    told = predict(small[0], "--horizon", 7, "--count", 2, "--out", tmp_path)
    assert [link["horizon"] for link in told["links"]] == [4, 3] and told["threshold"] is None
    assert "more than the longest trained horizon, 4" in told["notes"][0]
    assert all("error_bound" not in row for row in told["trajectories"])
    out = command("predict", small[0], "--horizon", 7, "--count", 2, "--out", tmp_path)
    assert "at h = 4" in out and "note:" in out and "rest on 16 validation trajectories" in out


def test_calibrating_again_with_more_or_fewer_trajectories(small, tmp_path):
    model, data = small
    out = command("calibrate", model, "--data", data, "--count", 24, "--out", tmp_path / "again.safetensors")
    assert "calibrated by 24 trajectories" in out and "0.75" in out
    command("calibrate", model, "--count", 3, "--out", tmp_path / "solver.safetensors")
    found = load_model(tmp_path / "solver.safetensors")
    assert (
        found.arrays["trajectory.scores.4"].shape == (3,)
        and found.provenance["calibration"]["step-doubling"]["trajectories"] == 3
    )
    assert "the solver of euler2d" in found.provenance["calibration"]["step-doubling"]["data"]


def test_a_file_holds_a_calibration_per_signal_and_one_of_before_has_that_of_step_doubling(small, tmp_path):
    model, _ = small
    bundle, before = load_bundle(model), tmp_path / "before.safetensors"
    known = {"trajectories": 16, "signal": "step-doubling", "data": "as files said it before"}
    save_bundle(before, replace(bundle, provenance={**bundle.provenance, "calibration": known}))
    assert hw.load(before).threshold(4, 0.5) == hw.load(model).threshold(4, 0.5)
    with pytest.raises(hw.InvalidInput, match=rf'calibrate {before} --signal "symmetries"`'):
        hw.load(before, signal="symmetries")
    out = command("calibrate", before, "--signal", "symmetries", "--count", 12)
    assert "step-doubling, calibrated by 16" in out and "symmetries, calibrated by 12" in out
    after = load_bundle(before)
    del known["signal"]
    assert after.provenance["calibration"]["step-doubling"] == known
    assert after.provenance["calibration"]["symmetries"]["trajectories"] == 12
    assert hw.load(before).threshold(4, 0.5) == hw.load(model).threshold(4, 0.5)
    turned = hw.load(before, signal="symmetries")
    assert turned.calibration.size == 12 and turned.signal.name == "symmetries"
    assert turned.cell_bound(np.ones((2, 16, 16)), 4).shape == (2, 16, 16)
    assert hw.load(before).signal.name == "step-doubling"
    command("calibrate", before, "--signal", "symmetries", "--count", 12, "--default")
    assert hw.load(before).signal.name == "symmetries" and hw.load(before).calibration.size == 12
    command("calibrate", before, "--count", 13)  # what is calibrated is what it answers with
    assert hw.load(before).signal.name == "symmetries" and hw.load(before).calibration.size == 13


def test_what_cannot_be_is_said_in_a_sentence(small, tmp_path):
    model, data = small
    (tmp_path / "text.h5").write_text("no")
    for arguments, says in (
        (["bal3d"], "Did you mean 'ball3d'"),
        (["ball3d", "--mode", 3], "The mode is 3: choose 1"),
        (["ball3d", "--q", 1.5], "The keep fraction q is 1.5"),
        (["ball3d", "--horizon", -1], "The horizon is -1 frames"),
        (["ball3d", "--horizon", 2.5], "mode 2 may ask the solver, which takes whole frames"),
        (["ball3d", "--frame", -1], "The frame is -1"),
        (["ball3d", "--split", "tset"], "Unknown split 'tset'"),
        (["ball3d", "--coverage", 1], "The coverage is 1"),
        (["ball3d", "--tolerance", 0.1, "--q", 0.5], "give it, or q, or a threshold, but one"),
        (["ball3d", "--tolerance", -1], "The tolerance is -1 deviations"),
        (["ball3d", "--tolerance", 0.1, "--mode", 1], "it needs mode 2"),
        (["ball3d", "--signal", "guess"], "There is no signal 'guess'"),
        (["ball3d", "--signal", "many splits"], "no calibration for the signal 'many splits' .*it has 'step-doubling' and '"),
        (["ball3d", "--signal", "many splits"], 'run `hybridworld calibrate ball3d --signal "many splits" --out FILE`'),
        (["ball3d", "--input", tmp_path / "text.h5"], "cannot be read as HDF5"),
        (["ball3d", "--input", next(data.glob("data/train/*.hdf5"))], "holds states of shape"),
        ([model, "--system", "oregonator"], "does not fit the system oregonator"),
    ):
        with pytest.raises(hw.InvalidInput, match=says):
            command("predict", *arguments, "--out", tmp_path)
    with pytest.raises(hw.InvalidInput, match="is about euler2d with density"):
        generate(Plan(Ball3D(), {"train": 1, "val": 1}), tmp_path / "balls", workers=1)
        command("calibrate", model, "--data", tmp_path / "balls")


def test_the_command_itself_says_it_on_stderr(tmp_path):
    code, _, err = run("predict", "nothing.safetensors", "--out", tmp_path)
    assert code == 1 and err.startswith("Error: There is no model") and len(err.splitlines()) == 1


def test_a_system_of_ones_own_from_training_to_forecast(tmp_path):
    name = f"{flows.__file__}:Oscillator"
    wishes = [part for wish in SMALL for part in ("--set", wish)]
    wishes += ["--set", "training.batch=8"]
    command("train", name, "--stream", "--preset", "smoke", *wishes, "--out", tmp_path / "run")
    model = tmp_path / "run/model.safetensors"
    told = predict(model, "--system", name, "--horizon", 4, "--count", 2, "--check", "--out", tmp_path)
    assert len(told["trajectories"]) == 2
    with pytest.raises(hw.InvalidInput, match="no solver for oscillator"):
        command("predict", model, "--out", tmp_path)


def test_a_reference_on_a_finer_grid_goes_from_the_dataset_to_the_forecast(tmp_path):
    env = Euler2D(grid=(8, 8)).resolved(2)
    generate(Plan(env, {"train": 4, "val": 4}), tmp_path / "data", workers=1)
    wishes = [part for wish in SMALL for part in ("--set", wish)]
    options = ("--data", tmp_path / "data", "--preset", "smoke", *wishes, "--out", tmp_path / "run")
    with pytest.raises(hw.InvalidInput, match=r"was recorded with --resolved 2, and this run has 3"):
        command("train", "euler2d", *options, "--resolved", 3)
    command("train", "euler2d", *options)
    model = tmp_path / "run/model.safetensors"
    assert load_bundle(model).reference["resolved"] == 2
    assert "euler2d" in load_bundle(model).provenance["calibration"]["step-doubling"]["data"]
    told = predict(model, "--horizon", 4, "--count", 2, "--frame", 3, "--q", 0, "--out", tmp_path)
    with h5py.File(told["files"]["data"]) as file:
        start = np.array([file["t0_fields/density"][row, 0] for row in range(2)])
    samples = [env.initial("test", seed) for seed in range(2)]
    *_, later = env.trajectory(np.stack([sample.state for sample in samples]), 3, np.zeros((2, 0)))
    np.testing.assert_allclose(start, later[:, 0], rtol=1e-6)
