"""Intervals of statistics that are made of other statistics.

All are of 95 %. Ends that are not a number mean: there is a value, but nothing says how sure it is.
"""

from collections.abc import Sequence
from functools import cache

import numpy as np
from scipy.stats import beta, chi2, norm, rankdata, t

from hybridworld.bench.intervals import Interval, bootstrap_weights, ratio_interval
from hybridworld.bench.metrics import weighted_auroc

LEVEL = 0.95
TAIL = (1 - LEVEL) / 2
DRAWS = 500


def bare(value: float) -> Interval:
    """A value without an interval."""
    return Interval(float(value), float("nan"), float("nan"))


def widened(found: Interval, looks: int) -> Interval:
    """The interval such that all of `looks` intervals hold together in 95 % of cases (Bonferroni, by normal quantiles)."""
    more, (value, low, high) = _width(looks) / _width(1) - 1, found
    return Interval(value, low - more * (value - low), high + more * (high - value))  # never narrower, whatever the rounding


@cache
def _width(looks: int) -> float:
    return float(norm.ppf(1 - TAIL / looks))


@cache
def _student(freedom: int) -> float:
    return float(t.ppf(1 - TAIL, freedom))


def mean_of(found: Sequence[Interval]) -> Interval:
    """The mean of values that may depend on each other in any way: the means of the ends are wide enough for that."""
    return Interval(*(float(np.mean(each)) for each in zip(*found, strict=True)))


def median_of(found: Sequence[Interval]) -> Interval:
    """The median of values that may depend on each other: the medians of the ends."""
    return Interval(*(float(np.median(each)) for each in zip(*found, strict=True)))


def sum_of(found: Sequence[Interval], weights: Sequence[float] | None = None) -> Interval:
    """The weighted sum of independent values: distances to the ends add up in squares (MOVER)."""
    values, lows, highs = np.array(found, float).T
    factors = np.ones(len(values)) if weights is None else np.array(weights, float)
    down, up = factors * (values - lows), factors * (highs - values)
    total = float(factors @ values)
    below, above = np.where(factors > 0, down, up), np.where(factors > 0, up, down)
    return Interval(total, total - float(np.sqrt(below @ below)), total + float(np.sqrt(above @ above)))


def difference(one: Interval, other: Interval) -> Interval:
    """One less the other, where they are independent."""
    return sum_of([one, other], [1, -1])


def ratio(one: Interval, other: Interval) -> Interval:
    """One over the other, where they are independent and positive."""
    with np.errstate(invalid="ignore", divide="ignore"):
        logs = [Interval(*(float(np.log(end)) for end in each)) for each in (one, other)]
    return Interval(*(float(np.exp(end)) for end in difference(*logs)))


def over_runs(values: Sequence[float]) -> Interval:
    """The mean over runs (seeds, states) by Student's t; one run has no interval."""
    count, mean = len(values), float(np.mean(values))
    if count < 2:
        return bare(mean)
    half = float(_student(count - 1) * np.std(values, ddof=1) / np.sqrt(count))
    return Interval(mean, mean - half, mean + half)


def geometric_mean(values: Sequence[float]) -> Interval:
    """The geometric mean over runs, with an interval by Student's t of the logarithms."""
    return Interval(*(float(np.exp(end)) for end in over_runs(np.log(values).tolist())))


def ratio_over_runs(above: Sequence[float], below: Sequence[float]) -> Interval:
    """The geometric mean of paired ratios."""
    return geometric_mean((np.array(above, float) / np.array(below, float)).tolist())


def deviation_of(values: Sequence[float]) -> Interval:
    """The standard deviation of a few normal values, by the chi-square distribution; one value has none."""
    count = len(values)
    if count < 2:
        return bare(float("nan"))
    deviation = float(np.std(values, ddof=1))
    low, high = (deviation * float(np.sqrt((count - 1) / chi2.ppf(p, count - 1))) for p in (1 - TAIL, TAIL))
    return Interval(deviation, low, high)


def share_of(hits: int, count: int) -> Interval:
    """A share with its exact interval (Clopper and Pearson)."""
    low = float(beta.ppf(TAIL, hits, count - hits + 1)) if hits else 0.0
    high = float(beta.ppf(1 - TAIL, hits + 1, count - hits)) if hits < count else 1.0
    return Interval(hits / count, low, high)


def correlation_of(value: float, count: int) -> Interval:
    """A rank correlation over `count` independent pairs, by Fisher's transformation (Bonett and Wright)."""
    if count < 5 or not np.isfinite(value):
        return bare(value)
    half = norm.ppf(1 - TAIL) * np.sqrt((1 + value**2 / 2) / (count - 3))
    inside = np.arctanh(np.clip(value, -0.999999, 0.999999))
    return Interval(value, float(np.tanh(inside - half)), float(np.tanh(inside + half)))


def cut_from(before: np.ndarray, after: np.ndarray) -> Interval:
    """The share of the mean error that mode 2 takes away: errors of the same trajectories before and after."""
    return ratio_interval(before - after, before)


def mean_auroc_lead(
    own: Sequence[np.ndarray], other: Sequence[np.ndarray], errors: Sequence[np.ndarray], draws: int = DRAWS, seed: int = 0
) -> Interval:
    """The mean over cells of AUROC(own) - AUROC(other): trajectories are drawn once for all cells and both signals.

    The standard error is that of the bootstrap; Student's t has as many degrees of freedom as there are large errors, less one.
    """
    each = np.arange(len(errors[0]))
    weights = np.concatenate([np.ones((1, len(each))), bootstrap_weights(each, draws, seed)])
    leads, fewest = [], len(each)
    for mine, rival, error in zip(own, other, errors, strict=True):
        large = error > np.quantile(error, 0.75)
        fewest = min(fewest, int(large.sum()))
        leads.append(weighted_auroc(mine, large, weights) - weighted_auroc(rival, large, weights))
    value, *drawn = np.mean(leads, axis=0)
    if fewest < 2 or not np.isfinite(value):
        return bare(float(value))
    half = float(_student(fewest - 1) * np.nanstd(drawn, ddof=1))
    return Interval(float(value), float(value) - half, float(value) + half)


def auroc_of_labels(scores: np.ndarray, labels: np.ndarray, draws: int = 2_000, seed: int = 0) -> Interval:
    """How well scores pick out labelled answers; the ends are as far as 95 % of random labels get from chance.

    That is exact at chance, also for a single label.
    """
    if labels.all() or not labels.any():
        return bare(float("nan"))
    ranks, hits = rankdata(scores), int(labels.sum())
    lowest, wrong = hits * (hits + 1) / 2, hits * (len(scores) - hits)  # the smallest sum of ranks, and all pairs

    def auroc(chosen: np.ndarray) -> np.ndarray:
        return (chosen.sum(axis=-1) - lowest) / wrong

    rng = np.random.default_rng(seed)
    drawn = np.stack([rng.choice(ranks, hits, replace=False, shuffle=False) for _ in range(draws)])
    reach = float(np.quantile(np.abs(auroc(drawn) - 0.5), LEVEL, method="higher"))
    value = float(auroc(ranks[labels]))
    return Interval(value, value - reach, value + reach)
