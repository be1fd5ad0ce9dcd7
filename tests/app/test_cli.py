"""The command as a user runs it."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import h5py
import pytest

import hybridworld
from hybridworld.data.dataset import Dataset
from hybridworld.data.well_file import WellFile
from hybridworld.physics.registry import BUILT_IN
from tests.app.commands import command, predict, run
from tests.physics import mjcf

MINE = """
from dataclasses import dataclass
from tests.physics.decay import Decay

@dataclass(frozen=True)
class Mine(Decay):
    pass
"""


def test_help_and_systems_load_nothing_heavy():
    """What makes a start slow: the compiler, the network library, the plotting library."""
    code = (
        "import sys; sys.argv = ['hybridworld', 'systems']\n"
        "from hybridworld.app.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print([name for name in ('numba', 'torch', 'matplotlib', 'h5py') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1] == "[]"
    for name in BUILT_IN:
        assert name in result.stdout


def test_an_interruption_while_modules_are_imported_ends_with_130(tmp_path):
    """An import that is interrupted stands for SIGINT in the first second."""
    stopped = tmp_path / "sitecustomize.py"
    stopped.write_text(
        "import sys\n"
        "class Stop:\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name == 'hybridworld.app.cli':\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Stop())\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    for code in (["-m", "hybridworld"], ["-c", "from hybridworld.__main__ import main; main()"]):  # the second: the script
        result = subprocess.run([sys.executable, *code], capture_output=True, text=True, env=environment, check=False)
        assert (result.returncode, result.stderr) == (130, "Interrupted.\n")
    scripts = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts == {"hybridworld": "hybridworld.__main__:main"}


def test_systems_as_json():
    code, out, _ = run("systems", "--json")
    described = json.loads(out)
    assert code == 0 and set(described) == set(BUILT_IN)
    assert described["oregonator"]["parameters"]["eps"]["ranges"]["id"] == [[0.02, 0.08]]


@pytest.mark.parametrize("name", BUILT_IN)
def test_simulate_writes_data_picture_and_animation(name, tmp_path):
    code, out, err = run("simulate", name, "--split", "ood-near", "--seed", 2, "--frames", 3, "--out", tmp_path, "--gif")
    assert code == 0, err
    stem = tmp_path / f"{name}-ood-near-2"
    with h5py.File(f"{stem}.hdf5") as file:
        assert len(file["dimensions/time"]) == 4
    assert Path(f"{stem}.png").read_bytes().startswith(b"\x89PNG") and Path(f"{stem}.gif").read_bytes().startswith(b"GIF")
    assert "3 frames" in out


def test_a_users_own_system(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(MINE)
    assert run("check", f"{path}:Mine")[:2] == (0, "decay: nothing to mend.\n")
    assert "decay" in run("systems", "--system", f"{path}:Mine")[1]
    code, _, err = run("simulate", "--system", f"{path}:Mine", "--frames", 3, "--out", tmp_path)
    assert code == 0 and (tmp_path / "decay-test-0.png").exists(), err


def test_check_fails_in_sentences(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(MINE.replace("pass", "def advance(self, states, frames, params): return states"))
    code, out, _ = run("check", f"{path}:Mine")
    assert code == 1 and "changes nothing" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["simulate", "euler"], "Unknown system 'euler'"),
        (["simulate"], "Name one system"),
        (["simulate", "ball3d", "--system", "euler2d"], "Name one system"),
        (["simulate", "ball3d", "--split", "tests"], "Unknown split 'tests'"),
        (["simulate", "ball3d", "--seed", "-3"], "seed is -3"),
        (["simulate", "ball3d", "--frames", "0"], "frames is 0"),
        (["simulate", "missing.py:Mine"], "There is no file missing.py"),
        (["simulate", "ball3d", "--out", "taken"], "which is a file"),
        (["bench", "solvers", "--system", "nothing"], "Unknown system 'nothing'"),
    ],
)
def test_bad_input_ends_with_one_sentence(arguments, words, tmp_path):
    (tmp_path / "taken").write_text("")
    code, _, err = run(*arguments, cwd=tmp_path)
    assert code == 1 and words in err and len(err.strip().splitlines()) == 1


def test_a_process_ends_with_that_sentence_and_its_code():
    command = [sys.executable, "-m", "hybridworld", "simulate", "euler"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout) == (1, "") and found.stderr.startswith("Error: Unknown system 'euler'")
    assert len(found.stderr.splitlines()) == 1


def test_bench_solvers_as_json():
    code, out, err = run("bench", "solvers", "--system", "ball3d", "--frames", 2, "--repeats", 1, "--json")
    assert code == 0, err
    row = json.loads(out)["ball3d"]
    assert row["max_relative_difference"] < 1e-10
    assert row["speedup"] == pytest.approx(row["numpy_ms"] / row["compiled_ms"])


def test_version():
    assert run("--version")[1].strip() == hybridworld.__version__


def test_the_number_of_objects_is_an_option(tmp_path):
    command("simulate", "tabletop", "--objects", 3, "--frames", 1, "--out", tmp_path)
    command("generate", "tabletop", "--objects", 3, "--count", "test=1", "--out", tmp_path / "data")
    told = predict("tabletop", "--objects", 3, "--count", 1, "--horizon", 2, "--out", tmp_path, "--engine", "eager")
    assert Dataset(tmp_path / "data").spec.shape == WellFile(tmp_path / "tabletop-test-0.hdf5").spec.shape == (20, 3)
    assert "had 7 objects, and here are 3" in told["notes"][0]


def test_a_scene_for_mujoco_is_a_system(tmp_path):
    mine = tmp_path / "mine.xml"
    mine.write_text(mjcf.MINE)
    command("simulate", mine, "--frames", 1, "--out", tmp_path)
    told = predict("tabletop", "--system", mine, "--count", 1, "--horizon", 2, "--out", tmp_path, "--engine", "eager")
    assert "here are 3" in told["notes"][0]
