"""What does a tolerance cost, and what does it deliver? On every split, at every horizon, with the bounds of a model's file."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hybridworld.data.evidence import pairs_of
from hybridworld.data.pairs import Evidence
from hybridworld.deploy.hybrid import HybridModel
from hybridworld.trust.judge import judge
from hybridworld.trust.tolerance import Delivered, check_tolerance, delivered


@dataclass(frozen=True)
class Row:
    """One split, tolerance and horizon."""

    split: str
    tolerance: float
    horizon: int
    found: Delivered
    trajectories: int
    """How many answers these are shares of: one of each trajectory."""
    alone: float
    """Share of the surrogate's own answers whose error exceeds the tolerance: what there is to catch."""


def measure_tolerances(
    model: HybridModel,
    splits: Mapping[str, Evidence],
    horizons: Sequence[int],
    tolerances: Sequence[float],
    count: int,
    coverage: float = 0.9,
    tell: Callable[[str], None] = lambda split: None,
) -> list[Row]:
    """One answer per trajectory and horizon, half of the trajectories at their beginning, as the calibration has it."""
    bound, rows = model.bound, []
    assert bound is not None
    bound.check(coverage)
    for tolerance in tolerances:
        check_tolerance(tolerance)
    for split, evidence in splits.items():
        tell(split)
        pairs = pairs_of(evidence.blocks(count), horizons, np.random.default_rng(0), beginnings=True)
        judged = judge(model.surrogate, model.signal, pairs)
        for tolerance in tolerances:
            for horizon in horizons:
                answers = judged.at(horizon)
                bounds = bound(answers.scores, horizon, coverage)
                alone, found = float(np.mean(answers.errors > tolerance)), delivered(answers.errors, bounds, tolerance)
                rows.append(Row(split, tolerance, horizon, found, len(answers.errors), alone))
    return rows
