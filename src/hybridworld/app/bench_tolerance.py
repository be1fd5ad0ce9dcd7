"""`hybridworld bench tolerance`: what a tolerance costs and delivers, on every split."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from hybridworld.app.loading import load_hybrid
from hybridworld.app.progress import stderr
from hybridworld.app.tables import Rows, publish_sections
from hybridworld.bench.tolerance import Row, bounded_horizons, measure_tolerances, unseen_splits
from hybridworld.data.dataset import Dataset, check_fits
from hybridworld.physics.environment import Environment

PARTS = {
    "alone above it": lambda row: row.alone,
    "to the solver": lambda row: row.found.deferred,
    "above it, of all": lambda row: row.found.exceeding,
    "above it, of accepted": lambda row: row.found.exceeding_accepted,
}
"""Title of a row -> the number that stands in it."""


def report_tolerances(
    model: str, environment: Environment | None, data: Path | None, tolerances: Sequence[float], coverage: float, count: int,
    signal: str | None, backbone: str | None, as_json: bool, out: Path | None,
) -> None:  # fmt: skip
    """Measure what tolerances cost and deliver on every split, and publish the table."""
    hybrid = load_hybrid(model, environment, backbone, signal=signal)
    if data is not None:
        check_fits(model, hybrid.spec, data, Dataset(data).spec)
    splits, known = unseen_splits(hybrid, data), bounded_horizons(hybrid, model)
    hybrid.known_bound().check(coverage)
    with stderr.status("") as status:
        rows = measure_tolerances(hybrid, splits, known, tolerances, count, coverage, status.update)
    assert hybrid.bound is not None
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
    """One measured row as plain data; what is no number is None."""
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
    """A share in words, for example `4.2 %`; `-` where there is nothing to share."""
    return "-" if np.isnan(share) else f"{100 * share:.1f} %"
