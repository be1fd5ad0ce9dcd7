"""Between a grid and a coarser one."""

import numpy as np

from hybridworld.physics.euler2d import Euler2D
from hybridworld.physics.grids import coarsen, refine
from hybridworld.physics.oregonator import Oregonator


def test_coarsening_keeps_the_mean_and_undoes_a_constant_refinement():
    env = Euler2D(grid=(32, 16))
    states = np.random.default_rng(0).normal(size=(3, *env.spec.shape))
    coarse = coarsen(env.spec, states, 4)
    assert coarse.shape == (3, *env.coarsened(4).spec.shape)
    np.testing.assert_allclose(coarse.mean(axis=(2, 3)), states.mean(axis=(2, 3)), atol=1e-14)
    np.testing.assert_allclose(coarsen(env.spec, np.kron(states, np.ones((1, 1, 4, 4))), 4), states, atol=1e-14)


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
