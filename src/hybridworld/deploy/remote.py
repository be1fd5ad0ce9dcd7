"""The reference solver on a dask.distributed cluster: (states, frames, params) -> states, the same bits as here."""

import threading
import weakref
from contextlib import ExitStack
from typing import Any

import numpy as np

from hybridworld.data.cluster import connected, ship_by_value
from hybridworld.errors import HybridWorldError
from hybridworld.physics.environment import Environment, Sample, Solve
from hybridworld.physics.spec import StateSpec
from hybridworld.physics.threads import thread_count, thread_limit

CHUNKS = 4  # per thread of the cluster, since rows differ in cost
PATIENCE = 30.0  # seconds without any worker
QUIET = {"distributed.admin.large-graph-warning-threshold": "1TB"}  # states travel with their task, not to die with a worker


def solve_on(address: str, environment: Environment) -> Solve:
    """`environment.solve` on the cluster whose scheduler has this address, or on processes here (`local`)."""
    return RemoteSolver(address, environment).solve


class RemoteSolver(Environment):
    """The same system, except that the workers of a cluster advance its states.

    Input and answer are checked here, as for any system, so a failure names the row that it would name without a cluster.
    It connects when first asked, and stays connected until `close`, until nobody holds it, or until the program ends.
    """

    def __init__(self, address: str, environment: Environment) -> None:
        self.address, self.environment, self._lock = address, environment, threading.Lock()
        self._client, self._held = None, ExitStack()
        weakref.finalize(self, self._held.close)

    @property
    def spec(self) -> StateSpec:
        return self.environment.spec

    def sample(self, rng: np.random.Generator, split: str) -> Sample:
        return self.environment.sample(rng, split)

    def check_physical(self, states: np.ndarray) -> None:
        self.environment.check_physical(states)

    def advance(self, states: np.ndarray, frames: int, params: np.ndarray) -> np.ndarray:
        client = self._connected()
        import dask
        from distributed import CancelledError, KilledWorker

        try:
            client.wait_for_workers(1, timeout=PATIENCE)
            count = max(1, min(len(states), CHUNKS * sum(client.nthreads().values())))
            pieces = zip(np.array_split(states, count), np.array_split(params, count), strict=True)
            with dask.config.set(QUIET):
                futures = [client.submit(advance_rows, self.environment, s, frames, p, pure=False) for s, p in pieces]
            return np.concatenate(client.gather(futures))
        except (CancelledError, KilledWorker, OSError) as error:
            raise HybridWorldError(f"The cluster at '{self.address}' failed ({type(error).__name__}: {error}).") from error

    def close(self) -> None:
        """Leave the cluster, and end it if it is `local`; whoever solves again connects again."""
        self._held.close()

    def _connected(self) -> Any:
        with self._lock:
            if self._client is None or self._client.status == "closed":
                self.close()
                self._client = self._held.enter_context(connected(self.address, thread_count()))
                ship_by_value(self.environment)
            return self._client


def advance_rows(environment: Environment, states: np.ndarray, frames: int, params: np.ndarray) -> np.ndarray:
    """What a worker does, on one thread and on copies: what comes over the net need not be aligned."""
    with thread_limit(1):
        return environment.advance(np.array(states), frames, np.array(params))
