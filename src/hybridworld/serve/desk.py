"""The desk: one thread takes all requests step by step, from one call of a network to the next.

    event loop -> steps of a request -> desk: a step of each request that can go on -> Batcher -> desk ... -> event loop
                                          '-- a solver, several horizons: a thread of its own -- desk ...

With a thread per request, changing threads costs more than the steps themselves. Here many steps share one change: calls
of networks are handed on together, and so are answers. A large request has a thread from its beginning to its end.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

import numpy as np

from hybridworld.deploy.chain import Call, Steps, finished
from hybridworld.serve.batching import Batched, Batcher, Job
from hybridworld.serve.limits import Request, asking, late


@dataclass(eq=False)
class _Visit:
    """A request at the desk."""

    request: Request
    steps: Steps[Any]
    answer: asyncio.Future[Any]
    waits: Future[Any] | None = None
    """The answer that its next step needs, once it was asked for."""


class Desk:
    """The thread. `threads` run what takes long; `work(request, f)` is f() on behalf of a request."""

    def __init__(self, batcher: Batcher, threads: Executor, work: Callable[[Request, Callable[[], Any]], Any]) -> None:
        self._batcher, self._threads, self._on_behalf = batcher, threads, work
        self._inbox: SimpleQueue[_Visit | None] = SimpleQueue()
        self._thread = Thread(target=self._run, name="desk", daemon=True)
        self._thread.start()

    async def answer(self, request: Request, steps: Steps[Any], alone: bool = False) -> Any:
        """What the steps return; raises once the deadline of the request has passed."""
        visit = _Visit(request, steps, asyncio.get_running_loop().create_future())
        if alone:
            self._threads.submit(self._alone, visit)
        else:
            self._inbox.put(visit)
        try:
            async with asyncio.timeout(request.left):
                return await visit.answer
        except TimeoutError as error:
            raise late() from error
        finally:
            if visit.waits is not None:
                visit.waits.cancel()

    def close(self) -> None:
        """Finish the step that is being taken, and stop."""
        self._inbox.put(None)
        self._thread.join(timeout=60)

    @np.errstate(all="ignore")  # as in `Service.work`
    def _run(self) -> None:
        while True:
            visits = [self._inbox.get()]
            with suppress(Empty):
                while True:
                    visits.append(self._inbox.get_nowait())
            jobs: list[Job] = []
            told: list[tuple[_Visit, Any, Exception | None]] = []
            for visit in visits:
                if visit is None:
                    return
                if not visit.answer.done():  # else nobody waits for it any more
                    self._step(visit, jobs, told)
            if jobs:
                self._batcher.put(jobs)
            if told:
                _tell(told)

    def _step(self, visit: _Visit, jobs: list[Job], told: list[tuple[_Visit, Any, Exception | None]]) -> None:
        """Go on to the next call, which joins the jobs, or to the end."""
        try:
            asking.set(visit.request)
            call = _next(visit)
        except StopIteration as end:
            told.append((visit, end.value, None))
        except Exception as error:
            told.append((visit, None, error))
        else:
            if isinstance(call.f, Batched):
                jobs.append(call.f.job(call.inputs))
                visit.waits = jobs[-1].done
            else:
                visit.waits = self._threads.submit(self._on_behalf, visit.request, call)
            visit.waits.add_done_callback(lambda _: self._inbox.put(visit))

    def _alone(self, visit: _Visit) -> None:
        """All steps of a request, in the current thread."""
        if visit.answer.done():
            return
        try:
            _tell([(visit, self._on_behalf(visit.request, lambda: finished(visit.steps)), None)])
        except Exception as error:
            _tell([(visit, None, error)])


def _next(visit: _Visit) -> Call:
    """The next call of a request whose last one has been answered."""
    if visit.waits is None:
        return next(visit.steps)
    try:
        answer = visit.waits.result()
    except Exception as error:
        return visit.steps.throw(error)
    return visit.steps.send(answer)


def _tell(told: list[tuple[_Visit, Any, Exception | None]]) -> None:
    """Hand answers to those who wait for them, all with one call of their event loop."""

    def deliver() -> None:
        for visit, value, error in told:
            if visit.answer.done():
                continue
            if error is None:
                visit.answer.set_result(value)
            else:
                visit.answer.set_exception(error)

    with suppress(RuntimeError):  # the loop was closed: the server was told to end at once
        told[0][0].answer.get_loop().call_soon_threadsafe(deliver)
