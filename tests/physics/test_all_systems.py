"""What every registered system must do; a new built-in system is enrolled by its name in the registry."""

import threading

import numpy as np
import pytest

from hybridworld.physics.check import check_environment
from hybridworld.physics.environment import Environment
from hybridworld.physics.registry import BUILT_IN, find_system
from hybridworld.physics.spec import SPLITS
from hybridworld.physics.threads import thread_limit

SYSTEMS = {name: find_system(name) for name in BUILT_IN}


@pytest.fixture(params=BUILT_IN)
def env(request):
    return SYSTEMS[request.param]


def starts(env, split, seeds):
    samples = [env.initial(split, seed) for seed in seeds]
    return np.stack([s.state for s in samples]), np.stack([s.params for s in samples])


def relative_difference(found, expected):
    """Largest difference per channel, over the channel's largest value."""
    axes = tuple(axis for axis in range(expected.ndim) if axis != 1)
    return (np.abs(found - expected).max(axes) / np.abs(expected).max(axes)).max()


def test_nothing_to_mend(env):
    assert check_environment(env) == []


def assert_twins_agree(env, split, count):
    if type(env).advance_numpy is Environment.advance_numpy:
        pytest.skip("has no NumPy form: its solver is another package's")
    states, params = starts(env, split, range(count))
    assert relative_difference(env.solve(states, 64, params), env.advance_numpy(states, 64, params)) <= 1e-10


@pytest.mark.parametrize("split", SPLITS)
def test_compiled_and_numpy_twin_agree_after_64_frames(env, split):
    if env.spec.is_field:
        assert_twins_agree(env.coarsened(4), split, 3)
    else:
        assert_twins_agree(env, split, 200)


def test_compiled_and_numpy_twin_agree_on_the_whole_grid(env):
    assert_twins_agree(env, "test", 1)


def test_float32_is_close_for_a_while(env):
    """Single precision is for speed: near the reference at first, before the instabilities of the flow take over."""
    if not hasattr(env, "dtype"):
        pytest.skip("computes in float64 only")
    states, params = starts(env, "test", range(2))
    single = env.in_precision("float32").solve(states, 4, params)
    assert single.dtype == np.float32
    assert np.median(np.abs(single - env.solve(states, 4, params))) < 1e-5


def test_any_number_of_threads_gives_the_same_bits(env):
    states, params = starts(env, "val", range(1))
    answers = []
    for threads in (1, 2, 3):
        with thread_limit(threads):
            answers.append(env.solve(states, 40, params))
    for answer in answers[1:]:
        np.testing.assert_array_equal(answer, answers[0])


def test_many_threads_may_solve_at_the_same_time(env):
    states, params = starts(env, "train", range(4))
    alone = [env.solve(states[i], 32, params[i]) for i in range(4)]
    together = [None] * 4

    def work(index):
        together[index] = env.solve(states[index], 32, params[index])  # each a team of its own

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, other)


def test_trajectory_is_the_solver_frame_by_frame(env):
    states, params = starts(env, "test", range(1))
    *_, last = env.trajectory(states, 5, params)
    np.testing.assert_allclose(last, env.solve(states, 5, params), rtol=1e-9, atol=1e-12 * np.abs(last).max())


def test_symmetries_carry_solutions_to_solutions(env):
    states, params = starts(env, "train", range(2))
    later = env.solve(states, 8, params)
    for symmetry in env.symmetries:
        found = env.solve(symmetry.apply(env.spec, states), 8, symmetry.apply_params(env.spec, params))
        np.testing.assert_allclose(found, symmetry.apply(env.spec, later), atol=1e-9 * np.abs(later).max())


def test_symmetries_form_a_group(env):
    states, _ = starts(env, "train", range(1))
    images = [symmetry.apply(env.spec, states) for symmetry in env.symmetries]
    assert len({image.tobytes() for image in images}) == len(images) == 8
    for first in env.symmetries:
        for second in env.symmetries:
            twice = second.apply(env.spec, first.apply(env.spec, states))
            assert any(np.array_equal(twice, image) for image in images), (first.name, second.name)


def test_kinds_are_drawn_as_often_as_the_spec_says():
    for name in ("oregonator", "euler2d"):
        env = SYSTEMS[name].coarsened(8)
        for split in ("train", "ood-far"):
            shares = env.spec.kinds[env.spec.regime(split)]
            drawn = [env.spec.draw_kind(np.random.default_rng(seed), split) for seed in range(3000)]
            for kind, share in shares.items():
                assert abs(drawn.count(kind) / 3000 - share) < 0.04, (name, split, kind)
