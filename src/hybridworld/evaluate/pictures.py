"""Trajectories to look at: a page of small multiples (PNG), or a short film (GIF).

What is drawn follows from the spec alone. Fields on a plane are images, a line becomes a space-time image, of a volume we see
the middle slice, and a state vector becomes time series, beside its path through the box where it holds a position.
Lengths are inches from the top left corner of the page, so that whitespace stays the same whatever the number of panels.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from textwrap import wrap
from typing import Any, NamedTuple

import numpy as np
from matplotlib import colormaps, rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap, Normalize, PowerNorm, to_rgba
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import offset_copy
from PIL import Image

from hybridworld.physics.spec import Axis, Field, StateSpec

INK, MUTED, FAINT, WALLS = "#20242c", "#6d7480", "#c3c8d1", ("#f1f2f5", "#f7f8fa", "#eaecf0")
COMPONENTS = ("#c4473a", "#2f7f9e", "#6b8f3a", "#8a5aa8", "#d19a2a")
SEQUENTIAL, DIVERGING = ("magma", "YlGnBu_r", "YlOrBr_r"), "RdBu_r"
TIME = LinearSegmentedColormap.from_list("time", colormaps["plasma"](np.linspace(0, 0.9, 256)))  # its yellow is lost on white

WIDTH, COLUMNS, GAP, LEFT, RIGHT, BAR = 10.1, 6, 0.1, 0.75, 0.65, 0.09
PAGE_DPI, FILM_DPI = 200, 100
FILM_SIDE, FILM_FRAMES, FILM_STEP, FILM_REST = 5.12, 100, 50, 800  # the last two: milliseconds of a frame, and of the last
TRAIL = 30


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


def page(width: float, body: float, title: str, dpi: int = PAGE_DPI) -> tuple[Figure, float]:
    """A figure with its title (the first line) and subtitle (the rest), and how far down its body of that height begins."""
    head, *rest = title.splitlines() or [""]
    bold = wrap(head, int(9 * (width - 1.3)))  # leaves room for a clock
    lines = bold + [piece for line in rest for piece in wrap(line, int(15 * (width - 0.4)))]
    top = 0.46 + 0.19 * len(lines)
    figure = Figure(figsize=(width, round(top + body, 2)), dpi=dpi)
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


def spread(count: int, most: int) -> list[int]:
    """At most `most` indices, evenly spaced from the first to the last of `count`."""
    return np.linspace(0, count - 1, min(count, most)).round().astype(int).tolist()


def with_unit(text: str, unit: str, form: str = "{} ({})") -> str:
    """The text with its unit, unless that is 1."""
    return text if unit in ("", "1") else form.format(text, unit)


def time_label(spec: StateSpec, frame: int) -> str:
    """For example `t = 0.25 s`."""
    return with_unit(f"t = {frame * spec.frame_step:.3g}", spec.time_unit, "{} {}")


def values_of(spec: StateSpec, each: Field, states: np.ndarray) -> np.ndarray:
    """The channels of one field: (frames, components, *grid)."""
    return states[:, [spec.channels.index(name) for name in spec.components(each)]]


def drawn_of(spec: StateSpec, each: Field, states: np.ndarray) -> tuple[str, np.ndarray]:
    """The label and values (frames, *grid) by which we draw a field: a vector by its magnitude."""
    values = values_of(spec, each, states)
    if values.shape[1] == 1:
        return with_unit(each.name, each.unit), values[:, 0]
    return with_unit(f"|{each.name}|", each.unit), np.linalg.norm(values, axis=1)


def position_of(spec: StateSpec) -> Field | None:
    """The field that is a place in a box: in a state vector over three axes, the first vector that is measured in metres."""
    if spec.grid or len(spec.axes) != 3:
        return None
    return next((each for each in spec.fields if each.kind == "vector" and each.unit == "m"), None)


def sliced(spec: StateSpec, states: np.ndarray, title: str) -> tuple[np.ndarray, str]:
    """States cut through the middle of every grid axis beyond the second; the subtitle tells where."""
    for axis, centres in list(zip(spec.axes, spec.centres(), strict=False))[:1:-1]:
        middle = len(centres) // 2
        states, title = states[..., middle], f"{title}\nslice at {axis.name} = {centres[middle]:.3g}"
    return states, title


# The page.


def draw_trajectory(spec: StateSpec, states: np.ndarray, title: str, path: Path) -> None:
    """Write a PNG of the states (frames + 1, channels, *grid); lines of the title after the first become its subtitle."""
    with style():
        draw = _field_page if spec.grid else _vector_page
        draw(spec, *sliced(spec, states, title)).savefig(path, format="png")


def _field_page(spec: StateSpec, states: np.ndarray, title: str) -> Figure:
    """One row per field, the one of `spec.draw` first, and one column per time; a line has its times in one image."""
    fields = sorted(spec.fields, key=lambda each: spec.draw not in spec.components(each))
    if len(spec.grid) == 1:
        end = max(len(states) - 1, 1) * spec.frame_step
        axes, ratio, columns, frames = (Axis(with_unit("t", spec.time_unit), 0.0, end, "open"), *spec.axes), 0.16, 1, [0]
    else:
        axes, ratio = spec.axes, (spec.axes[1].high - spec.axes[1].low) / (spec.axes[0].high - spec.axes[0].low)
        columns = int(np.clip(np.ceil(COLUMNS * np.sqrt(ratio)), 3, COLUMNS))  # flat panels must be larger to be seen
        frames = spread(len(states), columns)
    width = min(1, 2 / ratio) * ((WIDTH + GAP) / columns - GAP)
    height = width * ratio
    figure, top = page(max(5, LEFT + len(frames) * (width + GAP) + RIGHT), len(fields) * (height + GAP) + 0.35, title)
    for row, each in enumerate(fields):
        label, values = drawn_of(spec, each, states)
        panels, down = values[None] if columns == 1 else values[frames], top + row * (height + GAP)
        scale = scale_of(panels, SEQUENTIAL[row % len(SEQUENTIAL)])
        for column, (frame, panel) in enumerate(zip(frames, panels, strict=True)):
            ax = place(figure, LEFT + column * (width + GAP), down, width, height)
            image = draw_field(ax, axes, panel, scale, ticks=(row, column) == (len(fields) - 1, 0))
            if row == 0 and columns > 1:
                ax.set_title(time_label(spec, frame), size=8, color=MUTED, pad=4)
        name_row(figure, label, down, height)
        draw_bar(figure, place(figure, LEFT + len(panels) * (width + GAP), down, BAR, height), image, scale.extend)
    if columns == 1:
        ax.xaxis.set_major_locator(MaxNLocator(8))
        ax.xaxis.labelpad = 2
    return figure


def name_row(figure: Figure, label: str, down: float, height: float) -> None:
    """The name of a row of panels of that height, in the left margin."""
    w, h = figure.get_size_inches()
    lines = label.split(" ") if 0.08 * len(label) > height else [label]
    size = min(9.5, 120 * height / max(map(len, lines)))
    turn = 90 if len(label) > 2 else 0
    figure.text(0.3 / w, 1 - (down + height / 2) / h, "\n".join(lines), rotation=turn, ha="center", va="center", size=size)


def _vector_page(spec: StateSpec, states: np.ndarray, title: str) -> Figure:
    """Time series of every field, beside the path through the box if there is a position."""
    position, side, rows = position_of(spec), 4.6, len(spec.fields)
    left, height = (side + 0.85, max(0.8, side / rows - 0.4)) if position else (LEFT, 1.1)
    figure, top = page(left + 4.75, max(rows * (height + 0.4), side if position else 0) + 0.35, title)
    for row, each in enumerate(spec.fields):
        ax = place(figure, left, top + 0.15 + row * (height + 0.4), 4.5, height)
        draw_series(ax, spec, each, values_of(spec, each, states))
        ax.tick_params(labelbottom=row == rows - 1)
    ax.set_xlabel(with_unit("t", spec.time_unit))
    if position:
        box = place(figure, 0.2, top - 0.1, side, side)
        draw_box(box, spec.axes, position.unit)
        line = draw_path(box, spec, values_of(spec, position, states))
        bar = place(figure, 0.75, top + side + 0.02, 1.9, BAR)
        draw_bar(figure, bar, line, orientation="horizontal")
        bar.text(1.05, 0.5, with_unit("t", spec.time_unit), transform=bar.transAxes, va="center")
        box.legend(loc="center left", bbox_to_anchor=(1.4, 0.5), ncols=2, bbox_transform=bar.transAxes)
    return figure


# The box: seen from the right, in front and above, without perspective; its left wall, rear wall and floor take the shadows.

VIEW = np.array([[0.848, -0.216], [0.530, 0.345], [0.0, 0.914]])
"""What a step along x, y and z is on the page: right and down, right and up, up."""

EDGES = (
    ((0, 0, 0), (0, -1), "center", "top"),
    ((1, 0, 0), (0.7, -0.7), "left", "top"),
    ((0, 0, 0), (-1, 0), "right", "center"),
)
"""Where the labels of x, y and z begin (a corner of the unit cube), and on which side of their edge they stand."""


def shadows(axes: tuple[Axis, ...], points: np.ndarray) -> list[np.ndarray]:
    """Points (count, 3) pressed on the left wall, the rear wall and the floor, as seen on the page."""
    walls = (axes[0].low, axes[1].high, axes[2].low)
    return [np.where(np.arange(3) == k, wall, points) @ VIEW for k, wall in enumerate(walls)]


def draw_box(ax: Axes, axes: tuple[Axis, ...], unit: str) -> None:
    """Two walls and the floor of the box, to scale, with the ends of its axes."""
    low, size = np.array([axis.low for axis in axes]), np.array([axis.high - axis.low for axis in axes])
    for k, (axis, (start, way, ha, va)) in enumerate(zip(axes, EDGES, strict=True)):
        ring = low + size * np.insert([[0, 0], [0, 1], [1, 1], [1, 0]], k, 0, axis=1)
        ax.fill(*shadows(axes, ring)[k].T, facecolor=WALLS[k], edgecolor=FAINT, linewidth=0.6, zorder=0)
        for share, text in ((0.05, f"{axis.low:g}"), (0.5, with_unit(axis.name, unit)), (0.95, f"{axis.high:g}")):
            spot = (low + size * (start + share * np.eye(3)[k])) @ VIEW + 0.02 * np.linalg.norm(size) * np.array(way)
            look: dict[str, Any] = {"size": 8} if share == 0.5 else {"size": 7, "color": MUTED}
            ax.annotate(text.replace("-", "\N{MINUS SIGN}"), spot, ha=ha, va=va, **look)
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


def pieces(points: np.ndarray) -> list[np.ndarray]:
    """A line as its straight pieces, which can differ in colour."""
    return list(np.stack([points[:-1], points[1:]], axis=1))


# The film.

Scene = tuple[Figure, Callable[[int], None]]


def animate_trajectory(
    spec: StateSpec, states: np.ndarray, title: str, path: Path, progress: Callable[[int, int], None] | None = None
) -> None:
    """Write a looping GIF of at most 100 of the states (frames + 1, channels, *grid); `progress` hears (done, total)."""
    scene = (_ball_scene if position_of(spec) else _series_scene, _line_scene, _plane_scene)[min(len(spec.grid), 2)]
    shown, pictures = spread(len(states), FILM_FRAMES), []
    with style():
        figure, show = scene(spec, *sliced(spec, states, title))
        w, h = figure.get_size_inches()
        clock, canvas = figure.text(1 - 0.2 / w, 1 - 0.32 / h, "", ha="right", size=9, color=MUTED), FigureCanvasAgg(figure)
        for done, frame in enumerate(shown, start=1):
            show(frame)
            clock.set_text(time_label(spec, frame))
            canvas.draw()
            pictures.append(Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3].copy()))
            if progress:
                progress(done, len(shown))
    write_film(pictures, path)


def write_film(pictures: list[Image.Image], path: Path) -> None:
    """A looping GIF with one palette for all pictures, so that nothing flickers and what stands still costs nothing."""
    codes = np.unique([np.asarray(pictures[i]) @ np.array([65536, 256, 1]) for i in spread(len(pictures), 8)])
    distinct = (codes[:, None] >> np.array([16, 8, 0]) & 255).astype(np.uint8)  # rare colours count like common ones
    palette = Image.fromarray(distinct[None]).quantize(256, Image.Quantize.MAXCOVERAGE)
    sheet = Image.new("RGB", (1, 1), "white")
    paper, *frames = [each.quantize(palette=palette, dither=Image.Dither.NONE) for each in (sheet, *pictures)]
    colours = np.array(palette.getpalette()).reshape(-1, 3)
    colours[paper.tobytes()[0]] = 255  # the nearest colour to white is a little grey
    for frame in frames:
        frame.putpalette(colours.ravel().tolist())
    durations = [FILM_STEP] * (len(frames) - 1) + [FILM_REST]
    frames[0].save(path, format="GIF", save_all=True, append_images=frames[1:], duration=durations, loop=0)


def _plane_scene(spec: StateSpec, states: np.ndarray, title: str) -> Scene:
    """The channel that `spec.draw` names."""
    values = states[:, spec.channels.index(spec.draw)]
    lengths = np.array([axis.high - axis.low for axis in spec.axes[:2]])
    width, height = np.round(FILM_SIDE * lengths / lengths.max(), 2)
    figure, top = page(width + 1.2, height + 0.35, title, FILM_DPI)
    scale = scale_of(values)
    image = draw_field(place(figure, 0.55, top, width, height), spec.axes, values[0], scale, ticks=True)
    image.set_interpolation("bilinear")
    draw_bar(figure, place(figure, 0.55 + width + GAP, top, BAR, height), image, scale.extend)
    return figure, lambda frame: image.set_data(values[frame].T)


def _line_scene(spec: StateSpec, states: np.ndarray, title: str) -> Scene:
    """The profile of the channel that `spec.draw` names."""
    values = states[:, spec.channels.index(spec.draw)]
    figure, top = page(5.6, 3.6, title, FILM_DPI)
    ax = place(figure, 0.75, top, 4.65, 3.1)
    (line,) = ax.plot(*spec.centres(), values[0], color=COMPONENTS[1])
    finite = np.ma.masked_invalid(values)
    room = 0.05 * np.ptp(finite) or 0.5
    ax.set(xlabel=spec.axes[0].name, ylabel=spec.draw, ylim=(finite.min() - room, finite.max() + room))
    ax.spines[["top", "right"]].set_visible(False)
    return figure, lambda frame: line.set_ydata(values[frame])


def _series_scene(spec: StateSpec, states: np.ndarray, title: str) -> Scene:
    """Time series that grow."""
    figure = _vector_page(spec, states, title)
    figure.set_dpi(FILM_DPI)
    lines = [(line, np.asarray(line.get_xydata())) for ax in figure.axes for line in ax.lines]

    def show(frame: int) -> None:
        for line, points in lines:
            line.set_data(*points[: frame + 1].T)

    return figure, show


def _ball_scene(spec: StateSpec, states: np.ndarray, title: str) -> Scene:
    """A ball with a fading trail, and its shadows."""
    position = position_of(spec)
    assert position
    path = values_of(spec, position, states)
    figure, top = page(5.2, 5.2, title, FILM_DPI)
    ax = place(figure, 0.1, top - 0.1, 5.0, 5.2)
    draw_box(ax, spec.axes, position.unit)
    looks = [(FAINT, 9), (FAINT, 9), (FAINT, 9), (COMPONENTS[0], 15)]
    trails = [ax.add_collection(LineCollection([], linewidth=1.8)) for _ in looks]
    balls = [ax.plot([], [], "o", color=colour, markersize=size)[0] for colour, size in looks]
    aside = offset_copy(ax.transData, figure, -2.5, 2.5, units="points")
    (shine,) = ax.plot([], [], "o", color="white", alpha=0.65, markersize=4, markeredgewidth=0, transform=aside)

    def show(frame: int) -> None:
        recent = path[max(0, frame - TRAIL) : frame + 1]
        views = [*shadows(spec.axes, recent), recent @ VIEW]
        for trail, ball, (colour, _), points in zip(trails, balls, looks, views, strict=True):
            trail.set(segments=pieces(points), color=[to_rgba(colour, share) for share in np.linspace(0, 1, len(points))[1:]])
            ball.set_data(*points[-1:].T)
        shine.set_data(*views[-1][-1:].T)

    return figure, show
