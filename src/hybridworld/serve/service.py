"""All that answers, without HTTP: models, the thread that runs their networks, their solvers, limits and metrics.

    body -> question (checked) -> HybridModel.steps -> outputs -> body          all of it at the Desk (one thread), except
                                    |          |
                       Batcher (one thread)   Solvers (processes, or dask)

`HybridModel.predict` is the same as in Python: only its networks and its solver are called elsewhere.
"""

import gc
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread
from typing import TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from hybridworld.deploy.chain import Call, Steps, finished
from hybridworld.deploy.hybrid import HybridModel
from hybridworld.physics.threads import thread_count
from hybridworld.serve.batching import Batcher
from hybridworld.serve.catalogue import Catalogue, Served, log
from hybridworld.serve.desk import Desk
from hybridworld.serve.limits import Admission, Budgets, Limits, Request, asking
from hybridworld.serve.metrics import Metrics
from hybridworld.serve.protocol import VERSION, Question, facts_of, forecast_of, outputs_of, read_question
from hybridworld.serve.solvers import Solvers
from hybridworld.serve.tensors import write_answer
from hybridworld.serve.workers import Workers

T = TypeVar("T")
PARTS = 64  # horizons of one request that are answered at once
LOOK = 2.0  # seconds between two looks at the folder of bundles, and at a cluster that did not answer
WARM_UP = 300.0  # seconds that a first solve may take: kernels are compiled
SWITCH = 5e-4  # seconds: a network's many short calls must not wait long for the interpreter


