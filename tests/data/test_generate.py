"""Datasets: the same bytes whatever happens on the way, and any damage found by name."""

import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np
import pytest
import yaml
from scipy.stats import chisquare

import hybridworld as hw
from hybridworld.app.data import verify_dataset
from hybridworld.data import plan as planning
from hybridworld.data import room
from hybridworld.data.generate import generate
from hybridworld.data.manifest import Manifest
from hybridworld.data.plan import Plan, at_scale, parse_counts
from hybridworld.physics.ball3d import Ball3D
from hybridworld.physics.euler2d import Euler2D
from hybridworld.physics.registry import BUILT_IN, find_system
from hybridworld.physics.spec import SPLITS
from tests.data.decay import Decay
from tests.data.generating import COUNTS, SHARD_BYTES, generate_and_die


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    """Three trajectories of `Decay` per shard."""
    monkeypatch.setattr(planning, "SHARD_BYTES", SHARD_BYTES)


def contents(root):
    """Every file but the lock."""
    return {
        p.relative_to(root).as_posix(): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file() and p.name != ".lock"
    }


@pytest.fixture
def whole(tmp_path):
    """What an uninterrupted run makes."""
    generate(Plan(Decay(), COUNTS), tmp_path / "whole", workers=1)
    return tmp_path / "whole"


# The same bytes.


def test_any_number_of_workers_makes_the_same_bytes(whole, tmp_path):
    generate(Plan(Decay(), COUNTS), tmp_path / "three", workers=3)
    assert contents(tmp_path / "three") == contents(whole)
    assert len([name for name in contents(whole) if name.endswith(".hdf5")]) == 5 + 2 + 1 + 1 + 2


@pytest.mark.parametrize("name", BUILT_IN)
def test_real_systems_too(name, tmp_path):
    environment, _ = at_scale(find_system(name), "smoke")
    for workers in (1, 2):
        generate(Plan(environment, {"train": 3, "ood-far": 2}), tmp_path / str(workers), workers)
    assert contents(tmp_path / "1") == contents(tmp_path / "2")


def test_a_second_run_does_nothing(whole):
    before = {path: path.stat().st_mtime_ns for path in whole.rglob("*.hdf5")}
    generate(Plan(Decay(), COUNTS), whole, workers=2)
    assert before == {path: path.stat().st_mtime_ns for path in whole.rglob("*.hdf5")}


def test_a_larger_count_goes_on_from_a_smaller_one(whole, tmp_path):
    generate(Plan(Decay(), {"train": 5, "val": 4}), tmp_path / "grown", workers=1)
    generate(Plan(Decay(), COUNTS), tmp_path / "grown", workers=1)
    assert contents(tmp_path / "grown") == contents(whole)


