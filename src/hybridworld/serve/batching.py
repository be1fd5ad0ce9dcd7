"""Dynamic batching: one thread runs every network, and what arrives while it works becomes its next batch.

    request threads:  f(states, horizons, params) -> wait        f is a surrogate or a trust signal
    this thread:      take all that wait for the same f, as many as fit -> one call of f -> hand each its rows

There is no delay on purpose: a lone request is answered at once, and under load batches grow by themselves.
"""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future, TimeoutError
from dataclasses import dataclass, field, fields, is_dataclass, replace
from math import prod
from threading import Condition, Thread
from typing import Any

import torch
from torch import Tensor

from hybridworld.physics.spec import StateSpec
from hybridworld.serve.limits import Refusal, asking, late
from hybridworld.surrogate.parallel import threads_for
from hybridworld.surrogate.pieces import CELLS


@dataclass
class Job:
    """A call of a network that waits for its batch."""

    f: Callable[..., Any]
    inputs: tuple[Tensor, ...]  # states, horizons, params: all of one length
    threads: int
    done: Future = field(default_factory=Future)

    @property
    def rows(self) -> int:
        """States."""
        return len(self.inputs[0])


class Batcher:
    """The thread. `most` is the largest batch in rows (None: as many as fit), `seen(rows)` is told the size of each batch."""

    def __init__(self, most: int | None = None, seen: Callable[[int], None] = lambda rows: None) -> None:
        self._most, self._seen = most, seen
        self._waiting: deque[Job] = deque()
        self._bell, self._closed = Condition(), False
        self._thread = Thread(target=self._work, name="inference", daemon=True)
        self._thread.start()

    def call(self, spec: StateSpec) -> Callable[[Any], Any]:
        """What `HybridModel.through` wants: a network of such states -> the same network, called in batches."""
        return lambda f: Batched(f, self, threads_for(spec))

    def run(self, f: Callable[..., Any], inputs: tuple[Tensor, ...], threads: int) -> Any:
        """f(*inputs), within a batch; waits until the deadline of the request."""
        job = Job(f, inputs, threads)
        self.put([job])
        try:
            return job.done.result(asking.get().left)
        except (TimeoutError, CancelledError) as error:
            job.done.cancel()
            raise late() from error

    def put(self, jobs: Sequence[Job]) -> None:
        """Let these wait for their batch; the answer of each will be in its `done`."""
        with self._bell:
            if self._closed:
                raise Refusal(503, "The server is shutting down.")
            self._waiting.extend(jobs)
            self._bell.notify()

    @property
    def waiting(self) -> int:
        """Calls that wait for their batch."""
        return len(self._waiting)

    def close(self) -> None:
        """Finish what waits, and stop."""
        with self._bell:
            self._closed = True
            self._bell.notify()
        self._thread.join(timeout=60)

    def _work(self) -> None:
        threads = 0
        while True:
            with self._bell:
                self._bell.wait_for(lambda: self._waiting or self._closed)
                jobs = self._next()
            if not jobs:
                return
            if jobs[0].threads != threads:
                threads = jobs[0].threads
                torch.set_num_threads(threads)
            jobs = [job for job in jobs if job.done.set_running_or_notify_cancel()]
            if jobs:
                self._seen(sum(job.rows for job in jobs))
                _answer(jobs)

    def _next(self) -> list[Job]:
        """The job that waits longest, and others for the same f as long as there is room."""
        if not self._waiting:
            return []
        first, others = self._waiting[0], deque[Job]()
        cells = prod(first.inputs[0].shape[2:])
        room = self._most or max(1, CELLS // cells)
        chosen: list[Job] = []
        for job in self._waiting:
            alike = job.f is first.f and all(a.dtype == b.dtype for a, b in zip(job.inputs, first.inputs, strict=True))
            if not chosen or (alike and job.rows <= room):
                chosen.append(job)
                room -= job.rows
            else:
                others.append(job)
        self._waiting = others
        return chosen


class Batched:
    """A network whose calls go through a batcher; all else about it is its own."""

    def __init__(self, f: Any, batcher: Batcher, threads: int) -> None:
        self._f, self._batcher, self._threads = f, batcher, threads

    def __call__(self, *inputs: Tensor) -> Any:
        return self._batcher.run(self._f, inputs, self._threads)

    def job(self, inputs: tuple[Tensor, ...]) -> Job:
        """The call with these inputs, for `Batcher.put`."""
        return Job(self._f, inputs, self._threads)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._f, name)


def _answer(jobs: list[Job]) -> None:
    """One call for all of them. Where it fails, each is tried alone, so that one bad input does not spoil the others."""
    try:
        with torch.inference_mode():
            together = jobs[0].f(*(torch.cat(parts) for parts in zip(*(job.inputs for job in jobs), strict=True)))
    except Exception as error:
        if len(jobs) == 1:
            jobs[0].done.set_exception(error)
        else:
            for job in jobs:
                _answer([job])
        return
    start = 0
    for job in jobs:
        job.done.set_result(_rows(together, slice(start, start + job.rows)))
        start += job.rows


def _rows(answer: Any, rows: slice) -> Any:
    """Some rows of a tensor, or of a dataclass of tensors."""
    if is_dataclass(answer) and not isinstance(answer, type):
        parts = {each.name: getattr(answer, each.name) for each in fields(answer)}
        return replace(answer, **{name: part[rows] for name, part in parts.items() if isinstance(part, Tensor)})
    return answer[rows]
