"""A forecast beside what is known about it, in one row: input, true future, surrogate, error map, true error.

The first three share one scale, and so do the two errors: if the map is right, the last two panels look alike. Columns of which
nothing is known are left out. Fields are images or, on a line, curves; of a volume we see the middle slice. A row holds several
state vectors: balls in their box where they have a position, dots and bars otherwise.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from hybridworld.figures.scenes import draw_above, draw_perspective, draw_table
from hybridworld.figures.style import (
    BAR,
    COMPONENTS,
    FAINT,
    GAP,
    INK,
    LEFT,
    MUTED,
    VIEW,
    Page,
    Scale,
    draw_balls,
    draw_bar,
    draw_box,
    draw_field,
    identity,
    name_row,
    page,
    place,
    scale_of,
    span_of,
    style,
    values_of,
)  # fmt: skip
from hybridworld.figures.trajectories import drawn_of, sliced
from hybridworld.physics.spec import StateSpec

STATES = {"state": "input", "truth": "true future", "prediction": "surrogate"}
ERRORS = {"error_map": "error map", "error": "true error"}
HEAT = "YlOrRd"
PANELS, WIDEST = 9.4, 2.6  # inches: all panels of a row, and one panel
PLAIN = StrMethodFormatter("{x:g}")


@dataclass(frozen=True)
class ForecastRow:
    """A forecast beside what is known about it; of state vectors, several at once."""

    label: str
    state: np.ndarray  # (channels, *grid); of state vectors: (balls, channels)
    prediction: np.ndarray  # like the state
    error_map: np.ndarray | None = None  # (*grid), or (balls,)
    truth: np.ndarray | None = None  # like the state
    error: np.ndarray | None = None  # like the error map


class _Group(NamedTuple):
    """Panels that share a scale."""

    panels: Sequence[Axes]
    values: np.ndarray  # (panels, ...)

    @property
    def pairs(self) -> Iterator[tuple[Axes, np.ndarray]]:
        return zip(self.panels, self.values, strict=True)


class _Layout(NamedTuple):
    """Where panels stand: height over width of one, and inches around and between them."""

    ratio: float
    left: float
    middle: float  # between states and errors, beyond the gap
    right: float
    gap: float = GAP
    row_gap: float = GAP
    note: str = ""  # how the panel of the forecast shows the truth as well


def draw_forecasts(spec: StateSpec, rows: Sequence[ForecastRow], title: str, path: Path) -> None:
    """Write the picture of these forecasts as a PNG (or SVG, if the path ends so)."""
    with style():
        page_of_forecasts(spec, rows, title).savefig(path, format="svg" if path.suffix == ".svg" else "png")


def page_of_forecasts(spec: StateSpec, rows: Sequence[ForecastRow], title: str) -> Page:
    """A picture with one row of panels per forecast; all of them have the same parts.

    Lines of the title after the first become its subtitle.
    """
    draw = _draw_balls if spec.position else (_draw_dots, _draw_lines, _draw_images)[min(len(spec.grid), 2)]
    draw = _draw_scenes if spec.objects else draw
    states, errors = ([name for name in group if getattr(rows[0], name) is not None] for group in (STATES, ERRORS))
    headings, split, layout = [(STATES | ERRORS)[name] for name in states + errors], len(states), _layout(spec)
    headings[split - 1] += layout.note if "truth" in states else ""
    width = min(WIDEST, PANELS / len(headings)) * min(1, 2 / layout.ratio)
    height, lefts = width * layout.ratio, layout.left + (width + layout.gap) * np.arange(len(headings))
    lefts[split:] += layout.middle
    with style():
        body = len(rows) * (height + layout.row_gap) - layout.row_gap + 0.45
        figure, top = page(max(5, lefts[-1] + width + layout.right), body, sliced(spec, rows[0].state, title)[1])
        for number, row in enumerate(rows):
            down = top + number * (height + layout.row_gap)
            panels = [place(figure, left, down, width, height) for left in lefts]
            for ax, heading in zip(panels, headings if number == 0 else (), strict=False):
                ax.set_title(heading, size=8.5, pad=5)
            if row.label:
                name_row(figure, row.label, down, height)
            first, second = _group(spec, row, states, panels[:split]), _group(spec, row, errors, panels[split:])
            draw(spec, first, second, number == len(rows) - 1)
    return figure


def _group(spec: StateSpec, row: ForecastRow, names: Sequence[str], panels: Sequence[Axes]) -> _Group:
    return _Group(panels, np.array([sliced(spec, getattr(row, name), "")[0] for name in names]))


def _layout(spec: StateSpec) -> _Layout:
    sides = np.array([axis.high - axis.low for axis in spec.axes])
    if spec.objects:
        return _Layout(1.7, LEFT, 0.1, 0.65, row_gap=0.2, note=" (dashed: truth)")
    if spec.position:
        wide, high = sides @ np.abs(VIEW)  # the box on the page
        return _Layout(high / wide, 0.85, 0.1, 0.65, note=" (dots: truth)")
    if not spec.grid:
        ratio, names = np.clip(0.1 * len(spec.channels), 0.5, 1.5), max(map(len, spec.channels))
        return _Layout(float(ratio), 0.6 + 0.06 * names, 0.1, 0.25, gap=0.2, row_gap=0.3, note=" (lines: to truth)")
    if len(spec.grid) == 1:
        return _Layout(0.75, 1.0, 0.45, 0.2, gap=0.2, note=" (dashed: truth)")
    room = max(0.6, 0.1 + 0.065 * len(_drawn(spec, np.zeros((1, len(spec.channels))))[0]))
    return _Layout(sides[1] / sides[0], LEFT, room, room, row_gap=0.14)


def _bar_beside(ax: Axes, scale: Scale, label: str = "", share: float = 1.0) -> None:
    """A colour bar to the right of a panel, over that share of its height; it has a label where panels have headings."""
    figure, box = ax.get_figure(), ax.get_position()
    assert isinstance(figure, Figure)
    w, h = figure.get_size_inches()
    high = share * box.height * h
    bar = place(figure, box.x1 * w + GAP, h - (box.y0 + box.y1) / 2 * h - high / 2, BAR, high)
    draw_bar(figure, bar, ScalarMappable(scale.norm, scale.cmap), scale.extend, format=PLAIN)
    if ax.get_title():
        bar.set_title(label, loc="left", size=8, color=MUTED, pad=5)


def _error_scale(errors: _Group) -> Scale:
    """The colour scale of errors, which begins at 0."""
    norm, cmap, extend = scale_of(np.append(errors.values, 0.0), HEAT)
    norm.vmin = 0.0
    return Scale(norm, cmap, "max" if extend in ("max", "both") else "neither")


# Fields: of the one that `spec.draw` names, or a component of it; a vector by its magnitude.


def _drawn(spec: StateSpec, states: np.ndarray) -> tuple[str, np.ndarray]:
    return drawn_of(spec, next(each for each in spec.fields if spec.draw in spec.components(each)), states)


def _draw_images(spec: StateSpec, states: _Group, errors: _Group, last: bool) -> None:
    label, values = _drawn(spec, states.values)
    scale = scale_of(values)
    for ax, part in zip(states.panels, values, strict=True):
        draw_field(ax, spec.axes, part, scale, ticks=last and ax is states.panels[0])
    _bar_beside(states.panels[-1], scale, label)
    if errors.panels:
        scale = _error_scale(errors)
        for ax, part in errors.pairs:
            draw_field(ax, spec.axes, part, scale)
        _bar_beside(errors.panels[-1], scale)


def _draw_lines(spec: StateSpec, states: _Group, errors: _Group, last: bool) -> None:
    """Behind the forecast stands the truth, dashed."""
    (x,), (label, values) = spec.centres(), _drawn(spec, states.values)
    for ax, part in zip(states.panels, values, strict=True):
        ax.plot(x, part, color=COMPONENTS[1])
        ax.set(ylim=span_of(values))
    for truth in values[1:-1]:
        states.panels[-1].plot(x, truth, color=MUTED, linewidth=0.8, linestyle=(0, (3, 2)), zorder=1)
    for ax, part in errors.pairs:
        ax.fill_between(x, part, color=COMPONENTS[0], alpha=0.25, linewidth=0)
        ax.plot(x, part, color=COMPONENTS[0])
        ax.set(ylim=(0, span_of(errors.values)[1]))
    states.panels[0].set_ylabel(label)
    for ax in (*states.panels, *errors.panels):
        ax.set(xlim=(spec.axes[0].low, spec.axes[0].high), xlabel=spec.axes[0].name if last else "")
        ax.tick_params(labelbottom=last, labelleft=ax in (*states.panels[:1], *errors.panels[:1]))
        _quiet(ax)


# State vectors: a colour for each; thin lines lead from what is forecast to what is true.


def _draw_balls(spec: StateSpec, states: _Group, errors: _Group, last: bool) -> None:
    position = spec.position
    assert position
    places = [values_of(spec, position, part) for part in states.values]
    for ax in (*states.panels, *errors.panels):
        draw_box(ax, spec.axes, position.unit, ticks=last and ax is states.panels[0])
        ax.margins(0.02)
        ax.set(xlim=ax.get_xlim(), ylim=ax.get_ylim())  # a ball far away must not shrink the box
    for ax, points in zip(states.panels, places, strict=True):
        draw_balls(ax, spec.axes, points, identity(len(points)))
    for truth in places[1:-1]:
        x, y = np.moveaxis(np.stack([places[-1], truth]) @ VIEW, 2, 0)
        states.panels[-1].plot(x, y, color=INK, linewidth=0.7, zorder=3)
        states.panels[-1].scatter(x[1], y[1], s=5, color="white", edgecolor=INK, linewidth=0.5, zorder=4)
    if errors.panels:
        scale = _error_scale(errors)
        for ax, part in errors.pairs:
            draw_balls(ax, spec.axes, places[-1], ScalarMappable(scale.norm, scale.cmap).to_rgba(part))
        _bar_beside(errors.panels[-1], scale, share=0.6)


def _draw_scenes(spec: StateSpec, states: _Group, errors: _Group, last: bool) -> None:
    """In perspective and, below it, from above; errors colour the objects of the forecast."""
    own, scale = identity(states.values.shape[-1]), _error_scale(errors) if errors.panels else None
    heat = [ScalarMappable(scale.norm, scale.cmap).to_rgba(part) for part in errors.values] if scale else []
    shown = [(ax, state, own) for ax, state in states.pairs]
    shown += [(ax, states.values[-1], colours) for ax, colours in zip(errors.panels, heat, strict=True)]
    for ax, state, colours in shown:
        ax.set_axis_off()
        draw_perspective(ax.inset_axes((0, 0.6, 1, 0.4)), spec, state, colours)
        above = ax.inset_axes((0, 0, 1, 0.59))
        draw_table(above, spec, ticks=last and ax is states.panels[0])
        draw_above(above, spec, state, colours)
        if ax is states.panels[-1]:
            for truth in states.values[1:-1]:
                draw_above(above, spec, truth, own, outline=True)
    if scale:
        _bar_beside(errors.panels[-1], scale, share=0.6)


def _draw_dots(spec: StateSpec, states: _Group, errors: _Group, last: bool) -> None:
    """A line of dots per channel; of the errors, one bar per trajectory."""
    count, channels = states.values.shape[1:]
    colours, rows = identity(count), np.arange(channels)
    dots = colours.repeat(channels, axis=0)
    heights = rows + np.linspace(-0.3, 0.3, count + 2)[1:-1, None]  # (count, channels)
    for ax, part in states.pairs:
        ax.hlines(rows, 0, 1, color=FAINT, linewidth=0.5, transform=ax.get_yaxis_transform(), zorder=1)
        ax.scatter(part, heights, c=dots, s=12, linewidth=0, zorder=2)
        ax.set(xlim=span_of(states.values), ylim=(channels - 0.5, -0.5))
        ax.set_yticks(rows, spec.channels if ax is states.panels[0] else [""] * channels)
    for truth in states.values[1:-1]:
        states.panels[-1].hlines(heights.ravel(), truth.ravel(), states.values[-1].ravel(), color=dots, linewidth=0.8)
    for ax, part in errors.pairs:
        ax.barh(np.arange(count), part, color=colours, height=0.7)
        ax.set(xlim=(0, span_of(errors.values)[1]), ylim=(count - 0.4, -0.6), yticks=[])
    for ax in (*states.panels, *errors.panels):
        ax.tick_params(left=False)
        _quiet(ax)


def _quiet(ax: Axes) -> None:
    """Two spines, and few ticks with short numbers."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    ax.xaxis.set_major_formatter(PLAIN)
