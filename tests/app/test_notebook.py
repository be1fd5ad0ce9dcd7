"""The notebook docs/notebooks/first-hour.ipynb runs from top to bottom, and is stored with what it then shows."""

from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="needs the packages nbformat, nbclient and ipykernel: the extra `dev`")

DOCS = Path(__file__).parents[2] / "docs"
NOTEBOOK = DOCS / "notebooks" / "first-hour.ipynb"


@pytest.fixture(scope="module")
def notebook():
    return nbformat.read(NOTEBOOK, as_version=4)


def outputs(notebook):
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def test_it_is_stored_with_its_outputs_and_small(notebook):
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    pictures = [output for output in outputs(notebook) if "image/png" in output.get("data", {})]
    assert len(pictures) >= 3 and not [output for output in outputs(notebook) if output.output_type == "error"]
    assert NOTEBOOK.stat().st_size < 1.5e6


def test_it_names_no_place_on_the_machine_where_it_ran(notebook):
    assert "/home/" not in NOTEBOOK.read_text() and "/tmp/" not in NOTEBOOK.read_text() and "/work/" not in NOTEBOOK.read_text()


def test_its_system_is_the_example(notebook):
    (written,) = [cell.source for cell in notebook.cells if cell.source.startswith("%%writefile pendulum.py\n")]
    assert written.partition("\n")[2] + "\n" == (DOCS / "examples" / "pendulum.py").read_text()


@pytest.mark.slow
def test_it_runs_from_top_to_bottom(notebook, tmp_path):
    """Minutes: it trains."""
    client = pytest.importorskip("nbclient", reason="needs the package nbclient: the extra `dev`")
    client.NotebookClient(notebook, timeout=3600, kernel_name="python3", resources={"metadata": {"path": tmp_path}}).execute()
    said = "".join(output.get("text", "") for output in outputs(notebook))
    assert "went to the solver" in said and "exceed the tolerance" in said and "alarm" in said
