"""The table: MuJoCo behind the contract, and sets of objects in general."""

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hybridworld as hw
from hybridworld.physics import tabletop_bodies as bodies
from hybridworld.physics.check import check_environment
from hybridworld.physics.spec import SPLITS
from hybridworld.physics.spec_text import spec_from_text, spec_to_text
from hybridworld.physics.tabletop import Tabletop
from hybridworld.physics.tabletop_bodies import EXTENT, FRONT, KIND, MASSES, POSITION, SIDEWAYS, SPIN, VELOCITY, rotations
from hybridworld.physics.tabletop_scene import LIMIT
from tests.physics.mjcf import MINE

ENV = Tabletop()
SPEC = ENV.spec


def thing(kind, x=0.0, y=0.0, velocity=(0.0, 0.0), extent=(0.03, 0.03, 0.03), mass=0.1):
    """One object at rest on the table, or moving; spheres roll."""
    column = np.zeros(len(SPEC.channels))
    column[KIND], column[MASSES], column[EXTENT] = kind, mass, extent
    column[POSITION] = x, y, {-1: bodies.HOVER, 0: extent[2] - bodies.RESTING[0], 1: extent[2] - bodies.RESTING[1]}[kind]
    column[3:5] = velocity
    if kind == 1:
        column[FRONT], column[SIDEWAYS] = (1, 0, 0), (0, 1, 0)
    if kind == 0:
        column[SPIN] = -velocity[1] / extent[0], velocity[0] / extent[0], 0
    return column


def scene(*things):
    pusher = thing(-1, -0.2, -0.2, extent=bodies.PUSHER, mass=1.0)
    return Tabletop(grid=(len(things) + 1,)), np.stack([pusher, *things], axis=1)


def test_a_rolling_sphere_rolls_on():
    env, state = scene(thing(0, velocity=(0.2, 0.1)))
    later = env.solve(state, 32, np.array([0.5, 0, 0]))
    np.testing.assert_allclose(later[:2, 1], 0.64 * np.array([0.2, 0.1]), rtol=0.02)
    np.testing.assert_allclose(later[VELOCITY, 1], state[VELOCITY, 1], atol=0.005)


@pytest.mark.parametrize("friction", [0.2, 0.5])
def test_a_sliding_box_stops_after_v_squared_over_twice_mu_g(friction):
    env, state = scene(thing(1, velocity=(0.5, 0.0)))
    later = env.solve(state, 64, np.array([friction, 0, 0]))
    assert later[0, 1] == pytest.approx(0.5**2 / (2 * friction * bodies.GRAVITY), rel=0.1)
    assert abs(later[3, 1]) < 1e-3


def test_the_pusher_moves_with_the_action_and_a_wall_stops_it():
    env, state = scene(thing(0, 0.2, 0.2))
    later = env.solve(state, 10, np.array([0.5, 0.4, 0.0]))
    assert later[0, 0] == pytest.approx(-0.2 + 10 * 0.02 * 0.4, abs=1e-6)
    assert env.solve(state, 200, np.array([0.5, -0.4, 0.0]))[0, 0] == pytest.approx(-LIMIT, abs=0.01)


def test_what_the_pusher_meets_moves():
    env, state = scene(thing(1, -0.1, -0.2))
    later = env.solve(state, 40, np.array([0.5, 0.3, 0.0]))
    assert later[0, 1] > -0.1 + 0.05 and later[0, 1] - later[0, 0] > 0.04


def test_contacts_are_with_others_and_walls_and_not_with_the_table():
    env, state = scene(thing(0, -0.1, -0.2), thing(0, 0.2, 0.2, velocity=(0.5, 0.0)), thing(1, 0.1, 0.0))
    touched = env.contacts(state[None], 20, np.array([[0.5, 0.4, 0.0]]))[0]  # the pusher meets the first, the second the wall
    assert (touched[:3] > 0).all() and touched[0] == touched[1] and touched[3] == 0
    exchanged = env.contacts(state[None][:, :, ::-1], 20, np.array([[0.5, 0.4, 0.0]]))[0]
    np.testing.assert_allclose(exchanged[::-1], touched)


@given(seed=st.integers(0, 10_000), split=st.sampled_from(SPLITS), count=st.integers(2, 12))
@settings(max_examples=25, deadline=None)
def test_samples_are_apart_on_the_table_and_in_their_ranges(seed, split, count):
    env = ENV.resized((count,))
    env.check_physical(env.initial(split, seed).state[None])
    state = bodies.strewn(np.random.default_rng(seed), env.spec.regime(split), count)
    assert (state[KIND] == -1).sum() == 1
    moving = state[KIND] >= 0
    assert all(bodies.MASS.within(mass, env.spec.regime(split)) for mass in state[MASSES, moving])
    reach = np.array([bodies.radius(column) for column in state.T])
    gaps = np.hypot(*(state[:2, :, None] - state[:2, None])) - reach[:, None] - reach[None] + 10 * np.eye(count)
    assert gaps.min() > 0 and (np.abs(state[:2]) <= bodies.SIDE - reach).all()


