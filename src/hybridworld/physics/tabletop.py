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
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
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
MISSING = "tabletop needs MuJoCo: install it with pip install 'hybrid-world-models[robotics]'."
SMOKE = {"samples": 512, "batch": 32, "validation": 8, "calibration": 8}

MASS = Parameter(
    name="mass",
    unit="kg",
    meaning="of each sphere and box; it becomes a constant channel",
    ranges={"id": ((0.05, 0.3),), "ood-near": ((0.3, 0.6),), "ood-far": ((0.6, 1.2),)},
    allowed=(1e-4, 1000.0),
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
    Parameter(
        f"push_{axis}", "m/s", "velocity of the pusher", {"id": ((-0.5, 0.5),)}, (-2.0, 2.0), "action", axis, f"velocity_{axis}"
    )
    for axis in "xy"
)
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


@dataclass(frozen=True)
class Tabletop(Environment):
    """A scene of `grid[0]` objects, the pusher among them; see the module's docstring."""

    grid: tuple[int, ...] = (7,)
    frame_step: float = 0.02
    substeps: int = 10
    scene: str = ""
    """Path of an MJCF file with a pusher and free bodies of your own, instead of the table."""

    def __post_init__(self) -> None:
        if self.scene:
            count = len(_from_file(self.scene).bodies)
            if self.grid not in ((7,), (count,)):
                raise InvalidInput(f"tabletop: the scene {self.scene} has {count} objects, not {self.grid[0]}.")
            object.__setattr__(self, "grid", (count,))

    @property
    def spec(self) -> StateSpec:
        return StateSpec(
            name="tabletop",
            title="Tabletop: spheres, boxes and a pusher",
            fields=FIELDS,
            axes=self._axes(),
            grid=self.grid,
            objects=True,
            driven=("kind", -1.0),
            frame_step=self.frame_step,
            time_unit="s",
            frames=81,
            draw="position_x",
            parameters=(FRICTION, *PUSH, MASS),
            counts={"train": 4000, "val": 400, "test": 400, "ood-near": 400, "ood-far": 400},
        )

    def offers(self, name: str) -> bool:
        return super().offers(name) and not (name == "grid" and self.scene)

    @property
    def identity(self) -> dict[str, Any]:
        """A scene of one's own is told by what its file says."""
        known = {name: value for name, value in super().identity.items() if name != "scene"}
        return known | ({"scene": sha256(Path(self.scene).read_bytes()).hexdigest()} if self.scene else {})

    def _axes(self) -> tuple[Axis, ...]:
        if not self.scene:
            return Axis("x", -SIDE, SIDE, "wall"), Axis("y", -SIDE, SIDE, "wall"), Axis("z", 0.0, SIDE, "open")
        middle, reach = _from_file(self.scene).model.stat.center, float(_from_file(self.scene).model.stat.extent)
        return tuple(Axis(name, float(at) - reach, float(at) + reach, "open") for name, at in zip("xyz", middle, strict=True))

    @property
    def lacks(self) -> str:
        return "" if find_spec("mujoco") else MISSING

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        return () if self.scene else square_symmetries(dimensions=3)

    @property
    def presets(self) -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
        """Scenes cost more than the vectors that the presets have in mind: fewer pairs, and a schedule that uses them well."""
        short = {"lr": 1e-3, "warmup": 1, "weighting": "horizon", "ema": 0.998, "samples": 19_200, "epochs": 36}
        return {"laptop": {"training": short | {"validation": 200, "calibration": 400}}, "smoke": {"training": SMOKE}}

    def with_steps(self, factor: float) -> tuple[Environment, float] | None:
        steps = round(factor * self.substeps)
        return (replace(self, substeps=steps), 1) if steps >= 1 else None

    def variants(self) -> Mapping[str, Environment]:
        return {"ballistic": Ballistic(self.grid, self.frame_step, self.substeps, self.scene)}

    # Beginnings.

    def sample(self, rng: np.random.Generator, split: str) -> Sample:
        regime = self.spec.regime(split)
        state = self._as_in_the_file(rng) if self.scene else self._strewn(rng, regime)
        action = self._aimed(state, rng)
        return Sample(state[:, rng.permutation(len(state.T))], np.array([FRICTION.draw(rng, regime), *action]))

    def _as_in_the_file(self, rng: np.random.Generator) -> np.ndarray:
        """The user's scene, in which every second body is set off."""
        state = _from_file(self.scene).start()
        for thing in state.T[1:]:
            if rng.random() < 0.5:
                _set_off(thing, rng)
        return state

    def _strewn(self, rng: np.random.Generator, regime: str) -> np.ndarray:
        """Bodies that are apart, the pusher first; every second of the others moves."""
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
        return state

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
        sides = [[axis.low - REACH, axis.high + (TOP if axis.name == "z" else REACH)] for axis in self.spec.axes]
        bounds = [*sides, *[[-FASTEST, FASTEST]] * 3, *[[-2.0, 2.0]] * 6, *[[-SPINNING, SPINNING]] * 3]
        bounds += [*[[1e-4, 10.0]] * 3, list(MASS.allowed), [-1.2, 1.2]]
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
            friction, *action = params[index]
            scene, columns = self._scene_of(answer[index], float(friction))
            state, model = answer[index][:, columns], scene.model
            model.opt.timestep = self.frame_step / self.substeps
            data = mujoco.MjData(model)
            scene.load(data, state)
            for frame in range(1, frames + 1):
                scene.drive(data, action)
                mujoco.mj_step(model, data, nstep=self.substeps)
                if saved is not None or frame == frames:
                    scene.read(data, state)
                    answer[index][:, columns] = state
                if saved is not None:
                    saved[index, :, frame] = answer[index]

        over_trajectories(work, len(states), 1)
        return answer

    def _scene_of(self, state: np.ndarray, friction: float) -> "tuple[_Scene, np.ndarray]":
        """MuJoCo's model of that state, and the columns of its bodies."""
        if self.scene:
            scene = _from_file(self.scene, friction)
            return scene, _matched(scene, state)
        columns = np.argsort(np.round(state[KIND]) != -1, kind="stable")  # the pusher first
        kinds, constants = np.round(state[KIND, columns]), np.ascontiguousarray(state[15:KIND, columns])
        return _drawn(kinds.tobytes(), constants.tobytes(), friction), columns


