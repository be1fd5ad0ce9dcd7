"""`hybridworld bench engines`, and where the engine is told."""

import json
from pathlib import Path

import pytest

from hybridworld.app import bench_engines
from hybridworld.deploy import engines
from hybridworld.errors import InvalidInput
from tests.app.commands import command, predict
from tests.deploy.fakes import saved, tried_here
from tests.surrogate.flows import Oscillator

SYSTEM = f"{Path(__file__).parents[1] / 'surrogate' / 'flows.py'}:Oscillator"


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setenv("HYBRIDWORLD_CACHE", str(tmp_path / "cache"))
    saved(tmp_path / "model.safetensors", Oscillator())
    return tmp_path / "model.safetensors"


def test_every_engine_has_a_row_and_the_choice_is_remembered(file, monkeypatch, tmp_path):
    monkeypatch.setattr(bench_engines, "installed", lambda quick: ["eager-bf16"])
    monkeypatch.setattr(engines, "try_engines", tried_here)
    told = json.loads(
        command("bench", "engines", file, "--system", SYSTEM, "--rounds", 3, "--out", tmp_path / "page.md", "--json")
    )
    eager, other = told["engines"]
    assert eager["engine"] == "eager" and eager["verdict"] is None and all(ms > 0 for ms in eager["alone"].values())
    assert other["engine"] == "eager-bf16" and "allowed is 0" in other["verdict"]["failure"] and not other["alone"]
    assert told["choice"] == {"one": "eager", "many": "eager"}
    page = (tmp_path / "page.md").read_text()
    assert "hybridworld bench engines" in page and "| eager-bf16 |" in page
    assert list((tmp_path / "cache" / "engines").glob("oscillator-*/verdicts.json"))


def test_a_forecast_says_who_ran_the_network(file, tmp_path):
    told = predict(file, "--system", SYSTEM, "--horizon", 4, "--count", 1, "--out", tmp_path)
    assert told["engine"] == "eager"


def test_an_engine_that_there_is_not_is_refused(file, tmp_path):
    with pytest.raises(InvalidInput, match="There is no engine 'warp'"):
        predict(file, "--system", SYSTEM, "--engine", "warp", "--out", tmp_path)
