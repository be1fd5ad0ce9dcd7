"""A pair is a state and the solver's answer to it; a batch is a pure function of seed and number."""

import threading
from contextlib import closing
from itertools import islice

import numpy as np
import pytest
from scipy.stats import chisquare

import hybridworld as hw
from hybridworld.data.dataset import Dataset
from hybridworld.data.pairs import Batch, Pairs, evaluation_pairs
from hybridworld.data.stream import Stream
from hybridworld.errors import InvalidInput
from hybridworld.physics.euler2d import Euler2D
from hybridworld.physics.oregonator import Oregonator
from hybridworld.physics.symmetry import square_symmetries
from tests.data.batches import same
from tests.data.on_disk import write_dataset

ENVIRONMENTS = {
    "oregonator": Oregonator(grid=(16, 16)),
    "oregonator, oblong": Oregonator(grid=(16, 12)),
    "euler2d": Euler2D(grid=(16, 16)),
    "euler2d, oblong": Euler2D(grid=(16, 12)),
    "ball3d": hw.system("ball3d"),
}
SPEC = hw.StateSpec(
    name="numbers", title="Numbers", fields=(hw.Field("number", "1"), hw.Field("arrow", "1", "vector")),
    axes=(hw.Axis("x", 0, 1, "periodic"), hw.Axis("y", 0, 1, "periodic")), grid=(6, 6), frame_step=1.0, time_unit="s",
    frames=20, draw="number", horizons=(1, 2, 4, 8), parameters=(hw.Parameter("which", "1", "trajectory", {"id": ((0, 9),)}),),
)  # fmt: skip


class Numbers:
    """States that tell where they come from: trajectory and frame in each cell of the first two channels."""

    spec, frames, count = SPEC, SPEC.frames, 10
    reads = 0

    def window(self, drawn):
        return range(self.count)

    def params(self, trajectories):
        return trajectories[:, None].astype(float)

    def read(self, trajectories, frames):
        self.reads += 1
        told = np.stack([trajectories, frames, frames], axis=1).astype(np.float32)
        return np.broadcast_to(told[:, :, None, None], (len(told), *SPEC.shape)).copy()


class Still(Numbers):
    """Nothing ever changes, so each future is its state."""

    def read(self, trajectories, frames):
        return np.stack([np.random.default_rng(each).normal(size=SPEC.shape) for each in trajectories]).astype(np.float32)


def drawn(pairs, batches):
    """(trajectories, starts, horizons, ends) of many batches of `Numbers`."""
    found = [pairs.batch(number) for number in range(batches)]
    states, futures = (np.concatenate([getattr(each, name)[:, :, 0, 0] for each in found]) for name in ("states", "futures"))
    assert np.array_equal(states[:, 0], np.concatenate([each.params[:, 0] for each in found]))
    assert np.array_equal(states[:, 0], futures[:, 0])
    return states[:, 0], states[:, 1], np.concatenate([each.horizons for each in found]), futures[:, 1]


def test_a_pair_stays_on_its_trajectory_and_is_its_horizon_apart():
    _, starts, horizons, ends = drawn(Pairs(Numbers(), batch=64), 20)
    np.testing.assert_array_equal(ends - starts, horizons)
    assert starts.min() == 0 and ends.max() == SPEC.frames - 1


def test_trajectories_horizons_and_starts_are_uniform():
    trajectories, starts, horizons, _ = drawn(Pairs(Numbers(), batch=256, seed=3), 40)
    assert chisquare(np.bincount(trajectories.astype(int), minlength=10)).pvalue > 0.01
    assert chisquare([np.sum(horizons == each) for each in SPEC.horizons]).pvalue > 0.01
    for horizon in SPEC.horizons:
        counts = np.bincount(starts[horizons == horizon].astype(int))
        assert len(counts) == SPEC.frames - horizon
        assert chisquare(counts).pvalue > 0.01


def test_shapes_and_types():
    batch = Pairs(Numbers(), batch=5, horizons=(3,), symmetries=square_symmetries(), shifts=True).batch(0)
    assert batch.states.shape == batch.futures.shape == (5, *SPEC.shape)
    assert batch.states.dtype == batch.futures.dtype == batch.params.dtype == np.float32
    assert batch.horizons.dtype == np.int64 and list(batch.horizons) == [3] * 5 and batch.params.shape == (5, 1)