BEGINNINGS = range(80)


def apart(pairs):
    """How many pairs of answers differ: in one scene of two hundred rounding decides how a contact ends."""
    return sum(not np.allclose(one, other, rtol=1e-7, atol=1e-6) for one, other in pairs)


def test_symmetries_turn_states_and_actions_together():
    pairs = []
    for seed in BEGINNINGS:
        symmetry, sample = ENV.symmetries[seed % len(ENV.symmetries)], ENV.initial("train", seed)
        turned = symmetry.apply(SPEC, sample.state), symmetry.apply_params(SPEC, sample.params)
        later = symmetry.apply(SPEC, ENV.solve(sample.state, 3, sample.params))
        pairs.append((ENV.solve(turned[0], 3, turned[1]), later))
        back = symmetry.inverse.apply_params(SPEC, turned[1])
        np.testing.assert_array_equal(back, sample.params)
        kept = [name for name in SPEC.channels if name.startswith(("extent", "mass", "kind"))]
        rows = [SPEC.channels.index(name) for name in kept]
        np.testing.assert_array_equal(turned[0][rows], sample.state[rows])
    assert apart(pairs) <= 2


def test_the_order_of_objects_means_nothing():
    pairs = []
    for seed in BEGINNINGS:
        sample, order = ENV.initial("train", seed), np.random.default_rng(seed).permutation(SPEC.grid[0])
        later = ENV.solve(sample.state, 3, sample.params)
        pairs.append((ENV.solve(sample.state[:, order], 3, sample.params), later[:, order]))
    assert apart(pairs) <= 2


@pytest.mark.parametrize("first, second", [(1, 1), (1, 3), (2, 2), (3, 5)])
@pytest.mark.parametrize("split", ["test", "ood-far"])
def test_the_solver_goes_on_from_where_it_stopped(first, second, split):
    states, params = ENV.initials(split, range(3))
    again = ENV.solve(ENV.solve(states, first, params), second, params)
    np.testing.assert_allclose(again, ENV.solve(states, first + second, params), rtol=0, atol=1e-9)


def test_two_equal_objects_can_be_exchanged():
    env, state = scene(thing(0, 0.1, 0.1, (0.2, 0.0)), thing(0, -0.1, 0.1, (0.0, 0.1)))
    swapped = state[:, [0, 2, 1]]
    later, other = (env.solve(each, 8, np.array([0.5, 0.1, 0.2])) for each in (state, swapped))
    np.testing.assert_allclose(other, later[:, [0, 2, 1]], atol=1e-9)


def test_the_record_is_the_solver():
    samples = [ENV.initial("val", seed) for seed in range(3)]
    states, params = np.stack([each.state for each in samples]), np.stack([each.params for each in samples])
    whole = ENV.record(states, 6, params)
    np.testing.assert_allclose(whole[:, :, 6], ENV.solve(states, 6, params), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(whole[:, :, 0], states.astype(np.float32))


def test_orientation_survives_the_way_to_mujoco_and_back():
    rng = np.random.default_rng(0)
    env, state = scene(*(thing(1, 0.1 * k, 0.1) for k in range(3)))
    frames, _ = np.linalg.qr(rng.normal(size=(3, 3, 3)))
    state[FRONT, 1:], state[SIDEWAYS, 1:] = frames[:, :, 0].T, frames[:, :, 1].T
    state[SPIN, 1:] = rng.normal(size=(3, 3))
    found, (there, _) = state.copy(), env._scene_of(state, 0.5)
    with there.begun(state) as data:
        there.read(data, found)
    np.testing.assert_allclose(found, state, atol=1e-12)
    np.testing.assert_allclose(np.linalg.det(rotations(state)), 1)


def test_a_ball_in_flight_keeps_its_energy():
    env, state = scene(thing(0, velocity=(0.1, 0.0)))
    state[2, 1] = 0.5
    params = np.array([[0.5, 0, 0]])
    before, after = (env.conserved(each[None], params) for each in (state, env.solve(state, 5, params[0])))
    assert after["energy"][0, 1] == pytest.approx(before["energy"][0, 1], rel=0.01)
    np.testing.assert_allclose(after["momentum"][0, :2, 1], before["momentum"][0, :2, 1], atol=1e-12)


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda s: s[KIND].__setitem__(0, 0.0), "0 pushers"),
        (lambda s: s[MASSES].__setitem__(1, -1.0), "mass of state 0 is -1"),
        (lambda s: s[0].__setitem__(1, 3.0), "position_x of state 0 is 3"),
        (lambda s: s[FRONT].__setitem__((slice(None), 1), 0.0), "front and side of object 1"),
        (lambda s: s[SIDEWAYS].__setitem__((slice(None), 1), s[FRONT][:, 1]), "front and side of object 1"),
    ],
)
def test_what_cannot_be_is_refused(change, words):
    env, state = scene(thing(1))
    change(state)
    with pytest.raises(hw.InvalidInput, match=words):
        env.solve(state, 1, np.array([0.5, 0, 0]))


