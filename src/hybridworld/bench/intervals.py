"""95 % intervals of means, ratios and shares. The unit of evidence is the trajectory: its answers are alike.

The plain percentile bootstrap is too narrow for few trajectories and skewed errors. Here a standard error comes from the
sums per trajectory, on a scale on which the estimate is nearly normal (log for means, logit for shares), and the quantile is
that of Student's t or of the studentised bootstrap, whichever is larger. `tests/bench/coverage_of_intervals.py` simulates
how often these intervals hold the true value.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit
from scipy.stats import t as student

LEVEL = 0.95
DRAWS = 1_000
FEWEST = 2.0
"""Degrees of freedom of Student's t are never fewer where there are more than two trajectories."""


class Interval(NamedTuple):
    """A value with its 95 % interval."""

    value: float
    low: float
    high: float


class Scale(NamedTuple):
    """A scale on which an estimate is nearly normal."""

    forward: Callable[[Any], Any]
    inverse: Callable[[Any], Any]
    slope: Callable[[Any], Any]
    """The derivative of `forward`."""
    lowest: float
    highest: float

    def around(self, value: float, error: float, below: float, above: float) -> Interval:
        """From `below` standard errors below the value to `above` standard errors above it."""
        centre, error = self.forward(value), error * self.slope(value)
        return Interval(value, float(self.inverse(centre - below * error)), float(self.inverse(centre + above * error)))


PLAIN = Scale(lambda x: x, lambda y: y, lambda x: np.ones_like(x), -np.inf, np.inf)
LOG = Scale(np.log, np.exp, lambda x: 1 / x, 0.0, np.inf)
LOGIT = Scale(logit, expit, lambda x: 1 / (x * (1 - x)), 0.0, 1.0)


def mean_interval(values: np.ndarray, groups: np.ndarray | None = None, draws: int = DRAWS, seed: int = 0) -> Interval:
    """The mean of the values; each is a trajectory of its own unless `groups` says otherwise."""
    scale = LOG if (values >= 0).all() and (values > 0).any() else PLAIN
    return ratio_interval(values, np.ones(len(values)), groups, scale, np.abs(values), draws=draws, seed=seed)


def ratio_interval(
    parts: np.ndarray,
    wholes: np.ndarray,
    groups: np.ndarray | None = None,
    scale: Scale = LOGIT,
    weights: np.ndarray | None = None,
    most: float = np.inf,
    draws: int = DRAWS,
    seed: int = 0,
) -> Interval:
    """The sum of `parts` over the sum of `wholes`.

    Student's t has as many degrees of freedom as there are trajectories that carry the sum of `weights` (default: `wholes`),
    less one: few if a few large errors outweigh the rest. `most` limits them further.
    """
    part, whole, weight = sums_by_group(groups, parts, wholes, wholes if weights is None else weights)
    count = len(part)
    sums = np.stack([part, whole, part * part, part * whole, whole * whole], axis=1)
    value, error = _ratio(sums.sum(axis=0), count)
    if not np.isfinite(value):
        return Interval(float(value), np.nan, np.nan)
    if count < 2:
        return Interval(float(value), scale.lowest, scale.highest)
    if not scale.lowest < value < scale.highest or error == 0:
        return _at_the_edge(float(value), count, scale)
    carrying = min(weight.sum() ** 2 / (weight**2).sum(), most) - 1
    below = above = student.ppf((1 + LEVEL) / 2, np.clip(carrying, min(FEWEST, count - 1), count - 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn, errors = _ratio(_drawn(count, draws, seed) @ sums, count)
        ratios = (scale.forward(drawn) - scale.forward(value)) / (errors * scale.slope(drawn))
    ratios = ratios[np.isfinite(ratios)]  # a draw may hold equal trajectories only
    if len(ratios) > draws / 2:
        most_ever = student.ppf((1 + LEVEL) / 2, 1)  # a few draws of equal trajectories are no reason for more
        lowest, highest = np.clip(np.quantile(ratios, ((1 - LEVEL) / 2, (1 + LEVEL) / 2)), -most_ever, most_ever)
        below, above = max(below, highest), max(above, -lowest)
    return scale.around(float(value), float(error), below, above)


def share_interval(flags: np.ndarray, groups: np.ndarray | None = None) -> Interval:
    """The share of flags that are set: Wilson's interval for as many independent flags as the trajectories are worth."""
    share = float(np.mean(flags))
    set_, size = sums_by_group(groups, np.asarray(flags, float), np.ones(len(flags)))
    count = len(size)
    if count < 2:
        return Interval(share, 0.0, 1.0)
    square = ((set_ - share * size) ** 2).sum() / size.sum() ** 2 * count / (count - 1)
    effective = min(share * (1 - share) / square, len(flags)) if square else count
    z2 = student.ppf((1 + LEVEL) / 2, count - 1) ** 2
    centre = (share + z2 / (2 * effective)) / (1 + z2 / effective)
    half = np.sqrt(z2 * (share * (1 - share) / effective + z2 / (4 * effective**2))) / (1 + z2 / effective)
    return Interval(share, min(share, max(0.0, float(centre - half))), max(share, min(1.0, float(centre + half))))


def sums_by_group(groups: np.ndarray | None, *columns: np.ndarray) -> list[np.ndarray]:
    """Each column summed within groups; without groups every row is one."""
    if groups is None:
        return [np.asarray(column, float) for column in columns]
    member = np.unique(groups, return_inverse=True)[1]
    return [np.bincount(member, column) for column in columns]


def bootstrap_weights(groups: np.ndarray, draws: int, seed: int = 0) -> np.ndarray:
    """How often each answer is drawn (draws, answers) when as many groups as there are, are drawn with replacement."""
    member = np.unique(groups, return_inverse=True)[1]
    return _drawn(int(member.max()) + 1, draws, seed)[:, member]


@lru_cache(4)  # a table asks for the same draws again and again
def _drawn(count: int, draws: int, seed: int) -> np.ndarray:
    """How often each of `count` groups is drawn: (draws, count), as floating-point numbers, which multiply faster."""
    drawn = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), size=draws).astype(float)
    drawn.flags.writeable = False
    return drawn


def _ratio(sums: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """A ratio and its standard error, from the sums over trajectories of part, whole, part², part * whole, whole²."""
    part, whole, part2, both, whole2 = np.moveaxis(sums, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = part / whole
        square = (part2 - 2 * ratio * both + ratio**2 * whole2) / whole**2 * count / max(count - 1, 1)
        return ratio, np.sqrt(np.maximum(square, 0))


def _at_the_edge(value: float, count: int, scale: Scale) -> Interval:
    """Nothing varies, so there is no standard error: for shares, what Wilson's interval says about 0 or all of `count`."""
    if scale is not LOGIT:
        return Interval(value, value, value)
    z2 = student.ppf((1 + LEVEL) / 2, count - 1) ** 2
    room = z2 / (count + z2)
    return Interval(value, max(value - room, 0.0), min(value + room, 1.0))
