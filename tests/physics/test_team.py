"""A team of solver threads: as large as asked for, or as large as the system allows."""

import threading

import numpy as np
import pytest

from hybridworld.physics.euler2d import Euler2D
from hybridworld.physics.kernels.team import run_team
from hybridworld.physics.oregonator import Oregonator
from hybridworld.physics.threads import thread_limit


def refuse_after(monkeypatch, allowed):
    """Further threads cannot start."""
    start, started = threading.Thread.start, []

    def limited(thread):
        if len(started) == allowed:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)


@pytest.mark.parametrize(("allowed", "size"), [(0, 1), (1, 2), (5, 4)])
def test_a_thread_that_cannot_start_makes_a_smaller_team(monkeypatch, allowed, size):
    refuse_after(monkeypatch, allowed)
    assert run_team(lambda rank, members, barrier: (rank, members), 4) == [(rank, size) for rank in range(size)]


@pytest.mark.parametrize("environment", [Euler2D(grid=(64, 64)), Oregonator(grid=(64, 64))])
def test_a_solver_with_fewer_threads_gives_the_same_bits(monkeypatch, environment):
    sample, frames = environment.initial("test", 0), 130  # cells x frames enough for a team
    with thread_limit(1):
        alone = environment.solve(sample.state, frames, sample.params)
    refuse_after(monkeypatch, 0)
    with thread_limit(3):
        np.testing.assert_array_equal(environment.solve(sample.state, frames, sample.params), alone)


def test_what_a_member_raises_is_raised_here():
    def fail(rank, members, barrier):
        raise ValueError(f"member {rank} of {members}")

    with pytest.raises(ValueError, match="member 0 of 3"):
        run_team(fail, 3)
