"""Is a surrogate worth it?   For whatever could answer:   milliseconds per state   and   error against the reference solver

All methods answer the same states, in one run, on the same cores; their calls take turns, so that the noise of a shared machine
hits all alike, and first calls (compilation, caches) are apart. The peer of a surrogate is not the reference but the fastest
solver that is at least as accurate: in single precision, say, or on a coarser grid and interpolated back.

Errors are in one unit: the standard deviation of each channel over the states that are asked about.
"""

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple

import numpy as np

from hybridworld.bench.metrics import mean_interval
from hybridworld.bench.worth.contenders import Known, Method, Starts
from hybridworld.errors import HybridWorldError, InvalidInput
from hybridworld.physics.environment import Environment
from hybridworld.physics.grids import coarsen, refine
from hybridworld.physics.spec import StateSpec
from hybridworld.physics.threads import thread_count, thread_limit
from hybridworld.surrogate.normalisation import shared

REPEATS = 5
BUDGET = 2.0
"""Seconds to time one method on single states, and again in batches: a slow one gets fewer rounds and states."""
BRIEF = 0.5
"""The same for a solver that a more accurate one answers in less than half of its time: no verdict rests on it."""
SHORT = 0.25
"""Seconds of a call that is made twice in its turn, so that it is timed with warm caches."""
PATIENCE = 120.0
"""Seconds for the answers of one method, from which its error comes: a slow one answers fewer states."""


@dataclass(frozen=True)
class Row:
    """What one method costs at one horizon, per state, and how far off it is, in deviations."""

    method: str
    kind: str
    mark: str
    horizon: int
    ms: float
    ms_batched: float
    rmse: float
    rmse_refined: float | None = None
    interval: tuple[float, float] | None = None
    """95 % of the mean error, by a bootstrap over states."""
    p95: float | None = None
    """95th percentile of the error over states."""
    by_kind: Mapping[str, float] = field(default_factory=dict)
    """Mean error per kind of initial state."""
    speedup_vs_compiled: float = 1.0
    deferred: float | None = None
    warmup_s: float | None = None
    states: int = 1
    """The number of states on which its error rests."""
    scheme: str = ""
    """Which of the system's variants it runs; empty for its own scheme."""
    explanation: str = ""
    """What a table says about the method beside its name."""

    @property
    def title(self) -> str:
        """The method with its explanation, where there is one."""
        return f"{self.method} ({self.explanation})" if self.explanation else self.method

    @property
    def learned(self) -> bool:
        """Whether it is a surrogate, gated or not."""
        return self.kind in ("mode 1", "mode 2")

    @property
    def solver(self) -> bool:
        """Whether it is a solver."""
        return self.kind in ("twin", "reference", "solver")


class Look(NamedTuple):
    """What a first look at a method showed."""

    answers: np.ndarray
    deferred: float | None
    seconds: float  # for one state
    warmup: float | None
    budget: float = BUDGET

    @property
    def timed(self) -> int:
        """The number of states on which it is timed."""
        return within(self.budget, self.turn, len(self.answers))

    @property
    def rounds(self) -> int:
        """How often its calls are timed."""
        return within(self.budget, self.turn * self.timed, REPEATS)

    @property
    def turn(self) -> float:
        """Seconds of a turn with one state (`take_turns`)."""
        return self.seconds * (1 if self.seconds > SHORT else 2)