@dataclass(frozen=True)
class Ballistic(Tabletop):
    """No solver but a guess to beat: whatever moves goes on as it does, and the walls of the table stop it."""

    def advance(self, states: np.ndarray, frames: int, params: np.ndarray) -> np.ndarray:
        answer, seconds = states.astype(np.float64), frames * self.frame_step
        pusher = np.round(states[:, KIND]) == -1
        speeds = np.where(pusher[:, None], params[:, 1:, None], states[:, 3:5])
        low, high = np.array([[axis.low, axis.high] for axis in self.spec.axes[:2]]).T[:, :, None]
        answer[:, :2] = np.clip(answer[:, :2] + seconds * speeds, low, high)
        return answer

    def record(self, states: np.ndarray, frames: int, params: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        return Environment.record(self, states, frames, params, out)

    def with_steps(self, factor: float) -> tuple[Environment, float] | None:
        return None

    def variants(self) -> Mapping[str, Environment]:
        return {}


_FRAME = ((0, FRONT), (1, SIDEWAYS))


def _mujoco() -> ModuleType:
    try:
        import mujoco
    except ImportError as error:
        raise InvalidInput(MISSING) from error
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
    """MuJoCo's model of some bodies, the pusher before the others; it carries states in that order to MuJoCo's and back."""

    def __init__(self, model: Any) -> None:
        joints = _mujoco().mjtJoint
        self.model, pushers, free = model, list[int](), list[int]()
        for body in range(1, model.nbody):
            first, count = int(model.body_jntadr[body]), int(model.body_jntnum[body])
            kinds = list(model.jnt_type[first : first + count]) if count else []
            if kinds == [joints.mjJNT_FREE]:
                free.append(body)
            elif kinds == [joints.mjJNT_SLIDE] * 2 and np.array_equal(model.jnt_axis[first : first + 2], np.eye(3)[:2]):
                pushers.append(body)
            elif count:
                name = model.body(body).name or f"number {body}"
                raise InvalidInput(
                    f"The body {name} has neither one free joint nor, as a pusher, a slide along x and one along y."
                )
        if len(pushers) != 1:
            raise InvalidInput(
                f"The scene has {len(pushers)} pushers (bodies with a slide along x and one along y); it needs one."
            )
        self.bodies, first = [*pushers, *free], model.body_jntadr[pushers[0]]
        self._at, self._rest = int(model.jnt_qposadr[first]), model.body_pos[pushers[0]].copy()
        self._speed, self._limits = int(model.jnt_dofadr[first]), np.full((2, 2), [-np.inf, np.inf])
        limited = model.jnt_limited[first : first + 2].astype(bool)
        self._limits[limited] = model.jnt_range[first : first + 2][limited]
        starts = model.body_jntadr[free]
        self._places = model.jnt_qposadr[starts][:, None] + np.arange(7)
        self._speeds = model.jnt_dofadr[starts][:, None] + np.arange(6)
        self.constants = np.array([self._constant(body) for body in self.bodies]).T.reshape(5, -1)
        """Extents, masses and kinds: (5, n)."""

    def _constant(self, body: int) -> list[float]:
        model, ball = self.model, _mujoco().mjtGeom.mjGEOM_SPHERE
        geom = int(model.body_geomadr[body])
        if geom < 0:
            raise InvalidInput(f"The body {model.body(body).name or body} has no geom, so no extent.")
        round_one = model.body_geomnum[body] == 1 and model.geom_type[geom] == ball
        extent = [float(model.geom_size[geom, 0])] * 3 if round_one else model.geom_aabb[geom, 3:].tolist()
        kind = -1.0 if body == self.bodies[0] else 0.0 if round_one else 1.0
        return [*extent, float(model.body_mass[body]), kind]

    def load(self, data: Any, state: np.ndarray) -> None:
        """Set MuJoCo's positions and velocities; velocities of free bodies are in the world's frame, spins in the body's."""
        things, quat = state[:, 1:], np.empty(4)
        turn = rotations(things)
        data.qpos[self._at : self._at + 2] = state[:2, 0] - self._rest[:2]
        data.qpos[self._places[:, :3]], data.qvel[self._speeds[:, :3]] = things[POSITION].T, things[VELOCITY].T
        data.qvel[self._speeds[:, 3:]] = np.einsum("nij,in->nj", turn, things[SPIN])
        for place, matrix in zip(self._places, turn, strict=True):
            _mujoco().mju_mat2Quat(quat, matrix.ravel())
            data.qpos[place[3:]] = quat

    def drive(self, data: Any, action: list[float]) -> None:
        """The pusher moves with the action; not against a wall."""
        for axis, speed in enumerate(action):
            place, (low, high) = data.qpos[self._at + axis], self._limits[axis]
            data.qvel[self._speed + axis] = 0 if (place >= high and speed > 0) or (place <= low and speed < 0) else speed

    def read(self, data: Any, state: np.ndarray) -> None:
        """The inverse of `load`, into `state`, whose constants stay."""
        boxes = np.flatnonzero(np.round(state[KIND, 1:]) == 1)
        places, speeds = data.qpos[self._places], data.qvel[self._speeds]
        turn = _matrices(places[:, 3:])
        state[:2, 0] = data.qpos[self._at : self._at + 2] + self._rest[:2]
        state[POSITION, 1:], state[VELOCITY, 1:] = places[:, :3].T, speeds[:, :3].T
        state[SPIN, 1:] = np.einsum("nij,nj->in", turn, speeds[:, 3:])
        for k, each in _FRAME:
            state[each, 1 + boxes] = turn[boxes, :, k].T

    def start(self) -> np.ndarray:
        """The state (channels, n) that the file describes, at rest: its first keyframe if there is one."""
        data = _mujoco().MjData(self.model)
        if self.model.nkey:
            data.qpos[:] = self.model.key_qpos[0]
        state = np.zeros((KIND + 1, len(self.bodies)))
        state[15 : KIND + 1] = self.constants
        state[2, 0] = self._rest[2]
        self.read(data, state)
        return state


def _matrices(quats: np.ndarray) -> np.ndarray:
    """Rotation matrices (n, 3, 3) of quaternions (n, 4), which MuJoCo has with the real part first."""
    w, x, y, z = (quats / np.linalg.norm(quats, axis=1, keepdims=True)).T
    return np.stack([
        1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
        2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
        2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y),
    ], axis=1).reshape(-1, 3, 3)  # fmt: skip