@pytest.fixture(scope="module")
def processes():
    """New processes in which everything is imported already."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.data.generating"])
    return context


def test_sigkill_at_any_step_costs_nothing(whole, processes, tmp_path):
    """A run is killed before and after random writes, syncs and renames, again and again, until one is through."""
    root, chance, kills = tmp_path / "killed", random.Random(7), 0
    while True:
        moment = chance.randrange(1, 40) if kills < 14 else 10**9
        run = processes.Process(target=generate_and_die, args=(root, moment))
        run.start()
        run.join()
        if run.exitcode == 0:
            break
        assert run.exitcode == -signal.SIGKILL
        kills += 1
    assert kills >= 8
    assert contents(root) == contents(whole)


@pytest.mark.slow
def test_sigkill_at_any_time_costs_nothing(tmp_path):
    """The command itself on a real system, killed after random times."""
    chance = random.Random(3)
    command = [sys.executable, "-m", "hybridworld.app.cli", "generate", "oregonator", "--count", "train=60,val=20", "--out"]
    environment = os.environ | {"HYBRIDWORLD_THREADS": "2"}
    subprocess.run([*command, tmp_path / "whole"], env=environment, check=True)
    kills = 0
    while True:
        run = subprocess.Popen([*command, tmp_path / "killed"], env=environment)
        try:
            run.wait(timeout=chance.uniform(1.0, 6.0) if kills < 20 else None)
            break
        except subprocess.TimeoutExpired:
            run.kill()
            run.wait()
            kills += 1
    assert run.returncode == 0 and kills > 3
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")


def test_ctrl_c_ends_with_a_sentence_and_can_go_on(tmp_path):
    command = [
        sys.executable,
        "-m",
        "hybridworld.app.cli",
        "generate",
        "euler2d",
        "--count",
        "train=400",
        "--out",
        tmp_path / "d",
    ]
    run = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while not (tmp_path / "d" / "manifest.json").exists() and run.poll() is None:
        time.sleep(0.05)
    run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=600)  # kernels may have to be compiled first, on a busy machine
    assert run.returncode == 130 and "run the same command again" in err and "Traceback" not in err
    assert not list(tmp_path.rglob("*.hdf5.part"))


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        yield cluster


@pytest.mark.parametrize("victim", [False, True])
def test_dask_makes_the_same_bytes_even_if_a_worker_dies(victim, whole, cluster, tmp_path):
    killed = []

    def kill_one(shard):
        if victim and not killed:
            killed.append(next(iter(cluster.workers.values())).pid)
            os.kill(killed[0], signal.SIGKILL)

    generate(Plan(Decay(), COUNTS), tmp_path / "dask", 2, dask=cluster.scheduler_address, report=kill_one)
    assert contents(tmp_path / "dask") == contents(whole) and bool(killed) == victim


# Refusals.


def test_two_generators_on_one_directory_refuse_each_other(tmp_path):
    plan = Plan(Decay(), COUNTS)
    refused = []

    def second(shard):
        with pytest.raises(hw.InvalidInput, match="Another generator is at work"):
            run = [sys.executable, "-m", "tests.data.generating", str(tmp_path)]
            message = subprocess.run(run, capture_output=True, text=True, check=False).stderr
            raise hw.InvalidInput(message.splitlines()[-1])
        refused.append(shard)

    generate(plan, tmp_path, 1, report=lambda shard: second(shard) if not refused else None)
    assert refused


def test_a_disk_that_cannot_hold_it_is_said_before_the_start(tmp_path, monkeypatch):
    monkeypatch.setattr(room.shutil, "disk_usage", lambda root: type("Usage", (), {"free": 1000})())
    with pytest.raises(hw.InvalidInput, match=r"needs \d+\.?\d* kB more, and the disk of .* has 1 kB free"):
        generate(Plan(Decay(), COUNTS), tmp_path, 1)


def test_a_disk_that_fills_up_on_the_way_costs_nothing(whole, tmp_path):
    """Files may not grow beyond a few kilobytes for a while: to the writer that is a full disk."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path.cwd()), *sys.path])}
    run = subprocess.run(
        [sys.executable, "-m", "tests.data.generating", tmp_path / "full", "13000"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode != 0 and "make room and run the same command again" in run.stderr, run.stderr
    generate(Plan(Decay(), COUNTS), tmp_path / "full", 2)
    assert contents(tmp_path / "full") == contents(whole)


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (lambda: Plan(Decay(), COUNTS, "float16"), "dtype float32, and this run has float16"),
        (lambda: Plan(Decay(grid=(12, 4)), COUNTS), "and this run has"),
        (lambda: Plan(find_system("ball3d"), COUNTS), "system decay, and this run has ball3d"),
        (lambda: Plan(Faster(), COUNTS), "solver with class Decay, and this run has Faster"),
        (lambda: Plan(Decay(), COUNTS | {"train": 4}), "more trajectories of split 'train' than the 4"),
    ],
)
def test_another_plan_in_the_same_directory_is_refused(plan, words, whole):
    before = contents(whole)
    with pytest.raises(hw.InvalidInput, match=words):
        generate(plan(), whole, 1)
    assert contents(whole) == before


