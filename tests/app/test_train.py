"""`hybridworld train` as a user runs it."""

import io
import json
import os
import signal
import sys
from dataclasses import replace

import pytest
from PIL import Image
from rich.console import Console
from typer.testing import CliRunner

from hybridworld.app import train as train_command
from hybridworld.app import train_display
from hybridworld.app.cli import app
from hybridworld.data.generate import generate
from hybridworld.data.manifest import Manifest, data_hash
from hybridworld.data.plan import Plan
from hybridworld.errors import InvalidInput
from hybridworld.physics.ball3d import Ball3D
from hybridworld.physics.euler2d import Euler2D
from hybridworld.surrogate.bundle import load_bundle
from hybridworld.surrogate.parallel import threads_for
from hybridworld.training.material import from_dataset
from tests.app.commands import run
from tests.data.decay import Decay
from tests.data.on_disk import write_dataset, write_foreign

FILES = {"model.safetensors", "metrics.jsonl", "curve.png", "checkpoint.pt"}
SMALL = ["training.epochs=1", "training.samples=8", "training.validation=2"]
TINY = ["training.epochs=2", "training.samples=256", "training.validation=64", "training.horizons=1,8"]


def train(*arguments, wishes=TINY):
    """What `hybridworld train ...` printed, in this process; bad input is raised."""
    settings = [part for wish in wishes for part in ("--set", wish)]
    command = ["train", "--preset", "smoke", *settings, *map(str, arguments)]
    result = CliRunner().invoke(app, command, catch_exceptions=False)
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture(scope="module")
def balls(tmp_path_factory):
    """A dataset of a few balls."""
    root = tmp_path_factory.mktemp("balls")
    generate(Plan(Ball3D(), {"train": 8, "val": 4}), root, workers=1)
    return root


@pytest.fixture(scope="module")
def streamed(tmp_path_factory):
    """A run from the solver, and what it printed."""
    folder = tmp_path_factory.mktemp("run")
    return folder, *train("ball3d", "--stream", "--out", folder)


def test_it_ends_with_four_files_and_a_table(streamed):
    folder, code, out, _ = streamed
    assert code == 0 and {path.name for path in folder.iterdir()} >= FILES
    assert all(name in out for name in ("model.safetensors", "metrics.jsonl", "curve.png", "best in epoch", "AUROC"))
    rows = [line.split() for line in out.splitlines() if line.split()[0] in ("1", "8")]
    assert len(rows) == 2 and all(float(number) > 0 for row in rows for number in row)
    with Image.open(folder / "curve.png") as image:
        assert image.width > 1000


def test_a_log_tells_what_is_prepared_and_has_one_line_per_epoch(streamed):
    _, _, _, err = streamed
    said = list(dict.fromkeys(line.split(":")[0] for line in err.splitlines()))
    assert said == ["measuring units", "trajectories for validation", "epoch 1/2", "epoch 2/2", "calibrating"]
    assert "of no change (horizon" in err and "samples/s" in err
    assert " left" in next(line for line in err.splitlines() if line.startswith("epoch 1"))


def test_preparations_are_told_once_per_subject_unless_they_take_long(monkeypatch):
    log = Console(file=io.StringIO(), width=80)
    monkeypatch.setattr(train_display, "stderr", log)
    display = train_display.Display()
    for subject, news in (("units", "1"), ("units", "2"), ("validation", "1"), ("validation", "2")):
        display.tell(subject, news)
    monkeypatch.setattr(train_display, "QUIET", -1.0)
    display.tell("validation", "3")
    assert log.file.getvalue().splitlines() == ["units: 1", "validation: 1", "validation: 3"]


def test_the_model_knows_where_it_comes_from(streamed):
    found = load_bundle(streamed[0] / "model.safetensors").provenance
    assert (found["system"], found["preset"], found["seed"]) == ("ball3d", "smoke", 0)
    assert all(part in found["data"] for part in ("a stream from the solver", "class Ball3D", "version 1", "substeps 50"))
    assert {"hybridworld", "torch", "cpu"} <= set(found)


def test_the_same_command_again_says_that_it_is_finished(streamed):
    folder, _, before, _ = streamed
    code, out, err = train("ball3d", "--stream", "--out", folder)
    assert code == 0 and "finished already" in out and err == ""
    assert out.splitlines()[1:] == before.splitlines()[1:]


def test_a_run_is_not_mistaken_for_one_on_other_data(streamed, balls):
    with pytest.raises(InvalidInput, match=r"holds a training on a stream .* this one is on a dataset"):
        train("ball3d", "--data", balls, "--out", streamed[0])


