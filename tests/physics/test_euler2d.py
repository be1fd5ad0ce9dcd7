"""Euler 2D against exact solutions, conservation laws and symmetry."""

import numpy as np
import pytest

from hybridworld.errors import InvalidInput
from hybridworld.physics.check import check_environment
from hybridworld.physics.euler2d import LARGEST_CFL, Euler2D, conserved_from_primitive, primitive_from_conserved
from hybridworld.physics.spec import SPLITS
from hybridworld.physics.threads import thread_limit
from tests.physics.convergence import fitted_order
from tests.physics.riemann import riemann

SEDOV_ALPHA = 0.311357 / 0.75**4  # E t^2 / (rho R^4), cylindrical, gamma = 1.4 (Kamm and Timmes 2007)


def sod(cells, axis, order=1):
    """L1 error of density, velocity and pressure at t = 0.2."""
    env = Euler2D(grid=(cells, 4) if axis == 0 else (4, cells), order=order)
    left, right = (1.0, 0.0, 1.0), (0.125, 0.0, 0.1)
    x = (np.arange(cells) + 0.5) / cells
    rho, p = np.where(x < 0.5, left[0], right[0]), np.where(x < 0.5, left[2], right[2])
    line = conserved_from_primitive(rho, 0 * x, 0 * x, p)
    state = np.broadcast_to(line[:, :, None], (4, cells, 4)) if axis == 0 else np.broadcast_to(line[:, None], (4, 4, cells))
    final = env.solve(state, 100)
    across = final[:, :, 0] if axis == 0 else final[:, 0, :]
    assert np.ptp(final, axis=2 - axis).max() == 0, "the other direction stays uniform"
    u, v, p, _ = primitive_from_conserved(across)
    assert abs(v if axis == 0 else u).max() == 0
    found = np.stack([across[0], (u, v)[axis], p])
    return np.abs(found - riemann(left, right, (x - 0.5) / 0.2)).mean(axis=1)


@pytest.mark.parametrize("axis", [0, 1])
def test_sod_tube_converges_to_the_exact_riemann_solution(axis):
    cells = [64, 128, 256, 512]
    errors = np.array([sod(n, axis) for n in cells])
    orders = [fitted_order(1 / np.array(cells), errors[:, k]) for k in range(3)]
    assert all(0.6 < order < 1.1 for order in orders), orders  # 1 at shocks, 1/2 at the contact
    assert (errors[-1] < 0.01).all(), errors[-1]


@pytest.mark.parametrize("axis", [0, 1])
def test_second_order_is_more_accurate_on_sods_tube_than_first_order_on_twice_the_cells(axis):
    cells = [64, 128, 256]
    first, second = (np.array([sod(n, axis, order) for n in (*cells, 512)]) for order in (1, 2))
    orders = [fitted_order(1 / np.array([*cells, 512]), second[:, k]) for k in range(3)]
    assert all(0.8 < order < 1.2 for order in orders), orders  # 1 at shocks, 2/3 at the contact
    assert (second[:-1] < 0.9 * first[1:]).all(), second[:-1] / first[1:]


@pytest.mark.parametrize("order", [1, 2])
def test_sod_is_the_same_along_x_and_y(order):
    np.testing.assert_allclose(sod(64, 0, order), sod(64, 1, order), rtol=1e-12)


@pytest.mark.parametrize(("order", "low", "high"), [(1, 0.8, 1.2), (2, 1.9, 2.6)])
def test_the_order_on_a_smooth_flow(order, low, high):
    """A density wave that a uniform flow carries along both axes, away from the boundary."""
    errors, cells = [], [32, 64, 128]
    for n in cells:
        env = Euler2D(grid=(n, n), order=order)
        x, y = np.meshgrid(*env.spec.centres(), indexing="ij")
        ones = np.ones((n, n))

        def wave(shift, x=x, y=y, ones=ones):
            rho = 1 + 0.2 * np.exp(-((x - 0.45 - shift) ** 2 + (y - 0.45 - shift) ** 2) / 0.01)
            return conserved_from_primitive(rho, 0.5 * ones, 0.5 * ones, ones)

        frames = 50
        found = env.solve(wave(0.0), frames)
        errors.append(np.abs(found[0] - wave(0.5 * frames * env.frame_step)[0]).mean())
    assert low < fitted_order(1 / np.array(cells), errors) < high, errors