@dataclass(frozen=True)
class Faster(Decay):
    """Another solver for the same states."""

    def advance(self, states, frames, params):
        return super().advance(states, 2 * frames, params)


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        (Ball3D(), Ball3D(substeps=1), "solver with substeps 50, and this run has 1"),
        (Ball3D(), Ball3D(frame_step=0.02), "solver with frame_step 0.01, and this run has 0.02"),
        (Euler2D(grid=(8, 8)), Euler2D(grid=(8, 8), cfl=0.2), "solver with cfl 0.4, and this run has 0.2"),
        (Euler2D(grid=(8, 8)), Euler2D(grid=(8, 8), dtype="float32"), "solver with dtype float64, and this run has float32"),
    ],
)
def test_another_setting_of_the_solver_in_the_same_directory_is_refused(one, other, words, tmp_path):
    generate(Plan(one, {"train": 2}), tmp_path, 1)
    generate(Plan(one, {"train": 3}), tmp_path, 1)
    with pytest.raises(hw.InvalidInput, match=words):
        generate(Plan(other, {"train": 4}), tmp_path, 1)


def test_a_manifest_of_format_1_goes_on_and_then_has_an_identity(whole, tmp_path):
    generate(Plan(Decay(), {"train": 5}), tmp_path / "old", 1)
    path = tmp_path / "old" / "manifest.json"
    content = json.loads(path.read_text()) | {"format": 1}
    del content["identity"]
    path.write_text(json.dumps(content))
    assert Manifest.load(tmp_path / "old").identity == {}
    with pytest.raises(hw.InvalidInput, match="and this run has"):
        generate(Plan(Decay(grid=(12, 4)), COUNTS), tmp_path / "old", 1)
    generate(Plan(Decay(), COUNTS), tmp_path / "old", 1)
    assert contents(tmp_path / "old") == contents(whole)


def test_a_manifest_of_a_later_format_is_refused(whole):
    path = whole / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 3}))
    with pytest.raises(hw.InvalidInput, match="another format than 1 or 2: update hybridworld"):
        Manifest.load(whole)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Plan(Decay(), {"train": 0}), "count of split 'train' is 0"),
        (lambda: Plan(Decay(), {"trian": 5}), "Unknown split 'trian'"),
        (lambda: Plan(Decay(), {}), "nothing to generate"),
        (lambda: Plan(Decay(), COUNTS, "float8"), "choose float32 or float16"),
        (lambda: parse_counts("train=many"), "--count has 'train=many'"),
        (lambda: at_scale(Decay(), "huge"), "choose one of smoke, laptop, paper"),
    ],
)
def test_an_impossible_plan(call, words):
    with pytest.raises(hw.InvalidInput, match=words):
        call()


# Damage.


def faults(root, capsys):
    capsys.readouterr()
    count = verify_dataset(root)
    out = capsys.readouterr().out
    return count, out


def test_a_whole_dataset_is_found_whole(whole, capsys):
    count, out = faults(whole, capsys)
    assert count == 0 and "every byte is as the manifest says" in out


def test_each_flipped_bit_is_found_by_name(whole, capsys):
    chance = random.Random(5)
    for path in sorted(whole.rglob("*.hdf5")):
        good = path.read_bytes()
        place = chance.randrange(len(good))
        path.write_bytes(good[:place] + bytes([good[place] ^ (1 << chance.randrange(8))]) + good[place + 1 :])
        count, out = faults(whole, capsys)
        assert count == 1 and path.relative_to(whole).as_posix() in out and "bytes have changed" in out
        path.write_bytes(good)


def test_missing_cut_and_foreign_files_are_found_by_name(whole, capsys):
    first, second, third, *_ = sorted(whole.rglob("*.hdf5"))
    first.unlink()
    second.write_bytes(second.read_bytes()[:-100])
    (third.parent / "extra.hdf5").write_bytes(third.read_bytes())
    count, out = faults(whole, capsys)
    assert count == 3
    assert f"{first.name}: is missing" in out and f"{second.name}: has" in out and "extra.hdf5: is not in the manifest" in out


def test_deleted_and_cut_files_are_made_anew(whole):
    good = contents(whole)
    first, second, *_ = sorted(whole.rglob("*.hdf5"))
    first.unlink()
    second.write_bytes(second.read_bytes()[:-100])
    generate(Plan(Decay(), COUNTS), whole, 1)
    assert contents(whole) == good


def test_a_damaged_manifest_is_refused(whole):
    (whole / "manifest.json").write_text((whole / "manifest.json").read_text()[:200])
    with pytest.raises(hw.InvalidInput, match=r"manifest.json is damaged"):
        Manifest.load(whole)


