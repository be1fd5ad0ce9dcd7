"""`make demo`: every system and every model that ships on one page."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from hybridworld.app import demo
from hybridworld.physics.registry import built_in, find_system

ROOT = Path(__file__).parents[2]


def page_below(folder):
    """The text of the page, after a look at whether every file that it names is there and every picture can be read."""
    page = (folder / "index.html").read_text()
    names = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert names and all((folder / name).is_file() for name in names)
    for name in names:
        if name.endswith((".png", ".gif")):
            with Image.open(folder / name) as image:
                assert image.width > 100
    return page


@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")
def test_make_demo_runs_the_command_demo():
    asked = ["make", "--dry-run", "--no-print-directory", "demo"]
    told = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True)
    assert told.stdout.splitlines()[-1].endswith("/hybridworld demo")


def test_the_page_shows_a_system_and_its_model(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(demo, "built_in", lambda: [find_system("ball3d")])
    monkeypatch.setattr(demo, "VECTORS", 3)
    demo.run_demo(tmp_path)
    page = page_below(tmp_path)
    assert page.count("<section>") == 2 and "3 forecasts, 64 frames ahead" in page
    assert str(tmp_path / "index.html") in capsys.readouterr().out.replace("\n", "")


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")
def test_make_demo_writes_the_page(tmp_path):
    """The environment of this test run stands in for the one that `make setup` would build."""
    asked = ["make", "--file", ROOT / "Makefile", "--old-file", "setup", "demo", f"RUN={Path(sys.executable).parent}"]
    subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert page_below(tmp_path / "out" / "demo").count('class="moving"') == len(built_in())
