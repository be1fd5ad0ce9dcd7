"""`hybridworld train --minutes N` and `--from MODEL` as a user runs them; the costs are pretended, the rest is real."""

import json
import os
import shutil
import signal
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import hybridworld as hw
from hybridworld.app import train_display
from hybridworld.data.generate import generate
from hybridworld.data.manifest import sha256
from hybridworld.data.plan import Plan
from hybridworld.errors import InvalidInput
from hybridworld.surrogate.budget import Division
from hybridworld.surrogate.bundle import load_bundle, save_bundle
from hybridworld.surrogate.checkpoint import FILE
from hybridworld.training import schedule as minutes
from tests.app.budgets import MINE, NETWORK, SHORT, train
from tests.surrogate.flows import Drift, Oscillator


@pytest.fixture
def quick(monkeypatch):
    """Whatever things cost, this is what fits."""
    monkeypatch.setattr(minutes, "TIMED_SHARE", 0.0)
    monkeypatch.setattr(
        minutes,
        "divide",
        lambda budget, spent, costs, training, grid, most, whose: Division(0 if most is None else 6, 2, 3, 5, 0.2, 0.2),
    )
    monkeypatch.setattr(minutes, "samples_within", lambda *given: 24)


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(MINE)
    return path


def weights(folder):
    return {name: values for name, values in load_file(folder / "model.safetensors").items() if name.startswith("weights.")}


def same_weights(one, other):
    a, b = weights(one), weights(other)
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def test_it_makes_what_it_needs_and_ends_with_a_verdict(quick, mine, tmp_path):
    run = tmp_path / "run"
    code, out, err = train(f"{mine}:Field", "--minutes", 1, "--out", run)
    assert code == 0 and not (run / "data").exists()
    assert out.splitlines()[-1].startswith("Worth it? h = 8, one state at a time: ")
    assert "3 trajectories chose the epoch, 5 calibrated" in out and "times that of its guide" in out
    said = list(dict.fromkeys(line.partition(":")[0] for line in err.splitlines()))
    assert said == [
        "timing the solver", "timing the training", "budget of 1 min", "training data", "schedule",
        "measuring units", "trajectories for validation", "epoch 1/2", "epoch 2/2", "calibrating", "worth",
    ]  # fmt: skip
    model = load_bundle(run / "model.safetensors", system=Drift())
    assert model.config.surrogate.guide and model.provenance["preset"] == "guided" and model.provenance["minutes"] == 1
    assert model.provenance["data"].startswith("6 trajectories from the solver with class Field")
    assert model.provenance["data seconds"] >= 0 and model.provenance["samples"] in (24, 48)
    training = model.config.training
    assert (training.epochs, training.samples, training.validation, training.calibration) == (2, 24, 3, 5)
    saved = torch.load(run / FILE, weights_only=True)["config"]["training"]
    assert (saved["epochs"], saved["samples"], saved["patience"]) == (2, 24, 2)
    again = train(f"{mine}:Field", "--minutes", 1, "--out", run)
    assert again[0] == 0 and "finished already" in again[1] and again[2] == ""
    assert again[1].splitlines()[1:] == out.splitlines()[1:]
    assert not (run / "data").exists()


def test_it_says_that_evidence_shrinks(quick, mine, tmp_path, monkeypatch):
    """Here the preset asks for more of it."""
    monkeypatch.setattr(minutes, "divide", lambda *given: Division(6, 2, 3, 5, 0.2, 0.2))
    told, training = {}, hw_training("training.validation=64", "training.calibration=5")
    planner = minutes.Planner(minutes.Clock(1.0, 0.0), tmp_path, training, None, told.__setitem__)
    planner._divided(None, 6, True, "drift")
    assert told == {"budget of 1 min": "3 (of 64 without a budget) trajectories choose the epoch, 5 calibrate"}


def hw_training(*wishes):
    from tests.surrogate.flows import RING, tiny

    return tiny(RING, *wishes).training


