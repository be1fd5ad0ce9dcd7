"""The panels our figures are made of, and the look they share.

Lengths are inches from the top left corner of the page, so that whitespace stays the same whatever the number of panels.
"""

from contextlib import AbstractContextManager
from io import BytesIO
from textwrap import wrap
from typing import Any, NamedTuple

import numpy as np
from matplotlib import colormaps, rc_context
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PatchCollection
from matplotlib.colors import LinearSegmentedColormap, Normalize, PowerNorm
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Circle, Polygon
from matplotlib.ticker import MaxNLocator

from hybridworld.physics.spec import Axis, Field, StateSpec

INK, MUTED, FAINT, WALLS = "#20242c", "#6d7480", "#c3c8d1", ("#f1f2f5", "#f7f8fa", "#eaecf0")
COMPONENTS = ("#c4473a", "#2f7f9e", "#6b8f3a", "#8a5aa8", "#d19a2a")
SEQUENTIAL, DIVERGING = ("magma", "YlGnBu_r", "YlOrBr_r"), "RdBu_r"
TIME = LinearSegmentedColormap.from_list("time", colormaps["plasma"](np.linspace(0, 0.9, 256)))  # its yellow is lost on white

WIDTH, COLUMNS, GAP, LEFT, RIGHT, BAR = 10.1, 6, 0.1, 0.75, 0.65, 0.09
PAGE_DPI, SCREEN_DPI = 200, 90


def style() -> AbstractContextManager[None]:
    """The look that our figures share, as a context: thin frames, small grey ticks."""
    return rc_context(
        {
            "font.size": 8, "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": MUTED, "axes.linewidth": 0.5,
            "xtick.color": MUTED, "ytick.color": MUTED, "xtick.labelsize": 7, "ytick.labelsize": 7,
            "xtick.major.size": 2.5, "ytick.major.size": 2.5, "xtick.major.width": 0.5, "ytick.major.width": 0.5,
            "lines.linewidth": 1.2, "legend.frameon": False, "legend.fontsize": 7, "legend.handlelength": 1.4,
        }
    )  # fmt: skip


class Page(Figure):
    """A figure that a notebook shows by itself, with or without pyplot."""

    def _repr_png_(self) -> bytes:
        image = BytesIO()
        with style():
            self.savefig(image, format="png", dpi=SCREEN_DPI)
        return image.getvalue()


def page(width: float, body: float, title: str, dpi: int = PAGE_DPI) -> tuple[Page, float]:
    """A figure with its title (the first line) and subtitle (the rest), and how far down its body of that height begins."""
    head, *rest = title.splitlines() or [""]
    bold = wrap(head, int(9 * (width - 1.3)))  # leaves room for a clock
    kept = [line.replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}") for line in rest]
    lines = bold + [piece for line in kept for piece in wrap(line, int(15 * (width - 0.4)))]
    top = 0.46 + 0.19 * len(lines)
    figure = Page(figsize=(width, round(top + body, 2)), dpi=dpi)
    for row, line in enumerate(lines):
        look: dict[str, Any] = {"size": 11, "weight": "bold"} if row < len(bold) else {"size": 8, "color": MUTED}
        figure.text(0.2 / width, 1 - (0.32 + 0.19 * row) / figure.get_figheight(), line, **look)
    return figure, top


