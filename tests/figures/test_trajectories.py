"""Pictures: every kind of spec gives a page and a film, and colours and directions mean what they say."""

from dataclasses import replace

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from PIL import Image

from hybridworld.figures import style, trajectories
from hybridworld.figures.trajectories import animate_trajectory, draw_trajectory, scale_of
from hybridworld.physics.spec import Axis, Field, StateSpec

X, Y, Z = Axis("x", 0.0, 2.0, "periodic"), Axis("y", -1.0, 1.0, "open"), Axis("z", 0.0, 1.0, "wall")
HEIGHT, FLOW, PLACE = Field("height", "m"), Field("flow", "m/s", "vector"), Field("place", "m", "vector")


def make_spec(fields, axes, grid, draw):
    return StateSpec("toy", "A toy", fields, axes, grid, frame_step=0.1, time_unit="s", frames=5, draw=draw)


SPECS = {
    "line": make_spec((HEIGHT, FLOW), (X,), (8,), "flow_x"),
    "plane": make_spec((HEIGHT, FLOW), (X, Y), (8, 6), "height"),
    "flat plane": make_spec((HEIGHT, FLOW), (X, replace(Y, low=0.9)), (8, 6), "height"),
    "volume": make_spec((HEIGHT, FLOW), (X, Y, Z), (8, 6, 4), "flow_y"),
    "vector": make_spec((HEIGHT, FLOW), (X, Y), (), "height"),
    "ball": make_spec((PLACE, FLOW), (X, Y, Z), (), "place_z"),
}


def make_states(spec, frames=5, seed=0):
    return np.random.default_rng(seed).normal(size=(frames, *spec.shape))


@pytest.mark.parametrize("kind", SPECS)
def test_every_kind_has_a_page(kind, tmp_path):
    spec = SPECS[kind]
    draw_trajectory(spec, make_states(spec), "Title\nsubtitle", tmp_path / "page.png")
    with Image.open(tmp_path / "page.png") as image:
        assert image.format == "PNG"
        assert min(image.size) > 300


@pytest.mark.parametrize("kind", ["line", "plane", "ball"])
def test_the_beginning_alone_is_a_page(kind):
    spec = SPECS[kind]
    page = trajectories._field_page if spec.grid else trajectories._vector_page
    assert page(spec, make_states(spec, frames=1), "Title").axes


@pytest.mark.parametrize("kind", SPECS)
def test_every_kind_has_a_film(kind, tmp_path):
    spec, heard = SPECS[kind], []
    animate_trajectory(spec, make_states(spec, frames=3), "Title", tmp_path / "film.gif", lambda *done: heard.append(done))
    with Image.open(tmp_path / "film.gif") as film:
        assert (film.format, film.n_frames, film.info["loop"], film.info["duration"]) == ("GIF", 3, 0, trajectories.FILM_STEP)
        assert film.convert("RGB").getpixel((1, 1)) == (255, 255, 255)
        assert max(film.size) >= 400
    assert heard == [(1, 3), (2, 3), (3, 3)]


def test_long_films_are_thinned_from_first_to_last():
    shown = trajectories.spread(201, trajectories.FILM_FRAMES)
    assert len(set(shown)) == 100
    assert (shown[0], shown[-1]) == (0, 200)
    assert set(np.diff(shown)) <= {2, 3}


def test_bad_numbers_are_drawn_around(tmp_path):
    spec = SPECS["plane"]
    states = make_states(spec)
    states[3:] = np.nan
    states[2, 0, 0, 0] = np.inf
    animate_trajectory(spec, states, "Title", tmp_path / "film.gif")
    assert (tmp_path / "film.gif").stat().st_size > 0
    assert scale_of(np.full(3, np.nan)).norm.vmax == 1


def test_x_points_right_and_y_up():
    values = np.arange(6.0).reshape(3, 2)
    image = trajectories.draw_field(Figure().add_subplot(), (X, Y), values, scale_of(values))
    assert np.array_equal(image.get_array(), values.T)
    assert image.origin == "lower"
    assert tuple(image.get_extent()) == (0.0, 2.0, -1.0, 1.0)


def test_the_field_to_draw_comes_first_and_a_vector_is_its_magnitude():
    spec = replace(SPECS["plane"], draw="flow_y")
    states = make_states(spec)
    first, *_ = trajectories._field_page(spec, states, "Title").axes
    assert np.allclose(first.images[0].get_array(), np.hypot(states[0, 1], states[0, 2]).T)


def test_a_volume_is_cut_in_the_middle():
    spec = SPECS["volume"]
    states = make_states(spec)
    cut, title = trajectories.sliced(spec, states, "Title")
    assert np.array_equal(cut, states[..., 2])
    assert title == "Title\nslice at z = 0.625"


def test_a_peak_does_not_hide_the_rest():
    values = np.linspace(1, 2, 10_000)
    scale = scale_of(np.append(values, 1000.0))
    assert isinstance(scale.norm, PowerNorm)
    assert scale.extend == "max"
    assert scale.norm.vmax == pytest.approx(2, rel=0.01)
    assert scale_of(values).norm.vmax == 2
    assert scale_of(values).extend == "neither"


def test_both_signs_get_diverging_colours_around_zero():
    scale = scale_of(np.array([-1.0, 3.0]))
    assert (scale.cmap, scale.norm.vmin, scale.norm.vmax) == (style.DIVERGING, -3, 3)


def test_only_a_length_in_three_dimensions_is_a_position():
    assert SPECS["ball"].position == PLACE
    assert [kind for kind, spec in SPECS.items() if spec.position] == ["ball"]


def test_the_style_leaves_no_trace():
    before = dict(matplotlib.rcParams)
    with trajectories.style():
        assert dict(matplotlib.rcParams) != before
    assert dict(matplotlib.rcParams) == before
