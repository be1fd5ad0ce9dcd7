"""Pairs from numbered trajectories: what units, epochs, thresholds and verdicts rest on."""

import time
from collections import Counter
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hybridworld as hw
from hybridworld.data.evidence import (
    CALIBRATING,
    Held,
    Recorded,
    Solved,
    Supplied,
    Until,
    Watched,
    evidence_pairs,
    fresh_pairs,
    numbers_in_share,
    samples_in_share,
)
from hybridworld.errors import InvalidInput
from hybridworld.physics.euler2d import Euler2D
from tests.surrogate.flows import OSCILLATOR, RING, Oscillator, Ring, table


class Kinds(Oscillator):
    """An oscillator whose initial states are of several kinds."""

    shares = {"often": 0.6, "seldom": 0.3, "rare": 0.1}  # noqa: RUF012

    @property
    def spec(self):
        return replace(super().spec, kinds={"id": self.shares})

    def sample(self, rng, split):
        kind = str(rng.choice(list(self.shares), p=list(self.shares.values())))
        return replace(super().sample(rng, split), origin={"kind": kind})


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 200), st.integers(0, 50))
def test_every_kind_is_there_in_its_share_after_any_number_of_trajectories(count, first):
    found = list(islice(samples_in_share(Kinds(), "val", first), count))
    numbers = [number for number, _ in found]
    assert numbers == sorted(set(numbers)) and numbers[0] >= first
    kinds = Counter(sample.origin["kind"] for _, sample in found)
    assert all(-2 < kinds[kind] - share * count < 1 for kind, share in Kinds.shares.items())


def test_euler_chooses_and_calibrates_with_sedov_blasts_in_their_share():
    small = Euler2D(grid=(8, 8))
    for first in (0, CALIBRATING):
        kinds = Counter(small.initial("val", n).origin["kind"] for n in numbers_in_share(small, "val", 64, first))
        assert 27 <= kinds["sedov"] <= 28 and len(kinds) == 5


def test_without_kinds_numbers_simply_follow_each_other():
    assert numbers_in_share(Ring(), "test", 3, 7) == [7, 8, 9]


def test_a_kind_that_the_spec_does_not_list_is_refused_by_name():
    class Odd(Kinds):
        def sample(self, rng, split):
            return replace(super().sample(rng, split), origin={"kind": "strange"})

    with pytest.raises(InvalidInput, match=r"trajectory 0 of 'val' has the kind 'strange'.* often, seldom, rare"):
        numbers_in_share(Odd(), "val", 1)


@pytest.mark.parametrize("environment", [Oscillator(), Ring()], ids=["vector", "field"])
def test_solved_and_recorded_evidence_is_the_same(environment):
    solved, recorded = Solved(environment, "val"), Recorded(table(environment, "val", 300))
    for one, other in zip(solved.blocks(300), recorded.blocks(300), strict=True):
        np.testing.assert_array_equal(one.states, other.states)
        np.testing.assert_array_equal(one.params, other.params)


def test_recorded_evidence_can_be_a_part_of_a_source():
    source = table(Ring(), "val", 10)
    rows = [block.params[0, 0] for block in Recorded(source, first=4, end=7).blocks(99)]
    assert rows == source.params(np.arange(4, 7))[:, 0].tolist()


def test_the_solver_supplies_what_a_dataset_lacks():
    few, whole = Supplied(table(Ring(), "val", 3), Ring()), Solved(Ring(), "val")
    for one, other in zip(few.blocks(8), whole.blocks(8), strict=True):
        np.testing.assert_allclose(one.states, other.states, rtol=1e-6)


def test_each_trajectory_gives_one_pair_per_horizon():
    pairs = evidence_pairs(Solved(Oscillator(), "val"), (1, 3, 16), 300, seed=0)
    assert list(pairs) == [1, 3, 16]
    params = np.concatenate([block.params for block in Solved(Oscillator(), "val").blocks(300)]).astype(np.float32)
    for horizon, batch in pairs.items():
        assert (batch.horizons == horizon).all()
        np.testing.assert_array_equal(batch.params, params)
        later = Oscillator().solve(batch.states, horizon, batch.params)
        np.testing.assert_allclose(later, batch.futures, rtol=1e-4, atol=1e-5)


def test_the_same_evidence_gives_the_same_pairs_and_another_seed_others():
    one, same, other = (fresh_pairs(Ring(), "test", [5, 9], (1, 4), seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one[4].states, same[4].states)
    assert not np.array_equal(one[4].states, other[4].states)


def test_a_horizon_that_no_trajectory_has_is_refused():
    with pytest.raises(InvalidInput, match="horizon is 17: with 17 frames it must be among 1 to 16"):
        fresh_pairs(Ring(), "test", [0], (1, 17))


def test_evidence_that_chooses_calibrates_and_tests_is_disjoint():
    """By number within val, and by split: no random numbers are shared."""
    states = [Oscillator().initial(split, n).state for split, n in (("val", 0), ("val", CALIBRATING), ("test", 0))]
    assert len({state.tobytes() for state in states}) == 3
    assert OSCILLATOR.counts["val"] < CALIBRATING > RING.counts["val"] and hw.system("ball3d").spec.counts["val"] < CALIBRATING


def test_watched_evidence_is_the_same_and_counted():
    told = []
    pairs = evidence_pairs(Watched(Solved(Ring(), "val"), told.append), (1, 4), 3, seed=0)
    assert told == [0, 1, 2, 3]
    np.testing.assert_array_equal(pairs[4].states, evidence_pairs(Solved(Ring(), "val"), (1, 4), 3, seed=0)[4].states)


@pytest.mark.parametrize(("deadline", "fewest", "expected"), [(np.inf, 2, 6), (0.0, 2, 2), (0.0, 9, 6)])
def test_evidence_ends_with_the_time_but_never_below_the_fewest(deadline, fewest, expected):
    found = list(Until(Solved(Ring(), "val"), time.monotonic() + deadline, fewest).blocks(6))
    assert len(found) == expected
    for one, other in zip(found, Solved(Ring(), "val").blocks(expected), strict=True):
        np.testing.assert_array_equal(one.states, other.states)


@pytest.mark.parametrize("environment", [Oscillator(), Ring()], ids=["vector", "field"])
def test_trajectories_in_memory_are_a_source_like_any_other(environment):
    held, other = Held(environment.spec, list(Solved(environment, "val").blocks(7))), table(environment, "val", 7)
    numbers, frames = np.array([6, 0, 3]), np.array([1, 0, 5])
    assert held.window(99) == range(7) and held.frames == other.frames
    np.testing.assert_array_equal(held.read(numbers, frames), other.read(numbers, frames))
    np.testing.assert_array_equal(held.params(numbers), other.params(numbers))
    for one, two in zip(held.blocks(4), other.blocks(4), strict=True):
        np.testing.assert_array_equal(one.states, two.states)
