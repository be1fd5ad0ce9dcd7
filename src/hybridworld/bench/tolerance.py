"""What does a tolerance cost, and what does it deliver? On every split, at every horizon, with the bounds of a model's file."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hybridworld.data.dataset import Dataset
from hybridworld.data.evidence import Recorded, Solved, pairs_of
from hybridworld.data.pairs import Evidence
from hybridworld.deploy.hybrid import HybridModel
from hybridworld.errors import InvalidInput
from hybridworld.physics.spec import SPLITS
from hybridworld.trust.judge import judge
from hybridworld.trust.tolerance import Delivered, check_tolerance, delivered

SEEN = ("train", "val")
"""Splits that the model was trained or calibrated on, so that they cannot test it."""


@dataclass(frozen=True)
class Row:
    """What was measured for one split, tolerance and horizon."""

    split: str
    tolerance: float
    horizon: int
    found: Delivered
    trajectories: int
    """How many answers these are shares of: one of each trajectory."""
    alone: float
    """Share of the surrogate's own answers whose error exceeds the tolerance: what there is to catch."""


def unseen_splits(model: HybridModel, data: Path | None) -> dict[str, Evidence]:
    """Split -> trajectories that neither trained nor calibrated the model: of the dataset, or from its solver."""
    if data is not None:
        dataset = Dataset(data)
        return {split: Recorded(dataset.source(split)) for split in dataset.splits if split not in SEEN}
    if model.system is None:
        raise InvalidInput(f"There is no solver for {model.spec.name}: give --data DIR, or name its system with --system.")
    return {split: Solved(model.system, split) for split in SPLITS if split not in SEEN}


def bounded_horizons(model: HybridModel, name: str) -> list[int]:
    """The horizons of the system at which the model has error bounds, or else those of its calibration."""
    if model.bound is None or model.calibration is None:
        raise InvalidInput(f"{name} has no error bounds: run `hybridworld calibrate {name}`.")
    return [h for h in model.spec.horizons if model.bounded(h)] or [int(h) for h in sorted(model.calibration.scores)]


def measure_tolerances(
    model: HybridModel,
    splits: Mapping[str, Evidence],
    horizons: Sequence[int],
    tolerances: Sequence[float],
    count: int,
    coverage: float = 0.9,
    tell: Callable[[str], None] = lambda split: None,
) -> list[Row]:
    """The rows of all splits, tolerances and horizons, from one answer per trajectory and horizon.

    Half of the trajectories are asked at their beginning, as the calibration has it.
    """
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
                bounds = bound.of_answers(answers.scores, horizon, coverage)
                alone, found = float(np.mean(answers.errors > tolerance)), delivered(answers.errors, bounds, tolerance)
                rows.append(Row(split, tolerance, horizon, found, len(answers.errors), alone))
    return rows
