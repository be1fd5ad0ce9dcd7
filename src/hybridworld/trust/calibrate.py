"""Scores and true errors on validation trajectories: what thresholds and error bounds are made of.

A model's file holds one such calibration per signal: the arrays of a signal have its name before theirs, but for step-doubling,
which was the only one once.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from hybridworld.data.evidence import pairs_of
from hybridworld.data.pairs import Batch, Evidence
from hybridworld.surrogate.surrogate import Surrogate
from hybridworld.trust.bounds import Residuals
from hybridworld.trust.judge import Judged, judge
from hybridworld.trust.signal import TrustSignal
from hybridworld.trust.step_doubling import StepDoubling

BEGINNING = "trajectory.beginning"
CELLS = 2_000
"""Cells per horizon whose error travels with a model."""


def calibrate(
    surrogate: Surrogate,
    signal: TrustSignal,
    evidence: Evidence,
    horizons: Sequence[int],
    count: int,
    seed: int = 0,
    tell: Callable[[int], None] = lambda done: None,
) -> dict[str, np.ndarray]:
    """The arrays of a model's file, from `judge_evidence`."""
    return arrays_of(judge_evidence(surrogate, signal, evidence, horizons, count, seed, tell), horizons)


def judge_evidence(
    surrogate: Surrogate,
    signal: TrustSignal,
    evidence: Evidence,
    horizons: Sequence[int],
    count: int,
    seed: int = 0,
    tell: Callable[[int], None] = lambda done: None,
) -> Judged:
    """Scores and true errors of the answers to one pair per trajectory and horizon.

    Every other trajectory is asked at its beginning, the rest at a random frame. At most `count` trajectories are asked for,
    one block after the other; `tell` hears how many are done.
    """
    cells = int(np.prod(surrogate.spec.grid, dtype=int))
    pairs = pairs_of(evidence.blocks(count), horizons, np.random.default_rng(seed), beginnings=True)
    batches = _told(pairs, len(horizons), tell)
    return judge(surrogate, signal, batches, cells=CELLS / (count * cells) if surrogate.spec.grid else 0.0, seed=seed)


def arrays_of(found: Judged, horizons: Sequence[int]) -> dict[str, np.ndarray]:
    """The arrays of a model's file: `Residuals` per trajectory and per cell; BEGINNING tells which began a trajectory."""
    by_horizon = {float(h): found.at(h) for h in horizons}
    arrays = Residuals(
        {h: each.scores for h, each in by_horizon.items()}, {h: each.errors for h, each in by_horizon.items()}
    ).to_arrays("trajectory")
    arrays[BEGINNING] = np.arange(len(by_horizon[float(horizons[0])].scores)) % 2 == 0
    if len(found.cells):
        arrays |= Residuals(
            {h: each.cells[:, 1] for h, each in by_horizon.items()}, {h: each.cells[:, 2] for h, each in by_horizon.items()}
        ).to_arrays("cell")
    return arrays


def calibrated_signals(arrays: Mapping[str, np.ndarray]) -> tuple[str, ...]:
    """The signals whose calibrations a model's file holds, step-doubling first."""
    names = {name.rpartition("/")[0] or StepDoubling.name for name in arrays}
    return tuple(sorted(names, key=lambda name: (name != StepDoubling.name, name)))


def calibration_arrays(arrays: Mapping[str, np.ndarray], signal: str) -> dict[str, np.ndarray]:
    """The arrays of one signal, under the names that `calibrate` gave them; empty where it was never calibrated."""
    begin = _begin(signal)
    found = {name.removeprefix(begin): values for name, values in arrays.items() if name.startswith(begin)}
    return {name: values for name, values in found.items() if "/" not in name}


def with_calibration(arrays: Mapping[str, np.ndarray], signal: str, found: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """All arrays of a file after `calibrate` found these for a signal, in place of what was known about it."""
    begin = _begin(signal)
    before = {begin + name for name in calibration_arrays(arrays, signal)}
    kept = {name: values for name, values in arrays.items() if name not in before}
    return kept | {begin + name: values for name, values in found.items()}


def _begin(signal: str) -> str:
    return "" if signal == StepDoubling.name else f"{signal}/"


def _told(batches: Iterable[Batch], horizons: int, tell: Callable[[int], None]) -> Iterator[Batch]:
    done = 0
    for batch in batches:
        yield batch
        done += len(batch.states) // horizons
        tell(done)
