"""Tabletop: spheres and boxes on a walled table, and a pusher; the solver is MuJoCo.

    M dv/dt = forces + J^T f,      f: contacts with Coulomb friction, from MuJoCo's convex optimisation (Newton, elliptic cones)

A state is a set of rigid bodies. Each has a position and a velocity of its centre, the first two columns of its rotation matrix
(`front`, `side`), a spin (in the frame of the table), and constants: extent, mass, kind (-1 the pusher, 0 a sphere, 1 a box).
Round bodies have no orientation: their front and side are zero. Frame: 20 ms = 10 steps of 2 ms.

The pusher is driven. Its velocity is the action, set at the beginning of each frame, unless a wall stops it; it is no part of
the state, where it stands as zero. MuJoCo's warm start is switched off: with it the answer would depend on the step before,
which no state tells. So the semigroup law holds up to the rounding of a rotation. A contact amplifies rounding, as any
collision does.

`front` and `side` of a prediction are seldom orthonormal; the rotation is what Gram and Schmidt make of them, and a pair that
is far from a frame is refused.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np

from hybridworld.errors import InvalidInput
from hybridworld.physics.arguments import describe_cell
from hybridworld.physics.environment import Environment, Sample, room_for
from hybridworld.physics.spec import Axis, Field, Parameter, StateSpec
from hybridworld.physics.symmetry import Symmetry, square_symmetries
from hybridworld.physics.task import Task
from hybridworld.physics.threads import over_trajectories

SIDE = 0.3  # m: half of the table
PUSHER = (0.02, 0.02, 0.03)  # m: its extent, a cylinder of 1 kg that hovers 2 mm above the table
HOVER, PUSHER_MASS = 0.032, 1.0
LIMIT = SIDE - PUSHER[0]
SPHERE, BOX, FLAT = (0.02, 0.035), (0.02, 0.04), (0.015, 0.03)  # m: radii; half lengths and widths, half heights
REACH, TOP, FASTEST, SPINNING = 0.1, 1.0, 20.0, 1000.0
"""How far (m) beyond a wall or below the table a centre may be, how high, how fast (m/s, rad/s): predictions err so far."""
GRAVITY, RESTING = 9.81, (3.672e-4, 1.078e-4)
"""m/s^2; and how deep (m) a sphere and a box press into MuJoCo's soft table when they rest: they begin in balance."""
TRIES = 10_000
SMOKE = {"samples": 512, "batch": 32, "validation": 8, "calibration": 8}

MASS = Parameter(
    name="mass",
    unit="kg",
    meaning="of each sphere and box; it becomes a constant channel",
    ranges={"id": ((0.05, 0.3),), "ood-near": ((0.3, 0.6),), "ood-far": ((0.6, 1.2),)},
    allowed=(1e-3, 100.0),
    role="start",
)
FRICTION = Parameter(
    name="friction",
    unit="1",
    meaning="coefficient of sliding friction, of all contacts",
    ranges={"id": ((0.3, 0.6),), "ood-near": ((0.15, 0.3), (0.6, 0.8)), "ood-far": ((0.05, 0.15), (0.8, 1.2))},
    allowed=(0.0, 10.0),
)
PUSH = tuple(
    Parameter(f"push_{axis}", "m/s", "velocity of the pusher", {"id": ((-0.5, 0.5),)}, (-2.0, 2.0), "action", axis)
    for axis in "xy"
)
FIELDS = (
    Field("position", "m", "vector"),
    Field("velocity", "m/s", "vector"),
    Field("front", "1", "vector"),
    Field("side", "1", "vector"),
    Field("spin", "rad/s", "axial"),
    Field("extent", "m", "extent"),
    Field("mass", "kg"),
    Field("kind", "1", allowed=(-1.0, 1.0)),
)
POSITION, VELOCITY, FRONT, SIDEWAYS, SPIN, EXTENT = (slice(3 * k, 3 * k + 3) for k in range(6))
MASSES, KIND = 18, 19


