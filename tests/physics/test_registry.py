"""Systems by name, by file, by entry point."""

import sys

import pytest

import hybridworld as hw
from hybridworld.physics.registry import known_systems

GOOD = """
import numpy as np
import hybridworld as hw
from tests.physics.decay import Decay

class Mine(Decay):
    pass
"""


def write(path, text):
    path.write_text(text)
    return path


def test_a_users_file(tmp_path):
    path = write(tmp_path / "mine.py", GOOD)
    assert hw.system(f"{path}:Mine").spec.name == "decay"
    assert type(hw.system(str(path))).__name__ == "Mine"


@pytest.mark.parametrize(
    ("text", "name", "words"),
    [
        ("import nothing_of_that_name", ":Mine", "does not import: ModuleNotFoundError"),
        ("def broken(:", ":Mine", "does not import: SyntaxError"),
        (GOOD, ":Yours", "no Environment class 'Yours': it has Mine"),
        ("x = 1", "", "0 Environment classes"),
        ("import hybridworld as hw\nclass Mine(hw.Environment): pass", ":Mine", "lacks advance, sample, spec"),
        (GOOD + "    def __init__(self, needed): pass", ":Mine", "cannot be created without arguments"),
    ],
)
def test_what_is_wrong_with_a_users_file(tmp_path, text, name, words):
    path = write(tmp_path / f"mine_{abs(hash(text))}.py", text)
    with pytest.raises(hw.InvalidInput) as caught:
        hw.system(f"{path}{name}")
    assert words in str(caught.value)


def test_an_installed_package_brings_a_system(tmp_path, monkeypatch):
    write(tmp_path / "plugin_of_decay.py", GOOD)
    info = tmp_path / "plugin_of_decay-1.0.dist-info"
    info.mkdir()
    write(info / "METADATA", "Metadata-Version: 2.1\nName: plugin-of-decay\nVersion: 1.0\n")
    write(info / "entry_points.txt", "[hybridworld.systems]\ndecay = plugin_of_decay:Mine\ngone = plugin_of_decay:Gone\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    try:
        assert known_systems()["decay"] == "plugin_of_decay:Mine"
        assert hw.system("decay").spec.title == "Decay"
        with pytest.raises(hw.InvalidInput, match=r"registered as plugin_of_decay:Gone, which cannot be loaded"):
            hw.system("gone")
    finally:
        sys.modules.pop("plugin_of_decay", None)
