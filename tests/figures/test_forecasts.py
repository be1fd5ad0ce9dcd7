"""Forecasts: every kind of state has its row, only what is known is shown, and panels that are compared share a scale."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from hybridworld.figures import forecasts
from hybridworld.figures.forecasts import ForecastRow, draw_forecasts
from hybridworld.physics.spec import Axis, Field, StateSpec

X, Y, Z = Axis("x", 0.0, 2.0, "periodic"), Axis("y", -1.0, 1.0, "open"), Axis("z", 0.0, 1.0, "wall")
HEIGHT, FLOW, PLACE = Field("height", "m"), Field("flow", "m/s", "vector"), Field("place", "m", "vector")
BALLS = 3


def make_spec(fields, axes, grid, draw):
    return StateSpec("toy", "A toy", fields, axes, grid, frame_step=0.1, time_unit="s", frames=5, draw=draw)


SPECS = {
    "line": make_spec((HEIGHT, FLOW), (X,), (8,), "flow_x"),
    "plane": make_spec((HEIGHT, FLOW), (X, Y), (8, 6), "height"),
    "volume": make_spec((HEIGHT, FLOW), (X, Y, Z), (8, 6, 4), "flow_y"),
    "vector": make_spec((HEIGHT, FLOW), (X, Y), (), "height"),
    "ball": make_spec((PLACE, FLOW), (X, Y, Z), (), "place_z"),
}
FULL = ["input", "true future", "surrogate", "error map", "true error"]


def make_row(spec, seed=0, label="h = 8"):
    rng = np.random.default_rng(seed)
    shape, cells = (spec.shape, spec.grid) if spec.grid else ((BALLS, *spec.shape), (BALLS,))
    state, prediction, truth = rng.uniform(size=(3, *shape))
    return ForecastRow(label, state, prediction, rng.uniform(0, 1, cells), truth, rng.uniform(1, 3, cells))


@pytest.fixture
def draw(tmp_path, monkeypatch):
    """Draws, and gives the figure to look at; checks that a picture was written."""
    drawn = []
    keep = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda self, *a, **k: (drawn.append(self), keep(self, *a, **k, dpi=40))[1])

    def draw_all(spec, *rows):
        draw_forecasts(spec, rows, "Title\nsubtitle", tmp_path / "row.png")
        with Image.open(tmp_path / "row.png") as image:
            assert image.format == "PNG"
        return drawn[-1]

    return draw_all


def headings(figure):
    return [ax.get_title().split(" (")[0] for ax in figure.axes if ax.get_title()]


def panels(figure, heading):
    return next(ax for ax in figure.axes if ax.get_title().startswith(heading))


@pytest.mark.parametrize("kind", SPECS)
def test_every_kind_has_its_row_and_shows_only_what_is_known(kind, draw):
    spec = SPECS[kind]
    row = make_row(spec)
    assert headings(draw(spec, row, make_row(spec, 1, ""))) == FULL
    unasked = replace(row, truth=None, error=None)
    assert headings(draw(spec, unasked)) == ["input", "surrogate", "error map"]
    assert headings(draw(spec, replace(unasked, error_map=None))) == ["input", "surrogate"]


@pytest.mark.parametrize("kind", SPECS)
def test_a_forecast_that_is_not_a_number_is_drawn_around(kind, draw):
    spec = SPECS[kind]
    row = make_row(spec)
    worst = np.full_like(row.error, np.nan)
    figure = draw(spec, replace(row, prediction=np.full_like(row.state, np.nan), error_map=worst, error=worst))
    assert headings(figure) == FULL
    for ax in figure.axes:
        assert np.isfinite([*ax.get_xlim(), *ax.get_ylim()]).all()
        assert all(np.isfinite([image.norm.vmin, image.norm.vmax]).all() for image in ax.images)
    if spec.is_field and len(spec.grid) > 1:
        for heading in FULL:
            unknown = heading not in ("input", "true future")
            assert (np.ma.getmaskarray(panels(figure, heading).images[0].get_array()) == unknown).all()


def test_states_share_one_scale_and_errors_another(draw):
    first, second = make_row(SPECS["plane"]), make_row(SPECS["plane"], 1)
    second = replace(second, error=10 * second.error)
    images = [ax.images[0] for ax in draw(SPECS["plane"], first, second).axes if ax.images]
    assert len(images) == 10
    for shown, row in ((images[:5], first), (images[5:], second)):
        assert len({image.norm for image in shown[:3]}) == len({image.norm for image in shown[3:]}) == 1
        assert shown[0].get_cmap() != shown[3].get_cmap()
        assert (shown[4].norm.vmin, shown[4].norm.vmax) == (0, row.error.max())
        assert np.array_equal(shown[3].get_array(), row.error_map.T)


def test_the_errors_of_a_slice_have_the_scale_of_the_slice(draw):
    row = make_row(SPECS["volume"])
    row.error[..., 0] = 1e6
    image = panels(draw(SPECS["volume"], row), "true error").images[0]
    assert np.array_equal(image.get_array(), row.error[..., 2].T)
    assert image.norm.vmax == row.error[..., 2].max()


def test_lines_share_their_range(draw):
    figure = draw(SPECS["line"], make_row(SPECS["line"]))
    for group in (FULL[:3], FULL[3:]):
        assert len({panels(figure, heading).get_ylim() for heading in group}) == 1
    assert panels(figure, "error map").get_ylim()[0] == 0


def test_balls_are_recoloured_where_they_are_forecast(draw):
    """The nearer ball is drawn last: with equal x and z, the one of the smaller y."""
    places = np.array([[1.0, -0.9, 0.5], [1.0, 0.9, 0.5]])
    state = np.concatenate([places, np.zeros((2, 3))], axis=1)
    figure = draw(SPECS["ball"], ForecastRow("", state, state, np.array([0.0, 1.0]), state, np.array([1.0, 2.0])))
    discs = {heading: panels(figure, heading).collections[-1] for heading in ("input", "error map", "true error")}
    paths = [[path.vertices for path in each.get_paths()] for each in discs.values()]
    assert all(np.array_equal(a, b) for other in paths for a, b in zip(paths[0], other, strict=True))
    assert np.allclose(discs["input"].get_facecolor(), forecasts.identity(2)[::-1])
    far, near = discs["error map"].get_facecolor()
    assert np.allclose(far, discs["true error"].get_facecolor()[1])  # both 1, on one scale
    assert not np.allclose(far, near)


def test_a_path_that_ends_in_svg_gives_one(tmp_path):
    draw_forecasts(SPECS["plane"], [make_row(SPECS["plane"])], "Title", tmp_path / "row.svg")
    assert "<svg" in (tmp_path / "row.svg").read_text()
