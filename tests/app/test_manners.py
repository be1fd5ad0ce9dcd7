"""In a notebook: names and types, reprs that tell, pictures, tensors, parameters by name, a horizon per state."""

import subprocess
import sys
from pathlib import Path
from typing import get_type_hints

import h5py
import numpy as np
import pytest
import torch

import hybridworld as hw
from tests.app.commands import command, predict

BALL = hw.system("ball3d")
STATES, PARAMS = BALL.initials("test", range(6))
NAMED = {"restitution": PARAMS[:, 0], "gravity": PARAMS[:, 1]}


@pytest.fixture(scope="module")
def model():
    return hw.load("ball3d")


def test_dir_shows_the_interface_and_every_name_is_there():
    shown = dir(hw)
    assert {"load", "system", "wrap", "train", "calibrate", "generate", "simulate", "Gate", "HybridModel"} <= set(shown)
    assert all(getattr(hw, name) is not None for name in shown)
    with pytest.raises(AttributeError, match="has no attribute 'lode'"):
        _ = hw.lode


def test_types_are_real_and_shipped():
    assert get_type_hints(hw.load)["return"] is hw.HybridModel and get_type_hints(hw.system)["return"] is hw.Environment
    assert Path(hw.__file__).with_name("py.typed").is_file()


def test_the_package_is_a_command():
    found = subprocess.run([sys.executable, "-m", "hybridworld", "--version"], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == hw.__version__


def test_a_model_a_forecast_and_a_gate_tell_what_they_are(model):
    told = repr(model)
    for words in ("of ball3d", "horizons: whole, 1 to 64", "trained on", "reaches a validation MSE of", "solver: class Ball3D"):
        assert words in told
    assert "error map: step-doubling\n" in told
    gate = hw.Gate(model, q=0.75)
    gate.predict(STATES, 32, PARAMS)
    assert "6 answers" in repr(gate)
    assert "32" in repr(model.predict(STATES, 32, PARAMS)) and "ball3d" in repr(hw.simulate(BALL, frames=3))


def test_forecasts_and_trajectories_are_drawn(model):
    pages = (
        model.predict(STATES, 8, PARAMS).plot(),
        model.predict(STATES[0], 8, PARAMS[0]).plot(),
        hw.simulate(BALL, frames=5).plot(),
    )
    assert all(page._repr_png_().startswith(b"\x89PNG") for page in pages)


def test_parameters_by_name_are_the_parameters(model):
    by_name, by_place = (model.predict(STATES, 16, given).state for given in (NAMED, PARAMS))
    np.testing.assert_array_equal(by_name, by_place)
    np.testing.assert_array_equal(BALL.solve(STATES, 16, NAMED), BALL.solve(STATES, 16, PARAMS))


def test_every_state_may_have_a_horizon_of_its_own(model):
    horizons = [4, 8, 4, 64, 100, 2]
    together = model.predict(STATES, horizons, PARAMS)
    for row, horizon in enumerate(horizons):
        alone = model.predict(STATES[row], horizon, PARAMS[row])
        assert bool(alone.used_solver) == bool(together.used_solver[row])
        np.testing.assert_allclose(together.state[row], alone.state, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_tensors_are_answered_by_tensors(model, dtype):
    states, params = torch.tensor(STATES, dtype=dtype, requires_grad=True), torch.tensor(PARAMS, dtype=dtype)
    expected = model.predict(states.detach().numpy(), 16, params.numpy())
    for answer in (model.predict(states, 16, params), hw.Gate(model).predict(states, 16, params)):
        assert answer.state.dtype == dtype and not answer.state.requires_grad
        torch.testing.assert_close(answer.state, torch.as_tensor(expected.state).to(dtype))
        torch.testing.assert_close(answer.score, torch.as_tensor(expected.score))
        assert torch.equal(answer.used_solver, torch.as_tensor(expected.used_solver))
    assert all(isinstance(link.state, torch.Tensor) for link in model.rollout(states, 8, 2, params))


def test_a_device_can_be_named(tmp_path):
    assert "on cpu" in repr(hw.load("ball3d", device="cpu"))
    assert predict("ball3d", "--device", "cpu", "--horizon", 2, "--count", 1, "--out", tmp_path)["mode"] == 2


def test_a_parameter_can_be_set_by_command(tmp_path):
    command("simulate", "ball3d", "--frames", 4, "--param", "gravity=-3", "--out", tmp_path)
    with h5py.File(tmp_path / "ball3d-test-0.hdf5") as file:
        assert file["scalars/gravity"][:] == pytest.approx([-3])
    told = predict("ball3d", "--param", "gravity=-3", "--horizon", 4, "--count", 2, "--check", "--out", tmp_path)
    with h5py.File(told["files"]["data"]) as file:
        assert file["scalars/gravity"][:] == pytest.approx([-3, -3])


def test_a_forecast_goes_on_from_its_last_frame(tmp_path):
    first = predict("ball3d", "--horizon", 8, "--count", 3, "--mode", 1, "--out", tmp_path / "first")
    asked = ("--input", first["files"]["data"], "--horizon", 4, "--mode", 1, "--map")
    by_default, last, start = (
        predict("ball3d", *asked, *frame, "--out", tmp_path / "next")["trajectories"]
        for frame in ((), ("--frame", 1), ("--frame", 0))
    )
    assert [row["score"] for row in by_default] == [row["score"] for row in last] != [row["score"] for row in start]
