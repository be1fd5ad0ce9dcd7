"""Symmetries of space, and solvers with half their step."""

from itertools import pairwise, permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hybridworld as hw
from hybridworld.physics.registry import BUILT_IN, find_system
from tests.surrogate.flows import Oscillator

MAPS = [
    hw.Symmetry(axes, signs)
    for dimensions in (1, 2, 3)
    for axes in permutations(range(dimensions))
    for signs in product((1, -1), repeat=dimensions)
]
maps = st.sampled_from(MAPS)


def spec_of(symmetry, gridded=False):
    """States with a field of each kind, on a grid that differs from axis to axis, or on none."""
    dimensions = len(symmetry.axes)
    return hw.StateSpec(
        name="all kinds", title="", fields=(hw.Field("s", "1"), hw.Field("v", "1", "vector"), hw.Field("w", "1", "axial")),
        axes=tuple(hw.Axis(name, 0, 1, "open") for name in "xyz"[:dimensions]),
        grid=(2, 3, 4)[:dimensions] if gridded else (), frame_step=1.0, time_unit="1", frames=2, draw="s",
    )  # fmt: skip


def generic(spec, lead=(2,)):
    """States that no map but the identity leaves as they are."""
    return np.random.default_rng(0).normal(size=(*lead, *spec.shape))


@given(symmetry=maps, gridded=st.booleans(), lead=st.sampled_from([(), (2,), (2, 3)]))
def test_the_inverse_undoes_a_symmetry_from_both_sides(symmetry, gridded, lead):
    spec = spec_of(symmetry, gridded)
    states = generic(spec, lead)
    np.testing.assert_array_equal(symmetry.inverse.apply(spec, symmetry.apply(spec, states)), states)
    np.testing.assert_array_equal(symmetry.apply(spec, symmetry.inverse.apply(spec, states)), states)


@given(maps)
def test_the_inverse_of_the_inverse_is_the_map_and_turns_stay_turns(symmetry):
    assert symmetry.inverse.inverse == symmetry
    assert symmetry.inverse.determinant == symmetry.determinant
    assert symmetry.inverse.is_identity == symmetry.is_identity


@given(symmetry=maps, gridded=st.booleans())
def test_the_identity_is_what_leaves_every_state_as_it_is(symmetry, gridded):
    spec = spec_of(symmetry, gridded)
    states = generic(spec)
    assert symmetry.is_identity == np.array_equal(symmetry.apply(spec, states), states)


@pytest.mark.parametrize("swap", [True, False])
def test_the_maps_of_a_square_have_one_identity_and_all_inverses(swap):
    maps = hw.square_symmetries(dimensions=3, swap=swap)
    assert sum(symmetry.is_identity for symmetry in maps) == 1
    assert {symmetry.inverse for symmetry in maps} == set(maps)


# Half the time step.


COARSE = (16, 16)


def at(name, grid=None):
    found = find_system(name)
    return found.resized(grid) if grid else found


@pytest.mark.parametrize("name", BUILT_IN)
def test_half_the_step_is_about_the_same_states_and_the_same_time(name):
    env = at(name)
    finer, frames = env.halved_step()
    ours, theirs = env.spec, finer.spec
    assert (theirs.name, theirs.channels, theirs.grid, theirs.params) == (ours.name, ours.channels, ours.grid, ours.params)
    assert frames * theirs.frame_step == pytest.approx(ours.frame_step, rel=1e-12)
    assert finer != env


@pytest.mark.parametrize(
    ("name", "grid"),
    [
        ("ball3d", None),
        ("oregonator", COARSE),
        ("euler2d", None),
        ("euler2d", COARSE),
    ],
)
def test_each_halving_halves_what_the_next_one_changes(name, grid):
    """First order in time, or better."""
    env = at(name, grid)
    samples = [env.initial("val", seed) for seed in range(4)]
    states, params = (np.stack([getattr(sample, part) for sample in samples]) for part in ("state", "params"))
    answers, solver, frames = [env.solve(states, 4, params)], env, 4
    for _ in range(2):
        solver, factor = solver.halved_step()
        frames *= factor
        answers.append(solver.solve(states, frames, params))
    first, second = (np.abs(b - a).max() for a, b in pairwise(answers))
    assert 0 < second < 0.6 * first


def test_a_system_that_does_not_say_how_to_halve_its_step_has_none():
    assert Oscillator().halved_step() is None