def place(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Axes at that place of the page."""
    w, h = figure.get_size_inches()
    return figure.add_axes((left / w, 1 - (top + height) / h, width / w, height / h))


class Scale(NamedTuple):
    """How values become colours; `extend` tells which ends of their range are cut."""

    norm: Normalize
    cmap: str
    extend: str = "neither"


def scale_of(values: np.ndarray, cmap: str = SEQUENTIAL[0]) -> Scale:
    """Colours in which the eye sees the structure of the values, even if a few of them reach far beyond the rest.

    Such extremes are cut; below a peak over values that are never negative, colours go with the square root, since what
    follows a peak is its decay. Values of both signs get diverging colours around 0.
    """
    finite = values[np.isfinite(values)]
    if not finite.size:
        return Scale(Normalize(0, 1), cmap)
    bottom, low, high, top = (float(q) for q in np.percentile(finite, (0, 0.1, 99.9, 100)))
    reach = 0.5 * (high - low)
    cut_low, cut_high = bottom < low - reach, top > high + reach
    low, high = low if cut_low else bottom, high if cut_high else top
    extend = ("neither", "min", "max", "both")[cut_low + 2 * cut_high]
    if min(-low, high) > 0.1 * max(-low, high):
        return Scale(Normalize(-max(-low, high), max(-low, high)), DIVERGING, extend)
    if low == high:
        low, high = low - 0.5, high + 0.5
    return Scale(PowerNorm(0.5, low, high) if cut_high and bottom >= 0 else Normalize(low, high), cmap, extend)


def draw_field(ax: Axes, axes: tuple[Axis, ...], values: np.ndarray, scale: Scale, ticks: bool = False) -> AxesImage:
    """One panel: values (x, y) as an image, x to the right and y upwards; ticks at most at the ends of the axes."""
    x, y = axes[:2]
    extent = (x.low, x.high, y.low, y.high)
    image = ax.imshow(values.T, origin="lower", extent=extent, aspect="auto", norm=scale.norm, cmap=scale.cmap)
    ax.set(xticks=extent[:2] if ticks else [], yticks=extent[2:] if ticks else [])
    if ticks:
        ax.set_xlabel(x.name, labelpad=-7, style="italic", color=MUTED)
        ax.set_ylabel(y.name, labelpad=-7, style="italic", color=MUTED)
    return image


def span_of(values: np.ndarray) -> tuple[float, float]:
    """The range of the values with some room, as limits of an axis."""
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    room = 0.05 * (high - low) or 0.5
    return low - room, high + room


def draw_bar(figure: Figure, bar: Axes, drawn: Any, extend: str = "neither", **options: Any) -> None:
    """A slim colour bar for what was drawn."""
    ticks = MaxNLocator(4, steps=[1, 2, 5, 10])
    colours = figure.colorbar(drawn, cax=bar, extend=extend, extendfrac=0.06, ticks=ticks, **options)
    colours.outline.set_linewidth(0.5)


def draw_series(ax: Axes, spec: StateSpec, each: Field, values: np.ndarray) -> None:
    """One panel: a line over time for each component of a field (frames, components)."""
    names = spec.components(each)
    for name, column, colour in zip(names, values.T, COMPONENTS * len(names), strict=False):
        ax.plot(np.arange(len(values)) * spec.frame_step, column, color=colour, label=name.removeprefix(f"{each.name}_"))
    ax.set_title(with_unit(each.name, each.unit), loc="left", size=8, pad=5)
    ax.spines[["top", "right"]].set_visible(False)
    ax.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    ax.margins(x=0.01, y=0.1)
    if len(names) > 1:
        ax.legend(loc="lower right", bbox_to_anchor=(1, 1.03), ncols=len(names), borderpad=0.2, borderaxespad=0)


def with_unit(text: str, unit: str, form: str = "{} ({})") -> str:
    """The text with its unit, unless that is 1."""
    return text if unit in ("", "1") else form.format(text, unit)


def time_label(spec: StateSpec, frame: int) -> str:
    """The label of a time, for example `t = 0.25 s`."""
    return with_unit(f"t = {frame * spec.frame_step:.3g}", spec.time_unit, "{} {}")


def values_of(spec: StateSpec, each: Field, states: np.ndarray) -> np.ndarray:
    """The channels of one field: (frames, components, *grid)."""
    return states[:, [spec.channels.index(name) for name in spec.components(each)]]


def name_row(figure: Figure, label: str, down: float, height: float) -> None:
    """The name of a row of panels of that height, in the left margin."""
    w, h = figure.get_size_inches()
    lines = label.split(" ") if 0.08 * len(label) > height else [label]
    size = min(9.5, 120 * height / max(map(len, lines)))
    turn = 90 if len(label) > 2 else 0
    figure.text(0.3 / w, 1 - (down + height / 2) / h, "\n".join(lines), rotation=turn, ha="center", va="center", size=size)


# The box: seen from the right, in front and above, without perspective; its left wall, rear wall and floor take the shadows.

VIEW = np.array([[0.848, -0.216], [0.530, 0.345], [0.0, 0.914]])
"""What a step along x, y and z is on the page: right and down, right and up, up."""

EDGES = (
    ((0, 0, 0), (0, -1), "center", "top"),
    ((1, 0, 0), (0.7, -0.7), "left", "top"),
    ((0, 0, 0), (-1, 0), "right", "center"),
)
"""Where the labels of x, y and z begin (a corner of the unit cube), and on which side of their edge they stand."""


BALL = 0.05
"""The radius of a ball, as a share of the shortest side of its box."""


def shadows(axes: tuple[Axis, ...], points: np.ndarray) -> list[np.ndarray]:
    """Points (count, 3) pressed on the left wall, the rear wall and the floor, as seen on the page."""
    walls = (axes[0].low, axes[1].high, axes[2].low)
    return [np.where(np.arange(3) == k, wall, points) @ VIEW for k, wall in enumerate(walls)]


def draw_box(ax: Axes, axes: tuple[Axis, ...], unit: str, ticks: bool = True) -> None:
    """Two walls and the floor of the box, to scale, with the names and ends of its axes."""
    low, size = np.array([axis.low for axis in axes]), np.array([axis.high - axis.low for axis in axes])
    for k, (axis, (start, way, ha, va)) in enumerate(zip(axes, EDGES, strict=True)):
        ring = low + size * np.insert([[0, 0], [0, 1], [1, 1], [1, 0]], k, 0, axis=1)
        ax.fill(*shadows(axes, ring)[k].T, facecolor=WALLS[k], edgecolor=FAINT, linewidth=0.6, zorder=0)
        labels = ((0.05, f"{axis.low:g}"), (0.5, with_unit(axis.name, unit)), (0.95, f"{axis.high:g}")) if ticks else ()
        for share, text in labels:
            spot = (low + size * (start + share * np.eye(3)[k])) @ VIEW + 0.02 * np.linalg.norm(size) * np.array(way)
            look: dict[str, Any] = {"size": 8} if share == 0.5 else {"size": 7, "color": MUTED}
            ax.annotate(text.replace("-", "\N{MINUS SIGN}"), spot, ha=ha, va=va, annotation_clip=False, **look)
    ax.set_aspect("equal")
    ax.margins(x=0.09, y=0.07)
    ax.set_axis_off()


def draw_path(ax: Axes, spec: StateSpec, path: np.ndarray) -> LineCollection:
    """A path (frames, 3) through the box, coloured by time, with its shadows, beginning and end."""
    for flat in shadows(spec.axes, path):
        ax.plot(*flat.T, color=FAINT, linewidth=0.9, zorder=1)
    points, time = path @ VIEW, np.arange(len(path)) * spec.frame_step
    line = LineCollection(pieces(points), cmap=TIME, norm=Normalize(0, max(time[-1], spec.frame_step)), linewidth=1.8, zorder=2)
    line.set(array=time[1:], capstyle="round")
    ax.add_collection(line, autolim=False)
    for point, colour, name in ((points[0], "white", "start"), (points[-1], INK, "end")):
        ax.plot(*point, "o", color=colour, markeredgecolor=INK, markersize=5.5, label=name, zorder=3)
    return line


def draw_balls(ax: Axes, axes: tuple[Axis, ...], points: np.ndarray, colours: np.ndarray) -> None:
    """Balls at points (balls, 3) of the box, the nearer before the farther, each above its shadow on the floor."""
    radius, turn = BALL * min(axis.high - axis.low for axis in axes), np.linspace(0, 2 * np.pi, 40)
    ring = radius * np.stack([np.cos(turn), np.sin(turn), 0 * turn], axis=1) @ VIEW
    feet, centres = shadows(axes, points)[2], points @ VIEW
    ax.add_collection(PatchCollection([Polygon(foot + ring) for foot in feet], color=FAINT, linewidth=0, alpha=0.8, zorder=1))
    ax.vlines(centres[:, 0], feet[:, 1], centres[:, 1], color=MUTED, linewidth=0.4, zorder=1)
    order = np.argsort(points @ np.cross(*VIEW.T))  # towards the eye
    discs = [Circle(centre, radius) for centre in centres[order]]
    ax.add_collection(PatchCollection(discs, facecolor=colours[order], edgecolor=INK, linewidth=0.4, zorder=2))


def pieces(points: np.ndarray) -> list[np.ndarray]:
    """A line as its straight pieces, which can differ in colour."""
    return list(np.stack([points[:-1], points[1:]], axis=1))
