"""One thread takes requests step by step; what waits for something else does not keep others waiting."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from hybridworld.deploy.chain import Call
from hybridworld.serve.batching import Batched, Batcher
from hybridworld.serve.desk import Desk
from hybridworld.serve.limits import Refusal, Request, asking
from tests.serve.served import wait_until


class Doubling:
    """A network that remembers the size of its batches, and waits for its cue."""

    def __init__(self):
        self.cue, self.batches = threading.Event(), []

    def __call__(self, values):
        self.batches.append(len(values))
        assert self.cue.wait(60)
        return 2 * values


@pytest.fixture
def batcher():
    found = Batcher()
    yield found
    found.close()


@pytest.fixture
def desk(batcher):
    with ThreadPoolExecutor(4) as threads:
        found = Desk(batcher, threads, lambda request, f: f())
        yield found
        found.close()


def request(seconds=60.0):
    return Request("me", time.monotonic() + seconds, 1.0)


def twice(f, value):
    """The value, doubled by the network two times."""
    once = yield Call(f, (torch.tensor([value]),))
    return (yield Call(f, (once,))).item(), asking.get()


def test_steps_wait_for_their_networks_together(desk, batcher):
    doubling = Doubling()
    f, requests = Batched(doubling, batcher, 1), [request() for _ in range(4)]

    async def all_of_them():
        first = asyncio.ensure_future(desk.answer(requests[0], twice(f, 1.0)))
        await asyncio.to_thread(wait_until, lambda: doubling.batches)  # the first one occupies the network
        others = [asyncio.ensure_future(desk.answer(each, twice(f, 2.0))) for each in requests[1:]]
        await asyncio.to_thread(wait_until, lambda: batcher.waiting == 3)
        doubling.cue.set()
        return await asyncio.gather(first, *others)

    answers = asyncio.run(all_of_them())
    assert [value for value, _ in answers] == [4.0, 8.0, 8.0, 8.0]
    assert all(found is asked for (_, found), asked in zip(answers, requests, strict=True))
    assert doubling.batches[0] == 1 and doubling.batches[1] >= 3 and sum(doubling.batches) == 8


@pytest.mark.parametrize("alone", [False, True])
def test_whatever_is_no_network_has_a_thread_and_others_go_on(desk, alone):
    cue, names = threading.Event(), []

    def slow():
        names.append(threading.current_thread().name)
        assert cue.wait(60)
        return 7

    def asks():
        return (yield Call(slow, (), network=False))

    def asks_nothing():
        cue.set()
        return threading.current_thread().name
        yield

    async def both():
        first = asyncio.ensure_future(desk.answer(request(), asks(), alone))
        await asyncio.to_thread(wait_until, lambda: names)
        return await desk.answer(request(), asks_nothing()), await first

    assert asyncio.run(both()) == ("desk", 7)
    assert names != ["desk"]


def test_what_a_call_raises_is_raised_in_the_steps_and_what_they_raise_reaches_the_client(desk):
    def fails():
        raise KeyError("here")

    def steps(caught):
        try:
            yield Call(fails, (), network=False)
        except caught:
            return "caught"

    assert asyncio.run(desk.answer(request(), steps(KeyError))) == "caught"
    for alone in (False, True):
        with pytest.raises(KeyError):
            asyncio.run(desk.answer(request(), steps(OSError), alone))
    assert asyncio.run(desk.answer(request(), steps(KeyError))) == "caught"  # it still works


def test_who_waits_too_long_is_told_and_their_work_is_not_done(desk, batcher):
    doubling = Doubling()
    f = Batched(doubling, batcher, 1)

    async def both():
        first = asyncio.ensure_future(desk.answer(request(), twice(f, 1.0)))
        await asyncio.to_thread(wait_until, lambda: doubling.batches)
        with pytest.raises(Refusal) as late:
            await desk.answer(request(0.2), twice(f, 5.0))
        doubling.cue.set()
        return late.value.status, (await first)[0]

    assert asyncio.run(both()) == (504, 4.0)
    assert doubling.batches == [1, 1]