@lru_cache(256)  # compiling a model takes as long as ten frames, and whoever plans asks about one scene again and again
def _drawn(kinds: bytes, constants: bytes, friction: float) -> _Scene:
    """The scene of a table with such bodies, the pusher first."""
    text = _mjcf(np.frombuffer(kinds), np.frombuffer(constants).reshape(4, -1), friction)
    return _Scene(_mujoco().MjModel.from_xml_string(text))


@lru_cache(64)
def _from_file(path: str, friction: float | None = None) -> _Scene:
    """The user's scene, with that friction of all contacts."""
    mujoco = _mujoco()
    try:
        model = mujoco.MjModel.from_xml_path(path)
    except (ValueError, OSError) as error:
        raise InvalidInput(f"The scene {path} cannot be read by MuJoCo: {str(error).strip().rstrip('.')}.") from error
    flags = mujoco.mjtDisableBit
    model.opt.disableflags |= flags.mjDSBL_WARMSTART | flags.mjDSBL_AUTORESET
    if friction is not None:
        model.geom_friction[:, 0] = friction
    return _Scene(model)


def _matched(scene: _Scene, state: np.ndarray) -> np.ndarray:
    """The column of each body of a user's scene, found by its constants, since objects have no order."""
    left = list(range(state.shape[1]))
    found = []
    for body, wanted in zip(scene.bodies, scene.constants.T, strict=True):
        fits = [k for k in left if np.allclose(state[15 : KIND + 1, k], wanted, rtol=1e-3, atol=1e-6)]
        if not fits:
            name = scene.model.body(body).name or f"number {body}"
            raise InvalidInput(f"tabletop: no object of the state has the extent, mass and kind of the scene's body {name}.")
        found.append(fits[0])
        left.remove(fits[0])
    return np.array(found)


