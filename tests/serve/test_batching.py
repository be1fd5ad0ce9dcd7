"""One thread runs the networks, in batches."""

import threading
import time

import numpy as np
import pytest
import torch

from hybridworld.errors import InvalidInput
from hybridworld.serve.batching import Batched, Batcher
from hybridworld.serve.limits import Refusal, Request, asking
from hybridworld.trust.signal import Estimate
from tests.serve.served import wait_until


class Slow:
    """A network that waits for its cue, and remembers its batches."""

    name = "slow"

    def __init__(self):
        self.cue, self.batches = threading.Event(), []

    def __call__(self, states, horizons, params):
        self.batches.append(len(states))
        assert self.cue.wait(60)
        if (states < 0).any():
            raise InvalidInput("A state is negative.")
        return Estimate(states * horizons[:, None], states.sum(dim=1))


@pytest.fixture
def batcher():
    found = Batcher()
    yield found
    found.close()


def ask(batched, states, horizon=2.0, seconds=60.0):
    """The answer, or what was raised; in a thread that works for a request."""
    answer = []

    def work():
        asking.set(Request("me", time.monotonic() + seconds, 1.0))
        values = torch.tensor(states, dtype=torch.float32)
        try:
            answer.append(batched(values, torch.full((len(values),), horizon), torch.zeros(len(values), 0)))
        except Exception as error:
            answer.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    return thread, answer


def gather(batcher, slow, *questions):
    """The first question occupies the network; the others wait together, then all are answered."""
    first = ask(Batched(slow, batcher, 1), [[9.0]])
    wait_until(lambda: slow.batches)
    asked = [first]
    for question in questions:
        asked.append(ask(Batched(slow, batcher, 1), *question))
        wait_until(lambda: batcher.waiting == len(asked) - 1)
    slow.cue.set()
    for thread, _ in asked:
        thread.join(60)
    return [answer[0] for _, answer in asked[1:]]


def test_what_waits_is_answered_in_one_batch_and_everyone_gets_their_rows(batcher):
    slow = Slow()
    answers = gather(batcher, slow, ([[1.0], [2.0]], 3.0), ([[5.0]], 4.0))
    assert slow.batches == [1, 3]
    np.testing.assert_array_equal(answers[0].prediction, [[3.0], [6.0]])
    np.testing.assert_array_equal(answers[1].prediction, [[20.0]])
    np.testing.assert_array_equal(answers[1].score, [5.0])


def test_a_bad_input_does_not_spoil_its_neighbours(batcher):
    slow = Slow()
    answers = gather(batcher, slow, ([[1.0]],), ([[-1.0]],), ([[2.0]],))
    assert slow.batches == [1, 3, 1, 1, 1]
    assert isinstance(answers[1], InvalidInput)
    assert [answers[k].prediction.item() for k in (0, 2)] == [2.0, 4.0]


def test_a_batch_has_a_size(monkeypatch):
    small = Batcher(most=2)
    slow = Slow()
    gather(small, slow, ([[1.0]],), ([[2.0]],), ([[3.0]],))
    assert slow.batches == [1, 2, 1]
    small.close()


def test_networks_are_not_mixed_and_the_one_that_waits_longest_is_next(batcher):
    slow, other = Slow(), Slow()
    other.cue.set()
    first = ask(Batched(slow, batcher, 1), [[9.0]])
    wait_until(lambda: slow.batches)
    rest = [ask(Batched(f, batcher, 1), [[1.0]]) for f in (other, slow, other)]
    wait_until(lambda: batcher.waiting == 3)
    slow.cue.set()
    for thread, _ in (first, *rest):
        thread.join(60)
    assert slow.batches == [1, 1] and other.batches == [2]


def test_who_waits_too_long_is_told_and_their_work_is_not_done(batcher):
    slow = Slow()
    first = ask(Batched(slow, batcher, 1), [[9.0]])
    wait_until(lambda: slow.batches)
    thread, answer = ask(Batched(slow, batcher, 1), [[1.0]], seconds=0.2)
    thread.join(60)
    assert isinstance(answer[0], Refusal) and answer[0].status == 504
    slow.cue.set()
    first[0].join(60)
    assert slow.batches == [1]


def test_a_closed_batcher_refuses():
    closed = Batcher()
    closed.close()
    thread, answer = ask(Batched(Slow(), closed, 1), [[1.0]])
    thread.join(60)
    assert isinstance(answer[0], Refusal) and answer[0].status == 503


def test_all_else_about_a_network_is_its_own(batcher):
    assert Batched(Slow(), batcher, 1).name == "slow"
