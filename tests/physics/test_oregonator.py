"""Oregonator against a stiff integrator, under refinement, and under shifts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from hybridworld.physics.oregonator import DIFFUSION, U_MAX, V_MAX, Oregonator, Q, Rosenbrock, diffuse
from hybridworld.physics.spec import SPLITS
from tests.physics.convergence import fitted_order


@pytest.mark.parametrize(
    ("scheme", "end", "order", "least"),
    [(Oregonator, 3.0, 1, 2e-3), (Rosenbrock, 0.5, 2, 1e-6), (Rosenbrock, 3.0, None, 1e-6)],
)
def test_uniform_state_follows_the_reaction_with_the_order_of_the_scheme(scheme, end, order, least):
    """Without gradients only the stiff kinetics remain; through one excitation, until 3.0 also the recovery after it.

    When u collapses after an excitation, long steps of the Rosenbrock scheme end below zero and are clipped: only short ones
    show its order there.
    """
    eps, f, start = 0.08, 1.4, (0.2, 0.05)

    def kinetics(_, state):
        u, v = state
        return [(u * (1 - u) - f * v * (u - Q) / (u + Q)) / eps, u - v]

    exact = solve_ivp(kinetics, (0, end), start, method="Radau", rtol=1e-10, atol=1e-12).y[:, -1]
    steps, errors = [0.05 / 2**k for k in range(5)], []
    for step in steps:
        env = scheme(grid=(2, 2), frame_step=step)
        state = np.broadcast_to(np.reshape(start, (2, 1, 1)), (2, 2, 2))
        final = env.solve(state, round(end / step), np.array([eps, f]))
        assert np.ptp(final, axis=(1, 2)).max() == 0, "a uniform state stays uniform"
        errors.append(np.abs(final[:, 0, 0] - exact).max())
    assert order is None or order - 0.15 < fitted_order(steps, errors) < order + 0.2, errors
    assert errors[-1] < least, errors


EPS = 0.08


def front_speed(cells):
    """Speed of a planar front into the resting medium between t = 2 and t = 4, by the place where u = 1/2."""
    env, params = Oregonator(grid=(cells, 2)), np.array([EPS, 1.0])
    x = env.spec.centres()[0]
    state = np.zeros(env.spec.shape)
    state[0] = (np.abs(x - 50) < 6)[:, None]
    places = []
    for _ in range(2):
        state = env.solve(state, 40, params)
        u = state[0, cells // 2 :, 0]
        j = int(np.flatnonzero(u > 0.5)[-1])
        places.append(x[cells // 2 + j] + (u[j] - 0.5) / (u[j] - u[j + 1]) * (x[1] - x[0]))
    return (places[1] - places[0]) / (40 * env.frame_step)


def test_planar_front_speed_converges_with_the_grid():
    """With second order, to a front that is pulled by the growth r of small u ahead of it: c = 2 sqrt(D r) - 3 / (2 k t).

    r is the growth of the scheme itself: two implicit Euler steps per frame, each by 1 / (1 - tau / eps).
    """
    cells = (256, 512, 1024, 2048)
    speeds = [front_speed(n) for n in cells]
    gaps = np.abs(np.diff(speeds))
    assert 1.5 < fitted_order(1 / np.array(cells[:-1]), gaps) < 2.5, speeds
    step = Oregonator().frame_step
    growth = -2 * np.log(1 - step / 2 / EPS) / step
    pulled = 2 * np.sqrt(DIFFUSION * growth)
    assert speeds[-1] == pytest.approx(pulled - 3 / pulled * np.log(4 / 2) / 2, rel=0.02)


def test_diffusion_decays_a_wave_at_the_exact_rate():
    env = Oregonator(grid=(128, 128))
    substeps, kx, ky = env._coefficients()
    x, y = np.meshgrid(*env.spec.centres(), indexing="ij")
    wave = 2 * np.pi / 100
    u = np.cos(3 * wave * x) * np.cos(2 * wave * y)
    for _ in range(200 * substeps):
        u = diffuse(u, kx, ky)
    rate = DIFFUSION * wave**2 * (9 + 4)
    assert np.abs(u).max() == pytest.approx(np.exp(-rate * 200 * env.frame_step), rel=2e-3)


SMALL = Oregonator(grid=(48, 40))


@settings(max_examples=25, deadline=None)
@given(
    split=st.sampled_from(SPLITS),
    seed=st.integers(0, 2**32),
    shift=st.tuples(st.integers(0, 47), st.integers(0, 39)),
    frames=st.integers(0, 12),
)
def test_a_shifted_field_gives_the_shifted_answer_bit_for_bit(split, seed, shift, frames):
    sample = SMALL.initial(split, seed)
    moved = SMALL.solve(np.roll(sample.state, shift, axis=(1, 2)), frames, sample.params)
    np.testing.assert_array_equal(moved, np.roll(SMALL.solve(sample.state, frames, sample.params), shift, axis=(1, 2)))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("split", SPLITS)
def test_the_rosenbrock_scheme_is_its_numpy_form_and_shifts_with_the_field(split, dtype):
    env = Rosenbrock(grid=(48, 40), dtype=dtype)
    for seed in range(3):
        sample = env.initial(split, seed)
        found = env.solve(sample.state, 13, sample.params)
        if dtype == "float64":
            np.testing.assert_array_equal(found, env.advance_numpy(sample.state[None], 13, sample.params[None])[0])
        moved = env.solve(np.roll(sample.state, (5, 7), axis=(1, 2)), 13, sample.params)
        np.testing.assert_array_equal(moved, np.roll(found, (5, 7), axis=(1, 2)))


@settings(max_examples=25, deadline=None)
@given(
    values=st.tuples(st.floats(0, U_MAX), st.floats(0, V_MAX)),
    eps=st.floats(0.01, 0.15),
    f=st.floats(0, 2.5),
    step=st.floats(1e-3, 0.2),
)
def test_rosenbrock_keeps_any_concentrations_in_their_bounds_and_rest_at_rest(values, eps, f, step):
    env = Rosenbrock(grid=(2, 2), frame_step=step)
    state = np.broadcast_to(np.reshape(values, (2, 1, 1)), (2, 2, 2))
    final = env.solve(state, 20, np.array([eps, f]))
    assert final.min() >= 0 and final[0].max() <= U_MAX and final[1].max() <= V_MAX
    assert not env.solve(np.zeros((2, 2, 2)), 20, np.array([eps, f])).any()


def test_the_rosenbrock_scheme_is_a_variant_with_the_same_settings():
    env = Oregonator(grid=(32, 24), dtype="float32", frame_step=0.1)
    (found,) = env.variants().values()
    assert found == Rosenbrock(grid=(32, 24), dtype="float32", frame_step=0.1) and found.variants() == {}


@pytest.mark.parametrize("scheme", [Oregonator, Rosenbrock])
@pytest.mark.parametrize("split", SPLITS)
def test_concentrations_stay_in_their_bounds(split, scheme):
    env = scheme(grid=(64, 64))
    for seed in range(6):
        sample = env.initial(split, seed)
        final = env.solve(sample.state, 200, sample.params)
        assert final.min() >= 0 and final[0].max() <= 1.5 and final[1].max() <= 2


def test_ood_splits_shift_f_or_eps_or_both_in_equal_shares():
    env, shifts = Oregonator(grid=(8, 8)), []
    for seed in range(300):
        sample = env.initial("ood-near", seed)
        eps_out, f_out = (
            not parameter.within(value, "id") for parameter, value in zip(env.spec.params, sample.params, strict=True)
        )
        assert {"eps": (True, False), "f": (False, True), "both": (True, True)}[sample.origin["shift"]] == (eps_out, f_out)
        shifts.append(sample.origin["shift"])
    assert all(70 <= shifts.count(kind) <= 130 for kind in ("f", "eps", "both"))