class Service:
    """A server's inside. It is ready once its models and workers are warm, and until it drains."""

    def __init__(
        self,
        catalogue: Catalogue,
        limits: Limits | None = None,
        workers: int | None = None,
        dask: str | None = None,
        batch: int | None = None,
        prepare: Callable[[HybridModel], None] = lambda model: None,
    ) -> None:
        """`prepare` is called with each model of the start before it is warmed up, while the page can already be opened."""
        self.catalogue, self.limits, self.metrics = catalogue, limits or Limits(), Metrics()
        self.admission = Admission(self.limits)
        self.threads = ThreadPoolExecutor(self.limits.queue, "request")
        self._parts = ThreadPoolExecutor(PARTS, "part")
        self.warm = self.draining = False
        self._prepare, self._closing = prepare, Event()
        self._routed = WeakKeyDictionary[HybridModel, HybridModel]()
        self.broken: dict[str, str] = {}
        """Why a model could not be warmed up."""
        sys.setswitchinterval(min(SWITCH, sys.getswitchinterval()))
        count = workers or thread_count()
        self.batcher = Batcher(batch, self.metrics.batch.observe)
        self.desk = Desk(self.batcher, self.threads, self.work)
        self.solvers = Solvers(
            Workers(count, max(1, thread_count() // count), self.metrics.lost_workers.inc),
            Budgets(self.limits.client_seconds),
            dask,
            lambda system, seconds: self.metrics.of(self.metrics.solver, system).observe(seconds),
        )
        self.metrics.watch("queue_requests", "Requests accepted and not answered yet", lambda: self.admission.requests)
        self.metrics.watch("queue_limit", "The most of them", lambda: self.limits.queue)
        self.metrics.watch("batch_waiting", "Calls of networks that wait for their batch", lambda: self.batcher.waiting)
        self.metrics.watch("workers_alive", "Solver processes that can take a task", lambda: self.solvers.workers.alive)
        Thread(target=self._keep_warm, name="warm-up", daemon=True).start()

    @property
    def ready(self) -> bool:
        """Would a request to any model be answered now?"""
        whole = self.broken.keys().isdisjoint(served.name for served in self.catalogue.all)
        works = whole and not self.solvers.cut_off and self.solvers.workers.alive > 0
        return self.warm and not self.draining and works

    def request(self, client: str) -> Request:
        """A request that begins now."""
        return Request(client, time.monotonic() + self.limits.seconds, self.limits.solver_seconds)

    def work(self, request: Request, f: Callable[[], T]) -> T:
        """f() on behalf of a request, in the current thread. Answers are checked, so numbers may overflow without a warning."""
        token = asking.set(request)
        try:
            with np.errstate(all="ignore"):
                return f()
        finally:
            asking.reset(token)

    def infer(self, served: Served, body: bytes, header: str | None) -> Steps[tuple[bytes, int | None]]:
        """The protocol's answer to the body of a request, and the length of its JSON where bytes follow it."""
        began = time.monotonic()
        question = read_question(served, body, header, self.limits)
        model = self.routed(served, None)
        if question.signal is not None:  # the first who names it may wait for a file
            model = yield Call(self.routed, (served, question.signal), network=False)
        parts = yield from forecast_of(model, question, self._at_once)
        outputs = outputs_of(model, question, parts)
        answer = {"model_name": served.name, "model_version": VERSION, "id": question.id, "parameters": facts_of(parts)}
        binary = [name for name in outputs if question.outputs.get(name, question.binary)]
        told = write_answer(answer, outputs, binary)
        self._count(served, question, parts)
        self.metrics.of(self.metrics.latency, served.name, question.mode).observe(time.monotonic() - began)
        return told

    def _at_once(self, parts: Sequence[Steps[T]]) -> list[T]:
        """What the parts of a request return, taken together: its horizons share a batch."""
        request = asking.get()
        return list(self._parts.map(lambda steps: self.work(request, lambda: finished(steps)), parts))

    def routed(self, served: Served, signal: str | None) -> HybridModel:
        """The model, with its networks and its solver called by this service."""
        model, system = served.with_signal(signal), served.system
        if model not in self._routed:
            solve = None if system is None else self.solvers.solve_for(system)
            self._routed[model] = model.through(self.batcher.call(model.spec), solve)
        return self._routed[model]

    def close(self) -> None:
        """Finish what was accepted, then end threads and processes."""
        self.draining = True
        self._closing.set()
        self.desk.close()
        self.threads.shutdown()
        self._parts.shutdown()
        self.batcher.close()
        self.solvers.close()
        for served in self.catalogue.all:
            served.close()

    def _count(self, served: Served, question: Question, parts: list) -> None:
        deferred = sum(int(forecast.used_solver.sum()) for _, forecast in parts)
        of = self.metrics.of
        of(self.metrics.answers, served.name, "solver").inc(deferred)
        of(self.metrics.answers, served.name, "surrogate").inc(len(question.states) - deferred)
        own = () if served.model is None else (served.model.signal.name,)
        if question.mode == 1 or question.q in (0, 1) or question.signal not in (None, *own):
            return  # nothing was gated by the model's own scores
        for _, forecast in parts:
            found = served.observe(forecast)
            if found is not None:
                of(self.metrics.deferral, served.name).set(found[0])
                of(self.metrics.drift, served.name).set(found[1])

    def _keep_warm(self) -> None:
        """Compile kernels and run each network once, so that the first user does not wait; then look for what changes."""
        for served in self.catalogue.all:
            if served.model is None:
                continue
            try:
                self._prepare(served.model)
                self.warm_up(served)
            except Exception as error:
                self.broken[served.name] = str(error)
                log.error("%s could not be warmed up: %s", served.name, error)
        self._reach_cluster()
        gc.collect()
        gc.freeze()  # modules and models stay: nobody has to look through them for garbage while requests are answered
        self.warm = True
        while not self._closing.wait(LOOK):
            self.catalogue.refresh(self.warm_up)  # without `prepare`, which may keep all cores busy for minutes
            if self.solvers.cut_off:
                self._reach_cluster()

    def _reach_cluster(self) -> None:
        for served in self.catalogue.all:
            if served.system is not None:
                self.solvers.reach(served.system, WARM_UP)
                return

    def warm_up(self, served: Served) -> None:
        """One solve and one forecast."""
        if served.system is not None and served.model is not None:
            request = Request("the server itself", time.monotonic() + WARM_UP, np.inf)
            model, system = self.routed(served, None), served.system

            def answer() -> None:
                (sample,), _ = self.solvers.initial(system, "val", range(1), 0)
                model.predict(sample.state, model.longest, sample.params, threshold=np.inf)

            self.work(request, answer)
        self.broken.pop(served.name, None)
