"""A tabletop in MuJoCo: scenes of bodies, and the way of a state to MuJoCo and back. No other file knows MuJoCo."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from hybridworld.errors import InvalidInput
from hybridworld.physics.tabletop_bodies import (
    CONSTANTS,
    FRAME,
    GRAVITY,
    HOVER,
    KIND,
    POSITION,
    PUSHER,
    SIDE,
    SPIN,
    VELOCITY,
    from_quaternions,
    rotations,
)

LIMIT = SIDE - PUSHER[0]  # m: where a wall stops the pusher
MISSING = "tabletop needs MuJoCo: install it with pip install 'hybrid-world-models[robotics]'."


def lacking() -> str:
    """How to get MuJoCo where it is not installed; else empty."""
    return "" if find_spec("mujoco") else MISSING


def _mujoco() -> ModuleType:
    try:
        import mujoco
    except ImportError as error:
        raise InvalidInput(MISSING) from error
    return mujoco


class Scene:
    """MuJoCo's model of some bodies, the pusher before the others; it carries states in that order to MuJoCo's and back."""

    def __init__(self, model: Any) -> None:
        joints = _mujoco().mjtJoint
        self.model, pushers, free = model, list[int](), list[int]()
        self._spare = list[Any]()  # MuJoCo's data that nobody uses: making them takes as long as several steps
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

    @contextmanager
    def begun(self, state: np.ndarray) -> Iterator[Any]:
        """MuJoCo's data at that state, for the time of a run; several threads may run one scene."""
        try:
            data = self._spare.pop()
            _mujoco().mj_resetData(self.model, data)
        except IndexError:
            data = _mujoco().MjData(self.model)
        self.load(data, state)
        yield data
        self._spare.append(data)

    def step(self, data: Any, action: list[float], steps: int) -> None:
        """Advance MuJoCo's data by so many steps, in which the pusher moves with the action."""
        self.drive(data, action)
        _mujoco().mj_step(self.model, data, nstep=steps)

    def touched(self, data: Any, action: list[float], steps: int) -> np.ndarray:
        """The same steps, and how many of them each body spends at another one or at a wall; what carries it does not count."""
        self.drive(data, action)
        counts = np.zeros(self.model.nbody, int)
        for _ in range(steps):
            _mujoco().mj_step(self.model, data)
            pairs = self.model.geom_bodyid[data.contact.geom]  # (contacts, 2)
            upright = np.abs(data.contact.frame[:, 2]) > 0.7  # the normal of the contact
            counts[np.unique(pairs[~(upright & (pairs == 0).any(axis=1))])] += 1
        return counts[self.bodies]

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
        turn = from_quaternions(places[:, 3:])
        state[:2, 0] = data.qpos[self._at : self._at + 2] + self._rest[:2]
        state[POSITION, 1:], state[VELOCITY, 1:] = places[:, :3].T, speeds[:, :3].T
        state[SPIN, 1:] = np.einsum("nij,nj->in", turn, speeds[:, 3:])
        for k, each in FRAME:
            state[each, 1 + boxes] = turn[boxes, :, k].T

    def picture(self, state: np.ndarray, height: int, width: int) -> np.ndarray | None:
        """The state as MuJoCo's own renderer draws it, (height, width, 3); None where there is no OpenGL."""
        mujoco = _mujoco()
        try:
            with self.begun(state) as data, mujoco.Renderer(self.model, height, width) as renderer:
                mujoco.mj_forward(self.model, data)
                renderer.update_scene(data)
                return renderer.render()
        except (mujoco.FatalError, ImportError, AttributeError, RuntimeError):  # each platform library has its own way to fail
            return None

    def start(self) -> np.ndarray:
        """The state (channels, n) that the file describes, at rest: its first keyframe if there is one."""
        data = _mujoco().MjData(self.model)
        if self.model.nkey:
            data.qpos[:] = self.model.key_qpos[0]
        state = np.zeros((KIND + 1, len(self.bodies)))
        state[CONSTANTS] = self.constants
        state[2, 0] = self._rest[2]
        self.read(data, state)
        return state


