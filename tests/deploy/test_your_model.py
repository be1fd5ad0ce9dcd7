"""The file of docs/your-model.md, and the example with a Fourier neural operator, do what the page says."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hybridworld as hw
from hybridworld.physics.registry import module_from_file
from tests.app.commands import command, predict

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """The complete file of the page, where it may leave its weights."""
    return Path(shutil.copy(DOCS / "examples" / "my_model.py", tmp_path_factory.mktemp("page")))


def test_the_page_shows_the_file_that_runs():
    shown = (DOCS / "examples" / "my_model.py").read_text()
    assert f'```python title="my_model.py"\n{shown}```' in (DOCS / "your-model.md").read_text()


def test_the_file_goes_from_training_to_a_forecast_with_a_tolerance(file, tmp_path):
    module_from_file(file).train(steps=60, trajectories=50)
    code, saved = f"{file}:load", tmp_path / "my_model.safetensors"
    own = ("--backbone", code)
    command("calibrate", "--model", code, "--system", "ball3d", "--horizons", "1-32", "--count", 60, "--out", saved)
    told = predict(saved, *own, "--horizon", 32, "--tolerance", 2, "--coverage", 0.8, "--check", "--out", tmp_path)
    assert told["calibrated_by"] == 60 and all(row["error_bound"] <= 2 for row in told["trajectories"])
    wrapped = hw.wrap(code, "ball3d", horizons=range(1, 33), count=60)
    start = hw.system("ball3d").initial("test", seed=0)
    forecast = wrapped.predict(start.state, 32, start.params, tolerance=2, coverage=0.8)
    assert forecast.score == pytest.approx(told["trajectories"][0]["score"], rel=1e-4)
    assert bool(forecast.used_solver) == told["trajectories"][0]["used_solver"]


@pytest.mark.slow
def test_the_file_as_it_stands(file):
    out = subprocess.run([sys.executable, file], capture_output=True, text=True, check=True).stdout
    assert re.fullmatch(r"(solver|surrogate) with a score of [\d.]+\n", out)
    model = hw.load(file.with_suffix(".safetensors"), backbone=f"{file}:load")
    system = hw.system("ball3d")
    states, params = system.initials("test", range(400))
    forecast = model.predict(states, 32, params, tolerance=0.5)
    errors = model.errors(forecast.state, system.solve(states, 32, params))
    assert np.mean(errors > 0.5) <= 0.1 + 2 * np.sqrt(0.1 * 0.9 / 400)
    assert 0.1 < forecast.used_solver.mean() < 0.9


@pytest.mark.slow
def test_a_fourier_neural_operator_under_the_map(tmp_path):
    """Minutes: a dataset, a training, a calibration and a judgement of what came of it."""
    pytest.importorskip("neuralop", reason="needs the neuraloperator package: the extra `examples`")
    shutil.copy(DOCS / "examples" / "fno.py", tmp_path)
    file, data = tmp_path / "fno.py", tmp_path / "data"
    system, own = ("--system", f"{file}:Oregonator32"), ("--backbone", f"{file}:load")
    command("generate", f"{file}:Oregonator32", "--count", "train=160,val=100,test=100,ood-far=100", "--out", data)
    subprocess.run([sys.executable, file, data], check=True)
    saved = tmp_path / "fno.safetensors"
    command("calibrate", "--model", f"{file}:load", *system, "--horizons", "1-16", "--out", saved)
    errors = json.loads(command("evaluate", saved, *own, "--data", data, "--split", "test", "--count", 100, "--json"))["test"]
    for horizon in ("4", "8", "16"):
        assert errors[horizon]["mse"][0] < 0.25 * errors[horizon]["no_change"][0]
    told = json.loads(command("bench", "tolerance", saved, *own, *system, "--data", data, "--tolerance", 0.2, "--json"))
    for row in told["rows"]:
        if row["split"] == "test":
            assert row["exceeding"] <= 0.1 + 2 * np.sqrt(0.1 * 0.9 / 100)
    forecast = predict(saved, *own, *system, "--horizon", 16, "--q", 0.5, "--count", 32, "--check", "--out", tmp_path)
    alone, left = (np.mean([row[key] for row in forecast["trajectories"]]) for key in ("surrogate_error", "error"))
    assert left < alone * (1 - forecast["deferred"] / 32)  # what it hands over is worse than the rest