def shock_radius(env, state):
    """Where the density jumps, averaged over the ring: the steepest fall of the radial profile, between cells."""
    x, y = np.meshgrid(*env.spec.centres(), indexing="ij")
    radius = np.hypot(x - 0.5, y - 0.5).ravel()
    width = env.spec.spacing[0]
    bins = (radius / width).astype(int)
    counts = np.bincount(bins)
    profile = np.bincount(bins, weights=state[0].ravel()) / counts
    inside = slice(0, int(0.5 / width))
    fall = np.maximum(profile[inside][:-1] - profile[inside][1:], 0)
    peak = int(fall.argmax())
    near = slice(max(peak - 3, 0), peak + 4)
    return width * (1 + np.average(np.arange(len(fall))[near], weights=fall[near]))


@pytest.mark.parametrize("order", [1, 2])
def test_sedov_blast_follows_the_similarity_solution(order):
    """R = (E t^2 / (alpha rho))^(1/4): the exponent 1/2 and the constant, closer on the finer grid."""
    energy, density = 1.0, 1.1
    misses = []
    for cells in (128, 256):
        env = Euler2D(grid=(cells, cells), order=order)
        state, radii, times = env.blast(energy, density), [], []
        for frame in range(20, 81, 10):
            state = env.solve(state, 20 if frame == 20 else 10)
            times.append(frame * env.frame_step)
            radii.append(shock_radius(env, state))
        exact = (energy * np.array(times) ** 2 / (SEDOV_ALPHA * density)) ** 0.25
        exponent = np.polyfit(np.log(times), np.log(radii), 1)[0]
        misses.append(np.abs(np.array(radii) / exact - 1).max())
        assert abs(exponent - 0.5) < 0.04, (cells, exponent)
    assert misses[0] < 0.06 and misses[1] < misses[0], misses


@pytest.mark.parametrize("order", [1, 2])
def test_sr3_stays_symmetric_about_its_diagonal(order):
    env = Euler2D(order=order)
    final = env.solve(env.quadrants("SR3"), env.spec.frames - 1)
    mirrored = final[[0, 2, 1, 3]].swapaxes(1, 2)
    np.testing.assert_allclose(final, mirrored, atol=1e-12)


@pytest.mark.parametrize("case", ["SR3", "SR6"])
def test_totals_change_only_by_what_crosses_the_boundary(case):
    """One frame is one substep here, so the balance with the physical fluxes at the rim is exact."""
    env = Euler2D(grid=(24, 20), frame_step=2e-3)
    dx, dy = env.spec.spacing
    state = env.quadrants(case, 0.52, 0.47)
    gone = np.zeros(4)
    before = state.sum(axis=(1, 2)) * dx * dy
    for _ in range(200):
        u, v, p, _ = primitive_from_conserved(state)
        x_flux = state * u + np.stack([0 * p, p, 0 * p, p * u])
        y_flux = state * v + np.stack([0 * p, 0 * p, p, p * v])
        out = (x_flux[:, -1] - x_flux[:, 0]).sum(axis=1) * dy + (y_flux[:, :, -1] - y_flux[:, :, 0]).sum(axis=1) * dx
        gone += env.frame_step * out
        state = env.solve(state, 1)
    after = state.sum(axis=(1, 2)) * dx * dy
    assert np.abs(gone).max() > 0.05, "waves must have left for this to say anything"
    np.testing.assert_allclose(after, before - gone, atol=1e-12)