def measure(
    environment: Environment,
    starts: Starts,
    horizon: int,
    methods: Sequence[Method],
    unit: np.ndarray | None = None,
    tell: Callable[[str], None] = lambda what: None,
    known: Known = Known(),  # noqa: B008
) -> tuple[list[Row], list[str]]:
    """A row per method, and sentences about those that are left out. The first method is the reference.

    `unit` are the deviations of the channels; without it, those of the states. The truth is what was recorded
    (`known.futures`), else the reference's answer.
    """
    looks: dict[Method, Look] = {}
    left_out = []
    for method in methods:
        tell(f"h = {horizon}: {method.name}")
        try:
            looks[method] = look_at(method, starts, horizon, PATIENCE)
        except HybridWorldError as error:
            if method is methods[0]:
                raise
            left_out.append(f"{method.name} is left out at h = {horizon}: {error}")
        if horizon not in known.futures:  # the reference's answers are the truth
            starts = starts.part(0, len(looks[methods[0]].answers))
    tell(f"h = {horizon}: a finer solution")
    truth = known.futures.get(horizon, looks[methods[0]].answers)
    finer = None if horizon in known.futures else refined(environment, starts, horizon)
    unit = deviations(starts.states, environment.spec) if unit is None else unit
    errors = {method: errors_of(look.answers, truth[: len(look.answers)], unit) for method, look in looks.items()}
    looks = {method: look._replace(budget=BRIEF) if outdone(method, looks, errors) else look for method, look in looks.items()}
    tell(f"h = {horizon}: {len(looks)} methods take turns")
    alone, batched = times_alone(looks, starts, horizon), times_batched(looks, starts, horizon)
    base = max(alone.values(), key=len)  # of a method that was timed on all states
    ms = {method: 1e3 * fairness(base, len(times)) * times.mean() for method, times in alone.items()}
    rows = []
    for method, look in looks.items():
        count = len(look.answers)
        rows.append(
            Row(
                *method[:3],
                horizon,
                ms[method],
                1e3 * fairness(base, look.timed) * batched[method],
                float(errors[method].mean()),
                rmse_refined=None if finer is None else rmse(look.answers, finer[:count], unit),
                interval=mean_interval(errors[method])[1:] if count > 1 else None,
                p95=float(np.quantile(errors[method], 0.95)),
                by_kind=mean_by_kind(errors[method], known.kinds[:count]),
                speedup_vs_compiled=ms[methods[0]] / ms[method],
                deferred=look.deferred,
                warmup_s=look.warmup,
                states=count,
                scheme=method.scheme,
                explanation=method.explanation,
            )
        )
    return rows, left_out


def outdone(method: Method, looks: Mapping[Method, Look], errors: Mapping[Method, np.ndarray]) -> bool:
    """Whether another solver is more accurate in less than half of this solver's time, by a first look."""
    return method.kind == "solver" and any(
        other.kind == "solver"
        and 2 * looks[other].seconds < looks[method].seconds
        and errors[other].mean() < errors[method].mean()
        for other in looks
    )


def mean_by_kind(errors: np.ndarray, kinds: Sequence[str]) -> dict[str, float]:
    """The mean error of each kind of initial state; empty where there are no kinds."""
    return {kind: float(errors[np.array(kinds) == kind].mean()) for kind in sorted(set(kinds)) if kind}


def look_at(method: Method, starts: Starts, horizon: int, patience: float | None = None) -> Look:
    """What a first look shows: warm up, then answer all states, or as many as so many seconds allow (default: BUDGET)."""
    calls = 1 if method.kind == "twin" else 3  # plain NumPy has nothing to warm up, and may be slow
    first, *rest = (seconds_of(lambda: method(starts.part(0, 1), horizon)) for _ in range(calls))
    seconds, warmup = min(rest, default=first), first if rest else None
    count = within(BUDGET if patience is None else patience, seconds, len(starts.states))
    answers, flagged = method(starts.part(0, count), horizon)
    if not np.isfinite(answers).all():
        raise InvalidInput("its answers are not finite.")
    return Look(answers, None if flagged is None else float(flagged.mean()), seconds, warmup)


def times_alone(looks: Mapping[Method, Look], starts: Starts, horizon: int) -> dict[Method, np.ndarray]:
    """Method -> seconds of each state, one at a time; a solver runs on one core and on all of them, and the faster way counts.

    Small grids gain nothing from a second core, and lose much where the cores are not idle.
    """
    jobs: dict[Hashable, Job] = {}
    ways = {method: {1, None} if method.kind in ("reference", "solver") else {None} for method in looks}
    for index in range(len(starts.states)):
        for method, look in looks.items():
            if index < look.timed:
                for threads in ways[method]:
                    jobs[method, threads, index] = Job(method, starts.part(index, index + 1), horizon, look.rounds, threads)
    took = take_turns(jobs)
    found = {}
    for method, look in looks.items():
        times = [np.array([took[method, threads, index] for index in range(look.timed)]) for threads in ways[method]]
        found[method] = min(times, key=np.mean)
    return found


