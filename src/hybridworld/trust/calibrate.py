"""Scores and true errors on validation trajectories: what thresholds and error bounds are made of."""

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from hybridworld.data.evidence import pairs_of
from hybridworld.data.pairs import Batch, Evidence
from hybridworld.surrogate.surrogate import Surrogate
from hybridworld.trust.bounds import Residuals
from hybridworld.trust.judge import judge
from hybridworld.trust.signal import TrustSignal

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
    """The arrays of a model's file: `Residuals` per trajectory and per cell, from one pair per trajectory and horizon.

    Half of the trajectories are asked at their beginning, half at a random frame: BEGINNING tells which. At most `count`
    trajectories are asked for, one block after the other; `tell` hears how many are done.
    """
    cells = int(np.prod(surrogate.spec.grid, dtype=int))
    pairs = pairs_of(evidence.blocks(count), horizons, np.random.default_rng(seed), beginnings=True)
    batches = _told(pairs, len(horizons), tell)
    found = judge(surrogate, signal, batches, cells=CELLS / (count * cells) if surrogate.spec.grid else 0.0, seed=seed)
    by_horizon = {float(h): found.at(h) for h in horizons}
    arrays = Residuals(
        {h: each.scores for h, each in by_horizon.items()}, {h: each.errors for h, each in by_horizon.items()}
    ).to_arrays("trajectory")
    arrays[BEGINNING] = np.arange(len(by_horizon[float(horizons[0])].scores)) % 2 == 0
    if surrogate.spec.grid:
        arrays |= Residuals(
            {h: each.cells[:, 1] for h, each in by_horizon.items()}, {h: each.cells[:, 2] for h, each in by_horizon.items()}
        ).to_arrays("cell")
    return arrays


def _told(batches: Iterable[Batch], horizons: int, tell: Callable[[int], None]) -> Iterator[Batch]:
    done = 0
    for batch in batches:
        yield batch
        done += len(batch.states) // horizons
        tell(done)
