"""Error against milliseconds, on one page (PNG): what solvers offer, what lies behind them, and where a surrogate stands."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedFormatter, FixedLocator, LogLocator, NullLocator
from matplotlib.transforms import Bbox

from hybridworld.figures.style import COMPONENTS, FAINT, MUTED, WALLS, page, place, style

PANEL, HEIGHT, LEFT, GAP, ROW = 4.1, 3.1, 0.75, 0.45, 4.0  # inches
DEPTH = 1e-4
"""Errors below this share of the largest one, or of a deviation, are drawn as none."""
COLOURS = {"twin": MUTED, "reference": COMPONENTS[1], "solver": COMPONENTS[1], "mode 1": COMPONENTS[0], "mode 2": COMPONENTS[0]}
MARKS = {"twin": "s", "reference": "D", "solver": "D", "mode 1": "o", "mode 2": "o"}
SOLVERS, LEARNED = ("twin", "reference", "solver"), ("mode 1", "mode 2")
SPOTS = [(7, 0, "left"), (-7, 0, "right"), (0, 9, "center"), (0, -9, "center")]
SPOTS += [(x, y, "left" if x > 0 else "right") for far in (8, 14, 20, 27) for x in (6, -6, 16, -16) for y in (far, -far)]
SPOTS += [(18, 0, "left"), (-18, 0, "right"), (0, 18, "center"), (0, -18, "center")]
"""Where the name of a point may stand, in points from it."""


@dataclass(frozen=True)
class Point:
    """One method in a panel: its name, its kind (a key of `COLOURS`), milliseconds per state and error in deviations."""

    name: str
    kind: str
    ms: float
    error: float


@dataclass(frozen=True)
class Panel:
    """What one panel shows."""

    title: str
    headline: str
    """The sentence about who wins, of one line or two."""
    points: Sequence[Point]
    levels: Mapping[str, float | None]
    """Errors at which a line is drawn, by the name of the line; None draws none."""


def draw_frontiers(rows: Sequence[Sequence[Panel]], path: Path, title: str) -> None:
    """Draw the panels row by row. Lines of the title after the first are its subtitle."""
    with style():
        figure, top = page(LEFT + 2 * PANEL + GAP + 0.3, ROW * len(rows), title)
        for down, row in enumerate(rows):
            for across, panel in enumerate(row):
                ax = place(figure, LEFT + across * (PANEL + GAP), top + 0.25 + down * ROW, PANEL, HEIGHT)
                _draw_panel(ax, panel)
                if across == 0:
                    ax.set_ylabel("error against the reference (deviations)")
                else:
                    ax.tick_params(labelleft=False)
        figure.savefig(path, format="png")


def _draw_panel(ax: Axes, panel: Panel) -> None:
    points = panel.points
    floor, top = error_range(point.error for point in points)
    spots = {point: (point.ms, max(point.error, floor)) for point in points}
    x = np.array([point.ms for point in points])
    room = max((x.max() / x.min()) ** 0.2, 1.7)
    ax.set(xscale="log", yscale="log", xlim=(x.min() / room, x.max() * room), ylim=(floor / (top / floor) ** 0.09, top))
    solvers = [point for point in points if point.kind in SOLVERS]
    _shade([spots[point] for point in solvers], ax)
    taken = [_box(ax, spot, 3.5) for spot in spots.values()]
    for kinds in (("reference", "solver"), LEARNED):
        family = sorted((point for point in points if point.kind in kinds), key=lambda point: point.error)
        line = [spots[point] for point in family if kinds is LEARNED or not _behind(point, family)]
        ax.plot(*np.reshape(line, (-1, 2)).T, color=COLOURS[kinds[0]], linewidth=1, alpha=0.7, zorder=2)
        taken += [_box(ax, spot, 0.5) for spot in _along(line)]
    for point in points:
        look = "white" if point.kind == "mode 2" else COLOURS[point.kind]
        ax.plot(*spots[point], MARKS[point.kind], color=look, markeredgecolor=COLOURS[point.kind], markersize=5, zorder=3)
    _axes_in_words(ax, floor)
    taken += _draw_levels(ax, panel.levels, floor, taken)
    learned = next((spots[point][1] for point in points if point.kind == "mode 1"), floor)
    for point in sorted(points, key=lambda point: (point.kind == "solver", abs(np.log(spots[point][1] / learned)))):
        if point.kind != "solver" or not _behind(point, solvers):
            _name(ax, point, spots[point], taken)
    ax.set_title(panel.title, loc="left", size=9, pad=18 + 10 * panel.headline.count("\n"))
    ax.annotate(panel.headline, (0, 1), (0, 6), xycoords="axes fraction", textcoords="offset points", color=MUTED)
    ax.set_xlabel("milliseconds per state")
    ax.spines[["top", "right"]].set_visible(False)


def error_range(errors: Iterable[float]) -> tuple[float, float]:
    """Where "no error" is drawn, and the top of the axis."""
    errors = list(errors)
    seen = [error for error in errors if error > DEPTH * max(*errors, 1)] or [0.1]
    return min(seen) / 3, 2 * max(*seen, 3 * min(seen))


def _behind(point: Point, family: Iterable[Point]) -> bool:
    """Whether another one is both faster and at least as accurate."""
    return any(each.error <= point.error and each.ms < point.ms for each in family)


def _shade(solvers: Sequence[tuple[float, float]], ax: Axes) -> None:
    """The region of the slower and less accurate: behind one solver or another."""
    steps = sorted(solvers)
    x = [ms for ms, _ in steps] + [ax.get_xlim()[1]]
    y = np.minimum.accumulate([error for _, error in steps])
    ax.fill_between(x, [*y, y[-1]], ax.get_ylim()[1], step="post", color=WALLS[2], linewidth=0, zorder=0)


def _draw_levels(ax: Axes, levels: Mapping[str, float | None], floor: float, taken: list[Bbox]) -> list[Bbox]:
    """A line with its name at each of these errors, and what stands in the shaded corner: their boxes."""
    texts = [ax.annotate("solvers are faster and more accurate here", (1, 1), (-5, -4), xycoords="axes fraction",
                         textcoords="offset points", ha="right", va="top", size=7, color=MUTED)]  # fmt: skip
    for name, level in levels.items():
        if level is None or not floor < level < ax.get_ylim()[1]:
            continue
        ax.axhline(level, color=FAINT, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
        for share, side in ((0.01, "left"), (0.99, "right"), (0.5, "center")):
            text = ax.annotate(name, (share, level), (0, 2), xycoords=("axes fraction", "data"),
                               textcoords="offset points", ha=side, va="bottom", size=7, color=MUTED)  # fmt: skip
            if not _touches(text.get_window_extent(), taken):
                break
            if side != "center":
                text.remove()
        texts.append(text)
    return [text.get_window_extent() for text in texts]


def _name(ax: Axes, point: Point, spot: tuple[float, float], taken: list[Bbox]) -> None:
    """Write a point's name where it touches nothing else, with a thin line to it if that is not beside it.

    A solver for whose name there is no room has none.
    """
    for x, y, side in SPOTS:
        text = ax.annotate(point.name, spot, (x, y), textcoords="offset points", ha=side, va="center", size=7,
                           color=COLOURS[point.kind], zorder=4)  # fmt: skip
        box = text.get_window_extent()
        inside = ax.bbox.contains(box.x0, box.y0) and ax.bbox.contains(box.x1, box.y1)
        if (inside and not _touches(box, taken)) or (point.kind != "solver" and (x, y, side) == SPOTS[-1]):
            break
        text.remove()
    else:
        return
    if np.hypot(x, y) > 12:
        line = {"arrowstyle": "-", "color": FAINT, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 3}
        ax.annotate("", spot, (x, y - 3 * np.sign(y)), textcoords="offset points", arrowprops=line, zorder=1)
    taken.append(box)


def _touches(box: Bbox, others: Iterable[Bbox]) -> bool:
    return any(box.padded(4).overlaps(other) for other in others)  # pixels


def _box(ax: Axes, point: tuple[float, float], half: float) -> Bbox:
    """What a marker of that half size, in points, covers on the page."""
    centre, half = ax.transData.transform(point), half * ax.figure.dpi / 72
    return Bbox([centre - half, centre + half])


def _along(line: Sequence[tuple[float, float]], pieces: int = 40) -> Iterator[tuple[float, float]]:
    """Points on a line that is straight on logarithmic axes."""
    logs = np.log(np.reshape(line, (-1, 2)))
    for start, end in pairwise(logs):
        yield from (tuple(np.exp(start + share * (end - start))) for share in np.linspace(0, 1, pieces))


def _axes_in_words(ax: Axes, floor: float) -> None:
    """Ticks as people write them; the lowest error on the page stands for none."""
    for axis, (low, high) in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
        subs = [1.0, 2.0, 5.0] if high < 300 * low else [1.0]
        ticks = [each for each in LogLocator(subs=subs, numticks=20).tick_values(low, high) if low <= each <= high]
        if axis is ax.yaxis:
            ticks = [floor, *(each for each in ticks if each > 1.3 * floor)]
        axis.set_major_locator(FixedLocator(ticks))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(
            FixedFormatter(["≈ 0" if axis is ax.yaxis and k == 0 else f"{t:g}" for k, t in enumerate(ticks)])
        )
