"""What does the gate spare, and at what price? Mode 2 as it is deployed, beside what could be had at best, or blindly.

The deployed model has frozen thresholds from validation data. `matched q` is the paper's protocol, whose threshold sees the
data that is judged. Every RMSE is that of normalised states, averaged over trajectories, as in the paper.
"""

from functools import partial

import numpy as np

from hybridworld.bench.intervals import Interval, mean_interval, share_interval
from hybridworld.bench.metrics import cut_interval
from hybridworld.bench.worth.contenders import Method, Starts, has_twin, solver_answer, surrogate_answer, twin_answer
from hybridworld.bench.worth.measure import look_at, times_alone
from hybridworld.reproduce import paper
from hybridworld.reproduce.experiment import Experiment, Gated
from hybridworld.reproduce.intervals import bare, cut_from, geometric_mean, ratio_over_runs, sum_of
from hybridworld.reproduce.ranking import auroc_of
from hybridworld.reproduce.rows import Quantity, Row
from hybridworld.reproduce.rules import (
    COMPILED,
    FROZEN,
    LONGEST,
    MATCHED,
    MODE_1,
    MODE_2,
    ORACLE,
    ORACLE_AT_Q,
    RANDOM,
    STEP,
    TWIN,
)

PRICED = {True: {MODE_1: 4, MODE_2: 4}, False: {}}
MOST = {True: 8, False: 12}
"""States whose answers are timed, of fields and of state vectors; a network on fields is slow, but always equally slow."""
SOLVERS: dict[str, Quantity] = {"compiled solver": COMPILED, "NumPy twin": TWIN}

Prices = dict[str, list[float]]
"""Who answers -> milliseconds of each state, one at a time."""


def cuts(experiment: Experiment) -> list[Row]:
    """Mode 2 at q = 0.75 over horizons and splits, beside the paper's protocol, blind deferral and the oracle."""
    rows = []
    for split in paper.SPLITS:
        for h in experiment.horizons:
            cell, place = experiment.cell(split, h), (experiment.system, split, h)
            rows.append(Row("auroc", STEP, *place, auroc_of(cell.scores[STEP], cell)))
            rows.append(Row("rmse", MODE_1, *place, mean_interval(cell.rmse)))
            rows.append(Row("nrmse", MODE_1, *place, bare(cell.relative[0])))
            rows.append(Row("vrmse", MODE_1, *place, bare(cell.relative[1])))
            rows += cuts_at(experiment, split, h, paper.Q, h)
    return rows


def cuts_at(experiment: Experiment, split: str, horizon: int, q: float, place: float) -> list[Row]:
    """The deployed cut and deferral at q, and the cuts of others; `place` is the x of the rows."""
    cell, gated = experiment.cell(split, horizon), experiment.gated(split, horizon, q)
    deferral = deferral_of(gated)
    found = {
        FROZEN: cut_from(cell.rmse, gated.rmse),
        RANDOM: deferral,  # blind deferral of a share cuts that share, on average
        ORACLE: cut_interval(cell.rmse, cell.rmse, 1 - deferral.value),
        MATCHED: cut_interval(cell.scores[STEP], cell.rmse, q),
        ORACLE_AT_Q: cut_interval(cell.rmse, cell.rmse, q),
    }
    rows = [Row("cut", name, experiment.system, split, place, cut) for name, cut in found.items()]
    return [*rows, Row("deferral", FROZEN, experiment.system, split, place, deferral)]


def deferral_of(gated: Gated) -> Interval:
    """The share of answers that went to the solver, with its interval."""
    return share_interval(gated.deferred)


def mode2(experiment: Experiment) -> list[Row]:
    """The cuts on test data at the longest horizon, with the speed that is left."""
    rows = [row for row in cuts(experiment) if row.split == "test" and row.x == LONGEST]
    price, deferral = price_of(experiment, LONGEST), deferral_of(experiment.gated("test", LONGEST, paper.Q))
    rows += [
        Row(quantity, MODE_2, experiment.system, "test", LONGEST, speed_gated(price, solver, deferral))
        for solver, quantity in SOLVERS.items()
        if solver in price
    ]
    return rows


def q_sweep(experiment: Experiment) -> list[Row]:
    """The cut over the keep fraction, at the longest horizon."""
    return [row for split in paper.SPLITS for q in paper.Q_VALUES for row in cuts_at(experiment, split, LONGEST, q, q)]


