"""Sets of objects to look at: from above, to scale, and in perspective; each object has a colour, for example of its error.

What an object looks like follows from the spec: its place is the first vector in metres, its extent the field of that kind
(half length, width and height), its orientation the first two vectors without a unit. Where these are zero it is round: a ball,
or an upright cylinder if its extents differ.
"""

from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.colors import to_rgb
from matplotlib.patches import Polygon
from scipy.spatial import ConvexHull

from hybridworld.figures.style import FAINT, INK, MUTED, WALLS, values_of, with_unit
from hybridworld.physics.spec import StateSpec
from hybridworld.physics.task import Mark

SMALL = 0.02  # of the shortest side: the extent of objects that have none
ROUND = np.stack([np.cos(np.linspace(0, 2 * np.pi, 33)[:-1]), np.sin(np.linspace(0, 2 * np.pi, 33)[:-1])], axis=1)
CORNERS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
FACES = [[0, 1, 3, 2], [4, 5, 7, 6], [0, 1, 5, 4], [2, 3, 7, 6], [0, 2, 6, 4], [1, 3, 7, 5]]
"""Corners of each face, in turn."""
LIGHT = np.array([-0.4, -0.5, 0.75])
EYE, DISTANCE = np.array([0.55, -1.0, 1.05]), 2.6
"""Where the camera stands, seen from the middle of the box, and how far away, in sides of the box."""


Face = tuple[np.ndarray, np.ndarray]
"""Its corners in turn (corners, 3), and its normal."""


class Bodies(NamedTuple):
    """Places (n, 3), half extents (n, 3), rotations (n, 3, 3), and which bodies are round."""

    places: np.ndarray
    extents: np.ndarray
    turns: np.ndarray
    round: np.ndarray

    def corners(self, k: int) -> np.ndarray:
        """The corners of a box, or points on the rims of a round body: (points, 3)."""
        if not self.round[k]:
            return self.places[k] + CORNERS * self.extents[k] @ self.turns[k].T
        radius, _, height = self.extents[k]
        return np.concatenate(
            [np.column_stack([radius * ROUND, np.full(len(ROUND), z)]) + self.places[k] for z in (-height, height)]
        )

    def is_ball(self, k: int) -> bool:
        """Whether body k is round in every direction."""
        return bool(self.round[k] and np.ptp(self.extents[k]) < 1e-6)


def bodies_of(spec: StateSpec, state: np.ndarray) -> Bodies:
    """The bodies of a state (channels, n)."""
    assert spec.position
    pointing = [each for each in spec.fields if each.kind == "vector" and each.unit == "1"][:2]
    extent = next((each for each in spec.fields if each.kind == "extent"), None)
    found = [values_of(spec, each, state[None])[0].T for each in (spec.position, *([extent] if extent else []), *pointing)]
    places, count = found[0], state.shape[1]
    small = SMALL * min(axis.high - axis.low for axis in spec.axes)
    extents = np.abs(found[1]) if extent else np.full((count, 3), small)
    frames = found[-2:] if len(pointing) == 2 else [np.zeros((count, 3))] * 2
    lengths = np.linalg.norm(frames, axis=2)
    standing = (lengths > 0.1).all(axis=0)  # a network's zero is not quite zero
    front, side = (np.where(standing[:, None], each, np.eye(3)[k]) for k, each in enumerate(frames))
    front = front / np.linalg.norm(front, axis=1, keepdims=True)
    side = side - (front * side).sum(axis=1, keepdims=True) * front
    side = side / np.maximum(np.linalg.norm(side, axis=1, keepdims=True), 1e-9)
    return Bodies(places, extents, np.stack([front, side, np.cross(front, side)], axis=2), ~standing)


def draw_above(ax: Axes, spec: StateSpec, state: np.ndarray, colours: np.ndarray, outline: bool = False) -> None:
    """A state (channels, n) from above; as outlines, it can lie over another one."""
    bodies = bodies_of(spec, state)
    shapes = []
    for k in np.argsort(bodies.places[:, 2] + bodies.extents[:, 2]):
        points = bodies.corners(k)[:, :2]
        shapes.append((k, Polygon(points[ConvexHull(points).vertices])))
    ax.add_collection(
        PatchCollection(
            [shape for _, shape in shapes],
            facecolor="none" if outline else [colours[k] for k, _ in shapes],
            edgecolor=INK,
            linewidth=0.6,
            linestyle=(0, (2, 1.5)) if outline else "-",
            zorder=3 if outline else 2,
        )
    )


