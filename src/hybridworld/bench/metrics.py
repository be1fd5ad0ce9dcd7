"""Numbers that judge predictions, and signals about predictions."""

from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

from hybridworld.bench.intervals import LEVEL, LOGIT, Interval, ratio_interval, share_interval, sums_by_group
from hybridworld.bench.intervals import bootstrap_weights as bootstrap_weights
from hybridworld.bench.intervals import mean_interval as mean_interval
from hybridworld.trust.calibration import flagged

TINY = 1e-12


# How well do scores pick out large errors?


def auroc(scores: np.ndarray, errors: np.ndarray, quantile: float = 0.75) -> float:
    """How well `scores` pick out the errors above their `quantile`: 1 is perfect, 0.5 chance; nan if all errors are equal."""
    return _auroc(scores, errors > np.quantile(errors, quantile))


def auroc_at_tolerance(scores: np.ndarray, errors: np.ndarray, tolerance: float) -> float:
    """How well `scores` pick out the errors above a fixed tolerance; nan where all are above, or all below."""
    return _auroc(scores, errors > tolerance)


def _auroc(scores: np.ndarray, large: np.ndarray) -> float:
    return float(weighted_auroc(scores, large, np.ones((1, len(scores))))[0])


def weighted_auroc(scores: np.ndarray, large: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """AUROC for many weightings (draws, answers) of the same answers at once; ties count half, nan is the highest score.

    It is nan where all are large, or none.
    """
    tier = _tiers(scores)
    order = np.argsort(tier)
    starts = np.flatnonzero(np.diff(tier[order], prepend=-1))  # of groups of equal scores
    above, below = (np.add.reduceat(weights[:, order] * which[order], starts, axis=1, dtype=float) for which in (large, ~large))
    lower = np.cumsum(below, axis=1) - below / 2
    with np.errstate(invalid="ignore"):
        return (above * lower).sum(axis=1) / (above.sum(axis=1) * below.sum(axis=1))


def _tiers(scores: np.ndarray) -> np.ndarray:
    """The rank of each score among the different ones: equal scores share it, infinite ones too, and nan has the highest."""
    return np.unique(scores, return_inverse=True)[1]


def auroc_interval(
    scores: np.ndarray,
    errors: np.ndarray,
    groups: np.ndarray | None = None,
    quantile: float = 0.75,
    kinds: np.ndarray | None = None,
) -> Interval:
    """AUROC with the interval of DeLong on the logit scale; groups (trajectories) are the unit, the quantile is estimated too.

    With `kinds` (one per answer), it is the mean over kinds, by their share, of the AUROC inside each: what a signal knows
    beyond the kind. A kind whose errors are all equal does not count.
    """
    members = [np.flatnonzero(kinds == kind) for kind in np.unique(kinds)] if kinds is not None else [np.arange(len(scores))]
    large = np.zeros(len(scores), bool)
    for rows in members:
        large[rows] = errors[rows] > np.quantile(errors[rows], quantile)
    members = [rows for rows in members if large[rows].any()]
    if not members:
        return Interval(np.nan, np.nan, np.nan)
    influence, value, total = np.zeros(len(scores)), 0.0, sum(map(len, members))
    for rows in members:
        within, shifts = _delong(scores[rows], errors[rows], large[rows])
        value += len(rows) / total * within
        influence[rows] = len(rows) / total * shifts
    counted = np.concatenate(members)
    return _on_logit_scale(value, influence[counted], large[counted], None if groups is None else groups[counted])


def _delong(scores: np.ndarray, errors: np.ndarray, large: np.ndarray) -> tuple[float, np.ndarray]:
    """AUROC, and by how much each answer moves it: through its place among the others, and through the quantile of errors."""
    tier = _tiers(scores)
    above, below = np.bincount(tier, large), np.bincount(tier, ~large)
    lower, higher = np.cumsum(below) - below / 2, above.sum() - np.cumsum(above) + above / 2
    places = np.where(large, lower[tier] / below.sum(), higher[tier] / above.sum())
    value, count = float(places[large].mean()), len(scores)
    shifts = (places - value) / np.where(large, large.sum(), count - large.sum())
    step, order = max(round(np.sqrt(count)), 1), np.argsort(errors, kind="stable")
    fewer, more = max(large.sum() - step, 1), min(large.sum() + step, count - 1)
    ends = []
    for chosen in (fewer, more):
        other = np.zeros(count, bool)
        other[order[count - chosen :]] = True
        ends.append(_auroc(scores, other))
    slope = (ends[1] - ends[0]) / max(more - fewer, 1)  # per answer that counts as large as well
    return value, shifts - slope * (large - large.mean())


def _on_logit_scale(value: float, influence: np.ndarray, large: np.ndarray, groups: np.ndarray | None) -> Interval:
    """An AUROC of exactly 1 is taken for one with half a wrong pair, and its error for at least that of one such pair."""
    shifts, with_large, with_small = sums_by_group(groups, influence, large, ~large)
    count = len(shifts)
    if count < 2:
        return Interval(value, 0.0, 1.0)
    pairs = float((with_large > 0).sum() * (with_small > 0).sum())
    centre = (value * pairs + 0.5) / (pairs + 1)
    error = np.sqrt(max((shifts**2).sum() * count / (count - 1), centre * (1 - centre) / pairs))
    width = student.ppf((1 + LEVEL) / 2, count - 1)
    _, low, high = LOGIT.around(centre, float(error), width, width)
    return Interval(value, min(low, value), max(high, value))


def risk_coverage(scores: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """Mean error of the k answers with the lowest scores, for k = 1 ... all of them."""
    return np.cumsum(errors[np.argsort(scores, kind="stable")]) / np.arange(1, len(errors) + 1)


def aurc(scores: np.ndarray, errors: np.ndarray) -> float:
    """Area under the risk-coverage curve: the mean error over all coverages, small is good."""
    return float(risk_coverage(scores, errors).mean())


def excess_aurc(scores: np.ndarray, errors: np.ndarray) -> float:
    """The AURC beyond that of the oracle, who ranks by the error itself."""
    return aurc(scores, errors) - aurc(errors, errors)


def relative_errors(prediction: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    """nRMSE and VRMSE: rms error over the rms and over the deviation of the truth, averaged over channels and fields.

    Of (batch, channels, *grid) each field has its own scale, as in The Well; state vectors share that of the batch. A channel
    that is zero, or constant, throughout has no relative error.
    """
    axes = tuple(range(2, truth.ndim)) or (0,)
    error = np.square(prediction - truth, dtype=np.float64).mean(axis=axes)
    scales = np.square(truth, dtype=np.float64).mean(axis=axes), truth.var(axis=axes, dtype=np.float64)
    nrmse, vrmse = (float(np.sqrt(error[scale > TINY] / scale[scale > TINY]).mean()) for scale in scales)
    return nrmse, vrmse


# What does mode 2 spare?


class Cut(NamedTuple):
    """What mode 2 spares: a share `deferral` goes to the solver, and the trajectory-mean RMSE falls by the share `cut`."""

    deferral: float
    cut: float


class FrozenCut(NamedTuple):
    """What mode 2 spares at a threshold that saw none of the answers, with intervals."""

    deferral: Interval
    cut: Interval
    share: Interval
    """The cut as a share of what the oracle cuts when it defers as many; nan if nothing is deferred."""


def cut_above(scores: np.ndarray, rmse: np.ndarray, threshold: float) -> Cut:
    """Deferring every answer with a score above the threshold: the solver's answer has no error."""
    return _cut(rmse, ~flagged(scores, threshold))


def frozen_cut(scores: np.ndarray, rmse: np.ndarray, threshold: float, groups: np.ndarray | None = None) -> FrozenCut:
    """What a threshold defers and cuts, with intervals over trajectories."""
    deferred = flagged(scores, threshold)
    deferral = share_interval(deferred, groups)
    cut = ratio_interval(rmse * deferred, rmse, groups)
    oracle = _cut_at(rmse, rmse, 1 - deferral.value, deferred)
    return FrozenCut(deferral, cut, ratio_interval(rmse * deferred, oracle, groups))


def cut_matched(scores: np.ndarray, rmse: np.ndarray, q: float) -> Cut:
    """Deferring exactly the share 1 - q with the highest scores: the paper's protocol, whose threshold sees the test data.

    With scores = rmse this is the oracle.
    """
    kept = np.zeros(len(scores), bool)
    kept[np.argsort(scores, kind="stable")[: round(q * len(scores))]] = True
    return _cut(rmse, kept)


def cut_interval(scores: np.ndarray, rmse: np.ndarray, q: float, groups: np.ndarray | None = None) -> Interval:
    """The cut of `cut_matched` with an interval over trajectories, the threshold being estimated too."""
    value = cut_matched(scores, rmse, q).cut
    if round(q * len(rmse)) in (0, len(rmse)):
        return Interval(value, value, value)
    trajectories = len(rmse) if groups is None else len(np.unique(groups))
    found = ratio_interval(_cut_at(scores, rmse, q), rmse, groups, most=min(q, 1 - q) * trajectories)
    return found._replace(value=value)


def _cut_at(scores: np.ndarray, rmse: np.ndarray, q: float, budget: np.ndarray | None = None) -> np.ndarray:
    """Numbers whose sum is the RMSE that matched q defers, and which vary as that sum does if the answers are drawn again.

    `budget` is what each answer adds to the number that may be deferred (default: the share 1 - q): one that is deferred
    without adding to it pushes another one below the threshold, so that only its excess over the RMSE there counts.
    """
    kept, near = round(q * len(rmse)), max(round(np.sqrt(len(rmse))), 1)
    order, deferred = np.argsort(scores, kind="stable"), np.ones(len(rmse))
    deferred[order[:kept]] = 0
    at_threshold = rmse[order[max(kept - near, 0) : kept + near]].mean()
    return rmse * deferred - at_threshold * (deferred - (deferred.mean() if budget is None else budget))


def cut_random(deferral: float) -> Cut:
    """Deferring that share blindly, on average over draws."""
    return Cut(deferral, deferral)


def error_left(rmse: np.ndarray, deferred: np.ndarray, percent: float = 95) -> float:
    """A percentile of the error once the deferred answers are the solver's, and so have none."""
    return float(np.percentile(np.where(deferred, 0.0, rmse), percent))


def _cut(rmse: np.ndarray, kept: np.ndarray) -> Cut:
    total = float(rmse.sum())
    return Cut(1 - float(kept.mean()), 1 - float(rmse[kept].sum()) / total if total else 0.0)
