"""What the server refuses to do."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybridworld.serve import limits as module
from hybridworld.serve.limits import Admission, Budgets, Limits, Refusal, Request


def test_the_queue_is_bounded_in_requests_and_in_bytes():
    admission = Admission(Limits(queue=2, held=100))
    with admission.admitted(), admission.admitted():
        for place in (admission.admitted, admission.reading):  # what could not be admitted need not be read
            with pytest.raises(Refusal, match="queue is full") as told, place():
                pass
            assert (told.value.status, told.value.retry_after) == (503, 1)
    with admission.holding() as one, admission.holding() as other:
        one(40)
        other(40)
        with pytest.raises(Refusal, match="queue is full"):
            one(21)
        one(20)
        assert admission.bytes == 100
    assert (admission.requests, admission.bytes) == (0, 0)


def test_requests_that_have_not_arrived_are_bounded_and_take_no_place_in_the_queue():
    admission = Admission(Limits(queue=1, arriving=2))
    with admission.reading(), admission.reading():
        with pytest.raises(Refusal, match="queue is full"), admission.reading():
            pass
        with admission.admitted():
            pass
    assert admission.arriving == 0


def test_a_place_is_free_again_when_its_request_fails():
    admission = Admission(Limits(queue=1, arriving=1))
    for place in (admission.admitted, admission.reading):
        with pytest.raises(ValueError), place():
            raise ValueError
        with place():
            pass


@pytest.fixture
def clock(monkeypatch):
    """Time that only passes when told."""
    now = [1000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def test_a_client_in_debt_waits_until_its_budget_has_refilled(clock):
    budgets = Budgets(60.0)
    budgets.take("a", 59.0)
    budgets.take("a", 11.0)  # the last bit may be overdrawn
    with pytest.raises(Refusal, match="worked 60 s for this client") as told:
        budgets.take("a", 1.0)
    assert told.value.status == 429 and told.value.retry_after == pytest.approx(10.0)
    budgets.take("b", 1.0)  # others are not concerned
    clock[0] += 10.5
    budgets.take("a", 1.0)


def test_what_was_reserved_and_not_used_is_given_back(clock):
    budgets = Budgets(10.0)
    budgets.take("a", 10.0)
    with pytest.raises(Refusal):
        budgets.take("a", 1.0)
    budgets.give("a", 9.0)
    budgets.take("a", 9.0)  # all that came back, and nothing more:
    with pytest.raises(Refusal):
        budgets.take("a", 1.0)


@given(st.lists(st.tuples(st.floats(0, 30), st.floats(0, 20)), max_size=40))
def test_nobody_gets_more_than_a_full_budget_and_its_refill(uses):
    """Whatever the times and sizes of its requests, but for the last one, which may be overdrawn."""
    with pytest.MonkeyPatch.context() as patch:
        now = [0.0]
        patch.setattr(module.time, "monotonic", lambda: now[0])
        budgets, used = Budgets(60.0), 0.0
        for wait, seconds in uses:
            now[0] += wait
            try:
                budgets.take("a", seconds)
            except Refusal:
                continue
            used += seconds
            assert used <= 60.0 + now[0] + seconds + 1e-6


def test_the_budgets_of_many_clients_take_bounded_memory(monkeypatch):
    monkeypatch.setattr(module, "CLIENTS", 3)
    budgets = Budgets(60.0)
    for name in "abcde":
        budgets.take(name, 1.0)
    assert list(budgets._left) == ["c", "d", "e"]


def test_a_request_whose_time_is_over_is_given_up():
    assert Request("a", time.monotonic() + 10, 1.0).left == pytest.approx(10, abs=1)
    with pytest.raises(Refusal, match="no answer in time") as told:
        _ = Request("a", time.monotonic() - 1, 1.0).left
    assert told.value.status == 504
