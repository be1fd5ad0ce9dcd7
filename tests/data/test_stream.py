"""Pairs from the solver: reproducible at any batch, in bounded memory, with a thread that ends."""

import threading
import time
import tracemalloc
from contextlib import closing
from dataclasses import dataclass
from itertools import islice

import numpy as np
import pytest

import hybridworld as hw
from hybridworld.data.pairs import Pairs
from hybridworld.data.stream import AHEAD, Stream
from hybridworld.errors import InvalidInput, SolverFailure
from hybridworld.physics.ball3d import Ball3D
from hybridworld.physics.euler2d import Euler2D
from hybridworld.physics.oregonator import Oregonator
from hybridworld.physics.threads import thread_count
from tests.data.batches import same

ENVIRONMENTS = {"oregonator": Oregonator(grid=(16, 12)), "euler2d": Euler2D(grid=(16, 12)), "ball3d": hw.system("ball3d")}


@pytest.fixture(autouse=True)
def no_thread_is_left():
    before = threading.active_count()
    yield
    assert threading.active_count() == before


def until(condition, seconds=20.0):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.005)
    return condition()


@dataclass(frozen=True)
class Watched(Ball3D):
    """Notes which trajectories were recorded and with how many threads; some seeds fail."""

    failing: tuple[int, ...] = ()

    def initial(self, split, seed):
        if seed in self.failing:
            raise ZeroDivisionError("no such ball")
        LOG.append((seed, thread_count()))
        return super().initial(split, seed)


LOG: list[tuple[int, int]] = []


@pytest.fixture(autouse=True)
def empty_log():
    LOG.clear()


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_trajectory_j_is_what_the_solver_makes_of_seed_j(name):
    env = ENVIRONMENTS[name]
    with Stream(env, "val", buffer=3, pairs_per_trajectory=10, block=None if env.spec.grid else 2) as stream:
        window = stream.window(40)
        numbers = np.array([window.start, window.stop - 1])
        frames = np.array([0, env.spec.frames - 1])
        read, params = stream.read(numbers, frames), stream.params(numbers)
    for number, frame, state, row in zip(numbers, frames, read, params, strict=True):
        sample = env.initial("val", int(number))
        whole = env.record(sample.state[None], env.spec.frames - 1, sample.params[None])
        np.testing.assert_array_equal(state, whole[0, :, frame])
        np.testing.assert_array_equal(row, sample.params)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_resuming_at_a_batch_gives_that_batch(name):
    env = ENVIRONMENTS[name]
    options = dict(buffer=3, pairs_per_trajectory=4, block=None if env.spec.grid else 2)
    with Stream(env, **options) as stream, closing(Pairs(stream, batch=4, seed=1).batches(prefetch=2)) as batches:
        forward = list(islice(batches, 9))
    with Stream(env, **options) as stream:
        pairs = Pairs(stream, batch=4, seed=1)
        for number in (6, 7, 2, 8):
            assert same(pairs.batch(number), forward[number])


def test_the_window_moves_so_that_each_trajectory_serves_its_pairs():
    with Stream(Watched(), buffer=8, pairs_per_trajectory=16, block=1) as stream:
        assert [stream.window(drawn) for drawn in (0, 15, 16, 160)] == [range(8), range(8), range(1, 9), range(10, 18)]
        pairs = Pairs(stream, batch=16, seed=2)
        served = np.concatenate([pairs.batch(number).params[:, 0] for number in range(100)])
    _, counts = np.unique(served, return_counts=True)
    middle = np.sort(counts)[8:-8]
    assert len(counts) == 107 and 14 < middle.mean() < 18


def test_blocks_do_not_change_the_trajectories():
    with Stream(Ball3D(), buffer=2, block=4) as blocks, Stream(Ball3D(), buffer=8, block=1) as single:
        assert blocks.window(0) == single.window(0) == range(8)
        numbers, frames = np.arange(8), np.arange(8) * 10
        np.testing.assert_array_equal(blocks.read(numbers, frames), single.read(numbers, frames))
        np.testing.assert_array_equal(blocks.params(numbers), single.params(numbers))


