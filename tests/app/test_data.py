"""`generate`, `data info`, `data verify`, `bench data` as a user runs them."""

import json
import re

import h5py
import numpy as np
import pytest

from hybridworld.physics.euler2d import Euler2D
from tests.app.commands import run


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    root = tmp_path_factory.mktemp("data") / "set"
    code, out, err = run("generate", "euler2d", "--scale", "smoke", "--out", root)
    assert code == 0, err
    return root, out, err


def test_generate_says_what_it_costs_before_and_what_comes_next(dataset):
    root, out, err = dataset
    assert "train 5, val 2" in err and re.search(r"MB, about .* on \d+ workers?\n", err)
    assert f"hybridworld data info {root}" in out


def test_a_second_run_is_done_at_once(dataset):
    root, _, _ = dataset
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*.hdf5")}
    assert run("generate", "euler2d", "--scale", "smoke", "--out", root)[0] == 0
    assert before == {path: path.stat().st_mtime_ns for path in root.rglob("*.hdf5")}


def test_info_shows_every_split_with_a_picture(dataset, tmp_path):
    root, _, _ = dataset
    code, out, err = run("data", "info", root, "--pictures", tmp_path)
    assert code == 0, err
    for split in ("train", "val", "test", "ood-near", "ood-far"):
        assert split in out and (tmp_path / f"{split}.png").read_bytes().startswith(b"\x89PNG")
    described = json.loads(run("data", "info", root, "--json")[1])
    assert described["splits"]["train"]["trajectories"] == 5 and described["grid"] == [32, 32] and described["has_manifest"]


def test_verify_finds_a_flipped_bit_by_name(dataset):
    root, _, _ = dataset
    assert run("data", "verify", root)[0] == 0
    path = root / "data" / "ood-far" / "euler2d-00000.hdf5"
    good = path.read_bytes()
    path.write_bytes(good[:-5] + bytes([good[-5] ^ 1]) + good[-4:])
    code, out, _ = run("data", "verify", root)
    path.write_bytes(good)
    assert code == 1 and "data/ood-far/euler2d-00000.hdf5: does not have the sha256" in out


def test_a_directory_we_did_not_write_is_described_and_verified(dataset, tmp_path):
    root, _, _ = dataset
    (tmp_path / "data" / "train").mkdir(parents=True)
    (tmp_path / "data" / "train" / "theirs.h5").write_bytes((root / "data" / "train" / "euler2d-00000.hdf5").read_bytes())
    assert "not made here" in run("data", "info", tmp_path, "--pictures", tmp_path / "p")[1]
    assert "no manifest" in run("data", "verify", tmp_path)[1]
    (tmp_path / "data" / "train" / "broken.h5").write_bytes(b"nothing")
    code, out, err = run("data", "verify", tmp_path)
    assert code == 1 and "broken.h5" in out and "Traceback" not in err


def test_a_users_own_system_makes_a_dataset(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("from tests.data.decay import Decay\n\nclass Mine(Decay):\n    pass\n")
    code, _, err = run("generate", "--system", f"{path}:Mine", "--count", "train=3,val=2", "--out", tmp_path / "d")
    assert code == 0, err
    assert run("data", "verify", tmp_path / "d")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["generate", "ball3d", "--out", "d", "--count", "train"], "--count has 'train'"),
        (["generate", "ball3d", "--out", "d", "--scale", "big"], "scale is 'big'"),
        (["generate", "ball3d", "--out", "d", "--scale", "smoke", "--count", "train=2"], "not both"),
        (["generate", "ball3d", "--out", "d", "--split", "trian"], "Unknown split 'trian'"),
        (["generate", "ball3d", "--out", "d", "--dtype", "int8"], "dtype is 'int8'"),
        (["generate", "oregonator", "--out", "d", "--count", "train=100000000"], "GB free"),
        (["generate", "ball3d", "--out", "d", "--scale", "smoke", "--dask", "tcp://127.0.0.1:1"], "No dask scheduler answers"),
        (["generate", "ball3d", "--out", "taken", "--scale", "smoke"], "The folder taken cannot be made"),
        (["data", "info", "nowhere"], "nowhere"),
        (["data", "verify", "nowhere"], "holds no dataset"),
    ],
)
def test_bad_input_ends_with_one_sentence(arguments, words, tmp_path):
    (tmp_path / "taken").write_text("")
    code, _, err = run(*arguments, cwd=tmp_path)
    assert code == 1 and words in err.splitlines()[-1] and "Traceback" not in err


def test_a_resolved_dataset_says_so_and_refuses_another_reference(tmp_path):
    root, small = tmp_path / "d", ("--scale", "smoke", "--split", "val")
    code, _, err = run("generate", "euler2d", *small, "--resolved", 2, "--out", root)
    assert code == 0, err
    assert json.loads((root / "manifest.json").read_text())["identity"]["resolved"] == 2
    assert run("generate", "euler2d", *small, "--resolved", 2, "--out", root)[0] == 0
    for other, told in (([], "resolved 2, and this run has None"), (["--resolved", 3], "resolved 2, and this run has 3")):
        code, _, err = run("generate", "euler2d", *small, *other, "--out", root)
        assert code == 1 and told in err, err
    code, _, err = run("check", "ball3d", "--resolved", 2)
    assert code == 1 and "has no grid" in err


def test_a_resolved_simulation_is_the_averaged_fine_run(tmp_path):
    code, _, err = run("simulate", "euler2d", "--resolved", 2, "--frames", 2, "--out", tmp_path)
    assert code == 0, err
    environment = Euler2D().resolved(2)
    sample = environment.initial("test", 0)
    truth = environment.record(sample.state[None], 2, sample.params[None])
    with h5py.File(tmp_path / "euler2d-test-0.hdf5") as file:
        np.testing.assert_allclose(file["t0_fields/density"][0], truth[0, 0], rtol=1e-6)
        assert json.loads(file.attrs["hybridworld_identity"])["resolved"] == 2
