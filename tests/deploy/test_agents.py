"""Agents: what moves states for them, the planner, the follower, and Gymnasium."""

import os
import subprocess
import sys
from dataclasses import dataclass

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import check_env
from hypothesis import given
from hypothesis import strategies as st

import hybridworld as hw
from hybridworld.deploy.backends import action_limits, mover
from hybridworld.deploy.gym import World, Worlds
from hybridworld.deploy.hybrid import HybridModel
from hybridworld.deploy.plan import Planner, act
from hybridworld.deploy.track import doubting, evenly, track
from hybridworld.physics.tabletop import Tabletop
from hybridworld.trust.calibration import Calibration
from tests.deploy.cart import Cart
from tests.surrogate.flows import surrogate

CART = Cart()
TASK = CART.task(np.random.default_rng(0), np.zeros(1))


def model_of(environment, threshold=1.0):
    """An untrained model, which says "no change"; every score below the threshold is kept."""
    net = surrogate(environment.spec)
    for parameter in net.backbone.last.parameters():
        torch.nn.init.zeros_(parameter)
    calibration = Calibration({horizon: np.full(10, threshold) for horizon in (1, 2, 4, 8)})
    return HybridModel(net, calibration, environment.solve, system=environment)


def test_the_backends_are_solver_surrogate_and_both():
    sample = CART.initial("test", 0)
    states, params = sample.state[None], sample.params[None]
    model, truth = model_of(CART), CART.solve(sample.state, 4, sample.params)
    assert mover("solver", CART, None)(states, 4, params).state[0] == truth
    np.testing.assert_allclose(mover("surrogate", CART, model)(states, 4, params).state[0], sample.state, rtol=1e-5)
    asked = mover("hybrid", CART, model, threshold=-1.0)(states, 4, params)
    assert asked.used_solver.all() and asked.state[0] == truth
    kept = mover("hybrid", CART, model, threshold=np.inf)(states, 4, params)
    assert not kept.used_solver.any() and kept.error_map is not None


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: mover("magic", CART, None), "choose solver, surrogate, hybrid"),
        (lambda: mover("hybrid", CART, None), "needs a model of cart"),
        (lambda: action_limits(hw.system("ball3d")), "no parameter with the role `action`"),
        (lambda: World("ball3d"), "no parameter with the role `action`"),
        (lambda: act(Planner(CART, TASK, "solver"), np.zeros(1), np.zeros(2), 0), "must be at least 1"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_sentence(make, words):
    with pytest.raises(hw.InvalidInput, match=words):
        make()


@pytest.mark.parametrize("backend", ["solver", "hybrid"])
def test_a_planner_that_may_ask_the_truth_reaches_its_goal(backend):
    for seed in range(5):
        sample, rng = CART.initial("test", seed), np.random.default_rng(seed)
        task = CART.task(rng, sample.state)
        # "No change" is always wrong here; with a threshold below all scores, every candidate is checked.
        planner = Planner(CART, task, backend, model_of(CART, -1.0), horizon=4, links=2, rng=rng)
        episode = act(planner, sample.state, sample.params)
        assert episode.success and len(episode.plans) <= 15
        assert all((plan.checked > 0) == (backend == "hybrid") for plan in episode.plans)
        assert len(episode.states) == 4 * len(episode.plans) + 1 and len(episode.missed) == len(episode.plans) + 1


def test_a_planner_without_truth_believes_its_model():
    sample, rng = CART.initial("test", 0), np.random.default_rng(0)
    planner = Planner(CART, CART.task(rng, sample.state), "surrogate", model_of(CART), horizon=4, links=2, rng=rng)
    plan = planner.decide(sample.state, sample.params)
    assert plan.checked == 0 and plan.cost == pytest.approx(float(planner.task.cost(sample.state[None])[0]), rel=1e-4)


def test_plans_are_the_same_for_the_same_seed_and_stay_in_range():
    sample = CART.initial("test", 0)
    task = CART.task(np.random.default_rng(0), sample.state)
    one, other = (Planner(CART, task, "solver", rng=np.random.default_rng(3)).decide(sample.state, sample.params) for _ in "ab")
    np.testing.assert_array_equal(one.actions, other.actions)
    assert (np.abs(one.actions) <= 1).all() and one.candidates == 4 * 64


class Ticking:
    """A clock that stands still but for the moves that it slows down."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def slowed(self, move, call, each):
        def slow(states, frames, params):
            self.now += call + each * len(states)
            return move(states, frames, params)

        return slow


def timed_plan(backend, seconds, search, maps=(0.0, 0.0), check=(0.0, 0.0)):
    """The second decision of a planner whose moves take so many seconds per call and per state."""
    sample, clock = CART.initial("test", 0), Ticking()
    task = CART.task(np.random.default_rng(0), sample.state)
    planner = Planner(CART, task, backend, model_of(CART, -1.0), seconds=seconds, clock=clock)
    planner._move = clock.slowed(planner._move, *search)
    planner._truth = clock.slowed(planner._truth, *check)
    if backend == "hybrid":
        planner._map = clock.slowed(planner._map, *maps)
    planner.decide(sample.state, sample.params)
    return planner.decide(sample.state, sample.params)


def test_a_solver_rolls_out_what_fits_into_the_time():
    plan = timed_plan("solver", 0.2, (0.0, 0.0025))  # four links: 10 ms per candidate
    assert plan.candidates == 20 and plan.seconds <= 0.2 + 1e-9


def test_a_network_rolls_out_many_candidates_in_few_calls():
    plan = timed_plan("surrogate", 0.2, (0.005, 2.5e-5))  # four links: 20 ms per call, 0.1 ms per candidate
    assert plan.candidates == pytest.approx((0.2 - 4 * 0.02) / 1e-4, rel=0.1) and plan.seconds <= 0.2 + 1e-9


def test_the_hybrid_checks_as_many_doubted_candidates_as_fit_into_the_time():
    cheap, maps, check = (0.0, 2.5e-4), (0.005, 0.0), (0.0, 0.01)
    plan = timed_plan("hybrid", 0.2, cheap, maps, check)  # half for the search, 20 ms for the map, 40 ms per check
    assert plan.checked == 2 and plan.seconds <= 0.2 + 1e-9


def test_a_hybrid_without_time_for_its_map_takes_what_the_surrogate_found():
    plan = timed_plan("hybrid", 0.02, (0.0, 2.5e-4), (0.005, 0.0), (0.0, 0.01))
    assert plan.checked == 0 and plan.candidates >= 4 and plan.seconds <= 0.02 + 1e-9


@given(links=st.integers(1, 50), data=st.data())
def test_even_looks_are_as_many_as_asked_for_and_evenly_spread(links, data):
    looks = data.draw(st.integers(0, links))
    taken = np.flatnonzero([evenly(looks, links)(link, 0.0) for link in range(links)])
    assert len(taken) == looks and (looks < 2 or np.ptp(np.diff(taken)) <= 1)


def test_who_doubts_always_looks_and_who_never_doubts_never_does():
    sample, model = CART.initial("test", 0), model_of(CART)
    always, never = (
        track(CART, model, sample, np.random.default_rng(0), doubting(limit), links=6, horizon=2) for limit in (-1.0, np.inf)
    )
    assert always.looks.all() and not never.looks.any()
    assert always.per_minute == pytest.approx(60 / 0.2) and never.errors[-1] > always.errors[-1]


@dataclass(frozen=True)
class Free(Cart):
    """A cart that nobody gives a task."""

    def task(self, rng, state):
        return None


@pytest.mark.parametrize("backend", ["solver", "surrogate", "hybrid"])
@pytest.mark.parametrize("environment", [CART, Free(), Tabletop(grid=(3,))], ids=["cart", "free cart", "tabletop"])
def test_gymnasiums_own_check_passes(environment, backend):
    world = World(environment, backend, model_of(environment), horizon=2, render_mode="rgb_array")
    world.spec = gymnasium.envs.registration.EnvSpec("hybridworld/Mine-v0", entry_point=lambda **given: world)
    check_env(world)


def test_without_a_task_there_is_no_goal_and_no_reward():
    world = World(Free(), horizon=2, steps=2)
    assert world.reset(seed=0)[0]["goal"].shape == (0,)
    assert [world.step(np.ones(1, np.float32))[1:4] for _ in range(2)] == [(0, False, False), (0, False, True)]


@dataclass(frozen=True)
class Fenced(Cart):
    """A cart that exists near its start only."""

    def check_physical(self, states):
        if (np.abs(states) > 10).any():
            raise hw.InvalidInput("The cart is too far away.")


@pytest.mark.parametrize("backend", ["surrogate", "hybrid"])
def test_an_episode_is_cut_off_where_a_surrogate_leads_to_a_state_that_cannot_exist(backend):
    """The solver would refuse the next question."""
    model = model_of(Fenced(), 1e9)
    torch.nn.init.constant_(model.surrogate.backbone.last.bias, 1e4)
    settings = {"backend": backend, "model": model, "horizon": 2, "steps": 9}
    many = Worlds(3, system=Fenced(), **settings)
    many.reset(seed=0)
    actions = np.zeros((3, 1), np.float32)
    _, _, done, late, info = many.step(actions)
    assert info["lost"].all() and late.all() and not done.any()
    state = many.step(actions)[0]["state"]
    assert (np.abs(state) <= 1).all()  # a new episode


@pytest.mark.parametrize("backend", ["solver", "surrogate", "hybrid"])
def test_infos_of_many_worlds_are_arrays_of_numbers(backend):
    many = gymnasium.vector.SyncVectorEnv([lambda: World(CART, backend, model_of(CART), horizon=2)] * 3)
    many.reset(seed=0)
    info = many.step(np.zeros((3, 1), np.float32))[4]
    names = ("missed", "used_solver", "lost", "score", "error_map", "solver_seconds", "saved_seconds")
    assert [info[name].dtype.kind for name in names] == list("fbbffff")


def same(one, other):
    """Are two observations or infos the same, up to the rounding of a batch? Measured times only have to be there."""
    assert type(one) is type(other)
    if isinstance(one, dict):
        assert list(one) == list(other)
        for name in one:
            if "seconds" not in name:
                same(one[name], other[name])
            else:
                assert np.shape(one[name]) == np.shape(other[name])
    elif isinstance(one, np.ndarray) and one.dtype != object:
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
    elif isinstance(one, np.ndarray | tuple):
        for each, its in zip(one, other, strict=True):
            same(each, its)
    else:
        assert one == other


@pytest.mark.parametrize("mode", list(gymnasium.vector.AutoresetMode), ids=lambda mode: mode.name)
@pytest.mark.parametrize("backend", ["solver", "surrogate", "hybrid"])
@pytest.mark.parametrize("environment", [CART, Tabletop(grid=(3,))], ids=["cart", "tabletop"])
def test_worlds_that_move_together_do_what_they_do_alone(environment, backend, mode):
    """Observation by observation, info by info, over ends of episodes by the goal and by the number of steps."""
    model = model_of(environment, 0.15)  # on the cart the scores are above it, on the table below
    settings = {"backend": backend, "model": model, "horizon": 2, "steps": 5}
    alone = gymnasium.vector.SyncVectorEnv([lambda: World(environment, **settings)] * 6, autoreset_mode=mode)
    together = Worlds(6, mode, system=environment, **settings)
    assert together.metadata == alone.metadata and together.observation_space == alone.observation_space
    together.action_space.seed(0)
    same(together.reset(seed=3), alone.reset(seed=3))
    ends = 0
    for _ in range(12):
        actions = together.action_space.sample()
        one, other = (many.step(actions) for many in (together, alone))
        for each, its in zip(one, other, strict=True):
            same(each, its)
        over = one[2] | one[3]
        ends += over.sum()
        if mode.name == "DISABLED" and over.any():
            same(*(many.reset(seed=7, options={"reset_mask": over.copy()}) for many in (together, alone)))
    assert ends >= 6


@pytest.mark.parametrize("backend", ["solver", "surrogate", "hybrid"])
def test_worlds_that_move_together_ask_once(backend):
    """One question per step about all of them, and none about those that begin anew."""
    many, asked = Worlds(4, system=Free(), backend=backend, model=model_of(CART), horizon=2, steps=2), []
    move, horizon = many._together
    many._together = lambda states, *rest: (asked.append(len(states)), move(states, *rest))[1], horizon
    many.reset(seed=0)
    actions = np.zeros((4, 1), np.float32)
    many.step(actions)
    many.reset(seed=0, options={"reset_mask": np.array([True, False, False, False])})
    for _ in range(3):
        many.step(actions)
    assert asked == [4, 4, 1, 3]


def test_worlds_share_their_model():
    many = gymnasium.make_vec("hybridworld/Tabletop-v0", num_envs=3, backend="surrogate", model=model_of(Tabletop()))
    assert isinstance(many, Worlds) and len({id(model) for model in many.get_attr("model")}) == 1


@pytest.mark.parametrize("backend", ["solver", "hybrid"])
def test_what_the_solver_takes_for_many_is_shared_among_them(backend):
    model = model_of(CART, -1.0)  # everything is deferred
    many, seconds = Worlds(4, system=CART, backend=backend, model=model, horizon=2), []
    move, horizon = many._together
    many._together = lambda *asked: (seconds.append(found := move(*asked)), found)[1], horizon
    many.reset(seed=0)
    info = many.step(np.zeros((4, 1), np.float32))[4]
    assert info["used_solver"].all() and info["solver_seconds"].sum() == pytest.approx(seconds[0].seconds["solver"])


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: Worlds(0, system=CART), "number of worlds"),
        (lambda: Worlds(2, system="ball3d"), "no parameter with the role `action`"),
        (lambda: Worlds(2, system=CART).step(np.zeros((3, 1))), r"shape \(3, 1\), not \(2, 1\)"),
    ],
)  # fmt: skip
def test_worlds_that_cannot_be_are_one_sentence(make, words):
    with pytest.raises(hw.InvalidInput, match=words):
        make()


def test_what_a_slow_surrogate_costs_is_told():
    world = World(CART, "surrogate", model_of(CART), horizon=2)  # the solver of a cart is one product
    world.reset(seed=0)
    assert world.step(np.zeros(1, np.float32))[4]["saved_seconds"] < 0


@pytest.mark.parametrize("backend", ["solver", "surrogate", "hybrid"])
def test_a_scene_of_objects_in_gymnasium(backend):
    environment = Tabletop(grid=(3,))
    world = World(environment, backend, model_of(environment), horizon=2, steps=2, render_mode="rgb_array")
    observed, _ = world.reset(seed=1)
    assert world.observation_space.contains(observed)
    again, *_ = world.step(np.array([0.2, 0.0], np.float32)), world.reset(seed=1)
    _, reward, done, over, info = again
    assert info["used_solver"] == (backend == "solver") or backend == "hybrid"
    assert np.isfinite(reward) and not (done and over) and (info["solver_seconds"] > 0) == info["used_solver"]
    assert info["error_map"].shape == (3,) and info["score"] == pytest.approx(info["error_map"].mean())
    assert backend != "solver" or info["score"] == info["saved_seconds"] == 0
    assert world.render().shape[2] == 3


def test_an_episode_ends_after_its_steps():
    world = World(CART, horizon=1, steps=3)
    world.reset(seed=0)
    assert [world.step(np.zeros(1, np.float32))[3] for _ in range(3)] == [False, False, True]


@pytest.mark.parametrize(
    "imports, name",
    [
        ("gymnasium", "hybridworld:hybridworld/Tabletop-v0"),
        ("gymnasium", "hybridworld.deploy.gym:hybridworld/Tabletop-v0"),
        ("gymnasium, hybridworld", "hybridworld/Tabletop-v0"),
        ("hybridworld, gymnasium", "hybridworld/Tabletop-v0"),
        ("hybridworld, gymnasium", "hybridworld:hybridworld/Tabletop-v0"),
    ],
)  # fmt: skip
def test_gymnasium_knows_our_environments_by_name(imports, name):
    """In a fresh process, with no import of ours where the name tells the module, and with the two imports in either order."""
    code = (
        f"import {imports}\n"
        "import sys\n"
        f"gymnasium.make({name!r}, horizon=1).reset(seed=0)\n"
        f"many = gymnasium.make_vec({name!r}, num_envs=2, horizon=1)\n"
        "many.reset(seed=0)\n"
        "print(type(many).__name__, many.step(many.action_space.sample())[0]['state'].shape)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ)
    assert done.stdout.strip() == "Worlds (2, 20, 7)", done.stderr


def test_whoever_does_without_gymnasium_does_not_wait_for_it():
    """Nor for anything else: names are registered without the code behind them, which imports torch and MuJoCo."""
    code = (
        "import sys\n"
        "import hybridworld\n"
        "print([name for name in ('numpy', 'gymnasium') if name in sys.modules])\n"
        "import gymnasium\n"
        "print('hybridworld/Tabletop-v0' in gymnasium.registry)\n"
        "print([name for name in ('torch', 'mujoco', 'numba') if name in sys.modules])\n"
        "print(gymnasium.envs.__spec__.loader.get_source('gymnasium.envs') is not None)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ)
    assert done.stdout.split("\n")[:4] == ["[]", "True", "[]", "True"], done.stderr


def test_whoever_has_no_gymnasium_is_not_bothered():
    code = "import sys\nsys.modules['gymnasium'] = None\nimport hybridworld\nprint(hybridworld.__version__)\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ)
    assert done.stdout.strip() == hw.__version__, done.stderr


def test_gymnasium_may_be_looked_for_and_loaded_again():
    """A look for the module that does not import it changes nothing, nor does a second import."""
    code = (
        "import importlib.util\n"
        "import hybridworld\n"
        "importlib.util.find_spec('gymnasium.envs')\n"
        "import gymnasium\n"
        "name = 'hybridworld/Tabletop-v0'\n"
        "print(name in gymnasium.registry, gymnasium.registry.pop(name).kwargs)\n"
        "importlib.reload(gymnasium.envs)\n"
        "importlib.reload(hybridworld)\n"
        "print(name in gymnasium.registry)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ)
    assert done.stdout.split("\n")[:2] == ["True {'system': 'tabletop'}", "True"], done.stderr


def test_only_sets_of_objects_have_another_size():
    with pytest.raises(hw.InvalidInput, match="only sets of objects can grow"):
        model_of(CART).resized((2,))


def test_a_world_is_rendered_by_its_own_renderer_where_there_is_one_and_else_by_our_figures(monkeypatch):
    world = World(Tabletop(), render_mode="rgb_array")
    world.reset(seed=0)
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    drawn = world.render()
    assert drawn.ndim == 3 and drawn.shape[2] == 3 and drawn.std() > 0
    taken = np.zeros((4, 5, 3), np.uint8)
    monkeypatch.setattr(Tabletop, "photograph", lambda *asked: taken)
    assert world.render() is taken
