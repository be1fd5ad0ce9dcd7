"""Between a grid and a coarser one."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybridworld.physics.euler2d import Euler2D
from hybridworld.physics.grids import coarsen, prolong, refine, repeated
from hybridworld.physics.oregonator import Oregonator
from hybridworld.physics.spec import Axis
from tests.data.decay import SPEC


def test_coarsening_keeps_the_mean_and_undoes_a_constant_refinement():
    env = Euler2D(grid=(32, 16))
    states = np.random.default_rng(0).normal(size=(3, *env.spec.shape))
    coarse = coarsen(env.spec, states, 4)
    assert coarse.shape == (3, *env.coarsened(4).spec.shape)
    np.testing.assert_allclose(coarse.mean(axis=(2, 3)), states.mean(axis=(2, 3)), atol=1e-14)
    np.testing.assert_allclose(coarsen(env.spec, np.kron(states, np.ones((1, 1, 4, 4))), 4), states, atol=1e-14)


@pytest.mark.parametrize("factor", [1, 2, 3, 4, 6, 8, 12])
@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64])
def test_coarse_cells_are_the_means_of_numpy_to_the_last_bit(factor, kind):
    env = Euler2D(grid=(24, 48))
    states = (1e3 * np.random.default_rng(0).normal(size=(2, *env.spec.shape))).astype(kind)
    kept = states.copy()
    rows = states.reshape(2, 4, 24 // factor, factor, 48).mean(axis=3)
    expected = rows.reshape(2, 4, 24 // factor, 48 // factor, factor).mean(axis=4)
    found = coarsen(env.spec, states, factor)
    assert found.dtype == expected.dtype and np.array_equal(found, expected) and np.array_equal(states, kept)


def test_refinement_is_second_order_on_a_periodic_wave():
    errors = []
    for cells in (16, 32):
        env = Oregonator(grid=(4 * cells, 4 * cells))
        fine, coarse = (
            np.sin(2 * np.pi * x[:, None] / 100) * np.cos(2 * np.pi * y[None] / 100)
            for x, y in (env.spec.centres(), env.coarsened(4).spec.centres())
        )
        found = refine(env.spec, np.stack([coarse, coarse]), 4)
        assert found.shape == env.spec.shape
        errors.append(np.abs(found - fine).max())
    assert 3.5 < errors[0] / errors[1] < 4.5


def test_refinement_is_constant_beyond_open_ends():
    env = Euler2D(grid=(8, 8))
    coarse = np.broadcast_to(np.arange(4.0)[:, None], (4, 4, 4))
    found = refine(env.spec, coarse, 2)[0, :, 0]
    np.testing.assert_allclose(found, [0, 0.25, 0.75, 1.25, 1.75, 2.25, 2.75, 3])


def test_a_coarse_run_is_near_the_fine_one_and_nearer_on_a_finer_grid():
    env = Euler2D()
    state = env.quadrants("SR4", 0.51, 0.49)
    fine = env.solve(state, 32)
    errors = [
        np.abs(refine(env.spec, env.coarsened(k).solve(coarsen(env.spec, state, k), 32), k) - fine).mean() for k in (2, 4, 8)
    ]
    assert errors[0] < errors[1] < errors[2] < 0.15


GRIDS = {1: (12,), 2: (6, 10), 3: (4, 6, 5)}


@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(2, 5), st.sampled_from(["periodic", "open", "wall"]))
def test_prolongation_keeps_averages_and_makes_no_new_extremum(seed, dimensions, factor, boundary):
    axes = tuple(Axis(name, 0.0, 1.0, boundary) for name in "xyz"[:dimensions])
    spec = replace(SPEC, axes=axes, grid=GRIDS[dimensions])
    states = np.random.default_rng(seed).normal(size=(2, 3, *spec.grid)) ** 3
    fine = prolong(spec, states, factor)
    assert fine.shape == (2, 3, *(factor * cells for cells in spec.grid))
    np.testing.assert_allclose(coarsen(spec, fine, factor), states, atol=1e-13)
    space = tuple(range(2, fine.ndim))
    assert (fine.min(space) >= states.min(space) - 1e-12).all() and (fine.max(space) <= states.max(space) + 1e-12).all()


def test_prolongation_keeps_a_jump_and_is_exact_on_a_line():
    spec = replace(SPEC, axes=(Axis("x", 0.0, 1.0, "open"),), grid=(8,))
    jump = np.repeat([1.0, 5.0], 4)[None]
    np.testing.assert_array_equal(prolong(spec, jump, 4), repeated(spec, jump, 4))
    line = np.arange(8.0)[None]
    np.testing.assert_allclose(prolong(spec, line, 4)[0, 4:-4], ((np.arange(32) + 0.5) / 4 - 0.5)[4:-4])


def test_prolongation_commutes_with_the_symmetries_of_the_square():
    env = Euler2D(grid=(12, 12))
    states = np.random.default_rng(3).normal(size=env.spec.shape)
    for symmetry in env.symmetries:
        found = prolong(env.spec, symmetry.apply(env.spec, states), 3)
        expected = symmetry.apply(env.resized((36, 36)).spec, prolong(env.spec, states, 3))
        np.testing.assert_allclose(found, expected, atol=1e-14)
