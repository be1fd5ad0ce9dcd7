"""How the gain of a surrogate grows with the size of the grid: one comparison per size, on one page."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from hybridworld.bench.worth.comparison import Comparison
from hybridworld.bench.worth.measure import Row
from hybridworld.bench.worth.verdict import gain_of, rival_of
from hybridworld.figures.style import COMPONENTS, FAINT, page, place, style

PANEL, HEIGHT, LEFT, GAP = 3.6, 2.9, 0.75, 0.7  # inches
LINES = {"reference": "against the reference", "equal_error": "against the fastest solver as accurate"}


@dataclass(frozen=True)
class Gain:
    """Mode 1 on one grid at one horizon, one state at a time."""

    grid: tuple[int, ...]
    horizon: int
    ms: float
    error: float
    """In deviations of the states of that grid."""
    reference: float
    """Time of the reference over that of the surrogate."""
    equal_error: float | None
    """Time of the fastest solver that is at least as accurate over that of the surrogate; None: no solver is."""
    rival: str | None
    """Name of the fastest solver that is at least as accurate; None if there is none."""

    @property
    def name(self) -> str:
        """The grid, for example `64 x 64`."""
        return " x ".join(map(str, self.grid))


def gains_of(comparisons: Sequence[Comparison]) -> list[Gain]:
    """One per horizon and grid, smallest grid first."""
    found = [
        _gain(comparison, rows)
        for comparison in comparisons
        for rows in comparison.by_horizon.values()
        if any(row.kind == "mode 1" for row in rows)
    ]
    return sorted(found, key=lambda each: (each.horizon, each.grid))


def _gain(comparison: Comparison, rows: Sequence[Row]) -> Gain:
    row = next(each for each in rows if each.kind == "mode 1")
    rival = rival_of(row, rows, "ms")
    return Gain(
        comparison.environment.spec.grid, row.horizon, row.ms, row.rmse, row.speedup_vs_compiled,
        gain_of(row, rows, "ms"), None if rival is None else rival.title,
    )  # fmt: skip


def draw_gains(gains: Sequence[Gain], path: Path, title: str) -> None:
    """Write a PNG with one panel per horizon: gain against cells along an axis, both logarithmic; below 1 the solver wins."""
    horizons = sorted({each.horizon for each in gains})
    with style():
        figure, top = page(LEFT + len(horizons) * (PANEL + GAP), HEIGHT + 0.8, title)
        for across, horizon in enumerate(horizons):
            here = [each for each in gains if each.horizon == horizon]
            ax = place(figure, LEFT + across * (PANEL + GAP), top + 0.25, PANEL, HEIGHT)
            for colour, (name, label) in zip(COMPONENTS, LINES.items(), strict=False):
                points = [(each.grid[0], getattr(each, name)) for each in here if getattr(each, name) is not None]
                ax.plot(*zip(*points, strict=True) if points else ([], []), "o-", color=colour, label=label, markersize=4)
            ax.axhline(1, color=FAINT, linewidth=0.8, linestyle=(0, (4, 3)))
            ax.set(xscale="log", yscale="log", xlabel="cells along an axis", ylabel="times faster (mode 1)")
            ax.set_title(f"h = {horizon}", loc="left", size=9)
            sizes = [each.grid[0] for each in here]
            ax.xaxis.set_major_locator(FixedLocator(sizes))
            ax.xaxis.set_major_formatter(FixedFormatter([str(size) for size in sizes]))
            ax.xaxis.set_minor_locator(NullLocator())
            ax.legend(loc="best")
            ax.spines[["top", "right"]].set_visible(False)
        figure.savefig(path, format="png")
