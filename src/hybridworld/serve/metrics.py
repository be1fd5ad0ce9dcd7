"""What Prometheus may know about the server."""

from collections.abc import Callable
from functools import lru_cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60)


class Metrics:
    """Counters, histograms and gauges with a registry of their own, so that one process may hold several servers."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.of = lru_cache(maxsize=4096)(lambda metric, *labels: metric.labels(*labels))
        """metric, *labels -> its counter, histogram or gauge; `labels` of the library takes longer than to count."""
        ProcessCollector(registry=self.registry)
        self.responses = Counter(
            "hybridworld_responses", "Responses by route and status", ["route", "status"], registry=self.registry
        )
        self.latency = Histogram(
            "hybridworld_infer_seconds",
            "Time from acceptance to answer, by model and mode",
            ["model", "mode"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self.answers = Counter(
            "hybridworld_answers",
            "Trajectories answered, by the surrogate or the solver",
            ["model", "by"],
            registry=self.registry,
        )
        self.deferral = Gauge(
            "hybridworld_deferral_ratio", "Share of gated answers that went to the solver", ["model"], registry=self.registry
        )
        self.drift = Gauge(
            "hybridworld_drift_alarm", "1 if recent scores look unlike the validation data", ["model"], registry=self.registry
        )
        self.batch = Histogram(
            "hybridworld_batch_rows", "States per call of a network", buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256, 1024),
            registry=self.registry,
        )  # fmt: skip
        self.solver = Histogram(
            "hybridworld_solver_seconds", "Time of a call of the solver", ["system"], buckets=SECONDS, registry=self.registry
        )
        self.lost_workers = Counter(
            "hybridworld_lost_workers", "Solver processes that died and were replaced", registry=self.registry
        )

    def watch(self, name: str, meaning: str, value: Callable[[], float]) -> None:
        """A gauge that is read when it is asked for."""
        Gauge(f"hybridworld_{name}", meaning, registry=self.registry).set_function(value)

    def text(self) -> bytes:
        """All metrics in the exposition format of Prometheus."""
        return generate_latest(self.registry)
