"""From a study to numbers: one function per entry of the paper, each of which returns rows for its table and figure.

Thresholds come from validation data. Every RMSE is that of normalised states, averaged over trajectories, as in the paper.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from hybridworld.data.pairs import Batch, Pairs
from hybridworld.deploy.hybrid import HybridModel
from hybridworld.evaluate.bench_trust import signal_makers
from hybridworld.evaluate.metrics import (
    Interval,
    aurc,
    auroc_at_tolerance,
    auroc_interval,
    cut_above,
    cut_interval,
    cut_matched,
    excess_aurc,
    mean_interval,
)
from hybridworld.evaluate.reproduce.study import STEP, Study
from hybridworld.evaluate.worth.contenders import Method, Starts, has_twin, solver_answer, surrogate_answer, twin_answer
from hybridworld.evaluate.worth.measure import fairness, look_at, times_alone
from hybridworld.surrogate.surrogate import Surrogate
from hybridworld.surrogate.validation import to_tensors
from hybridworld.trust.signal import TrustSignal

SPLITS = ("test", "ood-near", "ood-far")
KEEP = (0.5, 0.6, 0.75, 0.85, 0.9)
Q, LONGEST = 0.75, 64
BEYOND = {"oregonator": (64, 96, 128, 160), "euler2d": (64, 80, 96)}
PRICED = 8
"""States whose solutions are timed; what a network takes does not depend on the state."""
TOLERANCE = 0.1
"""An absolute error, in deviations, above which an answer counts as wrong."""
RIVALS = ("random augmentation", "gradient magnitude", "learned error head", "locally adaptive conformal", "ensemble", STEP)
OURS = ("symmetries", f"{STEP} + symmetries", "many splits", "many splits + symmetries")


@dataclass(frozen=True)
class Row:
    """One number: of a method, a split, at x (a horizon, a keep fraction, a number of links)."""

    method: str
    x: float
    value: float
    split: str = "test"
    low: float = float("nan")
    high: float = float("nan")


def of_interval(method: str, x: float, found: Interval, split: str = "test") -> Row:
    """A value with its interval."""
    return Row(method, x, found.value, split, found.low, found.high)


# Where is it wrong?


def auroc(study: Study) -> list[Row]:
    """Step-doubling over horizons and splits: at the worst quarter as in the paper, at a fixed tolerance, and by AURC."""
    rows = []
    for split in SPLITS:
        for h in study.ladder:
            cell = study.cell(split, h)
            own, each = cell.scores[STEP], np.arange(len(cell.rmse))
            rows.append(of_interval(STEP, h, auroc_interval(own, cell.rmse, each), split))
            rows.append(Row(f"at a tolerance of {TOLERANCE:g}", h, auroc_at_tolerance(own, cell.rmse, TOLERANCE), split))
            rows.append(Row("AURC", h, aurc(own, cell.rmse), split))
            rows.append(Row("excess over the oracle", h, excess_aurc(own, cell.rmse), split))
    return rows


def baselines(study: Study) -> list[Row]:
    """Every applicable rival on test data at long horizons, and our own label-free signals beside them."""
    ours = OURS[:1] if study.environment.spec.grid else OURS  # four passes; on a grid the others take up to eleven
    return compared(study, [*RIVALS, *ours], [h for h in study.ladder if h >= 16])


def energy_momentum(study: Study) -> list[Row]:
    """What the dynamics conserve, against step-doubling."""
    return compared(study, ["energy residual", "momentum residual", STEP], study.ladder)


def richardson(study: Study) -> list[Row]:
    """The solver against itself, with what it costs per answer in milliseconds."""
    names = ["Richardson, fixed-order", "Richardson, geometric-mean", STEP]
    rows = compared(study, names, study.ladder)
    makers = makers_of(study)
    for name in (names[0], STEP):
        for h in study.ladder:
            found = study.remember(("cost", name, h), partial(cost_of, study, makers[name], h))
            rows.append(Row(f"{name}, ms per answer", h, found["ms"]))
    return rows


def cost_of(study: Study, make: Callable[[], TrustSignal], horizon: int) -> dict[str, float]:
    """Of one answer."""
    return {"ms": milliseconds(make(), study.pairs("test", study.ladder)[horizon])}


def milliseconds(signal: TrustSignal, batch: Batch, most: int = 4) -> float:
    """Per answer, for a few answers one at a time, after a warm-up."""
    taken = []
    for row in (0, *range(min(most, len(batch.states)))):
        some = slice(row, row + 1)
        one = Batch(batch.states[some], batch.horizons[some], batch.params[some], batch.futures[some])
        states, horizons, params, _ = to_tensors(one, torch.device("cpu"))
        began = time.perf_counter()
        signal(states, horizons, params)
        taken.append(1e3 * (time.perf_counter() - began))
    return float(np.median(taken[1:]))


def cross_seed(study: Study) -> list[Row]:
    """Mean and deviation of the AUROC over seeds."""
    rows = []
    for split in SPLITS:
        for h in study.ladder:
            found = []
            for seed in study.seeds:
                cell = study.cell(split, h, seed=seed)
                found.append(auroc_interval(cell.scores[STEP], cell.rmse, np.arange(len(cell.rmse)), draws=1).value)
            mean, deviation = float(np.mean(found)), float(np.std(found, ddof=1)) if len(found) > 1 else float("nan")
            rows.append(Row(STEP, h, mean, split, mean - deviation, mean + deviation))
            rows.append(Row("first seed", h, found[0], split))
    return rows


def beyond(study: Study) -> list[Row]:
    """AUROC at horizons that no training has seen."""
    horizons = BEYOND[study.system]
    rows = []
    for split in SPLITS:
        for h in horizons:
            cell = study.cell(split, h, horizons=None if h in study.ladder else horizons)
            rows.append(of_interval(STEP, h, auroc_interval(cell.scores[STEP], cell.rmse, np.arange(len(cell.rmse))), split))
    return rows


def compared(study: Study, names: Sequence[str], horizons: Sequence[int]) -> list[Row]:
    """AUROC on test data of those signals that apply."""
    makers = {name: make for name, make in makers_of(study).items() if name in names}
    rows = []
    for h in horizons:
        cell = study.cell("test", h, makers)
        each = np.arange(len(cell.rmse))
        rows += [of_interval(name, h, auroc_interval(cell.scores[name], cell.rmse, each)) for name in names if name in makers]
    return rows


def makers_of(study: Study) -> dict[str, Callable[[], TrustSignal]]:
    """All signals of the study's first model; an ensemble where there are several seeds."""
    surrogate = study.surrogate()

    def others() -> list[Surrogate]:
        return [study.surrogate(seed=seed) for seed in study.seeds[1:]]

    def head_pairs() -> Pairs:
        return study.training_pairs(4 if study.environment.spec.grid else 128)

    makers = signal_makers(
        surrogate, study.environment, others, head_pairs, lambda: study.pairs("val", study.ladder), study.setting.head_steps
    )
    if len(study.seeds) < 2:
        del makers["ensemble"]
    return makers


