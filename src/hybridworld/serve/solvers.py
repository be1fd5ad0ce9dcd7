"""The reference solvers behind the server: in worker processes or on a dask cluster, and within budgets.

Anyone who may ask for a forecast may make the solver work, which costs thousands of times more than the request. So solver time
is limited per request and per client. It is estimated beforehand, reserved, and settled afterwards:

    seconds = what a call without a frame takes + trajectories x frames x what one of them took lately
"""

import logging
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, TimeoutError
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np

from hybridworld.data.cluster import NoCluster
from hybridworld.deploy.remote import solve_on
from hybridworld.errors import HybridWorldError, InvalidInput, SolverFailure
from hybridworld.physics.environment import Environment, Sample, Solve, stacked
from hybridworld.serve.limits import Budgets, Refusal, asking, late
from hybridworld.serve.worker import Packed, pack
from hybridworld.serve.workers import Workers

log = logging.getLogger("hybridworld.serve")
MEMORY = 0.9
"""Weight of the past in the running means of seconds and work."""
FRAMES = 4  # of the first measurement
REMOTE_CALLS = 64  # of a cluster, at once
LATER = 5.0  # seconds after which a cluster that failed may answer again


@dataclass
class Cost:
    """What a solver takes: seconds per call, and running means of the seconds beyond that and of the work they did."""

    call: float
    seconds: float = 0.0
    work: float = 0.0

    def of(self, work: int) -> float:
        """The seconds that so much work will take, about."""
        return self.call + work * self.seconds / self.work if self.work else self.call

    def learn(self, work: int, seconds: float) -> None:
        """Correct the cost by what a call with so much work took."""
        self.seconds = MEMORY * self.seconds + max(0.0, seconds - self.call)
        self.work = MEMORY * self.work + work


class Solvers:
    """Solver time for everyone. `spent(name, seconds)` is told what each call took."""

    def __init__(
        self, workers: Workers, budgets: Budgets, dask: str | None = None, spent: Callable[[str, float], None] = lambda *_: None
    ) -> None:
        self.workers, self._budgets, self._dask, self._spent = workers, budgets, dask, spent
        self._costs: dict[Packed, Future[Cost]] = {}
        self._learning = Lock()
        self._remote: dict[Packed, Solve] = {}
        self._calls = ThreadPoolExecutor(REMOTE_CALLS, "cluster") if dask else None
        self.cut_off = ""
        """Why the cluster did not answer when it was last asked; empty where it did, or where there is none."""

    def solve_for(self, environment: Environment) -> Solve:
        """`environment.solve` within budgets, for `HybridModel.through`."""

        def solve(states: np.ndarray, frames: int, params: np.ndarray) -> np.ndarray:
            return self._within_budget(environment, len(states) * frames, "solve", np.asarray(states), frames, params)[0]

        return solve

    def future(
        self, environment: Environment, state: np.ndarray, frames: int, params: np.ndarray, every: int
    ) -> tuple[np.ndarray, float]:
        """The states now and after each `every` frames up to `frames`, (states, channels, *grid), and the seconds it took."""
        if every == frames:  # the time is that of one call, as a deferred forecast would take
            later, seconds = self._within_budget(environment, frames, "solve", state[None], frames, params[None])
            return np.stack([state, later[0]]), seconds
        whole, seconds = self._within_budget(environment, frames, "record", state[None], frames, params[None])
        return np.moveaxis(whole[0], 1, 0)[::every], seconds

    def initial(self, environment: Environment, split: str, seeds: range, frame: int) -> tuple[list[Sample], np.ndarray]:
        """The beginnings of trajectories of a split, and their states `frame` frames later."""
        samples = [self._within_budget(environment, 0, "initial", split, seed)[0] for seed in seeds]
        states, params = stacked(samples)
        if frame:
            states = self._within_budget(environment, len(states) * frame, "record", states, frame, params)[0][:, :, -1]
        return samples, np.asarray(states, np.float64)

    def measure(self, environment: Environment, seconds: float) -> Cost:
        """Prepare the workers for a system, and learn what it takes; once. Whoever asks meanwhile waits for that."""
        key = pack(environment)
        with self._learning:
            first, known = key not in self._costs, self._costs.setdefault(key, Future())
        if first:
            try:
                self.workers.prepare(environment)
                known.set_result(self._measured(environment, seconds))
            except BaseException as error:
                del self._costs[key]
                known.set_exception(error)
        try:
            return known.result(seconds)
        except TimeoutError as error:
            raise late() from error

    def _measured(self, environment: Environment, seconds: float) -> Cost:
        sample = self.workers.run(environment, "initial", "val", 0, seconds=seconds)[0]
        state, params = sample.state[None], sample.params[None]
        cost = Cost(min(self.workers.run(environment, "solve", state, 0, params, seconds=seconds)[1] for _ in range(3)))
        cost.learn(FRAMES, self.workers.run(environment, "solve", state, FRAMES, params, seconds=seconds)[1])
        return cost

    def reach(self, environment: Environment, seconds: float) -> None:
        """Let the cluster, where there is one, solve a frame; `cut_off` tells whether it did."""
        if not self._dask:
            return
        sample = self.workers.run(environment, "initial", "val", 0, seconds=seconds)[0]
        try:
            self._on_cluster(environment, (sample.state[None], 1, sample.params[None]), seconds)
            self.cut_off = ""
        except Exception as error:
            if not self.cut_off:
                log.error("%s", error)
            self.cut_off = str(error)

    def close(self) -> None:
        """End the worker processes and drop the calls that wait."""
        self.workers.close()
        if self._calls:
            self._calls.shutdown(wait=False, cancel_futures=True)

    def _within_budget(self, environment: Environment, work: int, method: str, *arguments: Any) -> tuple[Any, float]:
        """`work` is the number of trajectories times that of frames."""
        remote = self._dask is not None and method == "solve"
        if remote and self.cut_off:
            raise Refusal(503, self.cut_off, retry_after=LATER)
        request = asking.get()
        cost = self.measure(environment, request.left)
        expected = cost.of(work)
        request.take(expected, environment.spec.name)
        self._budgets.take(request.client, expected)
        took = expected
        try:
            if remote:
                answer, took = self._on_cluster(environment, arguments, request.left)
            else:
                answer, took = self.workers.run(environment, method, *arguments, seconds=request.left)
        finally:
            request.give(expected - took)
            self._budgets.give(request.client, expected - took)
        self._spent(environment.spec.name, took)
        if work:
            cost.learn(work, took)
        return answer, took

    def _on_cluster(self, environment: Environment, arguments: tuple[Any, ...], seconds: float) -> tuple[np.ndarray, float]:
        assert self._dask is not None and self._calls is not None
        key = pack(environment)
        if key not in self._remote:
            self._remote[key] = solve_on(self._dask, environment)
        began = time.monotonic()
        try:
            answer = self._calls.submit(self._remote[key], *arguments).result(seconds)
        except TimeoutError as error:
            raise late() from error
        except NoCluster as error:
            self.cut_off = str(error)
            raise Refusal(503, self.cut_off, retry_after=LATER) from error
        except (InvalidInput, SolverFailure):
            raise
        except HybridWorldError as error:
            raise Refusal(503, str(error), retry_after=LATER) from error
        return answer, time.monotonic() - began
