"""Initial states made by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybridworld.errors import InvalidInput
from hybridworld.physics.ball3d import Ball3D
from hybridworld.physics.brushes import Brush, Setting, near
from hybridworld.physics.euler2d import Euler2D
from hybridworld.physics.oregonator import Oregonator
from tests.surrogate.flows import Oscillator, Ring

SYSTEMS = [
    Oregonator(grid=(16, 16)),
    Euler2D(grid=(16, 16)),
    Euler2D(grid=(16, 16)).resolved(2),
    Ball3D(),
    Ring(),
    Oscillator(),
]


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.spec.title)
def test_every_brush_on_a_blank_state_makes_a_state_that_the_solver_takes(system):
    spec, blank = system.spec, system.blank()
    middle = np.array([(axis.low + axis.high) / 2 for axis in spec.axes])
    corner = np.array([axis.low for axis in spec.axes])
    params = system.initial("test", 0).params
    for brush in system.brushes:
        points = {"point": [middle], "arrow": [middle, corner], "stroke": [middle, corner]}[brush.gesture]
        before = blank.copy()
        drawn = brush(blank, points)
        np.testing.assert_array_equal(blank, before)
        assert drawn.shape == spec.shape and not np.array_equal(drawn, blank)
        assert np.isfinite(system.solve(drawn, 1, params)).all()
    assert system.brushes or not spec.grid


def test_what_can_be_painted_follows_from_the_fields():
    names = [brush.name for brush in Oregonator(grid=(16, 16)).brushes]
    assert names == ["paint u", "paint v"]
    u, v = Oregonator(grid=(16, 16)).brushes
    state = v(u(Oregonator(grid=(16, 16)).blank(), [(50.0, 50.0)], {"value": 1.0}), [(10.0, 10.0)], {"value": 0.5})
    assert state[0].max() == 1.0 and state[1].max() == 0.5 and (state[0] > 0).sum() < 64
    assert [brush.name for brush in Ring().brushes] == ["paint u"]  # no allowed range: that of a sample
    low, high = Ring().brushes[0].settings[0].low, Ring().brushes[0].settings[0].high
    assert low < 0 < high


def test_a_blast_by_hand_is_the_blast_that_is_drawn_at_random():
    system = Euler2D(grid=(32, 32))
    blast = next(brush for brush in system.brushes if brush.name == "blast")
    np.testing.assert_array_equal(blast(system.blank(), [(0.4, 0.6)], {"energy": 1.5}), system.blast(1.5, 1.0, (0.4, 0.6)))


def test_a_thrown_ball_starts_inside_its_box_and_flies_along_the_arrow():
    (throw,) = Ball3D().brushes
    state = throw(Ball3D().blank(), [(0.0, 0.0, 5.0), (0.1, 0.0, 5.2)], {"speed": 10.0})
    np.testing.assert_allclose(state, [0, 0, 0.95, 1.0, 0, 2.0, 0, 0, 0], atol=1e-12)


@given(x=st.floats(0, 100), y=st.floats(0, 100), radius=st.floats(7, 25))
def test_a_disk_on_a_periodic_square_has_the_same_size_everywhere(x, y, radius):
    spec = Oregonator(grid=(32, 32)).spec
    found = near(spec, np.array([[x, y]]), radius).sum() * np.prod(spec.spacing)
    assert found == pytest.approx(np.pi * radius**2, rel=0.35)


def test_a_line_is_as_wide_as_its_brush_and_as_long_as_its_points():
    spec = Euler2D(grid=(50, 50)).spec
    found = near(spec, np.array([[0.2, 0.5], [0.8, 0.5]]), 0.1)
    assert found[:, 25].sum() == pytest.approx(40, abs=2) and found[25].sum() == pytest.approx(10, abs=2)


@pytest.mark.parametrize(
    ("points", "settings", "sentence"),
    [
        ([], {}, "takes at least 1 points, and there are 0"),
        ([(0.5, 0.5)], {"value": 9.0}, "value of 'paint u' is 9: it must be 0 to 1.5"),
        ([(0.5, 0.5)], {"value": float("nan")}, "is nan"),
        ([(0.5, 0.5)], {"size": 1.0}, "no setting 'size': it has value, radius"),
    ],
)
def test_a_gesture_that_makes_no_sense_is_refused(points, settings, sentence):
    brush = Oregonator(grid=(16, 16)).brushes[0]
    with pytest.raises(InvalidInput, match=sentence):
        brush(Oregonator(grid=(16, 16)).blank(), points, settings)


def test_a_brush_counts_its_points():
    brush = Brush("dot", "A dot.", "point", lambda state, points, size: state, (Setting("size", "1", 0, 1, 1),))
    with pytest.raises(InvalidInput, match="takes 1 points, and there are 2"):
        brush(np.zeros(1), [(0,), (1,)])
