"""Is a surrogate worth it?   For whatever could answer:   milliseconds per state   and   error against the reference solver

All methods answer the same states, in one run, on the same cores; their calls take turns, so that the noise of a shared machine
hits all alike, and first calls (compilation, caches) are apart. The peer of a surrogate is not the reference but the fastest
solver that is at least as accurate: in single precision, say, or on a coarser grid and interpolated back.
"""

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hybridworld.errors import HybridWorldError, InvalidInput
from hybridworld.evaluate.worth.contenders import Method, Starts
from hybridworld.physics.environment import Environment
from hybridworld.physics.grids import coarsen, refine

REPEATS = 5
BUDGET = 10.0
"""Seconds for all calls of one method on single states, and again in batches: a slow one gets fewer rounds and states."""


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
    speedup_vs_compiled: float = 1.0
    deferred: float | None = None
    warmup_s: float | None = None
    states: int = 1
    """On how many states it was measured."""

    @property
    def learned(self) -> bool:
        """Is it a surrogate, gated or not?"""
        return self.kind.startswith("mode")


class Look(NamedTuple):
    """What a first look at a method showed."""

    answers: np.ndarray
    deferred: float | None
    seconds: float  # for one state
    warmup: float | None

    @property
    def rounds(self) -> int:
        """How often its calls are timed."""
        return _within_budget(self.seconds * len(self.answers), REPEATS)


def measure(
    environment: Environment,
    starts: Starts,
    horizon: int,
    methods: Sequence[Method],
    unit: np.ndarray | None = None,
    tell: Callable[[str], None] = lambda what: None,
) -> tuple[list[Row], list[str]]:
    """A row per method, and who is left out, in sentences. The first method is the reference.

    `unit` are the deviations of the channels; without it, those of the reference's answers.
    """
    looks, left_out = {}, []
    for method in methods:
        tell(f"h = {horizon}: {method.name}")
        try:
            looks[method] = look_at(method, starts, horizon)
        except HybridWorldError as error:
            if method is methods[0]:
                raise
            left_out.append(f"{method.name} is left out at h = {horizon}: {error}")
        starts = starts.part(0, len(looks[methods[0]].answers))
    tell(f"h = {horizon}: a finer solution")
    reference, finer = looks[methods[0]].answers, refined(environment, starts, horizon)
    unit = deviations(reference) if unit is None else unit
    tell(f"h = {horizon}: {len(looks)} methods take turns")
    alone, batched = times_alone(looks, starts, horizon), times_batched(looks, starts, horizon)
    base, rows = alone[methods[0]], []
    for method, look in looks.items():
        count = len(look.answers)
        fair = 1e3 * fairness(base, count)
        rows.append(
            Row(
                *method[:3], horizon, alone[method].mean() * fair, batched[method] * fair,
                rmse(look.answers, reference[:count], unit),
                None if finer is None else rmse(look.answers, finer[:count], unit),
                base[:count].mean() / alone[method].mean(), look.deferred, look.warmup, count,
            )
        )  # fmt: skip
    return rows, left_out


def look_at(method: Method, starts: Starts, horizon: int) -> Look:
    """Warm up, then answer all states, or as many as the budget allows."""
    calls = 1 if method.kind == "twin" else 3  # plain NumPy has nothing to warm up, and may be slow
    first, *rest = (seconds_of(lambda: method(starts.part(0, 1), horizon)) for _ in range(calls))
    seconds, warmup = min(rest, default=first), first if rest else None
    count = _within_budget(seconds, len(starts.states))
    answers, flagged = method(starts.part(0, count), horizon)
    if not np.isfinite(answers).all():
        raise InvalidInput("its answers are not finite.")
    return Look(answers, None if flagged is None else float(flagged.mean()), seconds, warmup)


def times_alone(looks: Mapping[Method, Look], starts: Starts, horizon: int) -> dict[Method, np.ndarray]:
    """Method -> seconds of each state, one at a time."""
    jobs: dict[Hashable, Job] = {}
    for index in range(len(starts.states)):
        for method, look in looks.items():
            if index < len(look.answers):
                jobs[method, index] = Job(method, starts.part(index, index + 1), horizon, look.rounds)
    took = take_turns(jobs)
    return {method: np.array([took[method, index] for index in range(len(look.answers))]) for method, look in looks.items()}


def times_batched(looks: Mapping[Method, Look], starts: Starts, horizon: int) -> dict[Method, float]:
    """Method -> seconds per state, all of them at once."""
    took = take_turns(
        {method: Job(method, starts.part(0, len(look.answers)), horizon, look.rounds) for method, look in looks.items()}
    )
    return {method: took[method] / len(look.answers) for method, look in looks.items()}


def fairness(base: np.ndarray, count: int) -> float:
    """A slow method is timed on the first `count` states alone, which may be dear ones, or cheap ones, for the reference."""
    return float(base.mean() / base[:count].mean())


class Job(NamedTuple):
    """A call to be timed, so many times."""

    method: Method
    starts: Starts
    horizon: int
    rounds: int

    def call(self) -> object:
        """Do it."""
        return self.method(self.starts, self.horizon)


def take_turns(jobs: Mapping[Hashable, Job]) -> dict[Hashable, float]:
    """Median seconds of each; in a round each is called once."""
    took: dict[Hashable, list[float]] = {key: [] for key in jobs}
    for turn in range(max(job.rounds for job in jobs.values())):
        for key, job in jobs.items():
            if turn < job.rounds:
                took[key].append(seconds_of(job.call))
    return {key: float(np.median(seconds)) for key, seconds in took.items()}


def seconds_of(call: Callable[[], Any]) -> float:
    """How long a call takes."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def _within_budget(seconds: float, most: int) -> int:
    """How many calls of so many seconds: at least 1."""
    return min(max(int(BUDGET / seconds), 1), most)


def refined(environment: Environment, starts: Starts, horizon: int) -> np.ndarray | None:
    """The exact solution, or one with half the time step on a grid twice as fine; None where neither is known.

    The start is interpolated, and the answer averaged back.
    """
    exact, halved, spec = environment.exact(starts.states, horizon, starts.params), environment.halved_step(), environment.spec
    if exact is not None or halved is None:
        return exact
    finer, factor = halved
    if not spec.grid:
        return finer.solve(starts.states, factor * horizon, starts.params)
    finer = finer.resized(tuple(2 * cells for cells in spec.grid))
    return coarsen(finer.spec, finer.solve(refine(spec, starts.states, 2), factor * horizon, starts.params), 2)


def deviations(states: np.ndarray) -> np.ndarray:
    """Standard deviation of each channel; 1 for one that is constant."""
    found = states.std(axis=(0, *range(2, states.ndim)))
    return np.where(found > 0, found, 1.0)


def rmse(answers: np.ndarray, truth: np.ndarray, unit: np.ndarray) -> float:
    """Root mean square over channels and cells of a normalised state; mean over states."""
    error = (answers.astype(np.float64) - truth) / unit.reshape(-1, *[1] * (truth.ndim - 2))
    return float(np.sqrt((error**2).mean(axis=tuple(range(1, error.ndim)))).mean())