def test_a_dataset_needs_no_system(balls, tmp_path):
    code, out, _ = train("--data", balls, "--out", tmp_path, "--seed", 3)
    assert code == 0 and "ball3d, smoke" in out
    found = load_bundle(tmp_path / "model.safetensors").provenance
    assert found["seed"] == 3
    assert found["data"] == f"a dataset with the sha256 {data_hash(balls)} of its manifest"


def test_foreign_data_are_learned_alone(tmp_path):
    for folder in ("train", "valid"):
        write_foreign(tmp_path / "data" / folder / "0.hdf5", (16, 16))
    code, _, _ = train("--data", tmp_path, "--out", tmp_path / "run", wishes=SMALL)
    model = load_bundle(tmp_path / "run" / "model.safetensors")
    assert code == 0 and model.surrogate.spec.name == "soup" and model.surrogate.spec.grid == (16, 16)
    assert model.provenance["data"].endswith("of its file names and sizes")


def test_a_terminal_gets_a_table_that_lives(tmp_path, monkeypatch, balls):
    terminal = Console(file=io.StringIO(), force_terminal=True, width=80)
    for module in (train_command, train_display):
        monkeypatch.setattr(module, "stderr", terminal)
    assert train("ball3d", "--data", balls, "--out", tmp_path)[0] == 0
    shown = terminal.file.getvalue()
    for words in ("preparing", "epoch 2/2", "step 4/4", "samples/s", "learning rate", "best", "AUROC"):
        assert words in shown
    assert "epoch 1/2:" not in shown


def test_an_interrupted_run_goes_on_and_draws_no_point_twice(tmp_path, monkeypatch, balls):
    command = ("ball3d", "--data", balls, "--out", tmp_path, "--tensorboard")
    with monkeypatch.context() as patch:
        patch.setattr(train_display.Display, "on_epoch", lambda *_: os.kill(os.getpid(), signal.SIGINT))
        code, out, err = train(*command)
    assert (code, out) == (130, "")
    assert err.splitlines()[-1] == "Interrupted after step 2; run the same command to go on."
    assert train(*command)[0] == 0

    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert {"loss", "lr", "mse", "mse by horizon/8"} <= set(events.Tags()["scalars"])
    noted = [json.loads(line)["mse"] for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [(each.step, each.value) for each in events.Scalars("mse")] == [
        (1, pytest.approx(noted[0])),
        (2, pytest.approx(noted[1])),
    ]


def test_without_tensorboard_there_is_a_word_about_it(tmp_path, monkeypatch, balls):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(InvalidInput, match=r"pip install hybrid-world-models\[tensorboard\]"):
        train("ball3d", "--data", balls, "--out", tmp_path, "--tensorboard")


def test_the_system_takes_the_grid_of_the_data(tmp_path):
    write_dataset(tmp_path, Decay((3, 4)), {"train": ("train", 2), "valid": ("val", 2)})
    material = from_dataset(tmp_path, Decay())
    assert material.environment.spec.grid == material.spec.grid == (3, 4)
    assert from_dataset(tmp_path, None).environment is None


def test_settings_are_listed_with_values_and_meaning():
    code, out, _ = train("ball3d", "--settings", "--seed", 7, wishes=["training.lr=0.5"])
    rows = [row for row in map(str.split, out.splitlines()) if row and row[0].startswith(("training.", "surrogate."))]
    values = {row[0]: row[1] for row in rows}
    assert code == 0 and "highest learning rate" in out
    assert (values["training.lr"], values["training.seed"], values["training.horizons"]) == ("0.5", "7", "1,2,4,8,16,32,64")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ball3d"], "--data DIR or --stream, one of them, or --minutes N alone"),
        ([], "Name a system"),
        (["ball3d", "--stream", "--data", "BALLS"], "--data DIR or --stream, one of them"),
        (["--stream"], "--stream needs a system"),
        (["--settings"], "name a system, or give --data"),
        (["ball3d", "--system", "euler2d", "--stream"], "Name one system"),
        (["ball3d", "--stream", "--preset", "smok"], "Did you mean 'smoke'"),
        (["ball3d", "--stream", "--set", "training.epoch=3"], "Did you mean 'training.epochs'"),
        (["ball3d", "--stream", "--set", "training.dagger=2"], "at most 1"),
        (["ball3d", "--data", "nowhere"], "There is no folder nowhere/data"),
        (["euler2d", "--data", "BALLS"], "does not fit the system euler2d: its channels are position_x"),
        (["--data", "BALLS", "--set", "training.horizons=200"], "among 1 to 100"),
    ],
)
def test_bad_input_is_told_in_a_sentence(arguments, words, balls, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput) as error:
        train(*(str(balls) if part == "BALLS" else part for part in arguments), wishes=[])
    assert words in str(error.value) and "\n" not in str(error.value)


