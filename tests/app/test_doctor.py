"""`hybridworld doctor` and what the Tab key offers."""

import json
import signal

from typer.testing import CliRunner

from hybridworld.app import completion, doctor
from hybridworld.app.cli import app


def test_all_is_well_here_and_every_model_is_looked_at(monkeypatch):
    monkeypatch.setattr(doctor, "ENGINES", {"torch": "pass"})
    result = CliRunner().invoke(app, ["doctor", "--json"])
    found = {each["what"]: each for each in json.loads(result.stdout)}
    assert result.exit_code == 0, result.stdout
    assert {"hybridworld", "torch", "threads", "gpu", "disk", "solver euler2d", "model ball3d", "engine torch"} <= set(found)
    assert found["model ball3d"]["told"].startswith("whole; 64 frames ahead")


def test_what_is_broken_is_told_and_counts(monkeypatch, capsys):
    def broken():
        yield doctor.tried("model x", lambda: 1 / 0)
        yield doctor.Finding("gpu", None, "none")

    for name in ("packages", "machine", "engines", "disk", "solvers", "models"):
        monkeypatch.setattr(doctor, name, broken if name == "models" else list)
    assert not doctor.examine(as_json=False)
    told = capsys.readouterr().out
    assert "ZeroDivisionError: division by zero" in told and "1 of 2 to mend" in told


def test_an_engine_that_dies_takes_nobody_with_it(monkeypatch):
    monkeypatch.setattr(doctor, "ENGINES", {
        "torch": "import os, signal; os.kill(os.getpid(), signal.SIGILL)", "numpy": "raise ValueError('no')", "nothing": "",
    })  # fmt: skip
    found = {finding.what: finding for finding in doctor.engines()}
    assert found["engine torch"] == ("engine torch", False, "died with SIGILL")
    assert found["engine numpy"] == ("engine numpy", False, "ValueError: no")
    assert found["engine nothing"].well is None
    assert doctor.ended(-signal.SIGKILL, "") == "died with SIGKILL"


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
