"""Error against milliseconds: any points can be drawn, and no error has its place."""

import pytest

from hybridworld.figures.frontiers import Panel, Point, draw_frontiers, error_range

POINTS = [Point("exact", "reference", 40, 0), Point("coarse", "solver", 8, 0.1), Point("learned", "mode 1", 4, 0.15)]


@pytest.mark.parametrize("points", [POINTS, POINTS[:1]])
def test_panels_become_a_picture(points, tmp_path):
    panel = Panel("h = 64", "no solver is\nas accurate", points, {"no change": 0.3, "not measured": None})
    draw_frontiers([[panel, panel]], tmp_path / "a.png", "Title\nmore")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_no_error_has_a_place_below_all_others():
    floor, top = error_range([0, 1e-14, 0.1, 0.2])
    assert 0 < floor < 0.1 and top > 0.2
    assert error_range([0, 1e-14])[0] > 0 and error_range([0])[0] > 0
