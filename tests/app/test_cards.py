"""What ships has a card, the card belongs to its file, and it says where the model fails."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hybridworld.app.card import page_of
from hybridworld.bench.card import JUDGING, Cell, card_at, core_hours, default_count, failures, measure_cells, recipe_of
from hybridworld.data.evidence import fresh_pairs
from hybridworld.data.generate import generate
from hybridworld.data.plan import Plan
from hybridworld.data.provenance import OWN, SOURCES
from hybridworld.deploy import load
from hybridworld.deploy.load import shipped
from hybridworld.errors import InvalidInput
from hybridworld.physics.registry import find_system
from hybridworld.surrogate.bundle import load_bundle
from tests.app.budgets import MINE, NETWORK, SHORT, train
from tests.app.commands import command
from tests.surrogate.flows import Drift

PAGES = Path(__file__).parents[2] / "docs" / "models"
LARGEST = 8_000_000


@pytest.fixture(scope="module")
def mine(tmp_path_factory):
    """A guided model of a user's system, trained a little, and that system."""
    folder = tmp_path_factory.mktemp("mine")
    (folder / "mine.py").write_text(MINE)
    system = f"{folder / 'mine.py'}:Field"
    out = ("--out", folder / "run")
    assert train(system, "--stream", "--preset", "guided", *out, wishes=[*SHORT, *NETWORK])[0] == 0
    return system, folder / "run" / "model.safetensors"


# What ships.


@pytest.mark.parametrize("name", shipped())
def test_a_model_that_ships_is_small_and_has_its_card(name):
    path = shipped()[name]
    card = card_at(path)
    assert path.stat().st_size <= LARGEST
    assert card is not None and card["name"] == name and card["bytes"] == path.stat().st_size
    assert load_bundle(path).provenance["source"] in SOURCES
    assert {cell["split"] for cell in card["cells"]} == set(JUDGING)
    assert (PAGES / f"{name}.md").read_text() == page_of(card)
    assert not re.search(r"(?<![\w.])/(work|home|root|tmp|Users)/", json.dumps(card))


def test_the_list_and_the_card_of_what_ships():
    listed = command("models")
    assert all(name in listed for name in shipped()) and "core-hours" in listed
    page = command("models", "ball3d")
    for words in ("# ball3d", "recipe", "core-hours", "Known failures", "### ood-far", "| AUROC |", "cannot pay on a CPU"):
        assert words in page
    assert json.loads(command("models", "--json"))["ball3d"] == json.loads(command("models", "ball3d", "--json"))
    with pytest.raises(InvalidInput, match="There is no model 'bal3d'"):
        command("models", "bal3d")


def test_the_recipe_is_the_command_that_trained_it():
    bundle = load_bundle(shipped()["ball3d"])
    found = recipe_of(bundle, find_system("ball3d"))
    assert found == (
        "hybridworld train ball3d --stream --preset laptop --set training.lr=0.001 --set training.warmup=1.0 "
        "--set training.epochs=160 --set training.samples=51200 --set training.batch=256 --set training.patience=160"
    )
    assert core_hours(bundle) == pytest.approx(bundle.provenance["seconds"] / 3600)
    known = {**bundle.provenance, "minutes": 10.0, "source": OWN, "data seconds": 36.0, "threads": "2"}
    timed = replace(bundle, provenance=known, reference={"resolved": 4})
    assert recipe_of(timed, find_system("ball3d")).startswith(
        "hybridworld train ball3d --resolved 4 --minutes 10 --preset laptop"
    )
    assert "epochs" not in recipe_of(timed, find_system("ball3d"))
    assert core_hours(timed) == pytest.approx(core_hours(bundle) + 2 * 36 / 3600)


# Making one.


def test_the_card_of_a_users_guided_model(mine, tmp_path):
    system, model = mine
    notes = tmp_path / "notes.txt"
    notes.write_text("- It has hardly been trained.\n\n")
    out = command("card", model, "--system", system, "--count", 4, "--notes", notes, "--out", tmp_path / "pages")
    assert out.splitlines() == [str(model.with_suffix(".json")), str(tmp_path / "pages" / "drift.md")]
    page, card = (tmp_path / "pages/drift.md").read_text(), json.loads(model.with_suffix(".json").read_text())
    assert "It has hardly been trained." in card["failures"] and page == page_of(card) and card["guided"]
    assert len(card["cells"]) == 3 * 4 and {cell["trajectories"] for cell in card["cells"]} == {4}
    assert "times that of its guide" in page and "--set surrogate.patch=4" in page
    assert command("models", model) == page + "\n"
    other = tmp_path / "other.safetensors"
    other.write_bytes(model.read_bytes() + b" ")
    other.with_suffix(".json").write_text(json.dumps(card))
    with pytest.raises(InvalidInput, match="is the card of another file"):
        command("models", other)


