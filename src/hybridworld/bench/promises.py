"""Do the promises of a calibration hold? Deferral, coverage and false alarms over fresh draws of trajectories.

Each draw calibrates one trained model anew, by the path that a user takes (`trust.calibrate`), and tests it on trajectories
that nothing has seen, at horizons on and between the calibrated ones. `band` is where a share lies in 95 % of draws if the
promise holds: with n trajectories that calibrate and m that test, the number of answers below a bound is beta-binomial.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import betabinom

from hybridworld.bench.alarm import alarm_rate
from hybridworld.data.evidence import CALIBRATING, Solved, pairs_of
from hybridworld.errors import InvalidInput
from hybridworld.physics.environment import Environment
from hybridworld.surrogate.horizons import calibrated_horizons
from hybridworld.surrogate.surrogate import Surrogate
from hybridworld.trust.bounds import ErrorBound, Residuals
from hybridworld.trust.calibrate import BEGINNING, calibrate
from hybridworld.trust.calibration import Calibration, flagged
from hybridworld.trust.judge import judge
from hybridworld.trust.step_doubling import StepDoubling

APART = 100_000
"""Trajectory numbers between two draws."""
WINDOWS = 25
"""Windows per draw and per set of states, each resampled from the test trajectories of that draw."""


@dataclass(frozen=True)
class Promises:
    """What came of each draw, for the states at the beginning of trajectories and for those at random frames."""

    horizons: tuple[int, ...]
    trajectories: int
    """The number of trajectories that calibrate, and of those that test."""
    deferral: np.ndarray  # (draws, 2, horizons)
    coverage: np.ndarray  # (draws, 2, horizons), of the error bounds
    alarms: np.ndarray  # (draws, 2): the share of windows, horizons mixed, that raise the alarm


def tested_horizons(trained: Sequence[int]) -> list[int]:
    """The horizons at which promises are tested: those of the training, and some between them (3, 6, 12 ..., 40, 56)."""
    low, high = min(trained), max(trained)
    between = {h + h // 2 for h in trained if h > 1 and h + h // 2 < high}
    return sorted({*trained, *between, *(h for h in (40, 56) if low <= h <= high)})


def keep_promises(
    surrogate: Surrogate,
    environment: Environment,
    trained: Sequence[int],
    tested: Sequence[int],
    trajectories: int,
    draws: int = 20,
    q: float = 0.75,
    coverage: float = 0.9,
    tell: Callable[[int], None] = lambda done: None,
) -> Promises:
    """Calibrate and test `draws` times with fresh trajectories."""
    if trajectories > APART:
        raise InvalidInput(f"The number of trajectories is {trajectories}: it can be at most {APART}.")
    signal = StepDoubling(surrogate, surrogate.std)
    found: list[tuple[np.ndarray, ...]] = []
    for draw in range(draws):
        first = APART * draw
        val = Solved(environment, "val", CALIBRATING + first)
        arrays = calibrate(surrogate, signal, val, calibrated_horizons(trained), trajectories, seed=draw)
        residuals = Residuals.from_arrays(arrays, "trajectory")
        assert residuals is not None
        begins = arrays[BEGINNING]
        calibration, bound = Calibration.of(residuals, begins), ErrorBound(residuals, beginning=begins)
        test = Solved(environment, "test", first).blocks(trajectories)
        judged = judge(surrogate, signal, pairs_of(test, tested, np.random.default_rng(draw), beginnings=True))
        parts = []
        for first_frame in (True, False):
            rows = [judged.at(h) for h in tested]
            rows = [row.of((np.arange(len(row.scores)) % 2 == 0) == first_frame) for row in rows]
            deferred = [
                flagged(row.scores, calibration.threshold(h, q, first_frame)).mean()
                for h, row in zip(tested, rows, strict=True)
            ]
            covered = [
                (row.errors <= bound.of_answers(row.scores, h, coverage, first_frame)).mean()
                for h, row in zip(tested, rows, strict=True)
            ]
            scores = {h: row.scores for h, row in zip(tested, rows, strict=True)}
            parts.append((deferred, covered, alarm_rate(calibration, scores, WINDOWS, draw)))
        found.append(tuple(np.array(each) for each in zip(*parts, strict=True)))
        tell(draw + 1)
    return Promises(tuple(tested), trajectories, *(np.stack(each) for each in zip(*found, strict=True)))


def band(share: float, calibrating: int, testing: int) -> tuple[float, float]:
    """The 95 % band of the share of test answers below a bound that promises `share`."""
    rank = int(np.ceil((calibrating + 1) * share))
    low, high = betabinom.interval(0.95, testing, rank, calibrating + 1 - rank)
    return float(low) / testing, float(high) / testing
