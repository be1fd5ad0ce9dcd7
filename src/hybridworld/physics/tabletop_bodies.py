"""The bodies of a tabletop: which channel of a state is what, how bodies lie and turn, and how they are strewn on the table.

A column of a state is one body. All here is plain arithmetic: `tabletop_scene` knows MuJoCo, `tabletop` is the system.
"""

import numpy as np

from hybridworld.errors import InvalidInput
from hybridworld.physics.spec import Field, Parameter

SIDE = 0.3  # m: half of the table
PUSHER = (0.02, 0.02, 0.03)  # m: its extent, a cylinder of 1 kg that hovers 2 mm above the table
HOVER, PUSHER_MASS = 0.032, 1.0
SPHERE, BOX, FLAT = (0.02, 0.035), (0.02, 0.04), (0.015, 0.03)  # m: radii; half lengths and widths, half heights
GRAVITY, RESTING = 9.81, (3.672e-4, 1.078e-4)
"""m/s^2; and how deep (m) a sphere and a box press into MuJoCo's soft table when they rest: they begin in balance."""
TRIES = 10_000
"""Places that are tried for one body."""

FIELDS = (
    Field("position", "m", "vector"),
    Field("velocity", "m/s", "vector", rate_of="position"),
    Field("front", "1", "vector"),
    Field("side", "1", "vector"),
    Field("spin", "rad/s", "axial"),
    Field("extent", "m", "extent"),
    Field("mass", "kg"),
    Field("kind", "1", allowed=(-1.0, 1.0)),
)
POSITION, VELOCITY, FRONT, SIDEWAYS, SPIN, EXTENT = (slice(3 * k, 3 * k + 3) for k in range(6))
MASSES, KIND = 18, 19
CONSTANTS = slice(15, 20)  # extent, mass and kind
FRAME = ((0, FRONT), (1, SIDEWAYS))
"""Columns of a rotation matrix, and the channels that hold them."""

MASS = Parameter(
    name="mass",
    unit="kg",
    meaning="of each sphere and box; it becomes a constant channel",
    ranges={"id": ((0.05, 0.3),), "ood-near": ((0.3, 0.6),), "ood-far": ((0.6, 1.2),)},
    allowed=(1e-4, 1000.0),
    role="start",
)


# How bodies lie, turn and resist.


def radius(thing: np.ndarray) -> float:
    """The radius of the circle on the table that a body stays in."""
    return float(np.hypot(*thing[EXTENT][:2])) if thing[KIND] == 1 else float(thing[EXTENT][0])


def inertia(states: np.ndarray) -> np.ndarray:
    """Moments of inertia about the body's own axes: (..., 3, n)."""
    squares = states[..., EXTENT, :] ** 2
    box = (squares.sum(axis=-2, keepdims=True) - squares) / 3
    return states[..., MASSES, None, :] * np.where(np.round(states[..., KIND, None, :]) == 1, box, 0.4 * squares)


def rotations(states: np.ndarray) -> np.ndarray:
    """Rotation matrices (..., n, 3, 3): columns are front, side and what is upright on both; round bodies: the identity."""
    front, side = (
        np.moveaxis(np.where(np.round(states[..., KIND, None, :]) == 1, states[..., each, :], np.eye(3)[k][:, None]), -2, -1)
        for k, each in FRAME
    )
    front = front / np.linalg.norm(front, axis=-1, keepdims=True)
    side = side - (front * side).sum(axis=-1, keepdims=True) * front
    side = side / np.linalg.norm(side, axis=-1, keepdims=True)
    (x, y, z), (u, v, w) = np.moveaxis(front, -1, 0), np.moveaxis(side, -1, 0)
    upright = np.stack([y * w - z * v, z * u - x * w, x * v - y * u], axis=-1)  # np.cross takes three times as long
    return np.stack([front, side, upright], axis=-1)


def from_quaternions(quats: np.ndarray) -> np.ndarray:
    """Rotation matrices (n, 3, 3) of quaternions (n, 4), which MuJoCo has with the real part first."""
    w, x, y, z = (quats / np.linalg.norm(quats, axis=1, keepdims=True)).T
    return np.stack([
        1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
        2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
        2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y),
    ], axis=1).reshape(-1, 3, 3)  # fmt: skip


# Beginnings.


def strewn(rng: np.random.Generator, regime: str, count: int) -> np.ndarray:
    """The state (channels, count) of bodies that are apart, the pusher first; every second of the others moves."""
    state = np.zeros((KIND + 1, count))
    for k, thing in enumerate(state.T):  # `thing` is a view of one column
        thing[KIND] = -1 if k == 0 else rng.integers(2)
        thing[MASSES] = PUSHER_MASS if k == 0 else MASS.draw(rng, regime)
        shape(thing, rng)
        for _ in range(TRIES):
            thing[:2] = rng.uniform(-1, 1, 2) * (SIDE - radius(thing))
            if all(np.hypot(*(thing[:2] - other[:2])) > radius(thing) + radius(other) for other in state.T[:k]):
                break
        else:
            raise InvalidInput(f"tabletop: {count} objects find no room on the table; ask for fewer.")
        if k and rng.random() < 0.5:
            set_off(thing, rng)
    return state


def shape(thing: np.ndarray, rng: np.random.Generator) -> None:
    """Extent, height and orientation of a body of its kind."""
    if thing[KIND] == -1:
        thing[EXTENT], thing[2] = PUSHER, HOVER
    elif thing[KIND] == 0:
        thing[EXTENT] = size = rng.uniform(*SPHERE)
        thing[2] = size - RESTING[0]
    else:
        thing[EXTENT] = *rng.uniform(*BOX, 2), rng.uniform(*FLAT)
        thing[2], yaw = thing[EXTENT][2] - RESTING[1], rng.uniform(0, 2 * np.pi)
        thing[FRONT] = np.cos(yaw), np.sin(yaw), 0
        thing[SIDEWAYS] = -np.sin(yaw), np.cos(yaw), 0


def set_off(thing: np.ndarray, rng: np.random.Generator) -> None:
    """A velocity; spheres roll without slipping, boxes slide and turn."""
    angle, speed = rng.uniform(0, 2 * np.pi), rng.uniform(0, 0.5)
    thing[3:5] = vx, vy = speed * np.cos(angle), speed * np.sin(angle)
    thing[SPIN] = (-vy / thing[EXTENT][0], vx / thing[EXTENT][0], 0) if thing[KIND] == 0 else (0, 0, rng.uniform(-3, 3))


def aimed(state: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A velocity of the pusher: mostly towards one of the others, else anywhere."""
    angle, speed = rng.uniform(0, 2 * np.pi), rng.uniform(0.1, 0.5)
    if state.shape[1] > 1 and rng.random() < 0.7:
        way = state[:2, rng.integers(1, state.shape[1])] - state[:2, 0]
        angle = np.arctan2(way[1], way[0]) + rng.normal(0, 0.15)
    return speed * np.array([np.cos(angle), np.sin(angle)])
