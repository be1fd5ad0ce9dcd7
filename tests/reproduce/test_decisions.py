"""Laws of decisions and of intervals that are made of intervals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybridworld.bench.intervals import Interval
from hybridworld.reproduce.decisions import counted, lies, part, together
from hybridworld.reproduce.intervals import (
    auroc_of_labels,
    bare,
    deviation_of,
    difference,
    mean_of,
    over_runs,
    ratio,
    ratio_over_runs,
    share_of,
    sum_of,
    widened,
)
from hybridworld.reproduce.rows import Missing, Row, need

numbers = st.floats(-10, 10)
statuses = st.sampled_from(["confirmed", "not confirmed", "cannot tell", "not comparable"])


@st.composite
def intervals(draw):
    low, value, high = sorted(draw(st.tuples(numbers, numbers, numbers)))
    return Interval(value, low, high)


@given(intervals(), numbers)
def test_a_statement_and_its_contrary_are_never_both_confirmed(found, bound):
    above, below = lies(found, low=bound), lies(found, high=bound)
    assert (above, below).count("confirmed") <= 1
    assert (above == "cannot tell") == (below == "cannot tell") or found.low == bound or found.high == bound


@given(st.lists(intervals(), min_size=1, max_size=8), numbers, st.data())
def test_more_looks_and_more_cells_never_help_to_confirm(found, bound, data):
    looks = data.draw(st.integers(1, 20))
    for each in found:
        if lies(widened(each, looks), low=bound) == "confirmed":
            assert lies(each, low=bound) == "confirmed"
    least = data.draw(st.integers(1, len(found)))
    if counted(found, low=bound) == "confirmed":
        assert counted(found, low=bound, least=least) != "not confirmed"
        assert all(each.low > bound for each in found)
    if counted(found, low=bound, least=least) == "confirmed":
        assert sum(each.low > bound for each in found) >= least


@given(st.lists(statuses, min_size=1))
def test_a_claim_is_confirmed_only_if_every_part_is(parts):
    assert (together(parts) == "confirmed") == (set(parts) == {"confirmed"})
    assert (together(parts) == "not confirmed") == ("not confirmed" in parts)


def test_without_parts_or_ends_nothing_is_decided():
    assert together([]) == "not comparable"
    assert lies(bare(5.0), low=1.0) == lies(bare(5.0), high=1.0) == "cannot tell"

    def missing():
        raise Missing("half of it")

    assert part("", missing).status == "not comparable"


@given(st.lists(intervals(), min_size=1, max_size=5))
def test_independent_values_are_known_better_than_dependent_ones(found):
    mean, summed = mean_of(found), sum_of(found, [1 / len(found)] * len(found))
    assert summed.value == pytest.approx(mean.value, abs=1e-9)
    assert summed.low >= mean.low - 1e-9 and summed.high <= mean.high + 1e-9


@given(intervals(), intervals())
def test_a_difference_turns_around_with_its_parts(one, other):
    there, back = difference(one, other), difference(other, one)
    assert np.allclose(there, [-back.value, -back.high, -back.low])


def test_ratios_and_runs():
    assert np.allclose(ratio(Interval(4, 2, 8), Interval(2, 2, 2)), (2, 1, 4))
    assert np.isnan(over_runs([3.0]).low) and np.isnan(ratio_over_runs([3.0], [1.0]).low)
    assert over_runs([1.0, 2.0, 3.0]) == pytest.approx((2, 2 - 2.484, 2 + 2.484), abs=1e-3)
    assert deviation_of([1.0, 2.0, 3.0]) == pytest.approx((1, 0.521, 6.285), abs=1e-3)
    assert share_of(0, 24) == pytest.approx((0, 0, 0.142), abs=1e-3) and share_of(24, 24).high == 1


def test_one_label_tells_nothing_and_many_do():
    scores = np.arange(12.0)
    assert lies(auroc_of_labels(scores, scores > 10), low=0.5) == "cannot tell"
    assert lies(auroc_of_labels(scores, scores > 6), low=0.5) == "confirmed"
    assert lies(auroc_of_labels(-scores, scores > 6), low=0.5) == "not confirmed"
    assert np.isnan(auroc_of_labels(scores, scores > 20).value)


def test_cells_that_were_not_measured_are_missing():
    rows = [
        Row("auroc", "a", "ball3d", "test", 2, Interval(0.7, 0.6, 0.8)),
        Row("auroc", "a", "ball3d", "test", 4, bare(np.nan)),
    ]
    assert need(rows, "auroc", "a", ("test",), (2,)) == [(0.7, 0.6, 0.8)]
    with pytest.raises(Missing, match="1 of 2 cells"):
        need(rows, "auroc", "a", ("test",), (2, 4))
