"""Every entry of the paper at scale `smoke`, from an empty cache, as a user runs it; and the verdicts on made-up rows."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hybridworld.evaluate.reproduce import paper
from hybridworld.evaluate.reproduce import study as study_module
from hybridworld.evaluate.reproduce.chains import solved_or_nan
from hybridworld.evaluate.reproduce.claims import CLAIMS
from hybridworld.evaluate.reproduce.entries import ENTRIES, SYSTEMS, find_entries
from hybridworld.evaluate.reproduce.measures import Row
from hybridworld.evaluate.reproduce.scales import setting
from hybridworld.evaluate.reproduce.study import STEP, Study, fresh_pairs
from hybridworld.evaluate.reproduce.verdicts import ELSEWHERE, RULES, all_verdicts, judge
from hybridworld.evaluate.reproduce.visual import steepness
from PIL import Image
from typer.testing import CliRunner

from hybridworld.app.cli import app
from hybridworld.app.reproduction import parse_models, parse_scales, reason_to_skip
from hybridworld.errors import InvalidInput
from hybridworld.physics.ball3d import Ball3D
from hybridworld.physics.euler2d import Euler2D

SCALES = dict.fromkeys(SYSTEMS, "paper")


def run(*arguments):
    result = CliRunner().invoke(app, ["reproduce", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """The folder of everything, made once."""
    folder = tmp_path_factory.mktemp("reproduce")
    out = run("all", "--scale", "smoke", "--cache", folder / "cache", "--out", folder / "out")
    return folder, out


def test_every_entry_has_its_table_and_figure(done):
    folder, _ = done
    text = (folder / "out/results.md").read_text()
    for entry in ENTRIES:
        assert f"## {entry.title}" in text and f"`{entry.id}`" in text
        if entry.figure:
            assert (folder / f"out/results/{entry.id}.svg").read_text().lstrip().startswith("<?xml")
            with Image.open(folder / f"out/results/{entry.id}.png") as image:
                assert image.width > 500
        for system in entry.systems:
            assert f"| {system} |" in text.partition(f"## {entry.title}")[2].partition("\n## ")[0]
    for system in SYSTEMS:
        assert (folder / f"out/results/horizon-sweep-{system}.png").is_file()


def test_at_scale_smoke_nothing_is_confirmed(done):
    folder, out = done
    text = (folder / "out/claims.md").read_text()
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| ")][2:]
    assert len(rows) == len(CLAIMS) and {row[2] for row in rows} == {"not comparable"}
    assert "not comparable" in out and "at scale smoke; it needs" in text and "Where the paper contradicts itself" in text


def test_a_second_run_finds_everything_in_the_cache(done, monkeypatch):
    folder, _ = done
    for name in ("train", "judge", "generate", "fresh_pairs"):
        monkeypatch.setattr(study_module, name, lambda *_, name=name: pytest.fail(f"{name} was called"))
    run("all", "--scale", "smoke", "--cache", folder / "cache", "--out", folder / "again")
    first, second = ((folder / name / "results.md").read_text() for name in ("out", "again"))
    assert first == second


def test_what_was_interrupted_goes_on(done, tmp_path):
    """A result that is missing is made again, and is the same."""
    folder, _ = done
    study = Study(setting(Ball3D(), "smoke"), folder / "cache")
    before = study.cell("test", 8)
    for path in (folder / "cache/results").glob("ball3d-*.json"):
        if json.loads(path.read_text())["what"][2:6] == ["cell", "main", 0, "test"]:
            path.unlink()
    after = Study(setting(Ball3D(), "smoke"), folder / "cache").cell("test", 8)
    np.testing.assert_array_equal(before.scores[STEP], after.scores[STEP])


def test_a_change_of_what_it_depends_on_is_another_result(tmp_path):
    study = Study(setting(Ball3D(), "smoke"), tmp_path)
    for other in (
        Study(setting(Ball3D(), "laptop"), tmp_path),
        Study(replace(study.setting, pairs=7), tmp_path),
        Study(replace(study.setting, environment=Ball3D(frame_step=0.02)), tmp_path),
    ):
        assert other.key != study.key


def test_models_of_ones_own_are_judged_instead(done):
    folder, _ = done
    model = next((folder / "cache/runs").glob("ball3d-*/model.safetensors"))
    run("datasets", "--system", "ball3d", "--model", f"ball3d={model}", "--cache", folder / "other", "--out", folder / "own")
    assert not (folder / "other/runs").exists()


def test_fresh_pairs_are_what_the_solver_says():
    env = Euler2D(grid=(16, 16))
    pairs = fresh_pairs(env, "test", 3, (2, 8))
    for h, batch in pairs.items():
        assert batch.states.shape == (3, 4, 16, 16) and batch.states.dtype == np.float32
        np.testing.assert_allclose(batch.futures, env.solve(batch.states.astype(float), h, batch.params), rtol=1e-3, atol=1e-4)


# What is asked for.


def test_the_list_names_every_entry():
    out = run("--list")
    assert all(entry.id in out for entry in ENTRIES)


def test_scales_may_differ_by_system():
    assert parse_scales(["ball3d=paper", "laptop"]) == {"oregonator": "laptop", "euler2d": "laptop", "ball3d": "paper"}
    for wrong in ("huge", "ball=paper", "ball3d=huge"):
        with pytest.raises(InvalidInput, match="--scale has"):
            parse_scales([wrong])
    with pytest.raises(InvalidInput, match="--model has"):
        parse_models(["ball3d=nowhere.safetensors"])
    with pytest.raises(InvalidInput, match="Did you mean 'auroc'"):
        find_entries("aurok")


# Verdicts.


def test_every_claim_has_a_rule_or_a_reason_and_every_rule_an_entry():
    ruled, entries = {rule.claim for rule in RULES}, {entry.id: entry for entry in ENTRIES}
    assert ruled | set(ELSEWHERE) == {claim.id for claim in CLAIMS} and not ruled & set(ELSEWHERE)
    assert all(rule.entry in entries for rule in RULES)
    assert all(claim in ruled for entry in ENTRIES for claim in entry.claims)


def test_nothing_is_confirmed_without_data():
    empty = {system: [] for system in SYSTEMS}
    for results in ({}, {entry.id: {} for entry in ENTRIES}, {entry.id: empty for entry in ENTRIES}):
        assert {verdict.status for verdict in all_verdicts(results, SCALES)} == {"not comparable"}


def test_nothing_is_confirmed_at_too_small_a_scale():
    rule = next(rule for rule in RULES if rule.claim == "auroc-above-chance")
    found = {"ball3d": auroc_rows(0.9)}
    assert judge(rule, found, {"ball3d": "smoke"}).status == "not comparable"
    assert judge(rule, found, {"ball3d": "paper"}).status == "confirmed"
    assert judge(rule, found, {"ball3d": "paper"}).in_words == "confirmed (ball3d only)"


def auroc_rows(value):
    return [Row(STEP, h, value, split, value - 0.02, value + 0.02) for split in paper.SPLITS for h in paper.HORIZONS]


def test_the_paper_s_own_numbers_pass_and_worse_ones_fail():
    table = {
        system: [Row(STEP, h, v, split, v - 0.02, v + 0.02) for split, row in by.items() for h, v in row.items()]
        for system, by in paper.AUROC.items()
    }
    status = {verdict.claim: verdict.status for verdict in all_verdicts({"auroc": table}, SCALES)}
    assert status["auroc-above-chance"] == status["auroc-median"] == status["auroc-above-065"] == "confirmed"
    worse = {system: [replace(row, value=0.5, low=0.4) for row in rows] for system, rows in table.items()}
    status = {verdict.claim: verdict.status for verdict in all_verdicts({"auroc": worse}, SCALES)}
    assert status["auroc-above-chance"] == status["auroc-median"] == "not confirmed"
    cuts = {
        system: [Row("cut, matched q", h, v, split) for split, row in by.items() for h, v in row.items()]
        + [replace(row, method="AUROC") for row in table[system]]
        for system, by in paper.CUTS.items()
    }
    status = {verdict.claim: verdict.status for verdict in all_verdicts({"mode1-vs-mode2": cuts}, SCALES)}
    assert status["mode2-above-random"] == status["mode2-largest"] == "confirmed"
    assert status["mode2-follows-auroc"] == "not confirmed"  # the paper contradicts itself
    del cuts["euler2d"]
    status = {verdict.claim: verdict.status for verdict in all_verdicts({"mode1-vs-mode2": cuts}, SCALES)}
    assert status["mode2-largest"] == "not comparable"


def test_a_first_seed_far_from_the_mean_does_not_agree():
    def status(first):
        rows = [Row(STEP, 8, 0.8, "test", 0.78, 0.82), Row("first seed", 8, first)]
        verdicts = all_verdicts({"cross-seed": {"ball3d": rows}}, SCALES)
        return next(verdict.status for verdict in verdicts if verdict.claim == "cross-seed-agreement")

    assert status(0.81) == "confirmed" and status(0.85) == "not confirmed"


def test_an_ensemble_that_was_not_run_is_no_rival():
    """And one that was run on some systems is compared there."""

    def verdicts(ensemble):
        rows = {
            "euler2d": [Row(STEP, 16, 0.7), Row("random augmentation", 16, 0.3), Row("learned error head", 16, 0.6)],
            "ball3d": [Row(STEP, 16, 0.9), Row("random augmentation", 16, 0.5), Row("learned error head", 16, 0.6)],
        }
        rows["ball3d"].append(Row("ensemble", 16, ensemble))
        return {each.claim: each for each in all_verdicts({"baselines": rows}, SCALES)}

    assert verdicts(0.85)["baselines-best-mean"].status == "confirmed"
    assert verdicts(0.95)["baselines-best-mean"].status == "not confirmed"
    assert verdicts(0.85)["baselines-runner-up"].status == "not comparable"
    assert "several seeds" in verdicts(0.85)["baselines-runner-up"].found


def test_a_chain_that_is_lost_is_not_bounded():
    def status(*more):
        rows = [Row("RMSE, mode 1", 1, 0.2), Row("RMSE, mode 1", 8, 0.3), *more]
        found = all_verdicts({"rollout": {"ball3d": rows}}, SCALES)
        return next(verdict.status for verdict in found if verdict.claim == "rollout-bounded")

    assert status() == "confirmed" and status(Row("lost, mode 1", 8, 0.1)) == "not confirmed"


def test_where_the_solver_refuses_there_is_no_number():
    env = Euler2D(grid=(16, 16))
    sample = env.initial("test", 0)
    assert np.isfinite(solved_or_nan(env, sample.state, sample.params)).all()
    assert np.isnan(solved_or_nan(env, -sample.state, sample.params)).all()
    assert np.isnan(solved_or_nan(env, np.nan * sample.state, sample.params)).all()


def test_a_given_model_that_was_trained_otherwise_stops_the_ablations(done):
    folder, _ = done
    model = Study(setting(Ball3D(), "smoke"), folder / "cache").run()
    entry = find_entries("dagger")[0]
    reasons = [reason_to_skip(entry, Study(setting(Ball3D(), scale), folder, (model,))) for scale in ("smoke", "paper")]
    assert reasons[0] == "" and "trained otherwise" in reasons[1]


def test_an_edge_detector_is_not_selective():
    """The map must rank cells better than steepness does."""

    def status(edges):
        rows = [Row("rank correlation, error map", 8, 0.6), Row("rank correlation, steepness", 8, edges)]
        verdicts = all_verdicts({"horizon-sweep": {"euler2d": rows}}, SCALES)
        return next(verdict.status for verdict in verdicts if verdict.claim == "spatial-selectivity")

    assert status(0.4) == "confirmed" and status(0.7) == "not confirmed"


def test_steepness_is_the_length_of_the_gradient():
    x, y = np.meshgrid(np.arange(5.0), np.arange(6.0), indexing="ij")
    fields = np.stack([3 * x + 4 * y, np.zeros_like(x)])[None]
    np.testing.assert_allclose(steepness(fields), np.full((1, 5, 6), 5.0))


def test_the_numbers_of_the_paper_stand_beside_ours(done):
    folder, _ = done
    section = (folder / "out/results.md").read_text().partition("## AUROC of step-doubling")[2].partition("\n## ")[0]
    rows = [line.split(" | ") for line in section.splitlines() if line.startswith("|  |")]
    assert len(rows) == 9  # three systems, three splits
    assert rows[0][3:] == [f"{paper.AUROC['oregonator']['test'][h]:.3g}" for h in paper.HORIZONS[:-1]] + ["0.75 |"]
