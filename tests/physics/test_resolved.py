"""A reference on a finer grid: states stay on the system's own cells."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import hybridworld as hw
from hybridworld.physics.ball3d import Ball3D
from hybridworld.physics.check import check_environment
from hybridworld.physics.environment import difference
from hybridworld.physics.euler2d import Euler2D, primitive_from_conserved
from hybridworld.physics.grids import prolong
from hybridworld.physics.oregonator import Oregonator
from hybridworld.physics.spec import SPLITS
from hybridworld.physics.threads import thread_limit

SPEED = hw.Parameter("speed", "1", "of the wave", {"id": ((0.5, 1.0),), "ood-near": ((1.0, 1.1),), "ood-far": ((1.1, 1.2),)})


@dataclass(frozen=True)
class Advection(hw.Environment):
    """dw/dt + c dw/dx = 0 on a circle, by first-order upwind differences with as many steps as the grid asks for."""

    grid: tuple[int, ...] = (32,)

    @property
    def spec(self):
        return hw.StateSpec(
            name="advection", title="Advection", fields=(hw.Field("w", "1"),), axes=(hw.Axis("x", 0.0, 1.0, "periodic"),),
            grid=self.grid, frame_step=0.02, time_unit="1", frames=17, draw="w", parameters=(SPEED,), horizons=(1, 2, 4),
        )  # fmt: skip

    def sample(self, rng, split):
        wave = np.sin(2 * np.pi * (self.spec.centres()[0] + rng.uniform()))
        return hw.Sample(wave[None], np.array([SPEED.draw(rng, self.spec.regime(split))]))

    def advance(self, states, frames, params):
        states, steps = states.astype(np.float64), frames * self.grid[0] // 16
        for _ in range(steps):
            number = params[:, :, None] * 0.02 * frames / steps * self.grid[0]
            states = states - number * (states - np.roll(states, 1, -1))
        return states


SYSTEMS = [Euler2D(grid=(24, 24)), Euler2D(grid=(16, 32)), Oregonator(grid=(32, 32)), Advection()]


@pytest.fixture(params=SYSTEMS, ids=lambda system: f"{system.spec.name}-{system.spec.grid[-1]}")
def system(request):
    return request.param


def starts(system, count=2):
    samples = [system.initial("test", seed) for seed in range(count)]
    return np.stack([sample.state for sample in samples]), np.stack([sample.params for sample in samples])


@pytest.mark.parametrize("factor", [2, 3, 4])
def test_nothing_to_mend(system, factor):
    assert check_environment(system.resolved(factor)) == []


@pytest.mark.parametrize("factor", [2, 3])
def test_prolonged_and_averaged_states_are_the_states(system, factor):
    states, _ = starts(system)
    env = system.resolved(factor)
    np.testing.assert_allclose(env.averaged(env.prolonged(states)), states, rtol=1e-13, atol=1e-15)


def test_no_frames_change_nothing(system):
    states, params = starts(system)
    np.testing.assert_array_equal(system.resolved(3).solve(states, 0, params), states)


def test_a_record_begins_with_the_systems_own_sample_and_is_the_same_again(system):
    env = system.resolved(2)
    for split in SPLITS:
        one, other = system.initial(split, 3), env.initial(split, 3)
        np.testing.assert_array_equal(one.state, other.state)
        np.testing.assert_array_equal(one.params, other.params)
    states, params = starts(system)
    whole = env.record(states, 4, params)
    np.testing.assert_array_equal(whole[:, :, 0], states.astype(np.float32))
    with thread_limit(3):
        np.testing.assert_array_equal(env.record(states, 4, params), whole)
    np.testing.assert_array_equal(env.record(states[1:], 4, params[1:]), whole[1:])


def test_the_truth_stays_on_the_fine_grid(system):
    """A record is one fine run, averaged; iterated `solve` forgets what lies below the cell at each frame."""
    states, params = starts(system)
    env, frames = system.resolved(4), 6
    whole = env.record(states, frames, params)
    fine, per_frame = env.reference()
    at_once = env.averaged(fine.advance(env.prolonged(states), frames * per_frame, params))
    np.testing.assert_allclose(whole[:, :, -1], at_once, rtol=2e-6, atol=1e-7)
    np.testing.assert_allclose(env.solve(states, frames, params), at_once, rtol=1e-12)
    again = states
    for _ in range(frames):
        again = env.solve(again, 1, params)
    lost, plain = (np.abs(answer - at_once).mean() for answer in (again, system.solve(states, frames, params)))
    assert 1e-6 < lost < plain


def test_the_error_of_a_solver_shrinks_as_its_reference_resolves_more(system):
    states, params = starts(system, 4)
    truth = system.resolved(8).record(states, 8, params)[:, :, -1]
    errors = [np.abs(system.resolved(k).record(states, 8, params)[:, :, -1] - truth).mean() for k in (1, 2, 4)]
    assert errors[1] < 0.75 * errors[0] and errors[2] < 0.6 * errors[1], errors


def test_oregonator_takes_shorter_steps_and_euler_lets_its_grid_choose():
    fine, frames = Oregonator(grid=(32, 32)).resolved(4).reference()
    assert (fine.grid, fine.frame_step, fine.dtype, frames) == ((128, 128), 0.0125, "float32", 4)
    fine, frames = Euler2D(grid=(32, 16)).resolved(4).in_precision("float64").reference()
    assert fine == Euler2D(grid=(128, 64)) and frames == 1


def test_single_precision_is_far_better_than_the_grid():
    for system in (Euler2D(grid=(32, 32)), Oregonator(grid=(64, 64))):
        states, params = starts(system, 3)
        single, double = (system.resolved(4).in_precision(d).record(states, 16, params) for d in ("float32", "float64"))
        assert np.abs(single - double).mean() < 1e-3 * np.abs(system.record(states, 16, params) - double).mean()


def test_spec_and_identity_say_what_it_is(system):
    env = system.resolved(4)
    assert env.unresolved is system and env.resolved(1) is system and system.resolved(1) is system
    assert env.spec == replace(system.spec, title=f"{system.spec.title} (reference 4x finer)")
    assert env.version == system.version and env.symmetries == system.symmetries and env.presets == system.presets
    assert difference(system.identity, env.identity) == ("resolved", None, 4)
    assert difference(env.identity, system.resolved(2).identity) == ("resolved", 4, 2)
    half = env.coarsened(2)
    assert half.spec.grid == system.coarsened(2).spec.grid and half.unresolved == system.coarsened(2)
    assert half.identity["resolved"] == 4


def test_precision_is_part_of_the_identity_where_there_is_a_choice():
    euler = Euler2D().resolved(2)
    assert difference(euler.identity, euler.in_precision("float64").identity) == ("resolved_dtype", "float32", "float64")
    assert "resolved_dtype" not in Advection().resolved(2).identity
    with pytest.raises(hw.InvalidInput, match="no choice of dtype"):
        Advection().resolved(2).in_precision("float64")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Ball3D().resolved(4), "ball3d has no grid, so its reference cannot run on a finer one"),
        (lambda: Euler2D().resolved(0), "the factor of a finer reference is 0"),
        (lambda: Euler2D().resolved(1.5), "factor of a finer reference is 1.5"),
        (lambda: Euler2D(grid=(8, 8)).resolved(2).solve(np.zeros((4, 8, 8)), 1), "density must be above 0"),
        (lambda: list(Euler2D(grid=(8, 8)).resolved(2).trajectory(np.ones((4, 8, 4)), 1)), "expected"),
    ],
)
def test_what_cannot_be_is_refused(call, words):
    with pytest.raises(hw.InvalidInput, match=words):
        call()


def test_a_prolonged_state_is_physical():
    """Density, momentum and energy rise in different cells: linear in each, the pressure would be negative."""
    env = Euler2D(grid=(8, 8)).resolved(4)
    state = np.zeros((4, 8, 8))
    state[0], state[1], state[3] = 1.0, 10.0 * np.arange(8)[:, None], 1.0
    state[3] += 0.5 * state[1] ** 2
    fine = env.prolonged(state[None])
    assert (primitive_from_conserved(fine[0])[2] > 0).all()
    np.testing.assert_allclose(env.averaged(fine)[0], state, rtol=1e-13)
    with pytest.raises(hw.InvalidInput, match="pressure"):
        env.reference()[0].check_physical(prolong(env.spec, state[None], 4))


@dataclass(frozen=True)
class Explicit(Advection):
    """One step per frame whatever the grid: unstable on a finer one."""

    grid: tuple[int, ...] = (32,)

    def advance(self, states, frames, params):
        for _ in range(frames):
            with np.errstate(over="ignore", invalid="ignore"):
                states = states - params[:, :, None] * 0.02 * self.grid[0] * (states - np.roll(states, 1, -1))
        return states


def test_a_step_that_is_too_long_for_the_finer_grid_is_said():
    env = replace(Explicit(), grid=(64,)).resolved(32)
    states, params = starts(env)
    with pytest.raises(hw.SolverFailure, match=r"left finite numbers in state 0 .* define `with_steps`"):
        list(env.trajectory(states * 1e250, 60, params))


def test_the_example_of_the_docs_works_resolved(gray_scott):
    system = gray_scott.coarsened(2)
    states, params = starts(system)
    plain, twice, truth = (system.resolved(k).record(states, 16, params)[:, :, -1] for k in (1, 2, 4))
    assert system.resolved(4).reference()[0].steps_per_frame == 80
    assert 0 < np.abs(twice - truth).mean() < 0.5 * np.abs(plain - truth).mean()