def test_what_ships_gets_a_card_in_the_package_only_for_a_release(tmp_path, monkeypatch):
    package = tmp_path / "package"
    package.mkdir()
    (package / "ball3d.safetensors").write_bytes(shipped()["ball3d"].read_bytes())
    monkeypatch.setattr(load, "MODELS", package)
    made = ("card", "ball3d", "--count", 2, "--out", tmp_path / "pages")
    assert command(*made).splitlines() == [str(tmp_path / "pages" / f"ball3d.{end}") for end in ("json", "md")]
    assert not (package / "ball3d.json").exists()
    assert command(*made, "--release").splitlines()[0] == str(package / "ball3d.json")
    assert card_at(package / "ball3d.safetensors")["name"] == "ball3d"


def test_nothing_is_written_where_the_page_has_no_place(tmp_path):
    (tmp_path / "taken").write_text("a file")
    copy = tmp_path / "copy.safetensors"
    copy.write_bytes(shipped()["ball3d"].read_bytes())
    with pytest.raises(InvalidInput, match="taken cannot be made"):
        command("card", copy, "--count", 2, "--out", tmp_path / "taken")
    assert not copy.with_suffix(".json").exists()


def test_a_model_without_a_solver_or_a_card_is_told_so(mine, tmp_path):
    copy = tmp_path / "copy.safetensors"
    copy.write_bytes(mine[1].read_bytes())
    with pytest.raises(InvalidInput, match="There is no solver for drift: name its system with --system"):
        command("card", copy)
    with pytest.raises(InvalidInput, match="has no card yet: make one with"):
        command("models", copy)


def test_a_users_guided_model_is_evaluated_on_data(mine, tmp_path):
    system, model = mine
    generate(Plan(Drift(), {"test": 3}), tmp_path / "data", workers=1)
    found = json.loads(command("evaluate", model, "--data", tmp_path / "data", "--count", 6, "--system", system, "--json"))
    assert found["test"]["8"]["mse"][0] > 0
    with pytest.raises(InvalidInput, match="is guided by the solver of drift: name that system with --system"):
        command("evaluate", model, "--data", tmp_path / "data", "--count", 6)


def test_errors_stand_beside_those_of_no_change(mine):
    system, model = mine
    environment = find_system(system)
    bundle = load_bundle(model, system=environment)
    cells = measure_cells(bundle, environment, 5)
    assert [(cell.split, cell.horizon) for cell in cells] == [(split, h) for split in JUDGING for h in (1, 2, 4, 8)]
    pairs = fresh_pairs(environment, "test", range(5), (1, 2, 4, 8))
    for cell in cells[:4]:
        batch = pairs[cell.horizon]
        change = (batch.futures - batch.states) / bundle.surrogate.std.numpy()[:, None]
        assert cell.no_change == pytest.approx(np.sqrt((change**2).mean(axis=(1, 2))).mean(), rel=1e-5)
        assert cell.error > 0 and 0 <= cell.deferred <= 1 and (cell.auroc is None or 0 <= cell.auroc <= 1)


def test_few_trajectories_of_a_slow_solver(monkeypatch):
    clock = iter([0.0, 0.1, 0.0, 30.0, 0.0, 1.0])
    monkeypatch.setattr("hybridworld.bench.card.time.perf_counter", lambda: next(clock))
    assert [default_count(Drift()) for _ in range(3)] == [200, 16, 60]
    assert default_count(find_system("ball3d")) == 2_000


# The rules.


GOOD = Cell("test", 8, 1_000, 0.1, 1.0, 0.9, 0.25)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, None),
        ({"error": 1.0}, "test: at h = 8 it is no better than no change."),
        ({"auroc": 0.6}, r"its error map hardly finds the errors \(AUROC down to 0\.60\)\."),
        ({"auroc": None}, None),
        ({"deferred": 0.5}, "test: asked to defer 25%, it defers 50% at h = 8."),
        ({"deferred": 0.3}, None),
        ({"deferred": None}, None),
        ({"deferred": 0.75, "trajectories": 4}, None),  # that is chance
        ({"split": "ood-far", "deferred": 0.9, "error": 0.3}, None),  # as it shall be
        ({"split": "ood-far", "deferred": 0.05, "error": 0.3}, "ood-far: asked to defer 25%, it defers 5% at h = 8."),
    ],
)
def test_a_failure_is_a_rule_about_the_numbers(change, words):
    cells = [GOOD, replace(GOOD, **change)] if change.get("split") else [replace(GOOD, **change)]
    told = failures(cells, 200)
    assert not told if words is None else len(told) == 1 and re.search(words, told[0])