def test_the_command_ends_with_that_sentence():
    code, out, err = run("train", "ball3d", "--stream", "--set", "training.lr=-1")
    assert (code, out) == (1, "") and err.startswith("Error: training.lr is") and len(err.splitlines()) == 1


def test_a_missing_split_is_named(tmp_path):
    write_dataset(tmp_path, Decay(), {"train": ("train", 2)})
    with pytest.raises(InvalidInput, match=r"has no split 'val', which would be in .*data/valid: .* there is train\."):
        train("--data", tmp_path)


def test_threads_are_shared_and_small_states_take_one(monkeypatch):
    monkeypatch.setenv("HYBRIDWORLD_THREADS", "6")
    assert (threads_for(Euler2D().spec), threads_for(replace(Euler2D().spec, grid=(32, 32))), threads_for(Ball3D().spec)) == (
        6,
        1,
        1,
    )
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    assert threads_for(Euler2D().spec) == 1


def test_the_hash_of_the_data_changes_with_a_shard(tmp_path):
    generate(Plan(Decay(), {"train": 2}), tmp_path, workers=1)
    before = data_hash(tmp_path)
    assert len(before) == 64 and data_hash(tmp_path) == before
    manifest = Manifest.load(tmp_path)
    next(iter(manifest.shards.values()))["sha256"] = "0" * 64
    manifest.save(tmp_path)
    assert data_hash(tmp_path) != before


def test_the_hash_of_foreign_data_changes_with_a_file(tmp_path):
    write_dataset(tmp_path, Decay(), {"train": ("train", 2)})
    before = data_hash(tmp_path)
    (tmp_path / "pictures").mkdir()
    assert data_hash(tmp_path) == before
    with next(tmp_path.glob("data/train/*")).open("ab") as file:
        file.write(b"more")
    assert data_hash(tmp_path) != before


# Afterwards: `hybridworld evaluate`.


def evaluate(*arguments):
    result = CliRunner().invoke(app, ["evaluate", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def test_a_model_is_judged_on_other_data_beside_no_change(streamed, balls):
    model = streamed[0] / "model.safetensors"
    found = json.loads(evaluate(model, "--data", balls, "--split", "val", "--count", 32, "--json"))
    assert found.keys() == {"val"} and found["val"].keys() == {"1", "8"}
    alone = found["val"]["8"]
    assert len(alone["mse"]) == 1 and alone["mse"][0] > 0 and alone["no_change"][0] > 0
    twice = json.loads(evaluate(model, model, "--data", balls, "--split", "val", "--count", 32, "--json"))
    assert twice["val"]["8"]["mse"] == [alone["mse"][0]] * 2


def test_a_model_is_judged_at_the_horizons_that_are_asked_for(streamed, balls):
    model = streamed[0] / "model.safetensors"
    asked = [part for h in (8, 3, 8) for part in ("--horizon", h)]
    found = json.loads(evaluate(model, "--data", balls, "--split", "val", "--count", 32, "--json", *asked))
    assert list(found["val"]) == ["3", "8"]
    listed = json.loads(evaluate(model, "--data", balls, "--split", "val", "--count", 32, "--json"))
    assert found["val"]["8"] == listed["val"]["8"]


def test_several_models_are_seeds_of_one(streamed, balls, tmp_path):
    model, page = streamed[0] / "model.safetensors", tmp_path / "page.md"
    table = evaluate(model, model, "--data", balls, "--split", "val", "--count", 8, "--out", page)
    row = next(line for line in table.splitlines() if "deviation over models" in line)
    assert [float(number) for number in row.split()[3:]] == [0, 0, 0]
    assert "2 models" in page.read_text() and "hybridworld evaluate" in page.read_text()


def test_a_model_of_other_states_is_refused(streamed, tmp_path):
    write_dataset(tmp_path, Decay(), {"test": ("test", 2)})
    with pytest.raises(InvalidInput, match="is about ball3d with position_x"):
        evaluate(streamed[0] / "model.safetensors", "--data", tmp_path)