def pareto(experiment: Experiment) -> list[Row]:
    """RMSE and speed-up over q, on test data at the longest horizon; mode 1 stands at q = 1."""
    price, cell = price_of(experiment, LONGEST), experiment.cell("test", LONGEST)
    place, whole = (experiment.system, "test"), mean_interval(cell.rmse)
    rows = [Row("rmse", MODE_1, *place, 1.0, whole)]
    rows += [Row(SOLVERS[name], MODE_1, *place, 1.0, speed_alone(price, name)) for name in SOLVERS if name in price]
    for q in (0.0, *paper.Q_VALUES, 1.0):
        gated = experiment.gated("test", LONGEST, q)
        deferral = deferral_of(gated)
        oracle = cut_interval(cell.rmse, cell.rmse, 1 - deferral.value).value
        rows.append(Row("rmse", MODE_2, *place, q, mean_interval(gated.rmse)))
        rows.append(Row("rmse", RANDOM, *place, q, sum_of([whole], [1 - deferral.value])))
        rows.append(Row("rmse", ORACLE, *place, q, bare((1 - oracle) * whole.value)))
        for solver, quantity in SOLVERS.items():
            if solver in price:
                fast = speed_gated(price, solver, deferral)
                rows += [Row(quantity, name, *place, q, fast) for name in (MODE_2, ORACLE)]
                rows.append(Row(quantity, RANDOM, *place, q, speed_blind(price, solver, deferral.value)))
    return rows


# How fast is it?


def speedup(experiment: Experiment) -> list[Row]:
    """Mode 1 over horizons, one state at a time on the same cores, against the compiled solver and its NumPy twin."""
    rows = []
    for h in experiment.environment.spec.horizons:
        price, place = price_of(experiment, h), (experiment.system, "test", h)
        for name in (MODE_1, *SOLVERS):
            if name in price:
                rows.append(Row("milliseconds", name, *place, geometric_mean(price[name])))
        rows += [Row(SOLVERS[name], MODE_1, *place, speed_alone(price, name)) for name in SOLVERS if name in price]
    return rows


def speed_alone(price: Prices, solver: str) -> Interval:
    """The solver's time over that of mode 1, state by state."""
    return over(price, solver, MODE_1)


def speed_gated(price: Prices, solver: str, deferral: Interval) -> Interval:
    """The solver's time over that of mode 2: every answer takes the error map, and a share of them the solver as well."""
    return inverse(sum_of([inverse(over(price, solver, MODE_2)), deferral]))


def speed_blind(price: Prices, solver: str, deferral: float) -> Interval:
    """The solver's time over that of deferring blindly: each answer takes one forward pass, or the solver, but never both."""
    certain = Interval(deferral, deferral, deferral)
    return inverse(sum_of([inverse(speed_alone(price, solver)), certain], [1 - deferral, 1]))


def over(price: Prices, one: str, other: str) -> Interval:
    """The ratio of two times, over the states for which both are known."""
    count = min(len(price[one]), len(price[other]))
    return ratio_over_runs(price[one][:count], price[other][:count])


def inverse(found: Interval) -> Interval:
    """The interval of 1 / value."""
    return Interval(*(1 / end if end else float("inf") for end in (found.value, found.high, found.low)))


def price_of(experiment: Experiment, horizon: int) -> Prices:
    """Times on as many threads as there are now."""
    found: Prices = experiment.remember(("price", horizon, experiment.threads), partial(prices, experiment, horizon))
    return found


def prices(experiment: Experiment, horizon: int) -> Prices:
    """One state at a time, the same states at each horizon: medians of calls that take turns, after a warm-up."""
    env, model = experiment.environment, experiment.hybrid()
    batch, field = experiment.pairs("test", experiment.horizons)[LONGEST], env.spec.is_field
    starts = Starts(batch.states[: MOST[field]].astype(float), batch.params[: MOST[field]].astype(float))

    def gated(states: np.ndarray, horizon: int, params: np.ndarray) -> tuple[np.ndarray, None]:
        return model.predict(states, horizon, params, mode=2, threshold=np.inf).state, None

    ways = [
        Method("compiled solver", "reference", "", solver_answer(env)),
        Method(MODE_1, "mode 1", "", surrogate_answer(model)),
        Method(MODE_2, "mode 2", "", gated),
    ]
    if has_twin(env):
        ways.append(Method("NumPy twin", "twin", "", twin_answer(env)))
    looks = {way: look_at(way, starts.part(0, PRICED[field].get(way.name, MOST[field])), horizon) for way in ways}
    return {way.name: (1e3 * took).tolist() for way, took in times_alone(looks, starts, horizon).items()}