def times_batched(looks: Mapping[Method, Look], starts: Starts, horizon: int) -> dict[Method, float]:
    """Method -> seconds per state, all of them at once; of a short batch a solver runs on one core as well, as above.

    Trajectories of few long steps are mostly Python, which threads take turns at.
    """
    jobs: dict[Hashable, Job] = {}
    for method, look in looks.items():
        short = method.kind in ("reference", "solver") and look.seconds * look.timed < SHORT
        for threads in {1, None} if short else {None}:
            jobs[method, threads] = Job(method, starts.part(0, look.timed), horizon, look.rounds, threads)
    took = take_turns(jobs)
    return {method: min(took.get((method, n), inf) for n in (1, None)) / look.timed for method, look in looks.items()}


def fairness(base: np.ndarray, count: int) -> float:
    """What a time on the first `count` states alone, which may be slow or fast ones, must be multiplied by to stand for all."""
    return float(base.mean() / base[:count].mean())


class Job(NamedTuple):
    """A call to be timed, so many times."""

    method: Method
    starts: Starts
    horizon: int
    rounds: int
    threads: int | None = None
    """Cores that a solver may use, if not all; networks use as many as the process has."""

    def call(self) -> object:
        """Answer the states once."""
        with thread_limit(self.threads or thread_count()):
            return self.method(self.starts, self.horizon)


def take_turns(jobs: Mapping[Hashable, Job]) -> dict[Hashable, float]:
    """Job -> median seconds of its calls; in a round each job has one turn.

    A short call is made twice and its second time counts: the first one waits for caches and threads that the job before it
    has used, which nobody who asks one method again and again would see.
    """
    took: dict[Hashable, list[float]] = {key: [] for key in jobs}
    for turn in range(max(job.rounds for job in jobs.values())):
        for key, job in jobs.items():
            if turn < job.rounds:
                seconds = seconds_of(job.call)
                took[key].append(seconds if seconds > SHORT else seconds_of(job.call))
    return {key: float(np.median(seconds)) for key, seconds in took.items()}


def seconds_of(call: Callable[[], Any]) -> float:
    """The seconds that a call takes."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def within(budget: float, seconds: float, most: int) -> int:
    """How many calls of so many seconds the budget allows: at least 1."""
    return min(max(int(budget / seconds), 1), most)


def refined(environment: Environment, starts: Starts, horizon: int) -> np.ndarray | None:
    """The exact solution, or one with half the time step on a grid twice as fine; None where neither is known.

    The start is interpolated, and the answer averaged back.
    """
    exact, halved, spec = environment.exact(starts.states, horizon, starts.params), environment.halved_step(), environment.spec
    if exact is not None or halved is None:
        return exact
    finer, factor = halved
    if not spec.is_field:
        return finer.solve(starts.states, factor * horizon, starts.params)
    finer = finer.resized(tuple(2 * cells for cells in spec.grid))
    return coarsen(finer.spec, finer.solve(refine(spec, starts.states, 2), factor * horizon, starts.params), 2)


def deviations(states: np.ndarray, spec: StateSpec | None = None) -> np.ndarray:
    """Standard deviation of each channel; 1 for one that is constant. Vectors of objects have one for all components."""
    found = states.std(axis=(0, *range(2, states.ndim)))
    found = found if spec is None else shared(spec, found)
    return np.where(found > 0, found, 1.0)


def errors_of(answers: np.ndarray, truth: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """Root mean square over channels and cells of each normalised state."""
    error = (answers.astype(np.float64) - truth) / unit.reshape(-1, *[1] * (truth.ndim - 2))
    return np.sqrt((error**2).mean(axis=tuple(range(1, error.ndim))))


def rmse(answers: np.ndarray, truth: np.ndarray, unit: np.ndarray) -> float:
    """The mean of `errors_of` over states."""
    return float(errors_of(answers, truth, unit).mean())
