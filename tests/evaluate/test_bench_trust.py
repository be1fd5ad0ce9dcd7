"""The measurement of trust, on a network of a minute's size."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from hybridworld.app.cli import app
from hybridworld.data.generate import generate
from hybridworld.data.plan import Plan
from hybridworld.evaluate import bench_trust
from hybridworld.evaluate.bench_trust import Cell, alarm_rate, coverages, false_alarm_rate, mode2_of
from hybridworld.physics.ball3d import Ball3D
from hybridworld.trust.calibrate import Judged
from hybridworld.trust.calibration import Calibration

RNG = np.random.default_rng(0)


def judged(count, wrong=1.0):
    """Errors that scores tell up to a factor."""
    scores = RNG.lognormal(size=count)
    errors = wrong * scores * RNG.lognormal(0, 0.3, count)
    return Judged(scores, errors, errors**2, scores, errors)


def cells(count=1200):
    return {h: Cell({"told": judged(count)}, np.arange(count) % 600) for h in (1.0, 4.0)}


def test_bounds_cover_what_they_promise_on_halves_of_the_same_data():
    found = coverages(cells(), "told")
    assert found.shape == (20, 2) and 0.88 < found.mean() < 0.92 and found.min() > 0.8


def test_the_alarm_is_quiet_on_the_same_data_and_fires_on_others(monkeypatch):
    monkeypatch.setattr(bench_trust, "WINDOWS", 50)
    same = cells()
    assert false_alarm_rate(same, "told", false_alarms=0.01) < 0.02
    known = Calibration({h: np.sort(cell.judged["told"].scores) for h, cell in same.items()})
    assert alarm_rate(known, {h: 2 * judged(600).scores for h in same}) == 1


def test_a_gate_is_judged_beside_chance_and_oracle():
    found = mode2_of(judged(2000), threshold=2.0, q=0.75)
    assert found["random"]["cut"] < found["frozen"]["cut"] < found["oracle"]["cut"]
    assert found["matched"]["deferral"] == found["oracle_at_q"]["deferral"] == 0.25


def test_the_command_compares_every_signal_that_applies(tmp_path, monkeypatch):
    monkeypatch.setattr(bench_trust, "WINDOWS", 2)
    counts = {"train": 40, "val": 40, "test": 40, "ood-far": 40}
    generate(Plan(Ball3D(), counts), tmp_path / "balls", workers=1)
    arguments = ["--data", tmp_path / "balls", "--count", 300, "--member", "ball3d", "--json", "--out", tmp_path / "trust.md"]
    result = CliRunner().invoke(app, ["bench", "trust", "ball3d", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert set(found["auroc"]) == {"test", "ood-far"} and len(found["costs"]) >= 12
    assert {"step-doubling", "many splits", "symmetries", "ensemble", "learned error head"} <= set(found["costs"])
    assert "gradient magnitude" not in found["costs"]  # a ball has no grid
    value, low, high = found["auroc"]["test"]["8"]["step-doubling"]
    assert low < value < high and value > 0.7
    text = (tmp_path / "trust.md").read_text()
    assert all(part in text for part in ("## AUROC, test", "## Mode 2", "## Error bounds", "## Alarm", "## Price of the map"))


@pytest.mark.parametrize("splits", [{"train": 2, "val": 2}])
def test_without_test_data_it_says_so(tmp_path, splits):
    generate(Plan(Ball3D(), splits), tmp_path / "balls", workers=1)
    with pytest.raises(ValueError, match="no split 'test' to judge with"):
        CliRunner().invoke(app, ["bench", "trust", "ball3d", "--data", str(tmp_path / "balls")], catch_exceptions=False)
