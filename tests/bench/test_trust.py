"""The measurement of trust, on a network of a minute's size."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from hybridworld.app.cli import app
from hybridworld.bench import trust as bench_trust
from hybridworld.bench.alarm import alarm_rate
from hybridworld.bench.trust import Cell, coverages, false_alarm_rate, free_objects, judge_cell, mode2_of
from hybridworld.data.dataset import Dataset
from hybridworld.data.generate import generate
from hybridworld.data.pairs import evaluation_pairs
from hybridworld.data.plan import Plan
from hybridworld.physics.ball3d import Ball3D
from hybridworld.physics.tabletop import Tabletop
from hybridworld.surrogate.surrogate import Surrogate
from hybridworld.trust import fitted, novelty
from hybridworld.trust.calibration import Calibration
from hybridworld.trust.judge import Judged
from hybridworld.trust.novelty import InputAmplitude
from tests.surrogate.flows import RING, Ring, ones, tiny

RNG = np.random.default_rng(0)


def judged(count, wrong=1.0):
    """Errors that scores tell up to a factor."""
    scores = RNG.lognormal(size=count)
    errors = wrong * scores * RNG.lognormal(0, 0.3, count)
    return Judged(np.ones(count), scores, errors, errors**2, np.ones(count), np.empty((0, 3)))


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
    assert alarm_rate(known, {h: 2 * judged(600).scores for h in same}, windows=50) == 1


def test_a_gate_is_judged_beside_chance_and_oracle():
    cell = Cell({"told": judged(2000)}, np.arange(2000))
    found = mode2_of(cell, "told", threshold=2.0, q=0.75)
    assert found["random"] < found["frozen"].low < found["frozen"].value < min(found["frozen"].high, found["oracle"])
    assert found["deferred"].low < np.mean(cell.judged["told"].scores > 2) == found["deferred"].value < found["deferred"].high
    assert found["share_of_oracle"].value == pytest.approx(found["frozen"].value / found["oracle"])
    assert found["matched"].value < found["oracle_at_q"]
    left = found["percentile"]
    assert left["oracle"] <= left["mode 2"] < left["mode 1"] == pytest.approx(np.percentile(cell.judged["told"].errors, 95))
    alike = mode2_of(Cell({"told": cell.judged["told"]}, np.arange(2000) % 40), "told", 2.0, 0.75)
    assert alike["frozen"].value == pytest.approx(found["frozen"].value)  # the same answers from fewer trajectories


def test_a_score_that_knows_nothing_but_the_kind_is_at_chance_within_kinds():
    kinds = np.repeat(["calm", "wild"], 1000)
    errors = np.where(kinds == "wild", 10, 1) * RNG.lognormal(size=2000)
    noise = RNG.random(2000)
    scores, ones = (kinds == "wild") + 0.1 * noise, np.ones(2000)
    tells_kind = Judged(ones, scores, errors, errors**2, ones, np.empty((0, 3)))
    cell = Cell({"kind": tells_kind}, np.arange(2000), kinds)
    assert cell.aurocs()["kind"].low > 0.7
    within = cell.aurocs(within_kinds=True)["kind"]
    assert within.low < 0.5 < within.high and within.high - within.low < 0.1


def test_maps_of_objects_are_judged_object_by_object_without_those_that_are_driven():
    spec = replace(Tabletop().spec, grid=(3,))
    states = np.zeros((50, *spec.shape), np.float32)
    states[:, spec.channels.index("kind")] = [-1, 0, 1]  # the pusher, a sphere, a box
    free = free_objects(spec, states)
    assert (free == [False, True, True]).all() and free_objects(RING, states) is None
    assert free_objects(replace(spec, driven=None), states).all()
    errors = RNG.lognormal(size=(50, 3))
    scores = np.where(free, errors, RNG.lognormal(5, 1, (50, 3)))  # right but for the pusher
    mapped = replace(judged(50), cells=np.stack([np.ones(150), scores.ravel(), errors.ravel()], axis=1))
    found = Cell({"map": mapped, "one number": judged(50)}, np.arange(50), None, free).aurocs_of_objects()
    assert list(found) == ["map"] and found["map"].value == 1


class TwoKinds(Ring):
    """A ring whose waves are at times drawn upside down."""

    def sample(self, rng, split):
        sample, turned = super().sample(rng, split), rng.random() < 0.5
        return replace(sample, state=-sample.state if turned else sample.state, origin={"kind": "down" if turned else "up"})


def test_kinds_of_a_dataset_are_those_of_its_trajectories(tmp_path):
    environment = TwoKinds()
    generate(Plan(environment, {"test": 6}), tmp_path, workers=1)
    expected = [environment.initial("test", number).origin["kind"] for number in range(6)]
    source = Dataset(tmp_path).source("test")
    assert source.kinds == expected
    batch = evaluation_pairs(source, 1, 8, seed=0)
    surrogate = Surrogate(RING, tiny(RING).surrogate, ones(RING)).eval()
    cell = judge_cell(surrogate, [InputAmplitude(surrogate)], source, batch)
    assert cell.kinds.tolist() == [*expected, *expected[:2]] and cell.groups.tolist() == [0, 1, 2, 3, 4, 5, 0, 1]


def test_the_command_compares_every_signal_that_applies(tmp_path, monkeypatch):
    monkeypatch.setattr(bench_trust, "WINDOWS", 2)
    monkeypatch.setattr(fitted, "PATIENCE", 1)
    monkeypatch.setitem(novelty.PAIRS, False, 2000)
    counts = {"train": 40, "val": 40, "test": 40, "ood-far": 40}
    generate(Plan(Ball3D(), counts), tmp_path / "balls", workers=1)
    arguments = ["--data", tmp_path / "balls", "--count", 300, "--member", "ball3d", "--json", "--out", tmp_path / "trust.md"]
    result = CliRunner().invoke(app, ["bench", "trust", "ball3d", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert set(found["auroc"]) == {"test", "ood-far"} and len(found["costs"]) >= 14
    rivals = {"step-doubling", "symmetries", "ensemble", "learned error head", "density guard", "input amplitude"}
    assert rivals <= set(found["costs"])
    assert "gradient magnitude" not in found["costs"]  # a ball has no grid
    assert not found["auroc_within_kinds"]  # and all of its starts are of one kind
    assert re.fullmatch(r"a network, [\d,]+ steps", found["costs"]["learned error head"]["training"])
    value, low, high = found["auroc"]["test"]["8"]["step-doubling"]
    assert low < value < high and value > 0.7
    text = (tmp_path / "trust.md").read_text()
    assert all(part in text for part in ("## AUROC, test", "## Mode 2", "## Error bounds", "## Alarm", "## Price of the map"))
    assert (
        "| thresholds | 2,000 | 2,000 |" in text
        and "| val, for fitted rivals | 40 | 300 |" in text
        and "95th percentile" in text
    )


def test_a_calibrated_signal_is_judged_alone_with_test_data_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(bench_trust, "WINDOWS", 2)
    generate(Plan(Ball3D(), {"test": 40}), tmp_path / "balls", workers=1)
    arguments = ["ball3d", "--data", str(tmp_path / "balls"), "--count", "40", "--no-rivals", "--json"]
    result = CliRunner().invoke(app, ["bench", "trust", *arguments], catch_exceptions=False)
    found = json.loads(result.stdout)
    assert list(found["costs"]) == ["step-doubling"] and found["trajectories"] == {"test": 40}
    assert set(found["mode2"]["test"]["64"]) >= {"frozen", "oracle", "share_of_oracle"} and found["overhead"]


@pytest.mark.parametrize("splits", [{"train": 2, "val": 2}])
def test_without_test_data_it_says_so(tmp_path, splits):
    generate(Plan(Ball3D(), splits), tmp_path / "balls", workers=1)
    with pytest.raises(ValueError, match="no split 'test' to judge with"):
        CliRunner().invoke(app, ["bench", "trust", "ball3d", "--data", str(tmp_path / "balls")], catch_exceptions=False)
