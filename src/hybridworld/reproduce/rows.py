"""What was measured, as typed rows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hybridworld.bench.intervals import Interval

Quantity = Literal[
    "auroc", "auroc within kinds", "auroc at a tolerance", "aurc", "excess aurc", "deviation of the auroc",
    "lead", "lead of the ensemble",
    "rmse", "nrmse", "vrmse", "mse", "mse of no change", "loss", "fall of the loss", "mse over no change", "mse ratio",
    "distance to the identity", "cut", "deferral",
    "milliseconds", "speed-up over the compiled solver", "speed-up over the NumPy twin",
    "growth", "lost", "failed", "rank correlation", "rank correlation lead", "parameters, millions",
]  # fmt: skip
"""`lead`: the AUROC of step-doubling less that of the signal, mean over horizons (x = 0) or at one (x = h)."""


@dataclass(frozen=True)
class Row:
    """One number: a quantity of a signal (or of whoever answers, or decides) on a split of a system at x."""

    quantity: Quantity
    signal: str
    system: str
    split: str
    x: float
    """A horizon, a keep fraction, a number of links, a seed, an epoch: the entry says which."""
    interval: Interval

    @property
    def value(self) -> float:
        """The number itself."""
        return self.interval.value


class Missing(Exception):
    """A rule needs rows that were not measured."""


def chosen(rows: Iterable[Row], quantity: Quantity, signal: str | None = None, split: str | None = None) -> list[Row]:
    """The rows of a quantity, with whatever else is fixed."""
    return [
        row for row in rows if row.quantity == quantity and signal in (None, row.signal) and split in (None, row.split)
    ]  # fmt: skip


def need(
    rows: Iterable[Row], quantity: Quantity, signal: str, splits: Sequence[str], places: Sequence[float]
) -> list[Interval]:
    """The intervals of all these cells, in order of splits and places; `Missing` where one was not measured."""
    found = {(row.split, row.x): row.interval for row in chosen(rows, quantity, signal) if np.isfinite(row.value)}
    wanted = [(split, place) for split in splits for place in places]
    absent = [cell for cell in wanted if cell not in found]
    if absent:
        raise Missing(f"{quantity} of {signal}: {len(absent)} of {len(wanted)} cells were not measured")
    return [found[cell] for cell in wanted]


def one(rows: Iterable[Row], quantity: Quantity, signal: str, split: str, place: float) -> Interval:
    """The interval of one cell; `Missing` where it was not measured."""
    return need(rows, quantity, signal, (split,), (place,))[0]
