"""Ball 3D against its event-driven solution, and its laws for every state."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybridworld.physics.ball3d import HIGH, LOW, Ball3D
from hybridworld.physics.spec import SPLITS
from tests.physics.convergence import fitted_order

ENV = Ball3D()
starts = st.builds(ENV.initial, st.sampled_from(SPLITS), st.integers(0, 2**40))
frames = st.integers(1, 300)


def batch(split, count):
    samples = [ENV.initial(split, seed) for seed in range(count)]
    return np.stack([s.state for s in samples]), np.stack([s.params for s in samples])


@pytest.mark.parametrize("split", SPLITS)
def test_substeps_converge_to_the_event_driven_solution(split):
    states, params = batch(split, 400)
    counts, errors = [25, 50, 100, 200, 400], []
    exact = ENV.exact(states, 100, params)
    for substeps in counts:
        found = Ball3D(substeps=substeps).solve(states, 100, params)
        errors.append(np.median(np.abs(found - exact)[:, :3].max(axis=1)))
    assert 0.85 < fitted_order(1 / np.array(counts), errors) < 1.15, errors
    assert errors[1] < 5e-3, errors


@settings(max_examples=200, deadline=None)
@given(start=starts, frames=frames)
def test_exact_energy_never_increases(start, frames):
    params = start.params[None]
    energies = [ENV.conserved(ENV.exact(start.state[None], k, params), params)["energy"][0] for k in range(frames + 1)]
    assert np.diff(energies).max() <= 1e-12


@settings(max_examples=200, deadline=None)
@given(start=starts, frames=frames)
def test_substep_energy_never_increases(start, frames):
    """Semi-implicit Euler keeps the shadow energy v^2/2 - g z + (g dt/2) v_z in flight, and a bounce lowers it.

    A ball at rest is put back on the floor at each substep, which may lift it by up to (g dt)^2 in energy at a time.
    """
    dt, gravity = ENV.frame_step / ENV.substeps, start.params[1]
    states = np.stack(list(ENV.trajectory(start.state[None], frames, start.params[None])))[:, 0]
    energy = ENV.conserved(states, np.broadcast_to(start.params, (len(states), 2)))["energy"]
    shadow = energy + gravity * dt / 2 * states[:, 5]
    assert np.diff(shadow).max() <= (gravity * dt) ** 2


@settings(max_examples=200, deadline=None)
@given(start=starts, frames=frames)
def test_ball_stays_in_the_box_and_keeps_its_spin(start, frames):
    for solve in (ENV.solve, lambda s, n, p: ENV.exact(s[None], n, p[None])[0]):
        final = solve(start.state, frames, start.params)
        assert (final[:3] >= LOW - 1e-12).all() and (final[:3] <= HIGH + 1e-12).all()
        np.testing.assert_array_equal(final[6:], start.state[6:])


def test_momentum_is_kept_in_flight_and_reversed_at_a_wall():
    state = np.array([0.0, 0.0, 0.5, 2.0, 0.0, 0.0, 1.0, 2.0, 3.0])
    params = np.array([[0.8, -9.81]])
    before, flying, bounced = (ENV.conserved(ENV.exact(state[None], k, params), params)["momentum"][0] for k in (0, 20, 30))
    np.testing.assert_array_equal(flying[:2], before[:2])
    assert bounced[0] == pytest.approx(-0.8 * 2.0)


def test_a_lost_ball_lies_on_the_floor():
    state = np.array([0.1, 0.2, 0.3, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    params = np.array([0.3, -9.81])
    assert ENV.exact(state[None], 300, params[None])[0, 2] == pytest.approx(0.05, abs=1e-12)
    assert ENV.solve(state, 300, params)[2] == pytest.approx(0.05, abs=1e-6)


def test_weightless_elastic_ball_returns():
    """g = 0, e = 1: it crosses 0.9 m back and forth, so after 1.8 m it is where it was."""
    state = np.array([0.1, 0.0, 0.5, 1.8, 0.0, 0.0, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(ENV.exact(state[None], 100, np.array([[1.0, 0.0]]))[0], state, atol=1e-12)