# What is inside.


def test_the_files_hold_the_solvers_answer(whole):
    environment = Decay()
    with h5py.File(whole / "data" / "valid" / "decay-00001.hdf5") as file:
        assert list(file["origin/seed"]) == [3]
        sample = environment.initial("val", 3)
        states = np.stack(list(environment.trajectory(sample.state, 8, sample.params)))
        np.testing.assert_allclose(file["t0_fields/u"][0], states[:, 0], rtol=1e-6)
        np.testing.assert_allclose(file["t1_fields/w"][0], np.moveaxis(states[:, 1:], 1, -1), rtol=1e-6)


def test_float16_is_the_rounded_float32(whole, tmp_path):
    generate(Plan(Decay(), {"train": 3}, "float16"), tmp_path / "half", 1)
    with (
        h5py.File(whole / "data/train/decay-00000.hdf5") as full,
        h5py.File(tmp_path / "half/data/train/decay-00000.hdf5") as half,
    ):
        assert half["t0_fields/u"].dtype == np.float16
        np.testing.assert_array_equal(half["t0_fields/u"][:3], full["t0_fields/u"][:].astype(np.float16))


def test_stats_are_those_of_the_train_split(whole):
    stats = yaml.safe_load((whole / "stats.yaml").read_text())
    u = np.concatenate([h5py.File(p)["t0_fields/u"][:, 0] for p in sorted((whole / "data/train").glob("*.hdf5"))]).astype(float)
    later = np.concatenate([h5py.File(p)["t0_fields/u"][:, 1] for p in sorted((whole / "data/train").glob("*.hdf5"))]).astype(
        float
    )
    assert stats["mean"]["u"] == pytest.approx(u.mean()) and stats["std"]["u"] == pytest.approx(u.std())
    assert stats["rms_delta"]["u"] == pytest.approx(np.sqrt(((later - u) ** 2).mean()))
    assert len(stats["std_delta"]["w"]) == 2 and set(stats) == {"mean", "std", "rms", "mean_delta", "std_delta", "rms_delta"}


def test_the_manifest_knows_each_shard(whole):
    content = json.loads((whole / "manifest.json").read_text())
    assert content["system"] == "decay" and sum(entry["count"] for entry in content["shards"].values()) == sum(COUNTS.values())


# What is drawn.


@pytest.mark.parametrize("name", BUILT_IN)
def test_no_trajectory_stands_in_two_splits(name):
    environment, _ = at_scale(find_system(name), "smoke")
    seen = {}
    for split in SPLITS:
        for seed in range(40):
            sample = environment.initial(split, seed)
            key = sample.state.tobytes() + sample.params.tobytes()
            assert key not in seen, f"{split} {seed} repeats {seen.get(key)}"
            seen[key] = (split, seed)


@pytest.mark.parametrize("name", BUILT_IN)
def test_regimes_are_disjoint(name):
    for parameter in find_system(name).spec.parameters:
        regimes = list(parameter.ranges.items())
        for i, (_, ones) in enumerate(regimes):
            for _, others in regimes[i + 1 :]:
                assert all(b <= c or d <= a for a, b in ones for c, d in others), parameter.name


@pytest.mark.parametrize("name", ["oregonator", "euler2d"])
@pytest.mark.parametrize("split", ["train", "ood-near", "ood-far"])
def test_split_proportions_pass_a_chi_square_test(name, split, monkeypatch):
    environment = find_system(name).coarsened(16)
    monkeypatch.setattr("hybridworld.physics.oregonator.BURN_IN", 0)  # the pattern does not matter here
    origins = [environment.initial(split, seed).origin for seed in range(1500)]
    shares = environment.spec.kinds[environment.spec.regime(split)]
    kinds = [origin["kind"] for origin in origins]
    assert set(kinds) == set(shares)
    if len(shares) > 1:
        assert chisquare([kinds.count(kind) for kind in shares], [1500 * share for share in shares.values()]).pvalue > 0.001
    if "shift" in origins[0] and split != "train":
        shifts = [origin["shift"] for origin in origins]
        assert chisquare([shifts.count(kind) for kind in ("f", "eps", "both")]).pvalue > 0.001
