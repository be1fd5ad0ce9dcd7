from pathlib import Path

import pytest

import hybridworld as hw
from tests.docs.blocks import blocks

DOC = Path(__file__).parents[2] / "docs" / "adding-a-system.md"


@pytest.fixture(scope="package")
def gray_scott(tmp_path_factory):
    """The system of docs/adding-a-system.md, from the file that it shows."""
    (code,) = (block.text for block in blocks(DOC) if block.title == "gray_scott.py")
    assert len(code.splitlines()) < 150
    path = tmp_path_factory.mktemp("example") / "gray_scott.py"
    path.write_text(code)
    return hw.system(f"{path}:GrayScott")
