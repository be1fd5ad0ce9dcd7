"""Everything that could answer, compared on the same states: the rows of all horizons, and what follows from them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from hybridworld.bench.worth.contenders import draw_starts, methods_for
from hybridworld.bench.worth.measure import Row, deviations, measure
from hybridworld.bench.worth.verdict import HOW, gain_of, price, verdicts
from hybridworld.data.provenance import provenance
from hybridworld.deploy.hybrid import HybridModel
from hybridworld.physics.environment import Environment

FIELDS, VECTORS = 64, 256
"""States that are asked about by default."""


@dataclass(frozen=True)
class Comparison:
    """What each method costs and how far off it is, per horizon."""

    environment: Environment
    model: HybridModel | None
    split: str
    count: int
    unit: np.ndarray  # (channels,), the deviations in which errors are told
    by_horizon: Mapping[int, Sequence[Row]]
    notes: Sequence[str]
    """What was left out, and why."""

    @property
    def rows(self) -> list[Row]:
        """The rows of all horizons, one after the other."""
        return [row for found in self.by_horizon.values() for row in found]

    @property
    def content(self) -> dict[str, Any]:
        """All numbers and verdicts as plain data."""
        spec, bundle = self.environment.spec, self.model.bundle if self.model else None
        return {
            "system": spec.name,
            "split": self.split,
            "identity": self.environment.identity,
            "unit": dict(zip(spec.channels, self.unit.tolist(), strict=True)),
            "count": self.count,
            "engine": self.model.engine if self.model else None,
            "rows": [row_content(row, self.rows) for row in self.rows],
            "break_even": price(spec, bundle.provenance, self.rows) if bundle else None,
            "verdicts": [said for found in self.by_horizon.values() for said in verdicts(found)],
            "left_out": list(self.notes),
            "provenance": provenance(),
        }


def compare(
    environment: Environment,
    model: HybridModel | None,
    horizons: Sequence[int],
    split: str = "test",
    count: int | None = None,
    tell: Callable[[str], None] = lambda what: None,
    keep: Callable[[Comparison], object] = lambda found: None,
) -> Comparison:
    """The surrogate, the reference and every rival on `count` states of a split; without a model, what it would have to beat.

    A model is compared on its own grid. `tell` hears what is being measured, and `keep` what is known after each horizon.
    """
    if model is not None:
        environment = model.system or environment
    count = count or (FIELDS if environment.spec.is_field else VECTORS)
    horizons = list(dict.fromkeys(horizons))
    tell("drawing states")
    starts, known = draw_starts(environment, split, count, horizons)
    methods, unit = methods_for(environment, model), deviations(starts.states, environment.spec)
    by_horizon: dict[int, Sequence[Row]] = {}
    notes: list[str] = []
    if model is not None and model.calibration is None:
        notes.append("Mode 2 is left out: the model has no validation scores, which `hybridworld calibrate` gives it.")
    found = Comparison(environment, model, split, count, unit, by_horizon, notes)
    for horizon in horizons:
        by_horizon[horizon], left_out = measure(environment, starts, horizon, methods, unit, tell, known)
        notes += left_out
        keep(found)
    return found


def row_content(row: Row, rows: Sequence[Row]) -> dict[str, Any]:
    """One row as plain data, with its gains at equal error."""
    gains = {f"speedup_at_equal_error{by.removeprefix('ms')}": gain_of(row, rows, by) for by in HOW}
    told = {name: value for name, value in asdict(row).items() if name not in ("mark", "explanation")}
    return told | {"method": row.title} | gains