def test_the_solver_waits_when_it_is_ahead():
    with Stream(Watched(), buffer=5, pairs_per_trajectory=8, block=1) as stream:
        pairs = Pairs(stream, batch=8)
        for number in range(4):
            pairs.batch(number)
            allowed = 5 + AHEAD + number
            assert until(lambda allowed=allowed: len(LOG) == allowed)
            time.sleep(0.05)
            assert [seed for seed, _ in LOG] == list(range(allowed))


def test_memory_is_that_of_the_window():
    env = Oregonator(grid=(16, 12))
    size = 4 * int(np.prod(env.spec.shape)) * env.spec.frames
    env.record(env.initial("train", 0).state[None], 1, env.initial("train", 0).params[None])
    tracemalloc.start()
    with Stream(env, buffer=4, pairs_per_trajectory=4) as stream:
        pairs = Pairs(stream, batch=4)
        for number in range(40):
            pairs.batch(number)
        assert tracemalloc.get_traced_memory()[1] < (4 + AHEAD + 3) * size
    assert tracemalloc.get_traced_memory()[0] < size
    tracemalloc.stop()


@pytest.mark.parametrize("threads", [1, 2])
def test_the_solver_has_the_cores_it_was_given(threads):
    with Stream(Watched(), buffer=1, threads=threads, block=1) as stream:
        Pairs(stream).batch(0)
    assert {used for _, used in LOG} == {threads}


@pytest.mark.parametrize("block", [1, 4])
def test_a_failure_names_system_and_seed_to_whoever_needs_it(block):
    with Stream(Watched(failing=(9,)), buffer=4, pairs_per_trajectory=8, block=block) as stream:
        stream.window(0)
        stream.read(np.arange(4), np.zeros(4, int))
        stream.window(8 * 8)
        for _ in range(2):
            with pytest.raises(
                SolverFailure, match=r"ball3d: trajectory 9 of split 'train' failed: ZeroDivisionError: no such ball"
            ) as told:
                stream.read(np.array([8, 9]), np.zeros(2, int))
            assert isinstance(told.value.__cause__, ZeroDivisionError)
        stream.read(np.array([12 if block > 1 else 10]), np.zeros(1, int))  # the thread goes on
        batches = Pairs(stream, batch=64, seed=0).batches(1)
        with pytest.raises(SolverFailure, match="trajectory 9"):
            next(batches)


def test_closing_releases_whoever_waits():
    hold = threading.Event()

    @dataclass(frozen=True)
    class Slow(Ball3D):
        def initial(self, split, seed):
            hold.wait(20)
            return super().initial(split, seed)

    stream, errors = Stream(Slow(), block=1), []

    def wait_for_pairs():
        try:
            Pairs(stream).batch(0)
        except InvalidInput as error:
            errors.append(str(error))

    waiting = threading.Thread(target=wait_for_pairs)
    waiting.start()
    assert until(lambda: threading.active_count() >= 3)
    closing_thread = threading.Thread(target=stream.close)
    closing_thread.start()
    waiting.join(20)
    hold.set()
    closing_thread.join(20)
    assert errors == ["The stream of ball3d is closed."]
    stream.close()
    with pytest.raises(InvalidInput, match="closed"):
        stream.window(0)


def test_an_unused_stream_costs_nothing():
    with Stream(Watched()):
        pass
    assert not LOG


def test_refusals():
    for name, message in {
        "buffer": "The buffer of a stream is 0: it must be at least 1.",
        "pairs_per_trajectory": "The number of pairs per trajectory of a stream is 0: it must be at least 1.",
        "threads": "The number of threads of a stream is 0: it must be at least 1.",
    }.items():
        with pytest.raises(InvalidInput, match=message):
            Stream(Ball3D(), **{name: 0})
    with pytest.raises(InvalidInput, match="Unknown split 'nowhere'"):
        Stream(Ball3D(), "nowhere")
    with Stream(Ball3D(), buffer=2, pairs_per_trajectory=1, block=1) as stream:
        stream.window(5)
        with pytest.raises(InvalidInput, match=r"has moved on: its window begins at block 5\.$"):
            stream.read(np.array([4]), np.array([0]))
        with pytest.raises(InvalidInput, match=r"The frames reach from 0 to 101: allowed are 0 to 100\.$"):
            stream.read(np.array([5, 5]), np.array([0, 101]))
