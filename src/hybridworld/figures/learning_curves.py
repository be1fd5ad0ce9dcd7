"""How a training went, on one page (PNG): the loss, the validation error of each horizon, and what it is worth in the end."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from hybridworld.figures.style import COMPONENTS, FAINT, MUTED, TIME, page, place, style

PANEL, HEIGHT, LEFT, GAP = 2.6, 2.5, 0.65, 0.95  # inches; the gap holds the names of lines and the numbers of the next panel
NAME = 0.055  # of a panel's height: what the name of a line needs to be read

Record = Mapping[str, Any]


def draw_curves(history: Sequence[Record], path: Path, title: str) -> None:
    """Write a PNG of the records that a training noted, one per epoch; lines of the title after the first are its subtitle."""
    with style():
        figure, top = page(LEFT + 3 * (PANEL + GAP) - 0.65, HEIGHT + 0.6, title)
        first, second, third = (place(figure, LEFT + k * (PANEL + GAP), top + 0.15, PANEL, HEIGHT) for k in range(3))
        best = min(history, key=lambda record: record.get("relative to guide", record["mse"]))
        _draw_training(first, history, best)
        _draw_horizons(second, history)
        _draw_worth(third, best)
        figure.savefig(path, format="png")


def _draw_training(ax: Axes, history: Sequence[Record], best: Record) -> None:
    """The loss that was made small beside the error that counts."""
    epochs = [record["epoch"] for record in history]
    lines = {"loss": ("loss", COMPONENTS[1]), "mse": ("validation", COMPONENTS[0])}
    for key, (_, colour) in lines.items():
        ax.plot(epochs, [record[key] for record in history], color=colour, marker=_marker(history), markersize=2.5)
    ax.plot(best["epoch"], best["mse"], "o", color="white", markeredgecolor=COMPONENTS[0], markersize=5)
    _over_epochs(ax, epochs, f"training loss, validation MSE (best: epoch {best['epoch']})")
    _name_lines(ax, [(name, history[-1][key], colour) for key, (name, colour) in lines.items()])


def _draw_horizons(ax: Axes, history: Sequence[Record]) -> None:
    """A line per horizon, from dark (short) to light (long)."""
    epochs, names = [record["epoch"] for record in history], list(history[-1]["horizons"])
    ends = []
    for name, colour in zip(names, _colours(len(names)), strict=True):
        values = [record["horizons"][name]["mse"] for record in history]
        ax.plot(epochs, values, color=colour, marker=_marker(history), markersize=2.5)
        ends.append((str(name), values[-1], colour))
    _over_epochs(ax, epochs, "validation MSE by horizon (frames)")
    _name_lines(ax, ends)


def _draw_worth(ax: Axes, best: Record) -> None:
    """The error over that of the answer "as it was", a row per horizon: below 1 the surrogate knows something."""
    names = [name for name, errors in best["horizons"].items() if errors["no_change"]["mse"] > 0]
    shares = [best["horizons"][name]["mse"] / best["horizons"][name]["no_change"]["mse"] for name in names]
    rows = range(len(names))
    ax.axvline(1, color=MUTED, linewidth=0.8, linestyle=(0, (4, 3)))
    ax.hlines(rows, shares, 1, color=FAINT, linewidth=1.2, zorder=1)
    ax.scatter(shares, rows, c=_colours(len(names)), s=26, zorder=2)
    for row, share in zip(rows, shares, strict=True):
        away, side = (-6, "right") if share <= 1 else (6, "left")  # of the line to 1
        ax.annotate(f"{share:.2g}", (share, row), (away, 0), textcoords="offset points", ha=side, va="center", size=7)
    ax.annotate("no change", (1, 1), (-4, 0), xycoords=("data", "axes fraction"), textcoords="offset points",
                ha="right", va="top", size=7, color=MUTED)  # fmt: skip
    ax.set(xscale="log", xlim=_room(min(shares, default=1), max(shares, default=1)), ylim=(-0.6, len(names) - 0.1))
    ax.set_yticks(rows, map(str, names))
    ax.set(xlabel="MSE / no change", ylabel="horizon (frames)")
    _look(ax, f"surrogate against no change (epoch {best['epoch']})")
    _plain_numbers(ax.xaxis, *ax.get_xlim(), most=30)


def _room(low: float, high: float) -> tuple[float, float]:
    """Limits of a logarithmic axis around 1 and these values, with room for numbers at either end."""
    low, high = min(low, 0.8), max(high, 1.0)
    span = high / low
    return low / span**0.3, high * span ** (0.3 if high > 1 else 0.08)


def _over_epochs(ax: Axes, epochs: Sequence[int], title: str) -> None:
    ax.set_yscale("log")
    ax.margins(y=0.08)
    _plain_numbers(ax.yaxis, *ax.get_ylim(), most=1000)
    ax.xaxis.set_major_locator(MaxNLocator(6, integer=True, steps=[1, 2, 5, 10], min_n_ticks=1))
    edge = max(0.02 * (max(epochs) - min(epochs)), 0.05)
    ax.set(xlabel="epoch", xlim=(min(epochs) - edge, max(epochs) + edge))
    _look(ax, title)


def _look(ax: Axes, title: str) -> None:
    ax.set_title(title, loc="left", size=8, pad=7)
    ax.spines[["top", "right"]].set_visible(False)


def _plain_numbers(axis: Axis, low: float, high: float, most: float) -> None:
    """Ticks of a logarithmic axis as people write them; beyond a range of `most`, powers of ten alone."""
    subs = [1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0] if high < 8 * low else [1.0, 2.0, 5.0] if high < most * low else [1.0]
    axis.set_major_locator(LogLocator(subs=subs, numticks=9))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _name_lines(ax: Axes, ends: Sequence[tuple[str, float, Any]]) -> None:
    """Name, last value and colour of each line, written beside its end; names that would touch move apart."""
    heights = ax.transAxes.inverted().transform([ax.transData.transform((1, value)) for _, value, _ in ends])[:, 1]
    for (name, _, colour), height in zip(ends, apart(heights, NAME), strict=True):
        ax.annotate(name, (1, height), (4, 0), xycoords="axes fraction", textcoords="offset points",
                    va="center", size=7, color=colour)  # fmt: skip


def apart(heights: np.ndarray, gap: float) -> np.ndarray:
    """The heights, moved as little as it takes for each two to be `gap` apart, in the same order."""
    order = np.argsort(heights, kind="stable")
    groups: list[tuple[float, int]] = []  # (centre, number of names) of names that touch
    for height in np.asarray(heights, float)[order]:
        centre, count = float(height), 1
        while groups and centre - groups[-1][0] < gap * (count + groups[-1][1]) / 2:
            other, number = groups.pop()
            centre, count = (centre * count + other * number) / (count + number), count + number
        groups.append((centre, count))
    moved = np.empty(len(order))
    moved[order] = np.concatenate([centre + gap * (np.arange(count) - (count - 1) / 2) for centre, count in groups])
    return moved


def _colours(count: int) -> np.ndarray:
    return TIME(np.linspace(0, 0.95, count))


def _marker(history: Sequence[Record]) -> str:
    """The marker of a curve: few epochs are points, many are a line."""
    return "o" if len(history) <= 12 else ""
