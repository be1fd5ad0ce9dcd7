"""Trajectories to look at: a page of small multiples (PNG), or a short film (GIF).

What is drawn follows from the spec alone. Fields on a plane are images, a line becomes a space-time image, of a volume we see
the middle slice, and a state vector becomes time series, beside its path through the box where it holds a position. Objects are
scenes, in perspective and from above.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import offset_copy
from PIL import Image

from hybridworld.figures.scenes import draw_above, draw_perspective, draw_table, draw_trails
from hybridworld.figures.style import (
    BAR,
    COLUMNS,
    COMPONENTS,
    FAINT,
    GAP,
    LEFT,
    MUTED,
    RIGHT,
    SEQUENTIAL,
    VIEW,
    WIDTH,
    Page,
    draw_bar,
    draw_box,
    draw_field,
    draw_path,
    draw_series,
    identity,
    name_row,
    page,
    pieces,
    place,
    scale_of,
    shadows,
    span_of,
    style,
    time_label,
    values_of,
    with_unit,
)  # fmt: skip
from hybridworld.physics.spec import Axis, Field, StateSpec
from hybridworld.physics.task import Mark

FILM_DPI = 100
FILM_SIDE, FILM_FRAMES, FILM_STEP, FILM_REST = 5.12, 100, 50, 800  # the last two: milliseconds of a frame, and of the last
TRAIL = 30


def spread(count: int, most: int) -> list[int]:
    """At most `most` indices, evenly spaced from the first to the last of `count`."""
    return np.linspace(0, count - 1, min(count, most)).round().astype(int).tolist()


def drawn_of(spec: StateSpec, each: Field, states: np.ndarray) -> tuple[str, np.ndarray]:
    """The label and values (frames, *grid) by which we draw a field: a vector by its magnitude."""
    values = values_of(spec, each, states)
    if values.shape[1] == 1:
        return with_unit(each.name, each.unit), values[:, 0]
    return with_unit(f"|{each.name}|", each.unit), np.linalg.norm(values, axis=1)


def sliced(spec: StateSpec, states: np.ndarray, title: str) -> tuple[np.ndarray, str]:
    """States cut through the middle of every grid axis beyond the second; the subtitle tells where."""
    for axis, centres in list(zip(spec.axes, spec.centres(), strict=False))[:1:-1]:
        middle = len(centres) // 2
        states, title = states[..., middle], f"{title}\nslice at {axis.name} = {centres[middle]:.3g}"
    return states, title


# The page.


def trajectory_page(spec: StateSpec, states: np.ndarray, title: str) -> Page:
    """A picture of the states (frames + 1, channels, *grid); lines of the title after the first become its subtitle."""
    with style():
        drawn = _objects_page if spec.objects else _field_page if spec.grid else _vector_page
        return drawn(spec, *sliced(spec, states, title))


def draw_trajectory(spec: StateSpec, states: np.ndarray, title: str, path: Path) -> None:
    """Write the picture of a trajectory as a PNG."""
    with style():
        trajectory_page(spec, states, title).savefig(path, format="png")


def _field_page(spec: StateSpec, states: np.ndarray, title: str) -> Page:
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


def _vector_page(spec: StateSpec, states: np.ndarray, title: str) -> Page:
    """Time series of every field, beside the path through the box if there is a position."""
    position, side, rows = spec.position, 4.6, len(spec.fields)
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


def _objects_page(spec: StateSpec, states: np.ndarray, title: str) -> Page:
    """One column per time: in perspective, and from above with the way since the beginning."""
    frames = spread(len(states), 4)
    width = (WIDTH + GAP) / len(frames) - GAP
    figure, top = page(WIDTH + 0.4, 1.75 * width + 0.45, title)
    colours = identity(states.shape[2])
    for column, frame in enumerate(frames):
        left = 0.2 + column * (width + GAP)
        ax = place(figure, left, top, width, 0.7 * width)
        ax.set_title(time_label(spec, frame), size=8, color=MUTED, pad=4)
        draw_perspective(ax, spec, states[frame], colours)
        ax = place(figure, left, top + 0.75 * width, width, width)
        draw_table(ax, spec)
        draw_trails(ax, spec, states[: frame + 1], colours)
        draw_above(ax, spec, states[frame], colours)
    return figure


# The film.

Scene = tuple[Figure, Callable[[int], None]]


def animate_trajectory(
    spec: StateSpec,
    states: np.ndarray,
    title: str,
    path: Path,
    progress: Callable[[int, int], None] | None = None,
    mark: Mark | None = None,
) -> None:
    """Write a looping GIF of at most 100 of the states (frames + 1, channels, *grid); `progress` hears (done, total).

    `mark` is a place, which gets a ring in the colour of the object that belongs there.
    """
    scene = (_ball_scene if spec.position else _series_scene, _line_scene, _plane_scene)[min(len(spec.grid), 2)]
    scene = partial(_objects_scene, mark=mark) if spec.objects else scene
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


def picture(spec: StateSpec, state: np.ndarray, title: str, mark: Mark | None = None) -> np.ndarray:
    """One state as an image, bytes (height, width, 3)."""
    with style():
        if spec.objects:
            figure: Figure = _objects_scene(spec, state[None], title, mark)[0]
        else:
            figure = trajectory_page(spec, state[None], title)
            figure.set_dpi(FILM_DPI)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        return np.asarray(canvas.buffer_rgba())[..., :3].copy()


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
    """The animation of the channel that `spec.draw` names."""
    values = states[:, spec.channels.index(spec.draw)]
    lengths = np.array([axis.high - axis.low for axis in spec.axes[:2]])
    width, height = np.round(FILM_SIDE * lengths / lengths.max(), 2)
    figure, top = page(width + 1.2, height + 0.35, title, FILM_DPI)
    scale = scale_of(values)
    ax = place(figure, 0.55, top, width, height)
    ax.set_title(spec.draw, loc="left", size=9, pad=4)
    image = draw_field(ax, spec.axes, values[0], scale, ticks=True)
    image.set_interpolation("bilinear")
    draw_bar(figure, place(figure, 0.55 + width + GAP, top, BAR, height), image, scale.extend)
    return figure, lambda frame: image.set_data(values[frame].T)


def _line_scene(spec: StateSpec, states: np.ndarray, title: str) -> Scene:
    """The animation of the profile of the channel that `spec.draw` names."""
    values = states[:, spec.channels.index(spec.draw)]
    figure, top = page(5.6, 3.6, title, FILM_DPI)
    ax = place(figure, 0.75, top, 4.65, 3.1)
    (line,) = ax.plot(*spec.centres(), values[0], color=COMPONENTS[1])
    ax.set(xlabel=spec.axes[0].name, ylabel=spec.draw, ylim=span_of(values))
    ax.spines[["top", "right"]].set_visible(False)
    return figure, lambda frame: line.set_ydata(values[frame])


def _objects_scene(spec: StateSpec, states: np.ndarray, title: str, mark: Mark | None = None) -> Scene:
    """Objects in perspective."""
    figure, top = page(5.2, 3.9, title, FILM_DPI)
    ax, colours = place(figure, 0.1, top - 0.1, 5.0, 3.9), identity(states.shape[2])

    def show(frame: int) -> None:
        ax.clear()
        draw_perspective(ax, spec, states[frame], colours, mark)

    show(0)
    return figure, show


def _series_scene(spec: StateSpec, states: np.ndarray, title: str) -> Scene:
    """The animation of time series that grow."""
    figure = _vector_page(spec, states, title)
    figure.set_dpi(FILM_DPI)
    lines = [(line, np.asarray(line.get_xydata())) for ax in figure.axes for line in ax.lines]

    def show(frame: int) -> None:
        for line, points in lines:
            line.set_data(*points[: frame + 1].T)

    return figure, show


def _ball_scene(spec: StateSpec, states: np.ndarray, title: str) -> Scene:
    """The animation of a ball with a fading trail, and its shadows."""
    position = spec.position
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
