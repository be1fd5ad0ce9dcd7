"""Files and folders that no command should swallow: what `tests/app/test_hostile.py` gives to commands and functions."""

import shutil
from pathlib import Path

import h5py
import numpy as np

import hybridworld as hw
from hybridworld.data.generate import generate
from hybridworld.data.plan import Plan
from hybridworld.physics.ball3d import Ball3D
from hybridworld.physics.euler2d import Euler2D
from hybridworld.surrogate.bundle import Bundle, save_bundle
from tests.app.commands import command
from tests.deploy.fakes import saved, seeded
from tests.physics.mjcf import MINE
from tests.surrogate.flows import tiny

SYSTEM = """
from dataclasses import dataclass
import numpy as np
import hybridworld as hw
from tests.physics.decay import SPEC, Decay

@dataclass(frozen=True)
class Mine(Decay):
    pass
"""
SYSTEMS = {
    "advance": "    def advance(self, states, frames, params):\n        return states / missing\n",
    "spec": "    @property\n    def spec(self):\n        return SPEC.nothing\n",
    "no_spec": "    @property\n    def spec(self):\n        return 7\n",
    "sample": "    def sample(self, rng, split):\n        return {}['kind']\n",
    "axis": "    @property\n    def spec(self):\n        return hw.Axis('x', 1, 0, 'wall')\n",
    "shape": "    def advance(self, states, frames, params):\n        return np.zeros((len(states), 2))\n",
    "nothing": "    def advance(self, states, frames, params):\n        pass\n",
    "lost": "    def advance(self, states, frames, params):\n        return states * np.inf\n",
    "memory": "    def advance(self, states, frames, params):\n        raise MemoryError\n",
    "created": "    def __init__(self, needed):\n        pass\n",
    "two": "\nclass Other(Mine):\n    pass\n",
    "exit": "    def advance(self, states, frames, params):\n        exit(3)\n",
    "exit_spec": "    @property\n    def spec(self):\n        exit(3)\n",
}
FILES = {
    "imports": "import nothing_of_that_name\n",
    "syntax": "def broken(:\n",
    "exits": "import sys\nsys.exit()\n",
    "abstract": "import hybridworld as hw\nclass Mine(hw.Environment): pass\n",
    "empty": "x = 1\n",
    "half": "def f(states, horizon):\n    return states * 0.5**horizon\n",
    "quits": "def f(states, horizon):\n    raise SystemExit(3)\n",
    "late": "def f(states, horizon):\n    return states * (1 - 0.1 / horizon) if horizon != 3 else exit(3)\n",
    "endless": "def f(states, horizon):\n    return f(states, horizon)\n",
    "text": "def f(states, horizon):\n    return 'a text'\n",
    "nans": "def f(states, horizon):\n    return states * float('nan')\n",
    "narrow": "def f(states, horizon):\n    return states[:, :3]\n",
    "imaginary": "def f(states, horizon):\n    return states + 1j\n",
    "makes_none": "def f():\n    return None\n",
    "four": "def f(states, horizon, params, more):\n    return states\n",
    "null": "x = 1\0\n",
    "network": "from torch import nn\nclass Net(nn.Module):\n    def __init__(self, *a, **k): raise OSError('no weights')\n",
}