@pytest.mark.parametrize("order", [1, 2])
def test_conserved_totals_are_kept_while_waves_are_inside(order):
    env = Euler2D(order=order)
    state = env.blast(1.5, 0.9, (0.49, 0.51))
    first, last = (env.conserved(s[None], np.zeros((1, 0))) for s in (state, env.solve(state, 40)))
    assert first["mass"] == pytest.approx(0.9) and first["energy"] == pytest.approx(1.5 + 1e-5 / 0.4)
    for name in ("mass", "energy", "momentum"):
        np.testing.assert_allclose(last[name], first[name], atol=1e-9)


def test_moved_walls_are_cell_averages():
    """A wall inside a cell leaves the exact average, so every shift gives another state with the right total."""
    env, shift = Euler2D(grid=(64, 64)), 0.3 / 64
    state, moved = env.quadrants("SR3"), env.quadrants("SR3", wall_x=0.5 + shift)
    gain = conserved_from_primitive(0.138, 1.206, 1.206, 0.029) - conserved_from_primitive(0.5323, 0.0, 1.206, 0.3)
    top = conserved_from_primitive(0.5323, 1.206, 0.0, 0.3) - conserved_from_primitive(1.5, 0.0, 0.0, 1.5)
    np.testing.assert_allclose((moved - state).mean(axis=(1, 2)), shift * (gain + top) / 2, atol=1e-14)


def test_no_trajectory_stands_in_two_splits():
    seen = {}
    env = Euler2D(grid=(64, 64))
    for split in SPLITS:
        for seed in range(60):
            key = env.initial(split, seed).state.tobytes()
            assert key not in seen, f"{split} {seed} repeats {seen[key]}"
            seen[key] = (split, seed)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_density_and_pressure_stay_positive_on_a_small_grid_with_the_longest_step(order, dtype):
    env = Euler2D(grid=(48, 48), order=order, dtype=dtype, cfl=LARGEST_CFL)
    for split in SPLITS:
        states = np.stack([env.initial(split, seed).state for seed in range(12)])
        for now in env.trajectory(states, env.spec.frames - 1):
            assert now[:, 0].min() > 0 and primitive_from_conserved(now.swapaxes(0, 1))[2].min() > 0, split


def test_second_order_checks_like_any_system_and_is_a_variant():
    env = Euler2D(grid=(32, 24), order=2)
    assert check_environment(env) == []
    assert Euler2D(grid=(32, 24)).variants() == {"second order": env} and env.variants() == {}
    with pytest.raises(InvalidInput, match="order is 3; choose 1 or 2"):
        Euler2D(order=3)


@pytest.mark.parametrize("split", SPLITS)
def test_second_order_kernel_and_numpy_twin_agree(split):
    env = Euler2D(grid=(40, 36), order=2)
    states = np.stack([env.initial(split, seed).state for seed in range(3)])
    for threads in (1, 3):
        with thread_limit(threads):
            found = np.stack([env.solve(state, 64) for state in states])  # one at a time: a team on each
        np.testing.assert_allclose(found, env.advance_numpy(states, 64, np.zeros((3, 0))), rtol=1e-9, atol=1e-9)


def test_second_order_gives_the_same_bits_on_any_number_of_threads_and_from_frame_to_frame():
    env = Euler2D(order=2, dtype="float32")
    for seed in range(3):  # a blast at rest around it: the windows must grow fast enough
        state = env.initial("train", seed).state
        answers = []
        for threads in (1, 2, 3):
            with thread_limit(threads):
                answers.append(env.solve(state, 40))
        *_, in_turn = env.trajectory(state, 40)
        for answer in (*answers[1:], in_turn):
            np.testing.assert_array_equal(answer, answers[0])


@pytest.mark.slow
@pytest.mark.parametrize("order", [1, 2])
def test_density_and_pressure_stay_positive_over_every_split(order):
    env = Euler2D(order=order)
    for split in SPLITS:
        for start in range(0, 60, 10):
            samples = [env.initial(split, seed) for seed in range(start, start + 10)]
            for states in env.trajectory(np.stack([sample.state for sample in samples]), env.spec.frames - 1):
                pressure = primitive_from_conserved(states.swapaxes(0, 1))[2]
                assert states[:, 0].min() > 0 and pressure.min() > 0, (split, start)