@pytest.mark.parametrize("way", [(), ("--stream",)], ids=["own data", "stream"])
def test_an_interrupted_run_ends_as_if_nothing_had_happened(way, quick, mine, tmp_path, monkeypatch):
    """The schedule was measured once; whoever goes on with it ends with the same bits."""
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    command = (f"{mine}:Field", "--minutes", 1, *way)
    with monkeypatch.context() as patch:
        patch.setattr(train_display.Display, "on_epoch", lambda *_: os.kill(os.getpid(), signal.SIGINT))
        code, _, err = train(*command, "--out", killed)
    assert code == 130 and err.splitlines()[-1] == "Interrupted after step 6; run the same command to go on."
    whole.mkdir()
    shutil.copy(killed / minutes.FILE, whole)
    with monkeypatch.context() as patch:
        patch.setattr(minutes, "pace", None)  # nothing is measured again
        for folder in (killed, whole):
            assert train(*command, "--out", folder)[0] == 0
    assert same_weights(killed, whole)


def test_interrupted_while_its_data_are_made_it_goes_on_with_them(quick, mine, tmp_path, monkeypatch):
    run, before = tmp_path / "run", minutes.generate

    def interrupted(plan, root, workers, report):
        before(replace(plan, counts={"train": 2}), root, workers)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(minutes, "generate", interrupted)
        code, _, err = train(f"{mine}:Field", "--minutes", 1, "--out", run)
    assert code == 130 and err.splitlines()[-1] == "Interrupted before the first step; run the same command to go on."
    found = json.loads((run / minutes.FILE).read_text())
    assert found["division"]["trajectories"] == 6 and found["samples"] == 0
    code, _, err = train(f"{mine}:Field", "--minutes", 1, "--out", run)
    assert code == 0 and "timing" not in err and load_bundle(run / "model.safetensors").arrays


def test_state_vectors_and_datasets_are_trained_by_the_clock_too(quick, mine, tmp_path):
    assert train(f"{mine}:Vector", "--minutes", 1, "--out", tmp_path / "vector")[0] == 0
    assert load_bundle(tmp_path / "vector/model.safetensors").provenance["preset"] == "laptop"
    generate(Plan(Drift(), {"train": 4, "val": 4}), tmp_path / "dataset", workers=1)
    code, out, _ = train("--data", tmp_path / "dataset", "--minutes", 1, "--out", tmp_path / "foreign")
    model = load_bundle(tmp_path / "foreign/model.safetensors")
    assert code == 0 and "Worth it?" not in out and model.provenance["preset"] == "laptop"
    assert (tmp_path / "dataset/data/train").is_dir() and model.config.training.epochs == 2


def test_the_dataset_of_a_user_is_never_deleted(quick, tmp_path):
    generate(Plan(Drift(), {"train": 4, "val": 4}), tmp_path / "run/data", workers=1)
    assert train("--data", tmp_path / "run/data", "--minutes", 1, "--out", tmp_path / "run")[0] == 0
    assert (tmp_path / "run/data/data/train").is_dir()


def test_a_stream_serves_more_pairs_where_trajectories_are_expensive(quick, mine, tmp_path, monkeypatch):
    """The solver is busy half of the time, on one of the cores."""
    monkeypatch.setattr(minutes, "thread_count", lambda: 2)
    monkeypatch.setattr(minutes, "time_trajectories", lambda environment, seconds: ([], 6.0))
    monkeypatch.setattr(minutes, "Held", lambda *given: None)
    monkeypatch.setattr(minutes.Planner, "_pace", lambda self, material: (0.2, 0.1))
    told = {}
    planner = minutes.Planner(minutes.Clock(10.0, 0.0), tmp_path, hw_training(), None, told.__setitem__)
    found = planner._for_stream(Drift())
    assert found.pairs == 120 and found.buffer == 7 and found.units == minutes.FEWEST_UNITS
    assert told["stream"] == "120 pairs per trajectory, 7 at hand"
    assert found.costs.sample == pytest.approx(0.2 * 1.25) and (found.division.epochs, found.samples) == (2, 24)
    assert minutes.Schedule.load(tmp_path, 10.0, minutes.STREAM) == found


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--minutes", "1"], "Name a system"),
        (["MINE:Field", "--minutes", "1", "--set", "training.epochs=3"], "--minutes decides about training.epochs"),
        (["MINE:Field", "--minutes", "2", "--out", "RUN"], "holds a training of 1 minutes .* and this one has 2"),
        (["MINE:Field", "--minutes", "1", "--stream", "--out", "RUN"], "from data of its own, and this one .* from a stream"),
    ],
)
def test_bad_input_is_told_in_a_sentence(arguments, words, quick, mine, tmp_path):
    division = Division(6, 2, 3, 5, 0.2, 0.2)
    minutes.Schedule(1.0, minutes.OWN, minutes.Costs(1.0, 1.0, 1.0), division).save(tmp_path / "run")
    given = [part.replace("MINE", str(mine)).replace("RUN", str(tmp_path / "run")) for part in arguments]
    with pytest.raises(InvalidInput, match=words):
        train(*given)