def test_without_mujoco_one_sentence_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    sample = ENV.initial("test", 0)
    with pytest.raises(hw.InvalidInput, match=r"pip install 'hybrid-world-models\[robotics\]'"):
        ENV.solve(sample.state, 1, sample.params)
    assert check_environment(ENV) == [ENV.lacks] != [""]


def test_a_table_can_be_full():
    with pytest.raises(hw.InvalidInput, match="find no room"):
        ENV.resized((200,)).initial("test", 0)


class Ordered(Tabletop):
    """Moves the first object, whichever it is: an order that no channel tells."""

    def advance(self, states, frames, params):
        answer = super().advance(states, frames, params)
        answer[:, 0, 0] += 0.001 * frames
        return answer


def test_check_tells_when_the_order_matters():
    assert any("another order" in finding for finding in check_environment(Ordered()))


def test_check_tells_what_is_wrong_with_a_spec_of_objects():
    class Wrong(Tabletop):
        @property
        def spec(self):
            return replace(super().spec, grid=(2, 3))

    assert any("objects, but its grid is (2, 3)" in finding for finding in check_environment(Wrong()))


def test_the_spec_survives_as_text():
    assert spec_from_text(spec_to_text(SPEC)) == SPEC and SPEC.boundaries == ("objects",) and not SPEC.is_field


def test_longer_steps_are_near():
    sample = ENV.initial("val", 0)
    coarse, _ = ENV.with_steps(0.5)
    gap = np.abs(coarse.solve(sample.state, 16, sample.params) - ENV.solve(sample.state, 16, sample.params))[:2]
    assert 0 < gap.max() < 0.02


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.xml"
    path.write_text(MINE)
    return path


def test_a_scene_of_ones_own(mine):
    env = Tabletop(scene=str(mine))
    assert env.spec.shape == (20, 3) and check_environment(env) == []
    state = env.initial("test", 0).state
    assert sorted(np.round(state[KIND])) == [-1, 0, 1] and sorted(state[MASSES].round(6)) == [0.1, 0.2, 1.0]
    hand = int(np.flatnonzero(state[KIND] == -1)[0])
    later = env.solve(state, 10, np.array([0.5, -0.2, 0.1]))
    np.testing.assert_allclose(later[:2, hand], [-0.04, 0.02], atol=0.002)


def test_a_scene_that_changes_on_disk_is_read_anew(mine):
    mass = Tabletop(scene=str(mine)).initial("test", 0).state[MASSES]
    mine.write_text(MINE.replace('mass="0.2"', 'mass="0.3"'))
    assert sorted(mass.round(6)) == [0.1, 0.2, 1.0]
    assert sorted(Tabletop(scene=str(mine)).initial("test", 0).state[MASSES].round(6)) == [0.1, 0.3, 1.0]


def test_threads_with_other_steps_do_not_disturb_each_other():
    fine, coarse = Tabletop(), Tabletop(substeps=2)
    sample = fine.initial("test", 0)
    wanted = {env: env.solve(sample.state, 4, sample.params) for env in (fine, coarse)}
    with ThreadPoolExecutor(4) as pool:
        asked = [fine, coarse] * 20
        found = list(pool.map(lambda env: env.solve(sample.state, 4, sample.params), asked))
    for env, answer in zip(asked, found, strict=True):
        np.testing.assert_array_equal(answer, wanted[env])


@pytest.mark.parametrize(
    "before, after, words",
    [
        ('<joint type="slide" axis="0 1 0"/>', "", "The body hand has neither one free joint"),
        ('axis="0 1 0"', 'axis="0 0 1"', "The body hand has neither one free joint"),
        ("<mujoco>", "<nonsense>", "cannot be read by MuJoCo"),
    ],
)
def test_a_scene_that_does_not_fit_is_told(mine, before, after, words):
    mine.write_text(MINE.replace(before, after))
    with pytest.raises(hw.InvalidInput, match=words):
        Tabletop(scene=str(mine))


def test_states_of_another_scene_are_refused(mine):
    env = Tabletop(scene=str(mine))
    state = env.initial("test", 0).state
    state[MASSES] *= 2
    with pytest.raises(hw.InvalidInput, match="no object of the state has the extent, mass and kind"):
        env.solve(state, 1, np.array([0.5, 0, 0]))
    with pytest.raises(hw.InvalidInput, match="has 3 objects, not 5"):
        Tabletop(scene=str(mine), grid=(5,))
    for count in (5, 7):
        with pytest.raises(hw.InvalidInput, match=f"has 3 objects, not {count}"):
            env.resized((count,))
    assert env.resized((3,)) == env
