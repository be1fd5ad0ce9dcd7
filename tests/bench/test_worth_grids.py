"""How the gain of a surrogate grows with the grid."""

import json

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import hybridworld as hw
from hybridworld.app.bench_worth_grids import on_grid, sections_of, sizes_in
from hybridworld.app.cli import app
from hybridworld.bench.worth.comparison import Comparison
from hybridworld.bench.worth.grids import draw_gains, gains_of
from hybridworld.bench.worth.measure import Row
from hybridworld.errors import InvalidInput

EULER = hw.system("euler2d")


def comparison(size, surrogate_ms, error):
    """A reference of 100 ms, a rival of 40 ms and error 0.2, and a surrogate, at two horizons."""
    rows = {
        h: [
            Row("reference", "reference", "reference", h, 100, 100, 0.0),
            Row("coarse", "solver", "coarse", h, 40, 40, 0.2),
            Row("mode 1", "mode 1", "mode 1", h, surrogate_ms, surrogate_ms, error, speedup_vs_compiled=100 / surrogate_ms),
        ]
        for h in (16, 64)
    }
    return Comparison(EULER.resized((size, size)), None, "test", 4, np.ones(4), rows, [])


def test_gains_are_told_per_horizon_from_the_smallest_grid_on():
    gains = gains_of([comparison(64, 10, 0.3), comparison(32, 20, 0.1)])
    assert [(each.horizon, each.grid) for each in gains] == [
        (16, (32, 32)), (16, (64, 64)), (64, (32, 32)), (64, (64, 64)),
    ]  # fmt: skip
    small, large = gains[:2]
    assert (small.reference, small.equal_error, small.rival) == (5, 5, "reference")  # the coarse one is not as accurate
    assert (large.reference, large.equal_error, large.rival) == (10, 4, "coarse")
    tables = sections_of(gains)
    assert list(tables) == ["Horizon: 16 frames", "Horizon: 64 frames"]
    assert tables["Horizon: 64 frames"][2] == ["64 x 64", "10", "0.3", "10x", "4x", "coarse"]


def test_the_picture_has_a_panel_per_horizon(tmp_path):
    sizes = []
    for horizons in (1, 2):
        gains = [
            each for each in gains_of([comparison(32, 20, 0.1), comparison(64, 10, 0.3)]) if each.horizon <= 16 * horizons**2
        ]
        draw_gains(gains, tmp_path / "gains.png", "how the gain grows")
        sizes.append(Image.open(tmp_path / "gains.png").size)
    assert sizes[1][0] > 1.5 * sizes[0][0] and sizes[1][1] == sizes[0][1]


@pytest.mark.parametrize("grids", ["", "64,many", "0,8", "-4", "6.5"])
def test_grids_that_are_none_are_refused(grids):
    with pytest.raises(InvalidInput, match="give cells along an axis"):
        sizes_in(grids)


def test_sizes_are_sorted_and_a_system_keeps_its_proportions():
    assert sizes_in("64,32,64") == [32, 64]
    assert on_grid(EULER.resized((32, 64)).resolved(2), 16).spec.grid == (16, 32)
    with pytest.raises(InvalidInput, match="no grid"):
        on_grid(hw.system("ball3d"), 16)


def test_a_model_of_ones_own_and_grids_exclude_each_other():
    said = CliRunner().invoke(app, ["bench", "worth", "euler2d", "--grids", "16,32", "--model", "euler2d"])
    assert isinstance(said.exception, InvalidInput) and "leave out --model" in str(said.exception)


@pytest.mark.slow
def test_models_are_trained_and_compared_for_each_grid(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = ["bench", "worth", "euler2d", "--grids", "16,32", "--minutes", "0.7", "--count", "4", "--horizon", "8", "--json"]
    for _ in range(2):  # the second time the models are there
        said = CliRunner().invoke(app, asked, catch_exceptions=False)
        found = json.loads(said.stdout[said.stdout.index("{\n") :])
        assert [each["grid"] for each in found["gains"]] == [[16, 16], [32, 32]]
        assert all(each["reference"] > 0 and each["error"] > 0 for each in found["gains"])