def test_a_team_is_refused(quick, mine, monkeypatch, tmp_path):
    monkeypatch.setattr(minutes, "team", lambda: type("Team", (), {"world": 2}))
    with pytest.raises(InvalidInput, match="--minutes is for one process"):
        train(f"{mine}:Field", "--minutes", 1, "--out", tmp_path / "run")


def test_a_damaged_schedule_is_refused(quick, mine, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / minutes.FILE).write_text("{}")
    with pytest.raises(InvalidInput, match=r"schedule\.json is damaged"):
        train(f"{mine}:Field", "--minutes", 1, "--out", tmp_path / "run")


# Going on from a model.


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """A guided model of a user's system, trained a little, and the file of that system."""
    folder = tmp_path_factory.mktemp("first")
    (folder / "mine.py").write_text(MINE)
    command = (f"{folder / 'mine.py'}:Field", "--stream", "--preset", "guided", "--out", folder / "run")
    assert train(*command, wishes=[*SHORT, *NETWORK])[0] == 0
    return folder / "mine.py", folder / "run" / "model.safetensors"


def test_a_model_is_continued_with_its_weights_units_and_network(first, tmp_path):
    mine, model = first
    run, wishes = tmp_path / "run", [*SHORT, "training.lr=1e-12", "training.ema=0"]
    code, out, err = train(f"{mine}:Field", "--stream", "--from", model, "--out", run, wishes=wishes)
    before, after = (load_bundle(path, system=Drift()) for path in (model, run / "model.safetensors"))
    assert code == 0 and "measuring units" not in err and "at the beginning, and is" in out
    assert after.config.surrogate == before.config.surrogate and after.config.surrogate.patch == 4
    for name, values in before.surrogate.state_dict().items():
        np.testing.assert_allclose(after.surrogate.state_dict()[name], values, atol=1e-7)
    known, origin = after.provenance, before.provenance
    assert known["from"] == f"model.safetensors with the sha256 {sha256(model)}" and known["preset"] == "guided"
    assert known["seconds"] > origin["seconds"] and known["samples"] == origin["samples"] + 24 * known["epoch"]
    assert known["units"] == origin["units"]
    assert train(f"{mine}:Field", "--stream", "--from", model, "--out", run, wishes=wishes)[1].count("finished already") == 1
    with pytest.raises(InvalidInput, match=r"holds a training from model\.safetensors with .* and this one is from no model"):
        train(f"{mine}:Field", "--stream", "--preset", "guided", "--out", run, wishes=[*wishes, *NETWORK])


def test_a_continued_training_goes_on_after_an_interruption(first, tmp_path, monkeypatch):
    mine, model = first
    command = (f"{mine}:Field", "--stream", "--from", model)
    with monkeypatch.context() as patch:
        patch.setattr(train_display.Display, "on_epoch", lambda *_: os.kill(os.getpid(), signal.SIGINT))
        assert train(*command, "--out", tmp_path / "killed", wishes=SHORT)[0] == 130
    for name in ("killed", "whole"):
        assert train(*command, "--out", tmp_path / name, wishes=SHORT)[0] == 0
    assert same_weights(tmp_path / "killed", tmp_path / "whole")


