"""Processes that solve, watched: a dead one is replaced, and its task is tried once more on another.

    run -> queue -> minder (a thread per process) -> pipe -> worker.py

A task whose worker was killed twice is given up: it may be what kills them. One that is still running at its deadline is ended
with its process. Before it takes tasks, a process solves once with every system that it has been told of: compiled kernels are
loaded, or made, on nobody's account.
"""

import multiprocessing
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, TimeoutError
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection, wait
from threading import Condition, Thread
from typing import Any

from hybridworld.physics.environment import Environment
from hybridworld.serve.limits import Refusal, late
from hybridworld.serve.worker import BEGUN, FIRST, READY, pack, work

SPAWN = multiprocessing.get_context("spawn")
LOOK = 0.5  # seconds between two looks at an idle process
STARTS_WITHIN = 600.0  # seconds for a process to import what it needs: a busy machine takes its time
WARMS_WITHIN = 300.0  # seconds for a first solve
ATTEMPTS = 2


@dataclass
class _Task:
    message: tuple[Any, ...]
    deadline: float
    done: Future = field(default_factory=Future)
    attempts: int = 0

    @property
    def wanted(self) -> bool:
        """Does anybody still wait for it?"""
        if time.monotonic() >= self.deadline:
            self.done.cancel()
        return self.done.running() or self.done.set_running_or_notify_cancel()


class Workers:
    """`count` processes. `lost()` is called for each one that died."""

    def __init__(self, count: int, threads: int = 1, lost: Callable[[], None] = lambda: None) -> None:
        self._threads, self._lost = threads, lost
        self._waiting: deque[_Task] = deque()
        self._bell, self._closed = Condition(), False
        self._warm: list[tuple[Any, ...]] = []  # what each process does first
        self._processes: list[Any] = [None] * count
        self._ready = [False] * count
        self._minders = [Thread(target=self._mind, args=(k,), name=f"minder {k}", daemon=True) for k in range(count)]
        for minder in self._minders:
            minder.start()

    def prepare(self, environment: Environment) -> None:
        """Let every process, now and whenever it is replaced, solve once with this system."""
        task = (pack(environment), FIRST, ())
        with self._bell:
            if task not in self._warm:
                self._warm.append(task)
                self._bell.notify_all()

    def run(self, environment: Environment, method: str, *arguments: Any, seconds: float) -> tuple[Any, float]:
        """environment.method(*arguments) in one of the processes, and the seconds that it took there."""
        task = _Task((pack(environment), method, arguments), time.monotonic() + seconds)
        with self._bell:
            if self._closed:
                raise Refusal(503, "The server is shutting down.")
            self._waiting.append(task)
            self._bell.notify()
        try:
            kind, answer, took = task.done.result(seconds)
        except (TimeoutError, CancelledError) as error:
            task.done.cancel()
            raise late() from error
        if kind is not None:
            raise kind(answer)
        return answer, took

    @property
    def alive(self) -> int:
        """Processes that can take a task."""
        return sum(
            ready and process is not None and process.is_alive()
            for ready, process in zip(self._ready, self._processes, strict=True)
        )

    @property
    def pids(self) -> list[int]:
        """The process ids of the workers that run."""
        return [process.pid for process in self._processes if process is not None and process.is_alive()]

    def close(self) -> None:
        """Finish what waits, and end the processes."""
        with self._bell:
            self._closed = True
            self._bell.notify_all()
        for minder in self._minders:
            minder.join(timeout=60)

    def _mind(self, k: int) -> None:
        """Keep one process alive and give it tasks, one at a time."""
        while True:
            pipe, other = SPAWN.Pipe()
            process = SPAWN.Process(target=work, args=(other, self._threads), daemon=True)
            process.start()
            other.close()
            self._processes[k] = process
            try:
                if not pipe.poll(STARTS_WITHIN) or pipe.recv() != READY:
                    raise EOFError
                finished = self._serve(k, process, pipe)
            except (EOFError, OSError):
                finished = self._closed and not self._waiting
            self._ready[k] = False
            pipe.close()
            if finished:
                process.join(timeout=5)
            process.kill()
            process.join()
            if finished:
                return
            self._lost()
            time.sleep(0.05)

    def _serve(self, k: int, process: Any, pipe: Connection) -> bool:
        """Hand tasks to the process until it ends (False), or until there are no more (True)."""
        warmed = 0
        while True:
            with self._bell:
                self._ready[k] = warmed == len(self._warm)
                self._bell.wait_for(partial(self._anything, warmed), timeout=LOOK)
                if not process.is_alive():
                    return False
                if warmed < len(self._warm) and not self._closed:
                    task = _Task(self._warm[warmed], time.monotonic() + WARMS_WITHIN)
                    task.attempts = ATTEMPTS  # nobody waits for it, so it is not tried again
                elif self._waiting:
                    task = self._waiting.popleft()
                elif self._closed:
                    return True
                else:
                    continue
            if not task.wanted:
                continue
            warmed += task.attempts == ATTEMPTS
            if not self._done(task, process, pipe):
                return False

    def _anything(self, warmed: int) -> bool:
        """Is there something to do for a process that has warmed up so far?"""
        return bool(self._waiting) or self._closed or warmed < len(self._warm)

    def _done(self, task: _Task, process: Any, pipe: Connection) -> bool:
        """Give the task to the process; False where that did not survive it. A death before it began is not its doing."""
        begun = False
        try:
            pipe.send(task.message)
            while wait([pipe, process.sentinel], max(0.0, task.deadline - time.monotonic())):
                told = pipe.recv()
                if told != BEGUN:
                    task.done.set_result(told)
                    return True
                begun = True
            task.done.set_exception(late())
        except (EOFError, OSError):
            task.attempts += begun
            if task.attempts < ATTEMPTS:
                self._again(task)
            else:
                sentence = f"The solver's process was killed {ATTEMPTS} times while it worked on this request."
                task.done.set_exception(Refusal(503, sentence, retry_after=5))
        return False

    def _again(self, task: _Task) -> None:
        with self._bell:
            self._waiting.appendleft(task)
            self._bell.notify()
