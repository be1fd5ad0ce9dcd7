"""How solvers share the cores: one thread per trajectory when there are many, all threads on one field when there is one."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar

from hybridworld.errors import InvalidInput
from hybridworld.physics.arguments import whole

SMALL = 500_000
"""Cell updates (cells x frames) below which a second thread costs more than it brings."""

_limit: ContextVar[int | None] = ContextVar("threads", default=None)


def thread_count() -> int:
    """Threads a solver may use: the innermost `thread_limit`, else HYBRIDWORLD_THREADS, else the cores of this process."""
    limit = _limit.get()
    if limit is not None:
        return limit
    wish = os.environ.get("HYBRIDWORLD_THREADS")
    if wish is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not wish.isdigit() or int(wish) < 1:
        raise InvalidInput(f"HYBRIDWORLD_THREADS is '{wish}': it must be a whole number of at least 1.")
    return int(wish)


@contextmanager
def thread_limit(threads: int) -> Iterator[None]:
    """Solvers called inside, from this thread, use at most so many threads."""
    token = _limit.set(whole("The number of threads", threads, 1))
    try:
        yield
    finally:
        _limit.reset(token)


def over_trajectories(work: Callable[[int, int], None], count: int, size: int) -> None:
    """Call work(index, threads) for each of `count` trajectories of `size` cell updates each.

    `work` must release the GIL to gain anything, as a numba kernel with nogil=True does.
    """
    threads = thread_count()
    if count < threads or threads == 1:
        for index in range(count):
            work(index, threads if size >= SMALL else 1)
    else:
        with ThreadPoolExecutor(threads) as pool:  # of this call alone, so that solvers may call solvers
            list(pool.map(lambda index: work(index, 1), range(count)))
