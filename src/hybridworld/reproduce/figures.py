"""The rows of an entry as a picture. PNG and SVG."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullLocator

from hybridworld.figures.style import COMPONENTS, INK, MUTED, page, place, style
from hybridworld.reproduce.entries import Entry, Figure
from hybridworld.reproduce.rows import Row, chosen
from hybridworld.reproduce.rules import COMPILED, MODE_1, MODE_2, ORACLE, RANDOM, TWIN

PANEL, HEIGHT, LEFT, GAP = 2.5, 2.2, 0.7, 0.6  # inches
COLOURS = (*COMPONENTS, INK, "#4e9a8a", "#b56576", "#8d99ae", "#e29578", "#5e548e", "#a98467")
MOST_BANDS = 4


def draw_entry(entry: Entry, rows: Sequence[Row], path: Path) -> None:
    """A panel per system, with a line per split; or per system and split, with a line per signal. Hollow: the paper."""
    look = entry.figure
    assert look is not None
    drawn = [row for row in rows if row.quantity in look.quantities and (row.signal in look.signals or not look.signals)]
    drawn = [row for row in drawn if np.isfinite(row.value)]
    many = len({name_of(look, row) for row in drawn}) > 1
    cells = dict.fromkeys((row.system, row.split if many else "") for row in drawn)
    panels = [
        (f"{system}, {split}" if many else system, [r for r in drawn if r.system == system and split in ("", r.split)])
        for system, split in cells
    ]
    names = dict.fromkeys(name_of(look, row) if many else row.split for row in drawn)
    colours = dict(zip(names, COLOURS * (1 + len(names) // len(COLOURS)), strict=False))
    columns = min(3, len(panels))
    with style():
        width = LEFT + columns * (PANEL + GAP) + (2.0 if many else 0.7)
        title = f"{entry.title}\n{entry.where} of the paper; hollow: the paper's numbers"
        figure, top = page(width, -(-len(panels) // columns) * (HEIGHT + 0.75) + 0.1, title)
        for number, (title, own) in enumerate(panels):
            line, column = divmod(number, columns)
            ax = place(figure, LEFT + column * (PANEL + GAP), top + 0.15 + line * (HEIGHT + 0.75), PANEL, HEIGHT)
            if entry.id == "pareto":
                draw_pareto(ax, own)
            else:
                draw_lines(ax, entry, look, own, many, colours)
            finish_panel(ax, look, title)
            if number == columns - 1:
                handles, labels = ax.get_legend_handles_labels() if entry.id == "pareto" else legend_for(colours)
                ax.legend(handles, labels, loc="upper left", bbox_to_anchor=(1.02, 1.0), fontsize=6.5)
        for suffix in (".png", ".svg"):
            figure.savefig(path.with_suffix(suffix), format=suffix[1:])


def name_of(look: Figure, row: Row) -> str:
    """The name of the line that a row is on: its quantity where there are several, else its signal."""
    return row.quantity if len(look.quantities) > 1 else row.signal


def draw_lines(ax: Axes, entry: Entry, look: Figure, rows: Sequence[Row], many: bool, colours: Mapping[str, str]) -> None:
    """One line per signal, or per split; bands only where they can be told apart."""
    for name, colour in colours.items():
        own = sorted((row for row in rows if (name_of(look, row) if many else row.split) == name), key=lambda row: row.x)
        if not own:
            continue
        x, y = [row.x for row in own], [row.value for row in own]
        ax.plot(x, y, "-o", color=colour, markersize=3)
        if len(colours) <= MOST_BANDS and any(np.isfinite(row.interval.low) for row in own):
            low, high = ([getattr(row.interval, end) for row in own] for end in ("low", "high"))
            ax.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
        published = [(row.x, value) for row in own if (value := entry.paper(row)) is not None]
        if published:
            ax.plot(*zip(*published, strict=True), "o", markerfacecolor="none", markeredgecolor=colour, markersize=5.5)


def finish_panel(ax: Axes, look: Figure, title: str) -> None:
    """Set the scales and names of a panel, and draw the level that means nothing."""
    if look.level is not None:
        ax.axhline(look.level, color=MUTED, linewidth=0.7, linestyle=(0, (4, 3)))
    if look.log_x:
        ax.set_xscale("log", base=2)
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.xaxis.set_minor_locator(NullLocator())
    if look.log_y:
        ax.set_yscale("log")
    ax.set_xlabel(look.x)
    ax.set_ylabel(look.y)
    ax.set_title(title, loc="left", size=8.5, pad=5)
    ax.spines[["top", "right"]].set_visible(False)


def legend_for(colours: Mapping[str, str]) -> tuple[list[Line2D], list[str]]:
    """Handles and names of all lines of a figure for its legend, also of those that the last panel does not have."""
    return [Line2D([], [], color=colour, marker="o", markersize=3) for colour in colours.values()], list(colours)


def draw_pareto(ax: Axes, rows: Sequence[Row]) -> None:
    """RMSE against speed-up: curves over q of mode 2 and of its rivals, and the point of mode 1, per kind of solver."""
    for colour, solver in zip(COMPONENTS, (COMPILED, TWIN), strict=False):
        for name, line in ((MODE_2, "-o"), (RANDOM, ":"), (ORACLE, "--"), (MODE_1, "D")):
            speed = {row.x: row.value for row in chosen(rows, solver, name)}
            curve = sorted((speed[row.x], row.value) for row in chosen(rows, "rmse", name) if row.x in speed)
            if curve:
                label = f"{name}, {solver.removeprefix('speed-up over the ')}"
                ax.plot(*zip(*curve, strict=True), line, color=colour, markersize=3, label=label)
    ax.axvline(1, color=MUTED, linewidth=0.7, linestyle=(0, (4, 3)))
