"""Which horizons a surrogate is trained, composed and calibrated at."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hybridworld.errors import InvalidInput
from hybridworld.surrogate.horizons import (
    calibrated_among,
    calibrated_horizons,
    chain_of,
    composed,
    drawn_horizons,
    halves,
    halves_among,
    listed,
    split,
)

HORIZONS = (1, 2, 4, 8, 16, 32, 64)


def test_listed_horizons_are_drawn_equally_often():
    values, shares = drawn_horizons((4, 1, 2, 2), "listed")
    assert values.tolist() == [1, 2, 4] and shares.tolist() == [1 / 3] * 3


@given(st.integers(1, 50), st.integers(0, 100))
def test_a_range_has_every_whole_horizon_uniform_in_its_logarithm(low, more):
    values, shares = drawn_horizons((low, low + more), "range")
    assert values.tolist() == list(range(low, low + more + 1)) and shares.sum() == pytest.approx(1)
    np.testing.assert_allclose(shares * values, shares[0] * low)


def test_of_a_range_the_long_ones_can_be_drawn_more_often():
    values, shares = drawn_horizons(HORIZONS, "long")
    assert values.tolist() == list(range(1, 65)) and shares.sum() == pytest.approx(1)
    np.testing.assert_allclose(shares * np.sqrt(values), shares[0])


@given(st.lists(st.one_of(st.integers(1, 200).map(float), st.floats(0.125, 200)), min_size=1, max_size=5))
def test_halves_add_up_and_are_whole_frames_of_whole_horizons(horizons):
    h = torch.tensor(horizons, dtype=torch.float64)
    first, second = halves(h)
    torch.testing.assert_close(first + second, h)
    whole = (h >= 2) & (h == h.floor())
    assert torch.equal(first[whole], first[whole].floor()) and torch.equal(second[whole], second[whole].floor())
    assert ((second - first)[whole] <= 1).all() and torch.equal(first[~whole], second[~whole])
    assert (first > 0).all() and (second >= first).all()


def test_calibrated_horizons_are_dense_and_hold_the_trained_ones():
    found = calibrated_horizons(HORIZONS)
    assert set(HORIZONS) <= set(found) and found == tuple(sorted(found)) and len(found) < 25
    gaps = np.array(found[1:]) / found[:-1]
    assert all(gap <= 1.26 or high - low == 1 for gap, low, high in zip(gaps, found, found[1:], strict=False))
    assert calibrated_horizons((64,)) == (64,)


@given(st.integers(1, 1000), st.integers(1, 128))
def test_a_chain_has_as_few_links_as_can_be_all_about_alike(horizon, longest):
    spans = chain_of(horizon, longest)
    assert sum(spans) == horizon and max(spans) <= longest and len(spans) == -(-horizon // longest)
    assert max(spans) - min(spans) <= 1 and all(span == int(span) for span in spans) and list(spans) == sorted(spans)[::-1]


@given(st.floats(0.1, 500), st.integers(1, 128))
def test_a_chain_of_a_fraction_has_equal_links(horizon, longest):
    spans = chain_of(horizon, longest)
    assert sum(spans) == pytest.approx(horizon) and max(spans) <= longest * (1 + 1e-6)


@given(st.integers(2, 200), st.floats(0.01, 0.99))
def test_parts_of_whole_horizons_are_whole_and_none_is_empty(horizon, share):
    first, second = split(torch.tensor([float(horizon)], dtype=torch.float64), share)
    assert first + second == horizon and first >= 1 and second >= 1 and first == first.floor()


# Where a model answers some horizons alone.


ANSWERED = st.lists(st.integers(1, 12), min_size=1, max_size=6, unique=True)


@given(ANSWERED, st.integers(1, 60))
def test_a_chain_is_made_of_answered_horizons_and_is_as_short_as_any(answered, horizon):
    reachable = {0: 0}  # length -> fewest links, by hand
    for length in range(1, horizon + 1):
        counts = [reachable[length - link] + 1 for link in answered if length - link in reachable]
        if counts:
            reachable[length] = min(counts)
    if horizon not in reachable:
        with pytest.raises(InvalidInput, match=f"horizon is {horizon} frames?: the model answers .*sums of these"):
            chain_of(horizon, max(answered), answered)
        return
    chain = chain_of(horizon, max(answered), answered)
    assert set(chain) <= set(answered) and sum(chain) == horizon and len(chain) == reachable[horizon]
    assert list(chain) == sorted(chain, reverse=True)


@given(ANSWERED)
def test_parts_are_answered_add_up_and_are_the_most_equal_ones(answered):
    pairs = {(a, b) for a in answered for b in answered if a <= b}
    assert set(composed(answered)) == {a + b for a, b in pairs} & set(answered)
    for horizon in composed(answered):
        first, second = halves_among(torch.tensor([float(horizon)]), answered)
        here = [(b - a, a, b) for a, b in pairs if a + b == horizon]
        assert (second - first, first, second) == min(here)


def test_where_all_are_answered_parts_are_the_halves():
    every = torch.arange(2.0, 65)
    for one, other in zip(halves(every), halves_among(every, range(1, 65)), strict=True):
        assert torch.equal(one, other)
    with pytest.raises(InvalidInput, match=r"cannot judge a horizon of 1 frame: the model answers 1 to 64 frames"):
        halves_among(torch.ones(1), range(1, 65))


def test_horizons_in_words():
    assert listed([1]) == "1 frame" and listed((8, 2)) == "2, 8 frames" and listed(range(1, 65)) == "1 to 64 frames"
    assert calibrated_among((4, 8, 12)) == (4, 8, 12) and calibrated_among(range(2, 9)) == (2, 3, 4, 5, 6, 7, 8)