@dataclass(frozen=True)
class Tabletop(Environment):
    """A scene of `grid[0]` objects, the pusher among them; see the module's docstring."""

    grid: tuple[int, ...] = (7,)
    frame_step: float = 0.02
    substeps: int = 10

    @property
    def spec(self) -> StateSpec:
        return StateSpec(
            name="tabletop",
            title="Tabletop: spheres, boxes and a pusher",
            fields=FIELDS,
            axes=(Axis("x", -SIDE, SIDE, "wall"), Axis("y", -SIDE, SIDE, "wall"), Axis("z", 0.0, SIDE, "open")),
            grid=self.grid,
            objects=True,
            frame_step=self.frame_step,
            time_unit="s",
            frames=81,
            draw="position_x",
            parameters=(FRICTION, *PUSH, MASS),
            counts={"train": 4000, "val": 400, "test": 400, "ood-near": 400, "ood-far": 400},
        )

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        return square_symmetries(dimensions=3)

    @property
    def presets(self) -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
        """Scenes cost more than the vectors that the presets have in mind: fewer pairs, and a schedule that uses them well."""
        short = {"lr": 1e-3, "warmup": 1, "weighting": "horizon", "ema": 0.998, "samples": 19_200, "epochs": 36}
        return {"laptop": {"training": short | {"validation": 200, "calibration": 400}}, "smoke": {"training": SMOKE}}

    def with_steps(self, factor: float) -> tuple[Environment, float] | None:
        steps = round(factor * self.substeps)
        return (replace(self, substeps=steps), 1) if steps >= 1 else None

    # Beginnings.

    def sample(self, rng: np.random.Generator, split: str) -> Sample:
        regime = self.spec.regime(split)
        state = np.zeros(self.spec.shape)
        for k, thing in enumerate(state.T):  # `thing` is a view of one column
            thing[KIND] = -1 if k == 0 else rng.integers(2)
            thing[MASSES] = PUSHER_MASS if k == 0 else MASS.draw(rng, regime)
            _shape(thing, rng)
            for _ in range(TRIES):
                thing[:2] = rng.uniform(-1, 1, 2) * (SIDE - _radius(thing))
                if all(np.hypot(*(thing[:2] - other[:2])) > _radius(thing) + _radius(other) for other in state.T[:k]):
                    break
            else:
                raise InvalidInput(f"tabletop: {len(state.T)} objects find no room on the table; ask for fewer.")
            if k and rng.random() < 0.5:
                _set_off(thing, rng)
        action = self._aimed(state, rng)
        return Sample(state[:, rng.permutation(len(state.T))], np.array([FRICTION.draw(rng, regime), *action]))

    @staticmethod
    def _aimed(state: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A velocity of the pusher: mostly towards one of the others, else anywhere."""
        angle, speed = rng.uniform(0, 2 * np.pi), rng.uniform(0.1, 0.5)
        if state.shape[1] > 1 and rng.random() < 0.7:
            way = state[:2, rng.integers(1, state.shape[1])] - state[:2, 0]
            angle = np.arctan2(way[1], way[0]) + rng.normal(0, 0.15)
        return speed * np.array([np.cos(angle), np.sin(angle)])

    def blank(self) -> np.ndarray:
        state = self.initial("val", 0).state
        state[[*range(3, 6), *range(12, 15)]] = 0
        return state

    def task(self, rng: np.random.Generator, state: np.ndarray) -> Task | None:
        """Push one of the boxes, or a sphere where there is none, 10 to 25 cm far; on the way there, be behind it."""
        kinds = np.round(state[KIND])
        movable, pusher = np.flatnonzero(kinds == kinds.max()), int(np.flatnonzero(kinds == -1)[0])
        if kinds.max() < 0:
            return None
        target = int(rng.choice(movable))
        for _ in range(TRIES):
            place = rng.uniform(-1, 1, 2) * (SIDE - 0.08)
            if 0.1 <= np.hypot(*(place - state[:2, target])) <= 0.25:
                break
        reach = float(np.hypot(*state[15:17, target])) + PUSHER[0]

        def missed(states: np.ndarray) -> np.ndarray:
            return np.hypot(*(states[:, :2, target] - place).T)

        def cost(states: np.ndarray) -> np.ndarray:
            way = states[:, :2, target] - place
            behind = states[:, :2, target] + reach * way / np.maximum(np.hypot(*way.T), 1e-9)[:, None]
            return missed(states) + 0.25 * np.hypot(*(states[:, :2, pusher] - behind).T)

        goal = np.array([target, *place])
        text = f"push object {target} to ({place[0]:.2f}, {place[1]:.2f}) m"
        return Task(text, goal, 0.03, "m", missed, cost, np.array([*place, 0.0]))

    # What must hold.

    def check_physical(self, states: np.ndarray) -> None:
        kinds = np.round(states[:, KIND])
        for row, pushers in enumerate((kinds == -1).sum(axis=1)):
            if pushers != 1:
                raise InvalidInput(f"tabletop: state {row} has {pushers} pushers (objects of kind -1); it needs one.")
        near, far = SIDE + REACH, [-REACH, TOP]
        bounds = [*[[-near, near]] * 2, far, *[[-FASTEST, FASTEST]] * 3, *[[-2.0, 2.0]] * 6, *[[-SPINNING, SPINNING]] * 3]
        bounds += [*[[1e-3, SIDE]] * 3, list(MASS.allowed), [-1.2, 1.2]]
        low, high = np.array(bounds)[:, :, None].transpose(1, 0, 2)
        outside = np.argwhere(~((states >= low) & (states <= high)))
        if len(outside):
            row, channel, thing = map(int, outside[0])
            told = describe_cell(self.spec, states, (row, channel, thing))
            raise InvalidInput(f"tabletop: {told}; allowed is {low[channel, 0]:g} to {high[channel, 0]:g}.")
        front, side = (np.where(kinds[:, None] == 1, states[:, each], np.eye(3)[k][:, None]) for k, each in _FRAME)
        lengths, across = [np.linalg.norm(each, axis=1) for each in (front, side)], (front * side).sum(axis=1)
        wrong = (np.minimum(*lengths) < 0.3) | (np.abs(across) > 0.7 * lengths[0] * lengths[1])
        if wrong.any():
            row, thing = map(int, np.argwhere(wrong)[0])
            raise InvalidInput(
                f"tabletop: front and side of object {thing} of state {row} are too far from two unit vectors at a right angle."
            )

    def conserved(self, states: np.ndarray, params: np.ndarray) -> dict[str, np.ndarray]:
        """Of each object, until friction, a contact or the pusher changes it: energy (batch, n), momentum (batch, 3, n)."""
        mass, moving = states[:, MASSES], np.round(states[:, KIND]) >= 0
        momentum = mass[:, None] * states[:, VELOCITY] * moving[:, None]
        inertia, turn = _inertia(states), rotations(states)  # (batch, 3, n), (batch, n, 3, 3)
        own = np.einsum("bnij,bin->bjn", turn, states[:, SPIN])  # the spin in the body's frame
        kinetic = 0.5 * (mass * (states[:, VELOCITY] ** 2).sum(axis=1) + (inertia * own**2).sum(axis=1))
        return {"energy": (kinetic + GRAVITY * mass * states[:, 2]) * moving, "momentum": momentum}

    # The solver.

    def advance(self, states: np.ndarray, frames: int, params: np.ndarray) -> np.ndarray:
        return self._run(states, frames, params)

    def record(self, states: np.ndarray, frames: int, params: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        whole = room_for(states, frames) if out is None else out
        whole[:, :, 0] = states
        self._check_answer(states, frames, params, self._run(states, frames, params, whole))
        return whole

    def _run(self, states: np.ndarray, frames: int, params: np.ndarray, saved: np.ndarray | None = None) -> np.ndarray:
        """All trajectories, one thread for each at a time: MuJoCo releases the GIL while it steps."""
        answer = states.astype(np.float64)
        if frames == 0:
            return answer
        mujoco = _mujoco()

        def work(index: int, threads: int) -> None:
            state, (friction, *action) = answer[index], params[index]
            scene = _scene(np.round(state[KIND]).tobytes(), state[15:KIND].tobytes(), float(friction))
            model = scene.model
            model.opt.timestep = self.frame_step / self.substeps
            data = mujoco.MjData(model)
            scene.load(data, state)
            for frame in range(1, frames + 1):
                scene.drive(data, action)
                mujoco.mj_step(model, data, nstep=self.substeps)
                if saved is not None or frame == frames:
                    scene.read(data, state)
                if saved is not None:
                    saved[index, :, frame] = state

        over_trajectories(work, len(states), 1)
        return answer


_FRAME = ((0, FRONT), (1, SIDEWAYS))


def _mujoco() -> ModuleType:
    try:
        import mujoco
    except ImportError as error:
        raise InvalidInput("tabletop needs MuJoCo: install it with pip install 'hybrid-world-models[robotics]'.") from error
    return mujoco


def _shape(thing: np.ndarray, rng: np.random.Generator) -> None:
    """Extent, height and orientation of a body of its kind."""
    if thing[KIND] == -1:
        thing[EXTENT], thing[2] = PUSHER, HOVER
    elif thing[KIND] == 0:
        thing[EXTENT] = radius = rng.uniform(*SPHERE)
        thing[2] = radius - RESTING[0]
    else:
        thing[EXTENT] = *rng.uniform(*BOX, 2), rng.uniform(*FLAT)
        thing[2], yaw = thing[17] - RESTING[1], rng.uniform(0, 2 * np.pi)
        thing[FRONT] = np.cos(yaw), np.sin(yaw), 0
        thing[SIDEWAYS] = -np.sin(yaw), np.cos(yaw), 0


def _radius(thing: np.ndarray) -> float:
    """Of the circle on the table that a body stays in."""
    return float(np.hypot(*thing[15:17])) if thing[KIND] == 1 else float(thing[15])


def _set_off(thing: np.ndarray, rng: np.random.Generator) -> None:
    """A velocity; spheres roll without slipping, boxes slide and turn."""
    angle, speed = rng.uniform(0, 2 * np.pi), rng.uniform(0, 0.5)
    thing[3:5] = vx, vy = speed * np.cos(angle), speed * np.sin(angle)
    thing[SPIN] = (-vy / thing[15], vx / thing[15], 0) if thing[KIND] == 0 else (0, 0, rng.uniform(-3, 3))


def _inertia(states: np.ndarray) -> np.ndarray:
    """Moments of inertia about the body's own axes: (..., 3, n)."""
    squares = states[..., EXTENT, :] ** 2
    box = (squares.sum(axis=-2, keepdims=True) - squares) / 3
    return states[..., MASSES, None, :] * np.where(np.round(states[..., KIND, None, :]) == 1, box, 0.4 * squares)


def rotations(states: np.ndarray) -> np.ndarray:
    """Rotation matrices (..., n, 3, 3): columns are front, side and what is upright on both; round bodies: the identity."""
    front, side = (
        np.moveaxis(np.where(np.round(states[..., KIND, None, :]) == 1, states[..., each, :], np.eye(3)[k][:, None]), -2, -1)
        for k, each in _FRAME
    )
    front = front / np.linalg.norm(front, axis=-1, keepdims=True)
    side = side - (front * side).sum(axis=-1, keepdims=True) * front
    side = side / np.linalg.norm(side, axis=-1, keepdims=True)
    return np.stack([front, side, np.cross(front, side)], axis=-1)


class _Scene:
    """MuJoCo's model of the bodies of one state, the pusher before the others; it carries states to MuJoCo's and back."""

    def __init__(self, kinds: np.ndarray, constants: np.ndarray, friction: float) -> None:
        self.pusher, self.free = int(np.flatnonzero(kinds == -1)[0]), np.flatnonzero(kinds != -1)
        self.boxes = kinds[self.free] == 1
        self.model = _mujoco().MjModel.from_xml_string(_mjcf(kinds, constants, friction, [self.pusher, *self.free]))

    def load(self, data, state: np.ndarray) -> None:
        """Set MuJoCo's positions and velocities; velocities of free bodies are in the world's frame, spins in the body's."""
        free, quat = self.free, np.empty(4)
        turn = rotations(state[:, free])
        data.qpos[:2] = state[:2, self.pusher]
        places, speeds = data.qpos[2:].reshape(-1, 7), data.qvel[2:].reshape(-1, 6)
        places[:, :3], speeds[:, :3] = state[POSITION, free].T, state[VELOCITY, free].T
        speeds[:, 3:] = np.einsum("nij,in->nj", turn, state[SPIN, free])
        for place, matrix in zip(places, turn, strict=True):
            _mujoco().mju_mat2Quat(quat, matrix.ravel())
            place[3:] = quat

    def drive(self, data, action: list[float]) -> None:
        """The pusher moves with the action; not against a wall."""
        for axis, speed in enumerate(action):
            place = data.qpos[axis]
            data.qvel[axis] = 0 if (place >= LIMIT and speed > 0) or (place <= -LIMIT and speed < 0) else speed

    def read(self, data, state: np.ndarray) -> None:
        """The inverse of `load`, into `state`, whose constants stay."""
        free, boxes = self.free, self.boxes
        places, speeds = data.qpos[2:].reshape(-1, 7), data.qvel[2:].reshape(-1, 6)
        turn = _matrices(places[:, 3:])
        state[:2, self.pusher] = data.qpos[:2]
        state[POSITION, free], state[VELOCITY, free] = places[:, :3].T, speeds[:, :3].T
        state[SPIN, free] = np.einsum("nij,nj->in", turn, speeds[:, 3:])
        for k, each in _FRAME:
            state[each, free[boxes]] = turn[boxes, :, k].T


def _matrices(quats: np.ndarray) -> np.ndarray:
    """Rotation matrices (n, 3, 3) of quaternions (n, 4), which MuJoCo has with the real part first."""
    w, x, y, z = (quats / np.linalg.norm(quats, axis=1, keepdims=True)).T
    return np.stack([
        1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
        2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
        2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y),
    ], axis=1).reshape(-1, 3, 3)  # fmt: skip