# What does the gate spare?


def cuts(study: Study) -> list[Row]:
    """Mode 2 at q = 0.75 over horizons and splits, with frozen thresholds and with those of the paper's protocol."""
    calibration = study.calibration()
    rows = []
    for split in SPLITS:
        for h in study.ladder:
            cell = study.cell(split, h)
            own = cell.scores[STEP]
            frozen = cut_above(own, cell.rmse, calibration.threshold(h, Q))
            rows.append(of_interval("AUROC", h, auroc_interval(own, cell.rmse, np.arange(len(own))), split))
            rows.append(of_interval("RMSE of mode 1", h, mean_interval(cell.rmse), split))
            relative = zip(("nRMSE", "VRMSE"), cell.relative, strict=True)
            rows += [Row(f"{name} of mode 1", h, value, split) for name, value in relative]
            rows += [
                Row(name, h, value, split)
                for name, value in {
                    "deferred, frozen threshold": frozen.deferral,
                    "cut, frozen threshold": frozen.cut,
                    "cut, random": frozen.deferral,
                    "cut, oracle": cut_matched(cell.rmse, cell.rmse, 1 - frozen.deferral).cut,
                    "cut, oracle at q": cut_matched(cell.rmse, cell.rmse, Q).cut,
                }.items()
            ]
            rows.append(of_interval("cut, matched q", h, cut_interval(own, cell.rmse, Q), split))
    return rows


def mode2(study: Study) -> list[Row]:
    """The same on test data at the longest horizon, with the speed that is left."""
    rows = [row for row in cuts(study) if row.split == "test" and row.x == LONGEST]
    price = price_of(study, LONGEST)
    deferral = next(row.value for row in rows if row.method.startswith("deferred"))
    gated = price["gated"] + deferral * price["compiled"]
    rows.append(Row("speed-up over the compiled solver", LONGEST, price["compiled"] / gated))
    if price["numpy"]:
        slow = price["gated"] + deferral * price["numpy"]
        rows.append(Row("speed-up over the NumPy twin", LONGEST, price["numpy"] / slow))
    return rows