def test_a_batch_depends_on_seed_and_number_alone():
    def fresh(seed=5):
        return Pairs(Still(), batch=6, seed=seed, symmetries=square_symmetries(), shifts=True)

    pairs = fresh()
    forward = [pairs.batch(number) for number in range(6)]
    for number in (4, 0, 5, 5):
        assert same(fresh().batch(number), forward[number])
        assert same(pairs.batch(number), forward[number])
    assert not same(forward[0], forward[1]) and not same(fresh(6).batch(0), forward[0])
    for start, prefetch in ((0, 0), (0, 1), (2, 2), (3, 5)):
        with closing(fresh().batches(start, prefetch)) as batches:
            assert all(same(one, other) for one, other in zip(islice(batches, 6 - start), forward[start:], strict=True))


@pytest.mark.parametrize("world", [1, 2, 3])
def test_processes_together_draw_the_batch_of_one(world):
    options = dict(seed=1, symmetries=square_symmetries(), shifts=True)
    whole = Pairs(Still(), batch=4 * world, **options)
    parts = [Pairs(Still(), batch=4, shard=(rank, world), **options) for rank in range(world)]
    for number in range(3):
        expected = whole.batch(number)
        for rank, part in enumerate(parts):
            found = part.batch(number)
            for name in ("states", "horizons", "params", "futures"):
                np.testing.assert_array_equal(getattr(found, name), getattr(expected, name)[rank::world])


def test_state_and_future_are_seen_through_the_same_random_glass():
    symmetries = square_symmetries()
    plain, turned = Pairs(Still(), batch=512, seed=2), Pairs(Still(), batch=512, seed=2, symmetries=symmetries, shifts=True)
    before, after = plain.batch(0), turned.batch(0)
    np.testing.assert_array_equal(before.params, after.params)
    np.testing.assert_array_equal(before.horizons, after.horizons)
    np.testing.assert_array_equal(after.states, after.futures)

    images = np.stack([each.apply(SPEC, before.states) for each in symmetries])
    shifted = np.stack([np.roll(images, (i, j), (3, 4)) for i in range(6) for j in range(6)])  # (shift, symmetry, sample, ...)
    matches = (shifted == after.states).all(axis=(3, 4, 5))
    np.testing.assert_array_equal(matches.sum(axis=(0, 1)), 1)
    assert chisquare(matches.sum(axis=(0, 2))).pvalue > 0.01 and chisquare(matches.sum(axis=(1, 2))).pvalue > 0.01


def test_only_periodic_axes_are_shifted():
    env = Euler2D(grid=(16, 12))
    with Stream(env, buffer=1) as stream:
        assert same(Pairs(stream, batch=2).batch(0), Pairs(stream, batch=2, shifts=True).batch(0))


@pytest.fixture(params=["disk", "stream"])
def source_of(request, tmp_path):
    """Each system's trajectories, from a file or from the solver."""
    opened = []

    def source(env):
        if request.param == "disk":
            write_dataset(tmp_path, env, {"train": ("train", 4)})
            return Dataset(tmp_path).source("train")
        opened.append(Stream(env, buffer=4, block=1))
        return opened[0]

    yield source
    for each in opened:
        each.close()


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_the_future_is_the_solvers_answer_after_any_augmentation(name, source_of):
    env = ENVIRONMENTS[name]
    source = source_of(env)
    plain = Pairs(source, batch=48, horizons=(2, 4)).batch(0)
    batch = Pairs(source, batch=48, horizons=(2, 4), symmetries=env.symmetries, shifts=True).batch(0)
    assert (plain.states != batch.states).any(axis=tuple(range(1, plain.states.ndim))).mean() > 0.5
    for horizon in (2, 4):
        rows = batch.horizons == horizon
        states, futures = batch.states[rows], batch.futures[rows]
        error, change = env.solve(states, horizon, batch.params[rows]) - futures, futures - states
        assert (norm(error) < 1e-4 * norm(change)).all()


def norm(states):
    return np.sqrt((states**2).sum(axis=tuple(range(1, states.ndim))))


def test_spin_turns_like_an_angular_momentum():
    """The dynamics never use the spin, so here it is set to position x velocity, which any map of space must respect."""
    env = ENVIRONMENTS["ball3d"]
    rng = np.random.default_rng(0)

    class Balls(Numbers):
        spec, frames = env.spec, env.spec.frames
        table = rng.normal(size=(10, env.spec.frames, 9)).astype(np.float32)
        table[..., 6:] = np.cross(table[..., :3], table[..., 3:6])

        def read(self, trajectories, frames):
            return self.table[trajectories, frames]

    batch = Pairs(Balls(), batch=64, symmetries=env.symmetries).batch(0)
    for states in (batch.states, batch.futures):
        np.testing.assert_array_equal(states[:, 6:], np.cross(states[:, :3], states[:, 3:6]))


def test_prefetching_is_bounded_and_leaves_no_thread():
    source, before = Numbers(), threading.active_count()
    with closing(Pairs(source).batches(prefetch=3)) as batches:
        assert source.reads == 0 and threading.active_count() == before
        for taken in range(1, 6):
            next(batches)
            assert source.reads <= taken + 3
        assert threading.active_count() == before + 1
    assert threading.active_count() == before


