"""The example docs/examples/kuramoto_sivashinsky.py is a system whose scheme converges in time and in space."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import hybridworld as hw
from hybridworld.physics.grids import coarsen
from tests.physics.convergence import fitted_order

FILE = Path(__file__).parents[2] / "docs" / "examples" / "kuramoto_sivashinsky.py"


@pytest.fixture(scope="module")
def env():
    return hw.system(str(FILE))


def waves(env, *modes):
    x = 2 * np.pi * env.spec.centres()[0] / env.spec.axes[0].high
    return sum(np.cos(mode * x + mode) for mode in modes)[None]


def test_it_passes_the_check_and_is_short(env):
    assert hw.check_environment(env) == []
    assert len(FILE.read_text().splitlines()) < 150


def test_it_is_of_fourth_order_in_time(env):
    """On a grid whose stiffest waves the step resolves."""
    small, params, steps = env.resized((32,)), np.array([1.0]), np.array([1, 2, 4])
    start = small.initial("test", 0).state
    exact = replace(small, steps_per_frame=64).solve(start, 16, params)
    errors = [np.abs(replace(small, steps_per_frame=int(n)).solve(start, 16, params) - exact).max() for n in steps]
    assert 3.7 < fitted_order(1 / steps, errors) < 4.4


def test_averages_on_coarser_grids_converge_to_those_of_a_fine_one(env):
    """Faster than any power of the spacing: twice the cells, a thousandth of the error or less."""
    fine, params = env.resized((256,)), np.array([1.0])
    start = waves(fine, 2, 3)
    exact = fine.solve(start, 80, params)
    errors = []
    for factor in (8, 4, 2):
        coarse = fine.coarsened(factor).solve(coarsen(fine.spec, start, factor), 80, params)
        errors.append(np.abs(coarse - coarsen(fine.spec, exact, factor)).max())
    assert errors[0] < 0.5 and errors[1] < 1e-3 * errors[0] and errors[2] < 1e-3 * errors[1]


@pytest.mark.parametrize("mode", [1, 3, 6])
def test_a_faint_wave_grows_as_the_linear_terms_say(env, mode):
    """exp((k^2 - nu k^4) t)"""
    k, nu, frames = 2 * np.pi * mode / env.spec.axes[0].high, 1.1, 8
    faint = 1e-6 * waves(env, mode)
    growth = np.exp((k**2 - nu * k**4) * frames * env.frame_step)
    np.testing.assert_allclose(
        env.solve(faint, frames, np.array([nu])), growth * faint, rtol=0, atol=1e-5 * np.abs(faint).max()
    )


def test_it_stays_on_its_attractor(env):
    """It neither dies out nor explodes."""
    sample = env.initial("ood-far", 1)
    later = env.solve(sample.state, 1_000, sample.params)
    assert 0.5 < later.std() < 2.5 and np.abs(later).max() < 6