def q_sweep(study: Study) -> list[Row]:
    """The cut over the keep fraction, at the longest horizon; the floor is what blind deferral cuts."""
    calibration = study.calibration()
    rows = []
    for split in SPLITS:
        cell = study.cell(split, LONGEST)
        own = cell.scores[STEP]
        for q in KEEP:
            frozen = cut_above(own, cell.rmse, calibration.threshold(LONGEST, q))
            rows += [
                of_interval("matched q", q, cut_interval(own, cell.rmse, q), split),
                Row("frozen threshold", q, frozen.cut, split),
                Row("deferred, frozen threshold", q, frozen.deferral, split),
                Row("random floor", q, 1 - q, split),
                Row("oracle", q, cut_matched(cell.rmse, cell.rmse, q).cut, split),
            ]
    return rows


def pareto(study: Study) -> list[Row]:
    """RMSE against speed-up, on test data at the longest horizon: x is the speed-up. Who defers blindly needs no error map."""
    calibration, price = study.calibration(), price_of(study, LONGEST)
    cell, rows = study.cell("test", LONGEST), []
    whole = float(cell.rmse.mean())
    for against in ("compiled", "numpy"):
        solver = price[against]
        if not solver:
            continue
        for q in (0.0, *KEEP, 1.0):
            frozen = cut_above(cell.scores[STEP], cell.rmse, calibration.threshold(LONGEST, q))
            oracle = cut_matched(cell.rmse, cell.rmse, 1 - frozen.deferral)
            for name, cut, base in (
                ("mode 2", frozen.cut, price["gated"]),
                ("random deferral", frozen.deferral, price["alone"]),
                ("oracle", oracle.cut, price["gated"]),
            ):
                speed = solver / (base + frozen.deferral * solver)
                rows.append(Row(f"{name}, against the {against} solver, q = {q:g}", speed, (1 - cut) * whole))
        rows.append(Row(f"mode 1, against the {against} solver", solver / price["alone"], whole))
    return rows


# How fast is it?


def speedup(study: Study) -> list[Row]:
    """Mode 1 over horizons, one state at a time on the same cores, against the compiled solver and its NumPy twin."""
    rows = []
    for h in study.environment.spec.horizons:
        price = price_of(study, h)
        rows.append(Row("ms, mode 1", h, price["alone"]))
        for name, against in (("compiled solver", "compiled"), ("NumPy twin", "numpy")):
            if price[against]:
                rows.append(Row(f"ms, {name}", h, price[against]))
                rows.append(Row(f"against the {name}", h, price[against] / price["alone"]))
    return rows


def price_of(study: Study, horizon: int) -> dict[str, float]:
    """Way to answer -> milliseconds per state; 0 for a twin that there is not."""
    found: dict[str, float] = study.remember(("price", horizon), partial(prices, study, horizon))
    return found


def prices(study: Study, horizon: int) -> dict[str, float]:
    """One state at a time, the same states at each horizon: medians of calls that take turns, after a warm-up."""
    env = study.environment
    model = HybridModel(study.surrogate(), study.calibration(), env.solve)
    batch = study.pairs("test", study.ladder)[LONGEST]
    starts = Starts(batch.states[:PRICED].astype(float), batch.params[:PRICED].astype(float))

    def gated(states: np.ndarray, horizon: int, params: np.ndarray) -> tuple[np.ndarray, None]:
        return model.predict(states, horizon, params, mode=2, threshold=np.inf).state, None

    ways = [
        Method("compiled", "reference", "", solver_answer(env)),
        Method("alone", "mode 1", "", surrogate_answer(model)),
        Method("gated", "mode 2", "", gated),
    ]
    if has_twin(env):
        ways.append(Method("numpy", "twin", "", twin_answer(env)))
    looks = {way: look_at(way, starts.part(0, 1 if way.kind.startswith("mode") else PRICED), horizon) for way in ways}
    times = times_alone(looks, starts, horizon)
    found = {way.name: 1e3 * float(took.mean()) for way, took in times.items()}
    if has_twin(env):
        found["numpy"] *= fairness(times[ways[0]], len(times[ways[-1]]))
    return {"numpy": 0.0} | found
