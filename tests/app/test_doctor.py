"""`hybridworld doctor` and what the Tab key offers."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hybridworld.app import completion, doctor
from hybridworld.app.cli import app
from hybridworld.deploy import engines
from hybridworld.deploy.verdicts import Memory, Verdict
from hybridworld.surrogate.engines.registry import installed


@pytest.fixture(autouse=True)
def judged(monkeypatch):
    """Engines are judged as told, without a trial."""
    failures = {"eager-bf16": "died with SIGILL"}
    known = {name: Verdict(name, failures.get(name), 2.0, 2.0) for name in installed(quick=True)}
    monkeypatch.setattr(engines, "compare_engines", lambda model, names: Memory(Path(), known))


def test_all_is_well_here_and_every_model_is_looked_at():
    result = CliRunner().invoke(app, ["doctor", "--json"])
    found = {each["what"]: each for each in json.loads(result.stdout)}
    assert result.exit_code == 0, result.stdout
    assert {"hybridworld", "torch", "threads", "gpu", "disk", "solver euler2d", "model ball3d", "engine eager-bf16"} <= set(
        found
    )
    assert found["model ball3d"]["told"].startswith("whole; 64 frames ahead")
    assert found["model ball3d"]["told"].endswith("engine eager")


def test_what_is_broken_is_told_and_counts(monkeypatch, capsys):
    def broken():
        yield doctor.tried("model x", lambda: 1 / 0)
        yield doctor.Finding("gpu", None, "none")

    for name in ("packages", "machine", "engines", "disk", "solvers", "models"):
        monkeypatch.setattr(doctor, name, broken if name == "models" else list)
    assert not doctor.examine(as_json=False)
    told = capsys.readouterr().out
    assert "ZeroDivisionError: division by zero" in told and "1 of 2 to mend" in told


def test_what_every_engine_did_is_told_and_none_has_to_be_mended():
    found = {finding.what: finding for finding in doctor.engines()}
    assert found["engine eager-bf16"] == ("engine eager-bf16", None, "died with SIGILL")
    assert "bench engines" in found["engine compiled"].told and all(finding.well is not False for finding in found.values())
    if "openvino" in installed():
        assert found["engine openvino"].well and found["engine openvino"].told.startswith("works")


def test_the_tab_key_offers_what_there_is(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "mine").mkdir(parents=True)
    (tmp_path / "runs" / "mine" / "model.safetensors").touch()
    (tmp_path / "my.py").touch()
    assert completion.models("") == ["ball3d", "runs/mine/model.safetensors"] or "ball3d" in completion.models("")
    assert completion.models("ru") == ["runs/mine/model.safetensors"]
    assert completion.systems("") == ["oregonator", "euler2d", "ball3d", "tabletop", "my.py"]
    assert completion.systems("e") == ["euler2d"]
    assert completion.splits("ood") == ["ood-near", "ood-far"]


def test_the_shell_asks_and_is_answered():
    environment = {"_HYBRIDWORLD_COMPLETE": "complete_bash", "COMP_WORDS": "hybridworld predict ba", "COMP_CWORD": "2"}
    result = CliRunner().invoke(app, [], env=environment, prog_name="hybridworld")
    assert "ball3d" in result.stdout