def build(place: Path) -> None:
    """Datasets, models, inputs and systems, most of them wrong in one way."""
    for name, text in SYSTEMS.items():
        (place / f"{name}.py").write_text(SYSTEM + text)
    for name, text in FILES.items():
        (place / f"{name}.py").write_text(text)
    (place / "taken").write_text("a file")
    (place / "binary").write_bytes(bytes(range(256)))
    (place / "mine.xml").write_text(MINE)
    generate(Plan(Ball3D(), {"train": 8, "val": 4, "test": 4}), place / "balls", workers=1)
    shutil.copytree(place / "balls", place / "flipped")
    for split in ("train", "test"):
        flip(place / "flipped" / "data" / split / "ball3d-00000.hdf5", -300)
    shutil.copytree(place / "balls", place / "headless")
    flip(place / "headless" / "data" / "test" / "ball3d-00000.hdf5", 5)
    shutil.copytree(place / "balls", place / "unfinished")
    (place / "unfinished" / "manifest.json").write_text("{")
    shutil.copytree(place / "balls", place / "no_test")
    shutil.rmtree(place / "no_test" / "data" / "test")
    (place / "no_test" / "manifest.json").unlink()
    (place / "bare" / "data" / "train").mkdir(parents=True)
    (place / "folder.safetensors").mkdir()
    (place / "folder.py").mkdir()
    shutil.copytree(place / "balls", place / "lacking")
    (place / "lacking" / "data" / "valid" / "ball3d-00000.hdf5").unlink()
    shutil.copytree(place / "balls", place / "hollow")
    (place / "hollow" / "data" / "test" / "ball3d-00000.hdf5").write_bytes(b"")
    (place / "log").mkdir()
    (place / "log" / "something.hdf5").write_text("no")
    generate(Plan(Euler2D(grid=(8, 8)), {"train": 2, "val": 2, "test": 2}), place / "gas", workers=1)
    saved(place / "model.safetensors", Ball3D(), count=24)
    saved(place / "raw.safetensors", Ball3D(), count=0)
    saved(place / "gas.safetensors", Euler2D(grid=(8, 8)), count=2)
    shutil.copy(place / "model.safetensors", place / "broken.safetensors")
    flip(place / "broken.safetensors", -9)
    (place / "text.safetensors").write_text("no model")
    (place / "zero.safetensors").write_bytes(b"")
    (place / "cut.safetensors").write_bytes((place / "model.safetensors").read_bytes()[:2000])
    (place / "latin.py").write_bytes(b"x = '\xe9'\n")
    (place / "empty.xml").write_text("")
    (place / "page.xml").write_text("<html></html>")
    own = tiny(Ball3D().spec)
    named = own.model_copy(update={"surrogate": own.surrogate.model_copy(update={"backbone": "network.py:Net"})})
    save_bundle(place / "own.safetensors", Bundle(seeded(Ball3D().spec), named))
    wishes = ("training.epochs=1", "training.samples=128", "training.validation=8", "training.calibration=0")
    settings = [part for wish in wishes for part in ("--set", wish)]
    command("train", "ball3d", "--data", place / "balls", "--preset", "smoke", *settings, "--out", place / "run")
    shutil.copytree(place / "run", place / "torn")
    (place / "torn" / "checkpoint.pt").write_bytes((place / "run" / "checkpoint.pt").read_bytes()[:100])
    write_inputs(place)


def flip(path: Path, position: int) -> None:
    """Change one byte of a file."""
    content = bytearray(path.read_bytes())
    content[position] ^= 0x40
    path.write_bytes(bytes(content))


def write_inputs(place: Path) -> None:
    """What `predict --input` may be given."""
    sample = hw.system("ball3d").initial("test", 0)
    state, params = sample.state[None], sample.params[None]
    outside, fast = state.copy(), state.copy()
    outside[0, 0], fast[0, 4] = 2.0, 1e12
    contents = {
        "words": {"state": np.array([b"one", b"two"]), "params": params},
        "complex": {"state": state + 1j, "params": params},
        "shape": {"state": state[:, :8], "params": params},
        "nan": {"state": state * np.nan, "params": params},
        "outside": {"state": outside, "params": params},
        "fast": {"state": fast, "params": params},
        "none": {"state": state[:0], "params": params[:0]},
        "alone": {"state": state},
        "rows": {"state": state, "params": np.repeat(params, 3, axis=0)},
        "wordy": {"state": state, "params": np.array([b"a", b"b"])},
        "unphysical": {"state": state, "params": np.array([[2.0, -9.8]])},
        "other": {"something": state},
    }
    for name, datasets in contents.items():
        with h5py.File(place / f"{name}.h5", "w") as file:
            for key, values in datasets.items():
                file[key] = values
    with h5py.File(place / "group.h5", "w") as file:
        file.create_group("state")
    (place / "text.h5").write_text("no")
    (place / "zero.h5").write_bytes(b"")
    (place / "cut.h5").write_bytes((place / "alone.h5").read_bytes()[:700])
    (place / "folder.h5").mkdir()