def test_it_may_have_a_budget(first, quick, tmp_path):
    mine, model = first
    code, _, _ = train(f"{mine}:Field", "--from", model, "--minutes", 1, "--out", tmp_path / "run", wishes=["training.batch=4"])
    known = load_bundle(tmp_path / "run/model.safetensors").provenance
    assert code == 0 and known["minutes"] == 1 and known["from"].startswith("model.safetensors")


def test_its_guide_may_run_otherwise(first, tmp_path):
    mine, model = first
    wishes = [*SHORT, "surrogate.guide_steps=2"]
    assert train(f"{mine}:Field", "--stream", "--from", model, "--out", tmp_path / "run", wishes=wishes)[0] == 0
    before, after = (load_bundle(path, system=Drift()).config for path in (model, tmp_path / "run/model.safetensors"))
    assert after.surrogate == before.surrogate.model_copy(update={"guide_steps": 2})


def test_a_network_without_a_guide_gets_none(tmp_path):
    with pytest.raises(InvalidInput, match=r"has the surrogate\.guide_steps 1, and this training has 2"):
        train("ball3d", "--stream", "--from", "ball3d", "--out", tmp_path, wishes=["surrogate.guide_steps=2"])


def test_a_scheme_that_the_system_does_not_have_is_refused(first, tmp_path):
    with pytest.raises(InvalidInput, match="has no scheme 'foo' for a guide"):
        train(
            f"{first[0]}:Field",
            "--stream",
            "--from",
            first[1],
            "--out",
            tmp_path,
            wishes=[*SHORT, "surrogate.guide_scheme=foo"],
        )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ball3d"], r"model\.safetensors is a model of drift, not of ball3d"),
        (
            ["MINE:Field", "--resolved", "2"],
            "reference 1 times finer than its states, and the given system has one 2 times finer",
        ),
        (["MINE:Field", "--set", "surrogate.width=16"], r"has the surrogate\.width 8, and this training has 16"),
        (["MINE:Field", "--preset", "paper"], r"has the surrogate\.params True, and this training has False"),
        (["MINE:Field", "--set", "training.horizons=1,2"], r"has the training\.horizons \(1, 2, 4, 8\), and this training has"),
    ],
)
def test_a_contradiction_is_refused_with_a_sentence(arguments, words, first, tmp_path):
    given = [part.replace("MINE", str(first[0])) for part in arguments]
    with pytest.raises(InvalidInput, match=words):
        train(*given, "--stream", "--from", first[1], "--out", tmp_path, wishes=SHORT)


def test_another_version_of_the_solver_is_refused(first, tmp_path):
    mine, model = first
    bundle = load_bundle(model, system=Drift())
    save_bundle(tmp_path / "old.safetensors", replace(bundle, reference={**bundle.reference, "version": "0"}))
    with pytest.raises(InvalidInput, match=r"old\.safetensors has the reference's version 0, and this training has 1"):
        train(f"{mine}:Field", "--stream", "--from", tmp_path / "old.safetensors", "--out", tmp_path, wishes=SHORT)


def test_a_dataset_of_other_states_is_refused(first, tmp_path):
    generate(Plan(Drift((16,)), {"train": 2, "val": 2}), tmp_path / "other", workers=1)
    with pytest.raises(InvalidInput, match=r"has the grid \(32,\), and this training has \(16,\)"):
        train("--data", tmp_path / "other", "--from", first[1], "--out", tmp_path / "run", wishes=SHORT)


def test_a_system_is_guided_where_it_can_be_coarsened():
    from hybridworld.training.recipe import can_be_guided

    assert can_be_guided(Drift(), Drift().spec) and can_be_guided(hw.system("euler2d").resolved(4), hw.system("euler2d").spec)
    for cannot in (Oscillator(), Drift((33,)), hw.system("ball3d")):
        assert not can_be_guided(cannot, cannot.spec)