def draw_table(ax: Axes, spec: StateSpec, ticks: bool = False) -> None:
    """The ground on which `draw_above` draws."""
    x, y = spec.axes[:2]
    ax.set(xlim=(x.low, x.high), ylim=(y.low, y.high), aspect="equal", facecolor=WALLS[1])
    ax.set(xticks=(x.low, x.high) if ticks else [], yticks=(y.low, y.high) if ticks else [])
    if ticks and spec.position:
        ax.set_xlabel(with_unit(x.name, spec.position.unit), labelpad=-7, color=MUTED)


def draw_trails(ax: Axes, spec: StateSpec, states: np.ndarray, colours: np.ndarray) -> None:
    """Where the objects of states (frames, channels, n) went, from above."""
    assert spec.position
    paths = values_of(spec, spec.position, states)  # (frames, 3, n)
    for k, colour in enumerate(colours):
        ax.plot(paths[:, 0, k], paths[:, 1, k], color=colour, linewidth=0.8, zorder=1)


def draw_perspective(ax: Axes, spec: StateSpec, state: np.ndarray, colours: np.ndarray, mark: Mark | None = None) -> None:
    """The same through a camera, the nearer objects before the farther, each above its shadow; a mark is a ring."""
    bodies, (x, y, z) = bodies_of(spec, state), spec.axes
    middle, side = np.array([(x.low + x.high) / 2, (y.low + y.high) / 2, z.low]), max(x.high - x.low, y.high - y.low)
    toward = EYE / np.linalg.norm(EYE)
    right = np.cross([0, 0, 1], toward) / np.linalg.norm(np.cross([0, 0, 1], toward))
    axes, eye = np.stack([right, np.cross(toward, right)], axis=1), middle + DISTANCE * side * toward

    def seen(points: np.ndarray) -> np.ndarray:
        """Points (..., 3) projected onto the page: (..., 2)."""
        away = points - eye
        return away @ axes / -(away @ toward)[..., None]

    ax.set_aspect("equal")
    ax.set_axis_off()
    ring = np.array([[x.low, y.low], [x.high, y.low], [x.high, y.high], [x.low, y.high]])
    ground = np.column_stack([ring, np.full(4, z.low)])
    ax.fill(*seen(ground).T, facecolor=WALLS[2], edgecolor=MUTED, linewidth=0.6, zorder=0)
    wall = ground + np.array([0, 0, 0.12 * side])
    for a, b in ((2, 3), (3, 0)):  # those behind
        ax.fill(*seen(np.array([ground[a], ground[b], wall[b], wall[a]])).T, facecolor=WALLS[0], edgecolor=FAINT, linewidth=0.5)
    if mark is not None:
        ring = np.column_stack([0.05 * side * ROUND, np.zeros(len(ROUND))]) + mark.place
        ax.fill(*seen(ring).T, facecolor="none", edgecolor=colours[mark.thing], linewidth=2.0, zorder=1)
    for k in range(len(bodies.places)):
        points = bodies.corners(k).copy()
        points[:, 2] = z.low
        ax.fill(*_hull(seen(points)).T, color=FAINT, alpha=0.7, linewidth=0, zorder=1)
    for order, k in enumerate(np.argsort(-np.linalg.norm(bodies.places - eye, axis=1)), start=2):
        for points, normal in _faces(bodies, int(k), eye, axes, toward):
            shade = 0.72 + 0.28 * max(float(normal @ LIGHT / np.linalg.norm(LIGHT)), 0)
            colour = shade * np.array(to_rgb(colours[k]))
            strip = bodies.round[k] and len(points) == 4  # of a cylinder's mantle
            ax.fill(*seen(points).T, facecolor=colour, edgecolor=colour if strip else INK, linewidth=0.35, zorder=order)


def _faces(bodies: Bodies, k: int, eye: np.ndarray, axes: np.ndarray, toward: np.ndarray) -> list[Face]:
    """The visible faces of a body, the far ones first, with their normals."""
    place = bodies.places[k]
    if bodies.is_ball(k):
        return [(place + bodies.extents[k, 0] * ROUND @ axes.T, np.array([0, 0, 1.0]))]
    points = bodies.corners(k)
    if bodies.round[k]:
        rings = points.reshape(2, -1, 3)
        strips = [rings[:, [i - 1, i]].reshape(4, 3)[[0, 1, 3, 2]] for i in range(len(ROUND))]
        faces = [*strips, rings[1]]
    else:
        faces = [points[face] for face in FACES]
    found = []
    for face in faces:
        normal = np.cross(face[1] - face[0], face[2] - face[1])
        normal = normal * np.sign(normal @ (face.mean(axis=0) - place)) / max(float(np.linalg.norm(normal)), 1e-12)
        if normal @ (eye - face.mean(axis=0)) > 0:
            found.append((face, normal))
    return sorted(found, key=lambda each: float(each[0].mean(axis=0) @ toward))


def _hull(points: np.ndarray) -> np.ndarray:
    return points[ConvexHull(points).vertices]
