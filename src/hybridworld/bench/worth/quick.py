"""A first verdict in little time: the surrogate, the reference, and as many rivals as time allows, on a few states."""

import time

import numpy as np

from hybridworld.bench.worth.contenders import Method, draw_starts, methods_for
from hybridworld.bench.worth.measure import Job, Look, Row, deviations, errors_of, look_at, take_turns, within
from hybridworld.bench.worth.verdict import verdict
from hybridworld.deploy.hybrid import HybridModel
from hybridworld.errors import HybridWorldError
from hybridworld.physics.environment import Environment

FEWEST, MOST = 4, 64
"""States that are asked about, at least and at most."""
TIMED = 8
"""States on which methods are timed, at most."""
DRAWING_SHARE, ANSWERING_SHARE, TIMING_SHARE = 0.3, 0.2, 0.2
"""Shares of the time: for the states, for the reference's answers to them, and for times at the end."""
ORDER = ("reference", "no change", "mode 1", "solver")


def quick_verdict(environment: Environment, hybrid: HybridModel, horizon: int, seconds: float) -> str:
    """Is the surrogate worth it? One sentence, after about so many seconds."""
    deadline = time.monotonic() + seconds
    began = time.monotonic()
    draw_starts(environment, "test", 2, [horizon])
    count = max(within(DRAWING_SHARE * seconds, (time.monotonic() - began) / 2, MOST), FEWEST)
    starts, known = draw_starts(environment, "test", count, [horizon])
    unit = deviations(starts.states, environment.spec)
    offered = methods_for(environment, hybrid)
    methods = [method for kind in ORDER for method in offered if method.kind == kind]
    looks: dict[Method, Look] = {}
    for number, method in enumerate(methods):
        left = deadline - TIMING_SHARE * seconds - time.monotonic()
        if method.kind == "solver" and left < 0:
            break
        gives_truth = method.kind == "reference" and not known.futures
        patience = ANSWERING_SHARE * seconds if gives_truth else max(left, 0.0) / (2 * (len(methods) - number))
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # a grid may be too coarse for a scheme
                looks[method] = look_at(method, starts, horizon, patience)
        except HybridWorldError:
            if method.kind != "solver":
                raise
        if gives_truth:
            starts = starts.part(0, len(looks[method].answers))
    truth = known.futures.get(horizon, looks[methods[0]].answers)
    timed = within(deadline - time.monotonic(), sum(look.turn for look in looks.values()), min(TIMED, len(starts.states)))
    took = take_turns({(method, n): Job(method, starts.part(n, n + 1), horizon, 1) for method in looks for n in range(timed)})
    rows = []
    for method, look in looks.items():
        ms = 1e3 * float(np.mean([took[method, n] for n in range(timed)]))
        error = errors_of(look.answers, truth[: len(look.answers)], unit).mean()
        rows.append(Row(method.name, method.kind, method.mark, horizon, ms, ms, float(error), states=len(look.answers)))
    solvers = sum(row.solver for row in rows)
    return f"{verdict(rows)} (A first look: {len(truth)} states, {solvers} solvers; `hybridworld bench worth` measures all.)"