@lru_cache(256)  # compiling a model takes as long as ten frames, and whoever plans asks about one scene again and again
def _scene(kinds: bytes, constants: bytes, friction: float) -> _Scene:
    return _Scene(np.frombuffer(kinds), np.frombuffer(constants).reshape(4, -1), friction)


def _mjcf(kinds: np.ndarray, constants: np.ndarray, friction: float, order: list[int]) -> str:
    """The scene in MuJoCo's own language; constants (4, n) are extents and masses."""
    walls = "".join(
        f'<geom type="plane" size="1 1 1" pos="{SIDE * x} {SIDE * y} 0" zaxis="{-x} {-y} 0"/>'
        for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1))
    )
    bodies = ""
    for k in order:
        x, y, z, mass = (f"{value:.17g}" for value in constants[:, k])
        if kinds[k] == -1:
            slides = "".join(f'<joint type="slide" axis="{way}" range="-{LIMIT} {LIMIT}"/>' for way in ("1 0 0", "0 1 0"))
            bodies += f'<body pos="0 0 {HOVER}">{slides}<geom type="cylinder" size="{x} {z}" mass="{mass}" contype="2"/></body>'
        else:
            shape = f'type="box" size="{x} {y} {z}"' if kinds[k] == 1 else f'type="sphere" size="{x}"'
            bodies += f'<body><freejoint/><geom {shape} mass="{mass}" conaffinity="3"/></body>'
    return f"""<mujoco>
      <compiler autolimits="true"/>
      <size memory="{256 * len(order)}K"/>
      <option gravity="0 0 {-GRAVITY}" cone="elliptic" tolerance="1e-12">
        <flag warmstart="disable" autoreset="disable"/>
      </option>
      <default><geom friction="{friction:.17g}"/></default>
      <worldbody><geom type="plane" size="1 1 1"/>{walls}{bodies}</worldbody>
    </mujoco>"""