def _mjcf(kinds: np.ndarray, constants: np.ndarray, friction: float) -> str:
    """The scene in MuJoCo's own language; constants (4, n) are extents and masses."""
    walls = "".join(
        f'<geom type="plane" size="1 1 1" pos="{SIDE * x} {SIDE * y} 0" zaxis="{-x} {-y} 0"/>'
        for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1))
    )
    bodies = ""
    for k in range(len(kinds)):
        x, y, z, mass = (f"{value:.17g}" for value in constants[:, k])
        if kinds[k] == -1:
            slides = "".join(f'<joint type="slide" axis="{way}" range="-{LIMIT} {LIMIT}"/>' for way in ("1 0 0", "0 1 0"))
            bodies += f'<body pos="0 0 {HOVER}">{slides}<geom type="cylinder" size="{x} {z}" mass="{mass}" contype="2"/></body>'
        else:
            shape = f'type="box" size="{x} {y} {z}"' if kinds[k] == 1 else f'type="sphere" size="{x}"'
            bodies += f'<body><freejoint/><geom {shape} mass="{mass}" conaffinity="3"/></body>'
    return f"""<mujoco>
      <compiler autolimits="true"/>
      <size memory="{256 * len(kinds)}K"/>
      <option gravity="0 0 {-GRAVITY}" cone="elliptic" tolerance="1e-12">
        <flag warmstart="disable" autoreset="disable"/>
      </option>
      <default><geom friction="{friction:.17g}"/></default>
      <worldbody><geom type="plane" size="1 1 1"/>{walls}{bodies}</worldbody>
    </mujoco>"""
