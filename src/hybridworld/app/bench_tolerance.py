"""`hybridworld bench tolerance`: what a tolerance costs and delivers, on every split."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from hybridworld.app.loading import load_hybrid
from hybridworld.app.progress import stderr
from hybridworld.app.tables import Rows, publish_sections
from hybridworld.bench.tolerance import Row, measure_tolerances
from hybridworld.data.dataset import Dataset, check_fits
from hybridworld.data.evidence import Recorded, Solved
from hybridworld.data.pairs import Evidence
from hybridworld.errors import InvalidInput
from hybridworld.physics.environment import Environment
from hybridworld.physics.spec import SPLITS

SEEN = ("train", "val")
PARTS = {
    "alone above it": lambda row: row.alone,
    "to the solver": lambda row: row.found.deferred,
    "above it, of all": lambda row: row.found.exceeding,
    "above it, of accepted": lambda row: row.found.exceeding_accepted,
}
"""Rows of a table -> their number."""


def report_tolerances(
    model: str, environment: Environment | None, data: Path | None, tolerances: Sequence[float], coverage: float, count: int,
    signal: str | None, backbone: str | None, as_json: bool, out: Path | None,
) -> None:  # fmt: skip
    """Measure and publish."""
    hybrid = load_hybrid(model, environment, backbone, signal=signal)
    splits: dict[str, Evidence]
    if data is not None:
        dataset = Dataset(data)
        check_fits(model, hybrid.spec, data, dataset.spec)
        splits = {split: Recorded(dataset.source(split)) for split in dataset.splits if split not in SEEN}
    elif hybrid.system is not None:
        splits = {split: Solved(hybrid.system, split) for split in SPLITS if split not in SEEN}
    else:
        raise InvalidInput(f"There is no solver for {hybrid.spec.name}: give --data DIR, or name its system with --system.")
    if hybrid.bound is None or hybrid.calibration is None:
        raise InvalidInput(f"{model} has no error bounds: run `hybridworld calibrate {model}`.")
    known = [h for h in hybrid.spec.horizons if hybrid.bounded(h)] or [int(h) for h in sorted(hybrid.calibration.scores)]
    with stderr.status("") as status:
        rows = measure_tolerances(hybrid, splits, known, tolerances, count, coverage, status.update)
    counts = ", ".join(f"{number:,} of {split}" for split, number in {row.split: row.trajectories for row in rows}.items())
    publish_sections(
        {"model": model, "signal": hybrid.signal.name, "coverage": coverage} | {"rows": [plain(row) for row in rows]},
        sections_of(rows),
        f"{hybrid.spec.name}: what a tolerance costs and delivers",
        f"{hybrid.signal.name}, bounds from {hybrid.bound.trajectories:,} validation trajectories; test trajectories: "
        f"{counts}; one answer per horizon each, half of them at their beginning. An answer whose bound of coverage "
        f"{coverage:g} exceeds the tolerance (in deviations, mean over cells) goes to the solver. Promised is, on data like "
        f"the validation data: of all answers at most {100 * (1 - coverage):.3g} % are accepted with an error above it.",
        as_json,
        out,
        f"hybridworld bench tolerance {model}" + (f' --signal "{signal}"' if signal else ""),
    )


def plain(row: Row) -> dict[str, Any]:
    """One row for JSON."""
    flat = asdict(row)
    return flat | {name: None if np.isnan(value) else value for name, value in flat.pop("found").items()}


def sections_of(rows: Sequence[Row]) -> dict[str, Rows]:
    """One table: per split and tolerance what the surrogate alone would do, the cost, and what is delivered."""
    horizons = list(dict.fromkeys(row.horizon for row in rows))
    table = [["split", "tolerance", "", *(f"h = {h}" for h in horizons)]]
    for split, tolerance in dict.fromkeys((row.split, row.tolerance) for row in rows):
        here = [row for row in rows if (row.split, row.tolerance) == (split, tolerance)]
        for part, (title, pick) in enumerate(PARTS.items()):
            begin = [split, f"{tolerance:g}"] if part == 0 else ["", ""]
            table.append([*begin, title, *(per_cent(pick(row)) for row in here)])
    return {"": table}


def per_cent(share: float) -> str:
    """For example `4.2 %`; `-` where there is nothing to share."""
    return "-" if np.isnan(share) else f"{100 * share:.1f} %"
