"""Numbers that judge predictions, and signals about predictions."""

from typing import NamedTuple

import numpy as np

TINY = 1e-12


class Interval(NamedTuple):
    """A value with its 95 % interval."""

    value: float
    low: float
    high: float


def auroc(scores: np.ndarray, errors: np.ndarray, quantile: float = 0.75) -> float:
    """How well `scores` pick out the errors above their `quantile`: 1 is perfect, 0.5 chance; nan if all errors are equal."""
    return _auroc(scores, errors > np.quantile(errors, quantile))


def _auroc(scores: np.ndarray, large: np.ndarray) -> float:
    return float(weighted_auroc(scores, large, np.ones((1, len(scores))))[0])


def weighted_auroc(scores: np.ndarray, large: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """AUROC for many weightings (draws, answers) of the same answers at once; ties count half, nan is the highest score.

    It is nan where all are large, or none.
    """
    order = np.argsort(scores)
    starts = np.flatnonzero(np.diff(scores[order], prepend=-np.inf))  # of groups of equal scores
    above, below = (np.add.reduceat(weights[:, order] * which[order], starts, axis=1, dtype=float) for which in (large, ~large))
    lower = np.cumsum(below, axis=1) - below / 2
    with np.errstate(invalid="ignore"):
        return (above * lower).sum(axis=1) / (above.sum(axis=1) * below.sum(axis=1))


def auroc_interval(
    scores: np.ndarray, errors: np.ndarray, groups: np.ndarray, draws: int = 500, seed: int = 0, quantile: float = 0.75
) -> Interval:
    """AUROC with a bootstrap interval: whole groups (trajectories) are drawn, since their answers are alike."""
    large = errors > np.quantile(errors, quantile)
    value = auroc(scores, errors, quantile)
    found = weighted_auroc(scores, large, bootstrap_weights(groups, draws, seed))
    found = found[np.isfinite(found)]
    low, high = np.percentile(found, (2.5, 97.5)) if len(found) else (np.nan, np.nan)
    return Interval(value, float(low), float(high))


def bootstrap_weights(groups: np.ndarray, draws: int, seed: int = 0) -> np.ndarray:
    """How often each answer is drawn (draws, answers) when as many groups as there are, are drawn with replacement."""
    _, member = np.unique(groups, return_inverse=True)
    count = int(member.max()) + 1
    rng = np.random.default_rng(seed)
    return rng.multinomial(count, np.full(count, 1 / count), size=draws)[:, member]


def mean_interval(values: np.ndarray, groups: np.ndarray | None = None, draws: int = 500, seed: int = 0) -> Interval:
    """A mean with its bootstrap interval over groups."""
    weights = bootstrap_weights(np.arange(len(values)) if groups is None else groups, draws, seed)
    low, high = np.percentile((weights * values).sum(axis=1) / weights.sum(axis=1), (2.5, 97.5))
    return Interval(float(values.mean()), float(low), float(high))


def auroc_at_tolerance(scores: np.ndarray, errors: np.ndarray, tolerance: float) -> float:
    """How well `scores` pick out the errors above a fixed tolerance; nan where all are above, or all below."""
    return _auroc(scores, errors > tolerance)


def risk_coverage(scores: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """Mean error of the k answers with the lowest scores, for k = 1 ... all of them."""
    return np.cumsum(errors[np.argsort(scores, kind="stable")]) / np.arange(1, len(errors) + 1)


def aurc(scores: np.ndarray, errors: np.ndarray) -> float:
    """Area under the risk-coverage curve: the mean error over all coverages, small is good."""
    return float(risk_coverage(scores, errors).mean())


def excess_aurc(scores: np.ndarray, errors: np.ndarray) -> float:
    """The same beyond the oracle, who ranks by the error itself."""
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


class Cut(NamedTuple):
    """What mode 2 spares: a share `deferral` goes to the solver, and the trajectory-mean RMSE falls by the share `cut`."""

    deferral: float
    cut: float


def cut_above(scores: np.ndarray, rmse: np.ndarray, threshold: float) -> Cut:
    """Deferring every answer with a score above the threshold: the solver's answer has no error."""
    return _cut(rmse, scores <= threshold)  # so that nan is deferred


def cut_matched(scores: np.ndarray, rmse: np.ndarray, q: float) -> Cut:
    """Deferring exactly the share 1 - q with the highest scores: the paper's protocol, whose threshold sees the test data.

    With scores = rmse this is the oracle.
    """
    kept = np.zeros(len(scores), bool)
    kept[np.argsort(scores, kind="stable")[: round(q * len(scores))]] = True
    return _cut(rmse, kept)


def cut_interval(scores: np.ndarray, rmse: np.ndarray, q: float, draws: int = 500, seed: int = 0) -> Interval:
    """The cut of `cut_matched` with a bootstrap interval over trajectories, of which each row is one."""
    rows = np.random.default_rng(seed).integers(len(rmse), size=(draws, len(rmse)))
    ranked = np.take_along_axis(rmse[rows], np.argsort(scores[rows], axis=1, kind="stable"), axis=1)
    found = 1 - ranked[:, : round(q * len(rmse))].sum(axis=1) / np.maximum(ranked.sum(axis=1), TINY)
    return Interval(cut_matched(scores, rmse, q).cut, *(float(end) for end in np.percentile(found, (2.5, 97.5))))


def cut_random(deferral: float) -> Cut:
    """Deferring that share blindly, on average over draws."""
    return Cut(deferral, deferral)


def _cut(rmse: np.ndarray, kept: np.ndarray) -> Cut:
    total = float(rmse.sum())
    return Cut(1 - float(kept.mean()), 1 - float(rmse[kept].sum()) / total if total else 0.0)
