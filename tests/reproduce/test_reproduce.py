"""Every entry of the paper at scale `smoke`, fields smaller still, from an empty cache, as a user runs it."""

import json
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from hybridworld.app import reproduce as reproduce_command
from hybridworld.app.cli import app
from hybridworld.app.reproduce import parse_models, parse_scales
from hybridworld.bench.intervals import Interval
from hybridworld.bench.worth import measure
from hybridworld.errors import InvalidInput
from hybridworld.physics.ball3d import Ball3D
from hybridworld.physics.euler2d import Euler2D
from hybridworld.reproduce import chains, gating, paper, rules, scales
from hybridworld.reproduce import experiment as experiment_module
from hybridworld.reproduce.chains import Chains, both_answers, failures
from hybridworld.reproduce.claims import CLAIMS, claims_of
from hybridworld.reproduce.entries import ENTRIES, SYSTEMS, find_entries
from hybridworld.reproduce.experiment import STEP, VARIANTS, VERSION, Experiment, Untrained, digest
from hybridworld.reproduce.gating import speed_blind, speed_gated
from hybridworld.reproduce.map_agreement import steepness
from hybridworld.reproduce.rows import Row
from hybridworld.reproduce.verdicts import Network, all_verdicts, verdict_on

NETWORKS = {system: Network("a network", "paper", data.val_mse, True) for system, data in paper.DATASETS.items()}