@lru_cache(256)  # compiling a model takes as long as ten frames, and whoever plans asks about one scene again and again
def scene_of(kinds: bytes, constants: bytes, friction: float, seconds: float) -> Scene:
    """The scene of a table with such bodies, the pusher first, for steps of so many seconds."""
    text = _mjcf(np.frombuffer(kinds), np.frombuffer(constants).reshape(4, -1), friction)
    model = _mujoco().MjModel.from_xml_string(text)
    model.opt.timestep = seconds
    return Scene(model)


def content_of(path: str) -> str:
    """The sha256 of a user's scene: the file may change while a program runs."""
    try:
        return sha256(Path(path).read_bytes()).hexdigest()
    except OSError as error:
        raise InvalidInput(f"The scene {path} cannot be read: {error.strerror}.") from error


def scene_from_file(path: str, friction: float | None = None, seconds: float | None = None) -> Scene:
    """The user's scene as the file is now, with that friction of all contacts, for steps of so many seconds."""
    return _scene_from_file(path, content_of(path), friction, seconds)


@lru_cache(64)
def _scene_from_file(path: str, content: str, friction: float | None, seconds: float | None) -> Scene:
    mujoco = _mujoco()
    try:
        model = mujoco.MjModel.from_xml_path(path)
    except (ValueError, OSError) as error:
        raise InvalidInput(f"The scene {path} cannot be read by MuJoCo: {str(error).strip().rstrip('.')}.") from error
    flags = mujoco.mjtDisableBit
    model.opt.disableflags |= flags.mjDSBL_WARMSTART | flags.mjDSBL_AUTORESET
    if friction is not None:
        model.geom_friction[:, 0] = friction
    if seconds is not None:
        model.opt.timestep = seconds
    return Scene(model)


def columns_in(scene: Scene, state: np.ndarray) -> np.ndarray:
    """The column of each body of a user's scene, found by its constants, since objects have no order."""
    left = list(range(state.shape[1]))
    found = []
    for body, wanted in zip(scene.bodies, scene.constants.T, strict=True):
        fits = [k for k in left if np.allclose(state[CONSTANTS, k], wanted, rtol=1e-3, atol=1e-6)]
        if not fits:
            name = scene.model.body(body).name or f"number {body}"
            raise InvalidInput(f"tabletop: no object of the state has the extent, mass and kind of the scene's body {name}.")
        found.append(fits[0])
        left.remove(fits[0])
    return np.array(found)


def _mjcf(kinds: np.ndarray, constants: np.ndarray, friction: float) -> str:
    """The scene in MuJoCo's own language; constants (4, n) are extents and masses."""
    walls = "".join(
        f'<geom type="plane" size="1 1 1" pos="{SIDE * x} {SIDE * y} 0" zaxis="{-x} {-y} 0" rgba="1 1 1 0.05"/>'
        for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1))
    )
    bodies = ""
    for k in range(len(kinds)):
        x, y, z, mass = (f"{value:.17g}" for value in constants[:, k])
        if kinds[k] == -1:
            slides = "".join(f'<joint type="slide" axis="{way}" range="-{LIMIT} {LIMIT}"/>' for way in ("1 0 0", "0 1 0"))
            shape = f'type="cylinder" size="{x} {z}" rgba="0.2 0.2 0.2 1"'
            bodies += f'<body pos="0 0 {HOVER}">{slides}<geom {shape} mass="{mass}" contype="2"/></body>'
        else:
            shape = f'type="box" size="{x} {y} {z}" rgba="0.9 0.5 0.1 1"' if kinds[k] == 1 else f'type="sphere" size="{x}"'
            bodies += f'<body><freejoint/><geom {shape} mass="{mass}" conaffinity="3"/></body>'
    return f"""<mujoco>
      <compiler autolimits="true"/>
      <size memory="{256 * len(kinds)}K"/>
      <option gravity="0 0 {-GRAVITY}" cone="elliptic" tolerance="1e-12">
        <flag warmstart="disable" autoreset="disable"/>
      </option>
      <visual><headlight ambient="0.6 0.6 0.6" diffuse="0.5 0.5 0.5"/></visual>
      <default><geom friction="{friction:.17g}" rgba="0.2 0.5 0.9 1"/></default>
      <worldbody><geom type="plane" size="1 1 1" rgba="0.9 0.9 0.9 1"/>{walls}{bodies}</worldbody>
    </mujoco>"""