def test_an_error_in_the_thread_is_raised_to_the_caller():
    class Failing(Numbers):
        def read(self, trajectories, frames):
            if self.reads == 2:
                raise InvalidInput("The disk is gone.")
            return super().read(trajectories, frames)

    before = threading.active_count()
    batches = Pairs(Failing()).batches()
    next(batches), next(batches)
    with pytest.raises(InvalidInput, match="The disk is gone"):
        next(batches)
    assert threading.active_count() == before


def test_evaluation_pairs_are_fixed_and_use_all_trajectories_alike():
    batch = evaluation_pairs(Numbers(), horizon=5, count=3000, seed=1)
    assert same(batch, evaluation_pairs(Numbers(), horizon=5, count=3000, seed=1))
    assert not same(batch, evaluation_pairs(Numbers(), horizon=5, count=3000, seed=2))
    trajectories, starts = batch.states[:, 0, 0, 0], batch.states[:, 1, 0, 0]
    np.testing.assert_array_equal(np.bincount(trajectories.astype(int)), [300] * 10)
    np.testing.assert_array_equal(trajectories, batch.params[:, 0])
    np.testing.assert_array_equal(batch.futures[:, 1, 0, 0] - starts, 5)
    assert chisquare(np.bincount(starts.astype(int), minlength=15)).pvalue > 0.01 and (batch.horizons == 5).all()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"batch": 0}, r"The batch size is 0: it must be at least 1\.$"),
        ({"seed": -1}, r"The seed is -1: it must be 0 or more\.$"),
        ({"horizons": ()}, r"The horizons are none: with 20 frames per trajectory they must be among 1 to 19\.$"),
        ({"horizons": (4, 20)}, r"The horizons are 4, 20: with 20 frames per trajectory they must be among 1 to 19\.$"),
        ({"horizons": (0,)}, r"The horizons are 0: "),
        ({"shard": (2, 2)}, r"The shard is 2 of 2: the rank must be among 0 to 1\.$"),
        ({"symmetries": square_symmetries(3)}, r"does not map the grid \(6, 6\) of numbers onto itself\.$"),
    ],
)
def test_refusals(options, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        Pairs(Numbers(), **options)


def test_more_refusals():
    with pytest.raises(
        InvalidInput, match=r"The symmetry \(x, y\) -> \(y, x\) does not map the grid \(16, 12\) of euler2d onto itself"
    ):
        Pairs(Stream(Euler2D(grid=(16, 12))), symmetries=square_symmetries())
    with pytest.raises(InvalidInput, match=r"The batch number is -1: it must be 0 or more\.$"):
        Pairs(Numbers()).batch(-1)
    with pytest.raises(InvalidInput, match=r"The horizon is 20: with 20 frames it must be among 1 to 19\.$"):
        evaluation_pairs(Numbers(), horizon=20, count=1, seed=0)
    with pytest.raises(InvalidInput, match=r"The number of pairs is 0: it must be at least 1\.$"):
        evaluation_pairs(Numbers(), horizon=1, count=0, seed=0)


def test_a_share_of_each_batch_comes_from_given_pairs():
    rng = np.random.default_rng(0)
    states, futures = rng.normal(size=(2, 7, *SPEC.shape)).astype(np.float32) - 100  # no state of a trajectory is like them
    given = Batch(states, rng.integers(1, 9, 7), rng.normal(size=(7, 1)).astype(np.float32), futures)
    alone, mixed = Pairs(Numbers(), 16, seed=3), Pairs(Numbers(), 16, seed=3, given=given, share=0.25)
    for number in range(5):
        before, after = alone.batch(number), mixed.batch(number)
        taken = after.states[:, 0, 0, 0] < -50
        assert taken.sum() == 4 and np.ptp(np.flatnonzero(taken)) >= 12  # spread over the batch
        for name in ("states", "horizons", "params", "futures"):
            assert (getattr(before, name)[~taken] == getattr(after, name)[~taken]).all()  # the others are as they were
        rows = [int(np.flatnonzero((states == state).all(axis=(1, 2, 3)))[0]) for state in after.states[taken]]
        assert (after.futures[taken] == futures[rows]).all() and (after.horizons[taken] == given.horizons[rows]).all()
        assert (after.params[taken] == given.params[rows]).all()
        shards = [Pairs(Numbers(), 8, seed=3, given=given, share=0.25, shard=(rank, 2)).batch(number) for rank in (0, 1)]
        assert all((shard.states == after.states[rank::2]).all() for rank, shard in enumerate(shards))
