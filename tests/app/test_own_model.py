"""`hybridworld calibrate --model file.py:name`, and what the other commands make of it."""

import json

import pytest
from typer.testing import CliRunner

import hybridworld as hw
from hybridworld.app.cli import app
from hybridworld.bench import trust as bench_trust
from hybridworld.data.generate import generate
from hybridworld.data.plan import Plan
from hybridworld.deploy.load import WeakModel
from hybridworld.trust import fitted
from tests.app.commands import command, predict
from tests.deploy import foreign
from tests.surrogate import flows

SYSTEM, CODE = f"{flows.__file__}:Oscillator", f"{foreign.__file__}:load"
OWN = ("--system", SYSTEM, "--backbone", CODE)


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    path = tmp_path_factory.mktemp("own") / "mine.safetensors"
    out = command(*("calibrate", "--model", CODE, "--system", SYSTEM, "--horizons", "1,2,4,8,16", "--count", 60, "--out", path))
    assert "step-doubling, calibrated by 60 trajectories" in out
    return path


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data") / "data"
    generate(Plan(flows.Oscillator(), {"train": 40, "val": 40, "test": 40}), folder, workers=1)
    return folder


def test_it_is_told_what_begins_and_what_the_model_is_worth(tmp_path):
    out = ("--out", tmp_path / "weak.safetensors")
    with pytest.warns(WeakModel, match="calibrated by 12 trajectories, which promise little"):
        result = CliRunner().invoke(app, ["calibrate", "--model", CODE, "--system", SYSTEM, "--count", "12", *map(str, out)])
    assert result.exit_code == 0 and "calibrating" in result.stderr
    with pytest.warns(WeakModel, match="calibrated by 10 trajectories, which promise little"):
        command("calibrate", out[1], *OWN, "--count", 10)


def test_predict_takes_it(own, tmp_path):
    told = predict(own, *OWN, "--horizon", 16, "--count", 12, "--check", "--out", tmp_path)
    assert 0 < told["deferred"] < 12 and told["calibrated_by"] == 60
    model = hw.load(own, solver=flows.Oscillator(), backbone=CODE)
    assert told["threshold"] == pytest.approx(model.threshold(16, 0.75, beginning=True))
    with pytest.raises(hw.InvalidInput, match=r"is about the model foreign.py:load: .*--backbone foreign.py:load"):
        command("predict", own, "--system", SYSTEM, "--out", tmp_path)


def test_bench_worth_takes_it(own, tmp_path):
    out = tmp_path / "worth.md"
    told = json.loads(command("bench", "worth", *OWN, "--model", own, "--horizon", 16, "--count", 8, "--out", out, "--json"))
    assert {"mode 1 (the surrogate alone)", "mode 2, q = 0.75"} <= {row["method"] for row in told["rows"]}
    assert told["break_even"]["training_seconds"] is None and "which the model does not tell" in out.read_text()


def test_bench_trust_takes_it(own, data, tmp_path, monkeypatch):
    monkeypatch.setattr(bench_trust, "WINDOWS", 2)
    monkeypatch.setattr(bench_trust, "WINDOW", 40, raising=False)
    monkeypatch.setattr(fitted, "PATIENCE", 1)
    told = json.loads(command("bench", "trust", own, *OWN, "--data", data, "--count", 40, "--json"))
    assert told["signal"] == "step-doubling" and list(told["auroc"]["test"]) == ["2", "4", "8", "16"]
    known = set(told["costs"])
    assert {"step-doubling", "random augmentation", "learned error head"} <= known
    assert not {"many splits", "density guard"} & known  # other horizons, a last layer: it has neither


def test_bench_tolerance_shows_every_split(own, data, tmp_path):
    solved = json.loads(command("bench", "tolerance", own, *OWN, "--count", 100, "--tolerance", 0.2, "--json"))
    assert {row["split"] for row in solved["rows"]} == {"test", "ood-near", "ood-far"}
    assert [row["horizon"] for row in solved["rows"][:4]] == [2, 4, 8, 16]
    for row in solved["rows"]:
        assert row["exceeding"] <= min(0.2, row["alone"])
    out = command("bench", "tolerance", own, *OWN, "--data", data, "--out", tmp_path / "tolerance.md")
    assert "above it, of accepted" in out and "ood-far" not in out
    assert "bench tolerance" in (tmp_path / "tolerance.md").read_text()


def test_evaluate_takes_it(own, data):
    told = json.loads(command("evaluate", own, "--backbone", CODE, "--data", data, "--count", 40, "--json"))
    assert told["test"]["1"]["mse"][0] < told["test"]["1"]["no_change"][0]


def test_recorded_data_calibrate_it_too_and_its_file_is_called_like_the_code(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command("calibrate", "--model", CODE, "--data", data, "--horizons", "1-8", "--signal", "random augmentation")
    model = hw.load("foreign.safetensors", backbone=CODE)
    assert model.calibration.size == 40 and model.signal.name == "random augmentation" and model.system is None
    assert model.surrogate.answered == tuple(range(1, 9))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "Name the model"),
        (["ball3d", "--model", CODE], "Name the model"),
        (["--model", CODE], "give its system, or recorded data"),
        (["--model", f"{foreign.__file__}:repeated", "--system", SYSTEM], "merely repeats one step"),
        (["--model", CODE, "--system", SYSTEM, "--horizons", "a few"], "The horizons are 'a few': write them as 1,2,4,8 or"),
        (["--model", CODE, "--system", SYSTEM, "--horizons", "8-2"], "The horizons are none"),
        (["--model", "nowhere.py:load", "--system", SYSTEM], "There is no file nowhere.py"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(arguments, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(hw.InvalidInput, match=says):
        command("calibrate", *arguments, "--count", 20)
    assert not list(tmp_path.iterdir())
