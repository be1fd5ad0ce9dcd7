"""`hybridworld refine` and `predict --keep`: what is written, what is left alone, and how it is told."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

from hybridworld.app import refine as app
from hybridworld.bench.intervals import Interval
from hybridworld.bench.refine import Compared, Gated, Refinement
from hybridworld.data.deferred import read_log
from hybridworld.deploy.load import find_model
from hybridworld.physics.registry import find_system
from hybridworld.surrogate.bundle import load_bundle
from tests.app.commands import command, run
from tests.bench.shifted import judged


@pytest.fixture
def outcome(monkeypatch):
    """Refinements come out as told: errors over errors before, on what was deferred and in distribution."""

    def come_out(deferred, known):
        def refine(bundle, *arguments):
            told = {"learned": 30, "steps": 9, "blend": 0.5}
            better = replace(bundle, provenance={**bundle.provenance, "refined": [told]})
            before = judged(np.ones(40), np.ones(40))
            parts = (Compared(before, judged(np.ones(40), np.full(40, ratio)), np.arange(40)) for ratio in (deferred, known))
            gates = Gated((0.25, 0.25), (0.1, 0.1), (0.25, 0.2), Interval(0.2, 0.1, 0.3))
            return Refinement(better, 30, *parts, gates)

        monkeypatch.setattr(app, "refine", refine)

    return come_out


@pytest.fixture
def mine(tmp_path):
    return shutil.copy(find_model("ball3d"), tmp_path / "mine.safetensors")


def test_a_better_model_stands_beside_the_old_one(outcome, mine):
    outcome(0.5, 1.0)
    before = mine.read_bytes()
    code, out, _ = run("refine", mine, "--from", "log", "--minutes", 1)
    assert code == 0 and "Better on what was deferred" in out and "0.5 (0.5 to 0.5)" in out
    assert mine.read_bytes() == before
    assert load_bundle(mine.with_stem("mine-refined")).provenance["refined"][0]["learned"] == 30


def test_the_old_one_is_replaced_where_that_is_asked_for(outcome, mine, tmp_path):
    outcome(0.5, 1.0)
    before = mine.read_bytes()
    assert run("refine", mine, "--from", "log", "--out", tmp_path / "other.safetensors")[0] == 0
    assert mine.read_bytes() == before
    assert run("refine", mine, "--from", "log", "--replace")[0] == 0
    assert "refined" in load_bundle(mine).provenance
    code, _, said = run("refine", mine, "--from", "log", "--replace", "--out", "x.safetensors")
    assert code == 1 and "give one of the two" in said


def test_what_ships_is_never_overwritten(outcome, tmp_path, monkeypatch):
    outcome(0.5, 1.0)
    monkeypatch.chdir(tmp_path)
    before = find_model("ball3d").read_bytes()
    assert run("refine", "ball3d", "--from", "log")[0] == 0
    assert (tmp_path / "ball3d-refined.safetensors").exists()
    for wish in (["--replace"], ["--out", find_model("ball3d")]):
        code, _, said = run("refine", "ball3d", "--from", "log", *wish)
        assert code == 1 and "ships with the package" in said
    assert find_model("ball3d").read_bytes() == before


@pytest.mark.parametrize(
    ("deferred", "known", "why"), ((1.1, 1.0, "better on what was deferred"), (0.5, 1.2, "in distribution"))
)
def test_a_refusal_writes_nothing_and_says_why(outcome, mine, deferred, known, why):
    outcome(deferred, known)
    before = mine.read_bytes()
    code, out, _ = run("refine", mine, "--from", "log", "--replace")
    assert code == 1 and "Refused" in out and why in out
    assert mine.read_bytes() == before and not mine.with_stem("mine-refined").exists()


def test_programs_get_json(outcome, mine):
    outcome(1.5, 1.0)
    code, out, _ = run("refine", mine, "--from", "log", "--json")
    told = json.loads(out)
    assert code == 1 and told["accepted"] is False and told["file"] is None and told["deferred"]["trajectories"] == 40


def test_there_must_be_a_log(mine, tmp_path):
    code, _, said = run("refine", mine, "--from", tmp_path / "nothing")
    assert code == 1 and "nothing to learn from" in said


def test_predict_keeps_what_it_defers(tmp_path):
    told = json.loads(
        command("predict", "ball3d", "--horizon", 16, "--split", "ood-far", "--count", 12, "--keep", tmp_path / "log",
                "--out", tmp_path / "out", "--json")
    )  # fmt: skip
    read = read_log(tmp_path / "log", find_system("ball3d").spec)
    assert len(read) == told["deferred"] > 0 and set(read.pairs.horizons) == {16}
