"""How far can a model be trusted? Signals against each other, the gate, the bounds, the alarm, the price.

Thresholds come from validation data. Test pairs judge, and choose nothing; the unit of every interval is the trajectory.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from hybridworld.bench.alarm import alarm_rate
from hybridworld.bench.metrics import Interval, auroc_interval, cut_interval, cut_matched, cut_random, error_left, frozen_cut
from hybridworld.data.dataset import Dataset, Split
from hybridworld.data.pairs import Batch, Pairs
from hybridworld.deploy.gate import FALSE_ALARMS
from hybridworld.deploy.hybrid import HybridModel
from hybridworld.errors import InvalidInput
from hybridworld.physics.environment import Environment
from hybridworld.physics.spec import StateSpec
from hybridworld.surrogate.surrogate import Surrogate
from hybridworld.surrogate.validation import validation_pairs
from hybridworld.trust.bounds import ErrorBound, Residuals
from hybridworld.trust.calibration import Calibration, flagged
from hybridworld.trust.judge import Judged, judge
from hybridworld.trust.registry import find_signal, signals_for
from hybridworld.trust.signal import Ingredients, TrustSignal
from hybridworld.trust.step_doubling import StepDoubling

SPLITS_OF_DATA, WINDOWS = 20, 500
ENDS: dict[str, Callable[..., Any]] = {"lowest": np.min, "mean": np.mean, "highest": np.max}


# The whole measurement.


def measure_trust(
    surrogates: Sequence[Surrogate],
    horizons: Sequence[int],
    environment: Environment | None,
    dataset: Dataset,
    count: int,
    q: float = 0.75,
    coverage: float = 0.9,
    tell: Callable[[str, int, int], None] = lambda what, done, total: None,
    calibration: Calibration | None = None,
    head_steps: int = 2_000,
    head_seconds: float = np.inf,
    signal: str = StepDoubling.name,
    rivals: bool = True,
) -> dict[str, Any]:
    """All tables as plain data, about the first of the surrogates; the others are members of its ensemble.

    The gate, the bounds and the alarm are those of `signal`, and thresholds those of its `calibration`, which a model's file
    holds; without it, those of the dataset's `val`. Pairs begin at random frames, so that thresholds are those of later frames.
    Without `rivals` that signal and step-doubling are asked: minutes instead of hours on a large grid, and `val` is not needed.
    `head_steps` and `head_seconds` limit the training of the error head: give those of the surrogate's own training.
    """
    surrogate, splits = surrogates[0], [split for split in dataset.splits if split not in ("train", "val")]
    if "test" not in splits:
        raise InvalidInput(f"The dataset has no split 'test' to judge with: there is {', '.join(dataset.splits)}.")
    fits = rivals or calibration is None
    validation = validation_pairs(dataset.source("val"), horizons, count, seed=1) if fits else {}
    size = 4 if surrogate.spec.is_field else 32 if surrogate.spec.objects else 128
    given = Ingredients(
        surrogate,
        environment,
        (lambda: surrogates[1:]) if len(surrogates) > 1 else None,
        (lambda: Pairs(dataset.source("train"), size, 1, horizons)) if "train" in dataset.splits else None,
        lambda: validation,
        head_steps,
        head_seconds,
    )
    chosen = find_signal(signal, given)
    makers = signals_for(given) if rivals else StepDoubling.offers(given)
    signals = [chosen, *(make() for name, make in makers.items() if name != chosen.name)]
    if calibration is None:
        known = {float(h): judge(surrogate, chosen, batch) for h, batch in validation.items()}
        calibration = Calibration({h: np.sort(each.scores) for h, each in known.items()})
    cells: dict[str, dict[int, Cell]] = {}
    for split in splits:
        source, cells[split] = dataset.source(split), {}
        for horizon, batch in validation_pairs(source, horizons, count, seed=0).items():
            tell(f"{split}, h = {horizon}", sum(map(len, cells.values())), len(splits) * len(horizons))
            cells[split][horizon] = judge_cell(surrogate, signals, source, batch)
        if split == "test":
            longest = batch
    covered = coverages(cells["test"], chosen.name, coverage)
    price = {}
    if environment is not None:
        gated = HybridModel(surrogate, calibration, environment.solve, signal=chosen)
        price = overhead(gated, longest, horizons[-1])
    return {
        "signal": chosen.name,
        "pairs": count,
        "trajectories": {split: min(count, dataset.count(split)) for split in (*["val"] * fits, *splits)},
        "calibrated_by": calibration.size,
        "q": q,
        "costs": {signal.name: asdict(signal.cost) for signal in signals},
        "auroc": {split: {h: cell.aurocs() for h, cell in row.items()} for split, row in cells.items()},
        "auroc_within_kinds": {
            split: {h: cell.aurocs(within_kinds=True) for h, cell in row.items()}
            for split, row in cells.items()
            if row[horizons[0]].kinds is not None
        },
        "auroc_of_objects": {
            split: {h: cell.aurocs_of_objects() for h, cell in row.items()}
            for split, row in cells.items()
            if surrogate.spec.objects
        },
        "mode2": {
            split: {h: mode2_of(cell, chosen.name, calibration.threshold(h, q, beginning=False), q) for h, cell in row.items()}
            for split, row in cells.items()
        },
        "bounds": {
            "coverage": coverage,
            "by_horizon": {name: pick(covered, axis=0).tolist() for name, pick in ENDS.items()},
            "all": {name: float(pick(covered.mean(axis=1))) for name, pick in ENDS.items()},
        },
        "alarms": {"half against half": false_alarm_rate(cells["test"], chosen.name)}
        | {
            split: alarm_rate(calibration, {h: cell.one_per_trajectory(chosen.name) for h, cell in row.items()}, WINDOWS)
            for split, row in cells.items()
        },
        "overhead": price,
    }


# Its parts.


@dataclass(frozen=True)
class Cell:
    """One split and horizon: the judged answers of each signal, and from which trajectory each pair is."""

    judged: Mapping[str, Judged]
    groups: np.ndarray
    kinds: np.ndarray | None = None
    """The kind of initial state of each pair; None where there is one kind, or the data do not tell."""
    free: np.ndarray | None = None
    """Of sets of objects: which objects of each pair (pairs, objects) are not driven by an action."""

    def one_per_trajectory(self, name: str) -> np.ndarray:
        """The score of the first answer of each trajectory."""
        return self.judged[name].scores[np.unique(self.groups, return_index=True)[1]]

    def aurocs(self, within_kinds: bool = False) -> dict[str, Interval]:
        """How well each signal picks out the worst quarter: of all answers, or of those of each kind, averaged over kinds."""
        kinds = self.kinds if within_kinds else None
        return {name: auroc_interval(each.scores, each.mse, self.groups, kinds=kinds) for name, each in self.judged.items()}

    def aurocs_of_objects(self) -> dict[str, Interval]:
        """How well the maps pick out the worst quarter of all free objects; signals with one number per scene are left out."""
        assert self.free is not None
        chosen, groups = self.free.ravel(), np.broadcast_to(self.groups[:, None], self.free.shape)[self.free]
        mapped = {name: each.cells[chosen, 1:].T for name, each in self.judged.items() if len(each.cells)}
        return {name: auroc_interval(scores, errors, groups) for name, (scores, errors) in mapped.items()}


def judge_cell(surrogate: Surrogate, signals: Sequence[TrustSignal], source: Split, batch: Batch) -> Cell:
    """Ask every signal about the same pairs, which `evaluation_pairs` drew: trajectories in turn."""
    groups, kinds = np.arange(len(batch.states)) % source.count, np.array(source.kinds)
    judged = {signal.name: judge(surrogate, signal, batch, cells=float(surrogate.spec.objects)) for signal in signals}
    return Cell(
        judged, groups, kinds[groups] if len(np.unique(kinds)) > 1 else None, free_objects(surrogate.spec, batch.states)
    )


def free_objects(spec: StateSpec, states: np.ndarray) -> np.ndarray | None:
    """Which objects (batch, objects) are not driven by an action; None of states that are no sets of objects."""
    if not spec.objects:
        return None
    if spec.driven is None:
        return np.ones((len(states), *spec.grid), bool)
    marker, value = spec.driven
    return np.asarray(np.round(states[:, spec.channels.index(marker)]) != value)


def mode2_of(cell: Cell, name: str, threshold: float, q: float) -> dict[str, Any]:
    """Mode 2 with the frozen threshold, beside blind deferral and what is not to be had in use: matched q, and the oracle."""
    scores, rmse = cell.judged[name].scores, np.sqrt(cell.judged[name].mse)
    frozen, deferred = frozen_cut(scores, rmse, threshold, cell.groups), flagged(scores, threshold)
    oracle = np.argsort(np.argsort(rmse)) >= len(rmse) - deferred.sum()
    return {
        "rmse": float(rmse.mean()),
        "deferred": frozen.deferral,
        "frozen": frozen.cut,
        "share_of_oracle": frozen.share,
        "random": cut_random(frozen.deferral.value).cut,
        "oracle": cut_matched(rmse, rmse, 1 - frozen.deferral.value).cut,
        "matched": cut_interval(scores, rmse, q, cell.groups),
        "oracle_at_q": cut_matched(rmse, rmse, q).cut,
        "percentile": {
            "mode 1": error_left(rmse, np.zeros_like(deferred)),
            "mode 2": error_left(rmse, deferred),
            "oracle": error_left(rmse, oracle),
        },
    }


def coverages(cells: Mapping[int, Cell], name: str, coverage: float = 0.9, seed: int = 0) -> np.ndarray:
    """(splits, horizons): the share of errors below their bound, when half of the trajectories calibrate and half test."""
    rng = np.random.default_rng(seed)
    found = np.empty((SPLITS_OF_DATA, len(cells)))
    count = int(max(cell.groups.max() for cell in cells.values())) + 1
    for row in found:
        calibrating = rng.permutation(count) < count // 2
        halves = {h: calibrating[cell.groups] for h, cell in cells.items()}
        judged = {h: cell.judged[name] for h, cell in cells.items()}
        bound = ErrorBound(
            Residuals({h: judged[h].scores[halves[h]] for h in cells}, {h: judged[h].errors[halves[h]] for h in cells})
        )
        for column, h in enumerate(cells):
            rest = ~halves[h]
            row[column] = np.mean(judged[h].errors[rest] <= bound.of_answers(judged[h].scores[rest], h, coverage))
    return found


def false_alarm_rate(cells: Mapping[int, Cell], name: str, seed: int = 0, false_alarms: float = FALSE_ALARMS) -> float:
    """The rate of alarms without drift: over random splits, half of the trajectories calibrates and the rest is watched."""
    rng = np.random.default_rng(seed)
    scores = {h: cell.one_per_trajectory(name) for h, cell in cells.items()}
    count = len(next(iter(scores.values())))
    rates = []
    for split in range(SPLITS_OF_DATA):
        half = rng.permutation(count) < count // 2
        known = Calibration({h: np.sort(each[half]) for h, each in scores.items()})
        rates.append(alarm_rate(known, {h: each[~half] for h, each in scores.items()}, WINDOWS, split, false_alarms))
    return float(np.mean(rates))


def overhead(
    model: HybridModel, batch: Batch, horizon: int, sizes: Sequence[int] = (1, 64), repeats: int = 200, seconds_each: float = 20
) -> dict[int, float]:
    """Batch size -> mode 2 with nothing deferred over mode 1: medians of calls that take turns, at most so many seconds."""
    found = {}
    for size in sizes:
        ends = time.perf_counter() + seconds_each
        states, params = batch.states[:size].astype(np.float64), batch.params[:size].astype(np.float64)
        seconds: dict[int, list[float]] = {1: [], 2: []}
        for turn in range(repeats + 1):
            for mode, times in seconds.items():
                began = time.perf_counter()
                model.predict(states, horizon, params, mode, threshold=np.inf)
                if turn:  # the first ones warm up
                    times.append(time.perf_counter() - began)
            if turn and time.perf_counter() > ends:
                break
        found[size] = float(np.median(seconds[2]) / np.median(seconds[1]))
    return found