@pytest.fixture(autouse=True, scope="module")
def brief():
    """Commands take the settings of `setting`, follow few chains, and time few states, each once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reproduce_command, "setting", setting)
        patch.setattr(chains, "CHAINS", {True: 4, False: 16})
        patch.setattr(gating, "MOST", {True: 2, False: 2})
        patch.setattr(measure, "REPEATS", 1)
        yield


def setting(environment, scale, wishes=()):
    """As `scales.setting`, but for shorter trainings at scale `smoke`, smaller fields and fewer pairs of them."""
    found = scales.setting(environment, scale, wishes)
    if scale == "smoke":
        samples = 8 if environment.spec.is_field else 640
        found = replace(found, wishes=(*found.wishes, f"training.samples={samples}"))
    if not environment.spec.is_field:
        return found
    return replace(found, environment=found.environment.resized((16, 16)), pairs=8)


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
    assert (
        "not comparable" in out
        and "at scale smoke, which is other data" in text
        and "Where the paper contradicts itself" in text
    )


def test_a_second_run_finds_everything_in_the_cache(done, monkeypatch):
    folder, _ = done
    for name in ("train", "judge", "generate", "fresh_pairs"):
        monkeypatch.setattr(experiment_module, name, lambda *_, name=name: pytest.fail(f"{name} was called"))
    monkeypatch.setattr("hybridworld.reproduce.run.draw_entry", lambda *_: None)  # pictures of rows are drawn again
    run("all", "--scale", "smoke", "--cache", folder / "cache", "--out", folder / "again")
    first, second = ((folder / name / "results.md").read_text() for name in ("out", "again"))
    assert first == second


def test_what_was_interrupted_goes_on(done, tmp_path):
    """A result that is missing is made again, and is the same."""
    folder, _ = done
    experiment = Experiment(setting(Ball3D(), "smoke"), folder / "cache")
    before = experiment.cell("test", 8)
    for path in (folder / "cache/results").glob("ball3d-*.json"):
        if json.loads(path.read_text())["what"][2:6] == ["cell", "main", 0, "test"]:
            path.unlink()
    after = Experiment(setting(Ball3D(), "smoke"), folder / "cache").cell("test", 8)
    np.testing.assert_array_equal(before.scores[STEP], after.scores[STEP])


def test_a_change_of_what_it_depends_on_is_another_result(tmp_path, monkeypatch):
    experiment = Experiment(setting(Ball3D(), "smoke"), tmp_path)
    for other in (
        Experiment(setting(Ball3D(), "laptop"), tmp_path),
        Experiment(replace(experiment.setting, pairs=7), tmp_path),
        *(
            Experiment(replace(experiment.setting, environment=env), tmp_path)
            for env in (Ball3D(frame_step=0.02), Ball3D(substeps=7))
        ),
    ):
        assert other.key != experiment.key
    monkeypatch.setitem(experiment_module.VARIANTS, "dagger 1", ("training.dagger=0.9",))
    assert Experiment(experiment.setting, tmp_path).key != experiment.key
    threads = experiment.threads
    monkeypatch.setenv("HYBRIDWORLD_THREADS", str(threads[0] + 1))
    assert experiment.threads != threads


def test_models_of_ones_own_are_judged_instead(done):
    folder, _ = done
    model = next((folder / "cache/runs").glob("ball3d-*/model.safetensors"))
    run("datasets", "--system", "ball3d", "--model", f"ball3d={model}", "--cache", folder / "other", "--out", folder / "own")
    assert not (folder / "other/runs").exists()


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


def verdict(claim, rows, networks=NETWORKS):
    return verdict_on(next(each for each in CLAIMS if each.id == claim), rows, networks)


def auroc_rows(system, value):
    interval = Interval(value, value - 0.02, value + 0.02)
    return [Row("auroc", STEP, system, split, h, interval) for split in paper.SPLITS for h in paper.HORIZONS]


def test_every_claim_has_an_entry_and_a_criterion_or_a_reason():
    known = {entry.id: entry for entry in ENTRIES}
    for claim in CLAIMS:
        if claim.rule:
            assert claim.holds_if and set(claim.systems) <= set(known[claim.entry].systems)
        else:
            assert claim.note.endswith(".") and not claim.entry
    assert [claim.id for claim in claims_of("visual-proof")] == ["spatial-alignment"]
    assert "mode2-follows-auroc" in [claim.id for claim in claims_of("mode1-vs-mode2")]


def test_nothing_is_confirmed_without_data():
    for results in ({}, {entry.id: [] for entry in ENTRIES}):
        for networks in ({}, NETWORKS):
            assert {each.status for each in all_verdicts(results, networks)} == {"not comparable"}


def test_a_network_that_is_not_as_good_as_the_paper_s_judges_nothing_and_is_named():
    rows = [row for system in SYSTEMS for row in auroc_rows(system, 0.99)]
    assert verdict("auroc-above-chance", rows).status == "confirmed"
    poor = NETWORKS | {"euler2d": Network("the unet of euler2d", "laptop", 1.6 * paper.DATASETS["euler2d"].val_mse, False)}
    found = verdict("auroc-above-chance", rows, poor)
    assert found.status == "not comparable" and "the unet of euler2d has a validation MSE of 0.0256" in found.found
    assert {part.name: part.status for part in found.parts} == {
        "euler2d": "not comparable", "oregonator": "confirmed", "ball3d": "confirmed"
    }  # fmt: skip
    enough = NETWORKS | {"euler2d": Network("a network", "laptop", 1.5 * paper.DATASETS["euler2d"].val_mse, False)}
    assert verdict("auroc-above-chance", rows, enough).status == "confirmed"
    nan = NETWORKS | {"euler2d": Network("a network", "paper", float("nan"), True)}
    assert verdict("auroc-above-chance", rows, nan).status == "not comparable"


def test_a_part_that_fails_refutes_a_claim_whatever_is_not_measured():
    found = verdict("auroc-above-chance", auroc_rows("ball3d", 0.2))
    assert found.status == "not confirmed"
    assert [part.status for part in found.parts] == ["not comparable", "not comparable", "not confirmed"]


def test_what_a_recipe_reaches_is_judged_by_that_recipe_alone():
    rows = [Row("mse", "main", "ball3d", "val", seed, Interval(0.2, np.nan, np.nan)) for seed in range(3)]
    rows = [replace(row, interval=Interval(0.2 + 0.001 * row.x, np.nan, np.nan)) for row in rows]
    network = Network("the mlp of ball3d", "paper", 0.2, True)
    assert verdict("trains-ball3d", rows, {"ball3d": network}).status == "not confirmed"
    short = verdict("trains-ball3d", rows, {"ball3d": replace(network, recipe=False)})
    assert short.status == "not comparable" and "the mlp of ball3d" in short.found


def test_by_its_own_tables_the_paper_contradicts_its_claim_about_auroc_and_cut():
    def interval(value):
        return Interval(value, value - 0.001, value + 0.001)

    rows = [
        Row(quantity, signal, system, split, h, interval(table[system][split][h]))
        for quantity, signal, table in (("auroc", STEP, paper.AUROC), ("cut", rules.MATCHED, paper.CUTS))
        for system in SYSTEMS
        for split in paper.SPLITS
        for h in paper.HORIZONS
    ]
    assert verdict("mode2-follows-auroc", rows).status == "not confirmed"
    assert verdict("mode2-above-random", rows).status == "confirmed"
    assert verdict("mode2-largest", rows).status == "confirmed"
    assert verdict("mode2-largest", [row for row in rows if row.system != "ball3d"]).status == "not comparable"


# What is measured.


def test_deferring_everything_blindly_costs_what_the_solver_costs():
    price = {"compiled solver": [2.0, 2.1, 2.2], "mode 1": [20.0, 21.0, 19.0], "mode 2": [60.0, 61.0, 62.0]}
    assert speed_blind(price, "compiled solver", 1.0) == (1.0, 1.0, 1.0)
    assert speed_blind(price, "compiled solver", 0.0).value == pytest.approx(0.105, abs=0.001)
    nothing, everything = (speed_gated(price, "compiled solver", Interval(d, d, d)).value for d in (0.0, 1.0))
    assert everything < nothing < 1 / 29


def test_blind_deferral_is_printed_at_its_price(done):
    folder, _ = done
    section = (folder / "out/results.md").read_text().partition("## RMSE against speed-up over q")[2].partition("\n## ")[0]
    lines = [line.split(" | ") for line in section.splitlines() if "speed-up over" in line and "| random |" in line]
    assert len(lines) == 6 and all(line[4] == "1 (1 to 1)" for line in lines)  # three systems, two solvers, q = 0


def test_mode_2_is_measured_as_it_is_deployed(done):
    """The deployed model defers by its frozen threshold, and what it answers has the error that is published."""
    folder, _ = done
    experiment = Experiment(setting(Ball3D(), "smoke"), folder / "cache")
    gated, cell, model = experiment.gated("test", 64, 0.75), experiment.cell("test", 64), experiment.hybrid()
    np.testing.assert_array_equal(gated.deferred, cell.scores[STEP] > model.threshold(64, 0.75))
    np.testing.assert_allclose(gated.rmse[~gated.deferred], cell.rmse[~gated.deferred], rtol=1e-4)
    assert gated.deferred.any() and gated.rmse[gated.deferred].max() < 1e-4


def test_chains_that_end_are_counted_as_lost_and_as_failed():
    rmse = np.full((20, 8), 0.2)
    rmse[:4, 5:] = np.nan
    rmse[4, -1] = 2.0
    scores = np.where(np.arange(20)[:, None] < 5, 3.0, 1.0) * np.ones((20, 8))
    rows = {(row.quantity, row.signal): row.value for row in failures("euler2d", Chains(rmse, scores, np.zeros((20, 8))))}
    assert rows["failed", "mode 1"] == 0.25 and rows["auroc", rules.FAILED] == 1.0
    nothing = failures("euler2d", Chains(rmse * np.nan, scores, np.zeros((20, 8))))
    assert {row.quantity: row.value for row in nothing}["failed"] == 1.0


def test_where_the_solver_refuses_a_state_there_is_no_answer(done):
    folder, _ = done
    experiment = Experiment(setting(Euler2D(), "smoke"), folder / "cache")
    sample = experiment.environment.initial("test", 0)
    said, solved = both_answers(experiment.hybrid(), sample.state, sample.params)
    assert said is not None and np.isfinite(solved).all()
    said, solved = both_answers(experiment.hybrid(), -sample.state, sample.params)
    assert said is not None and solved is None
    assert both_answers(experiment.hybrid(), np.nan * sample.state, sample.params) == (None, None)


def test_ablations_train_their_own_main_run_where_the_given_model_was_trained_otherwise(done):
    folder, _ = done
    model = Experiment(setting(Ball3D(), "smoke"), folder / "cache").run()
    same, other = (Experiment(setting(Ball3D(), scale), folder, (model,)) for scale in ("smoke", "paper"))
    assert same.like_given and same.run("all horizons", 0) == model
    assert not other.like_given and other.config("all horizons", 0) == other.config("main", 0)
    assert same.alike == [("all horizons", 0), ("all horizons", 1)]
    assert Experiment(setting(Ball3D(), "smoke"), folder / "cache").alike == [("main", 0), ("main", 1)]


def test_other_networks_are_trained_for_about_as_long(tmp_path):
    leap, alone, unet = (
        Experiment(scales.setting(Euler2D(), "laptop", ["training.precision=bfloat16"]), tmp_path).config(variant, 0)
        for variant in ("all horizons", "state alone", "U-Net")
    )
    assert (unet.surrogate.backbone, unet.surrogate.params, unet.surrogate.residual) == ("unet", False, "scaled")
    assert alone.surrogate == leap.surrogate.model_copy(update={"params": False}) and alone.training == leap.training
    assert unet.training.samples == leap.training.samples // 5 and unet.training.epochs == leap.training.epochs
    assert {each.training.precision for each in (leap, alone, unet)} == {"bfloat16"}


def test_a_cache_of_an_older_version_is_found(tmp_path):
    """It knows the training at all horizons as `ladder`; no key of a cache may change with a name in the code."""
    experiment = Experiment(setting(Ball3D(), "smoke"), tmp_path)
    names = ("main", "ladder", "single horizon", "dagger 0", "dagger 1", "self-consistency")
    configs = dict(zip(names, (experiment.config(each, 0).model_dump(mode="json") for each in VARIANTS), strict=True))
    chosen = experiment.setting
    before = digest(VERSION, experiment.source, configs, chosen.seeds, chosen.seeds, chosen.pairs, chosen.head_steps, [])
    assert experiment.key == before
    path = tmp_path / "results" / f"ball3d-{digest(before, ('identity', 'ladder', 0))}.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"what": [], "found": 0.25, "provenance": {"hybridworld": "0.1.0"}}))
    assert experiment.remember(("identity", "all horizons", 0), lambda: pytest.fail("It was made again.")) == 0.25


def test_steepness_is_the_length_of_the_gradient():
    x, y = np.meshgrid(np.arange(5.0), np.arange(6.0), indexing="ij")
    fields = np.stack([3 * x + 4 * y, np.zeros_like(x)])[None]
    np.testing.assert_allclose(steepness(fields), np.full((1, 5, 6), 5.0))


def test_the_numbers_of_the_paper_stand_beside_ours(done):
    folder, _ = done
    section = (folder / "out/results.md").read_text().partition("## AUROC of step-doubling")[2].partition("\n## ")[0]
    rows = [line.split(" | ") for line in section.splitlines() if line.startswith("|  |")]
    assert len(rows) == 9  # three systems, three splits
    assert rows[0][4:] == [f"{paper.AUROC['oregonator']['test'][h]:.3g}" for h in paper.HORIZONS[:-1]] + ["0.75 |"]


def test_what_needs_a_training_can_be_left_out(done, tmp_path):
    folder, _ = done
    model = next((folder / "cache/runs").glob("ball3d-*/model.safetensors"))
    common = ("--system", "ball3d", "--scale", "laptop", "--no-train", "--cache", tmp_path / "cache", "--out", tmp_path)
    run("dagger", "--model", f"ball3d={model}", *common)
    text = (tmp_path / "results.md").read_text()
    assert "Left out: dagger, ball3d: the training 'dagger 0' with seed 0 has not been made." in text
    assert not (tmp_path / "cache/runs").exists()
    experiment = Experiment(setting(Ball3D(), "laptop"), tmp_path / "cache", (model,), trains=False)
    assert not experiment.available(experiment.alike) and experiment.available([("main", 0)])
    with pytest.raises(InvalidInput, match="no model of ball3d yet: give one with --model ball3d=FILE"):
        run("dagger", *common)
    with pytest.raises(Untrained, match="'all horizons' with seed 0 has not been made"):
        experiment.model("all horizons")
