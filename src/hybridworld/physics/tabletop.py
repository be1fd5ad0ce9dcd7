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

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from hybridworld.errors import InvalidInput
from hybridworld.physics.arguments import checked_params, checked_states, describe_cell
from hybridworld.physics.environment import Environment, Sample, room_for
from hybridworld.physics.spec import Axis, Parameter, StateSpec
from hybridworld.physics.symmetry import Symmetry, square_symmetries
from hybridworld.physics.tabletop_bodies import (
    EXTENT,
    FIELDS,
    FRAME,
    GRAVITY,
    KIND,
    MASS,
    MASSES,
    PUSHER,
    SIDE,
    SPIN,
    TRIES,
    VELOCITY,
    aimed,
    inertia,
    rotations,
    set_off,
    strewn,
)
from hybridworld.physics.tabletop_scene import Scene, columns_in, content_of, lacking, scene_from_file, scene_of
from hybridworld.physics.task import Mark, Task
from hybridworld.physics.threads import over_trajectories

REACH, TOP, FASTEST, SPINNING = 0.1, 1.0, 20.0, 1000.0
"""How far (m) beyond a wall or below the table a centre may be, how high, how fast (m/s, rad/s): predictions err so far."""
PAST = 33
"""Frames that half of the scenes have behind them, fewer than: an agent changes its action amid contacts."""
SMOKE = {"samples": 512, "batch": 32, "validation": 8, "calibration": 8}

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
            asked = self.grid
            object.__setattr__(self, "grid", (len(scene_from_file(self.scene).bodies),))
            if asked != (7,):
                self.resized(asked)

    @cached_property
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

    def resized(self, grid: tuple[int, ...]) -> Self:
        if self.scene and tuple(grid) != self.grid:
            raise InvalidInput(f"tabletop: the scene {self.scene} has {self.grid[0]} objects, not {grid[0]}.")
        return self if self.scene else super().resized(grid)

    @property
    def identity(self) -> dict[str, Any]:
        """A user's own scene is identified by the content of its file."""
        known = {name: value for name, value in super().identity.items() if name != "scene"}
        return known | ({"scene": content_of(self.scene)} if self.scene else {})

    def _axes(self) -> tuple[Axis, ...]:
        if not self.scene:
            return Axis("x", -SIDE, SIDE, "wall"), Axis("y", -SIDE, SIDE, "wall"), Axis("z", 0.0, SIDE, "open")
        middle, reach = scene_from_file(self.scene).model.stat.center, float(scene_from_file(self.scene).model.stat.extent)
        return tuple(Axis(name, float(at) - reach, float(at) + reach, "open") for name, at in zip("xyz", middle, strict=True))

    @property
    def lacks(self) -> str:
        return lacking()

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        return () if self.scene else square_symmetries(dimensions=3)

    @property
    def presets(self) -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
        """Scenes cost more than the vectors that the presets have in mind: fewer pairs, and a schedule that uses them well."""
        short = {"lr": 1e-3, "warmup": 1, "weighting": "robust", "ema": 0.998, "samples": 19_200, "epochs": 36}
        return {"laptop": {"training": short | {"validation": 200, "calibration": 400}}, "smoke": {"training": SMOKE}}

    def with_steps(self, factor: float) -> tuple[Environment, float] | None:
        steps = round(factor * self.substeps)
        return (replace(self, substeps=steps), 1) if steps >= 1 else None

    def variants(self) -> Mapping[str, Environment]:
        ballistic = Ballistic(self.grid, self.frame_step, self.substeps, self.scene)
        return {"ballistic": ballistic, "two steps per frame": replace(self, substeps=2)}

    # Beginnings.

    def sample(self, rng: np.random.Generator, split: str) -> Sample:
        regime = self.spec.regime(split)
        state = self._as_in_the_file(rng) if self.scene else strewn(rng, regime, self.grid[0])
        friction = FRICTION.draw(rng, regime)
        if rng.random() < 0.5:  # a past, in which the pusher moved otherwise
            state = self._run(state[None], int(rng.integers(1, PAST)), np.array([[friction, *aimed(state, rng)]]))[0]
        action = aimed(state, rng)
        return Sample(state[:, rng.permutation(len(state.T))], np.array([friction, *action]))

    def _as_in_the_file(self, rng: np.random.Generator) -> np.ndarray:
        """The user's scene, in which every second body is set off."""
        state = scene_from_file(self.scene).start()
        for thing in state.T[1:]:
            if rng.random() < 0.5:
                set_off(thing, rng)
        return state

    def blank(self) -> np.ndarray:
        state = self.initial("val", 0).state
        state[VELOCITY] = state[SPIN] = 0
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
        reach = float(np.hypot(*state[EXTENT, target][:2])) + PUSHER[0]

        def missed(states: np.ndarray) -> np.ndarray:
            return np.hypot(*(states[:, :2, target] - place).T)

        def cost(states: np.ndarray) -> np.ndarray:
            way = states[:, :2, target] - place
            behind = states[:, :2, target] + reach * way / np.maximum(np.hypot(*way.T), 1e-9)[:, None]
            return missed(states) + 0.25 * np.hypot(*(states[:, :2, pusher] - behind).T)

        goal = np.array([target, *place])
        text = f"push object {target} to ({place[0]:.2f}, {place[1]:.2f}) m"
        return Task(text, goal, 0.03, "m", missed, cost, Mark(np.array([*place, 0.0]), target))

    def photograph(self, state: np.ndarray, params: np.ndarray, height: int, width: int) -> np.ndarray | None:
        """By MuJoCo's own renderer, where there is OpenGL (on machines without a screen: MUJOCO_GL=egl or osmesa)."""
        if "DISPLAY" not in os.environ and os.environ.get("MUJOCO_GL") not in ("egl", "osmesa"):
            return None  # without a screen GLFW, MuJoCo's default, ends the process
        scene, columns = self._scene_of(state, float(params[0]))
        return scene.picture(state[:, columns], height, width)

    # What must hold.

    @cached_property
    def _bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """What each channel of a state may be at least and at most: (channels, 1)."""
        sides = [[axis.low - REACH, axis.high + (TOP if axis.name == "z" else REACH)] for axis in self.spec.axes]
        bounds = [*sides, *[[-FASTEST, FASTEST]] * 3, *[[-2.0, 2.0]] * 6, *[[-SPINNING, SPINNING]] * 3]
        bounds += [*[[1e-4, 10.0]] * 3, list(MASS.allowed), [-1.2, 1.2]]
        low, high = np.array(bounds).T[:, :, None]
        return low, high

    def check_physical(self, states: np.ndarray) -> None:
        kinds, (low, high) = np.round(states[:, KIND]), self._bounds
        pushers = (kinds == -1).sum(axis=1)
        if (pushers != 1).any():
            row = int((pushers != 1).argmax())
            raise InvalidInput(f"tabletop: state {row} has {pushers[row]} pushers (objects of kind -1); it needs one.")
        inside = (states >= low) & (states <= high)
        if not inside.all():
            row, channel, thing = map(int, np.argwhere(~inside)[0])
            told = describe_cell(self.spec, states, (row, channel, thing))
            raise InvalidInput(f"tabletop: {told}; allowed is {low[channel, 0]:g} to {high[channel, 0]:g}.")
        front, side = (states[:, each] for _, each in FRAME)
        squares = [(each * each).sum(axis=1) for each in (front, side)]
        across = (front * side).sum(axis=1)
        wrong = (np.minimum(*squares) < 0.3**2) | (across * across > 0.7**2 * squares[0] * squares[1])
        wrong &= kinds == 1  # others have no orientation
        if wrong.any():
            row, thing = map(int, np.argwhere(wrong)[0])
            raise InvalidInput(
                f"tabletop: front and side of object {thing} of state {row} are too far from two unit vectors at a right angle."
            )

    def conserved(self, states: np.ndarray, params: np.ndarray) -> dict[str, np.ndarray]:
        """Of each object, until friction, a contact or the pusher changes it: energy (batch, n), momentum (batch, 3, n)."""
        mass, moving = states[:, MASSES], np.round(states[:, KIND]) >= 0
        momentum = mass[:, None] * states[:, VELOCITY] * moving[:, None]
        own = np.einsum("bnij,bin->bjn", rotations(states), states[:, SPIN])  # the spin in the body's frame
        kinetic = 0.5 * (mass * (states[:, VELOCITY] ** 2).sum(axis=1) + (inertia(states) * own**2).sum(axis=1))
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

        def work(index: int, threads: int) -> None:
            friction, *action = params[index]
            scene, columns = self._scene_of(answer[index], float(friction))
            state = answer[index][:, columns]
            with scene.begun(state) as data:
                for frame in range(1, frames + 1):
                    scene.step(data, action, self.substeps)
                    if saved is not None or frame == frames:
                        scene.read(data, state)
                        answer[index][:, columns] = state
                    if saved is not None:
                        saved[index, :, frame] = answer[index]

        over_trajectories(work, len(states), 1)
        return answer

    def contacts(self, states: np.ndarray, frames: int, params: np.ndarray) -> np.ndarray:
        """The seconds that each object (batch, n) spends at another one or at a wall while `solve` goes on so far."""
        states, _ = checked_states(self.spec, states)
        params, counts = checked_params(self.spec, params, len(states)), np.zeros((len(states), *self.grid))

        def work(index: int, threads: int) -> None:
            friction, *action = params[index]
            scene, columns = self._scene_of(states[index], float(friction))
            with scene.begun(states[index][:, columns].astype(np.float64)) as data:
                for _ in range(frames):
                    counts[index, columns] += scene.touched(data, action, self.substeps)

        over_trajectories(work, len(states), 1)
        return counts * self.frame_step / self.substeps

    def _scene_of(self, state: np.ndarray, friction: float) -> tuple[Scene, np.ndarray]:
        """MuJoCo's model of that state, and the columns of its bodies."""
        seconds = self.frame_step / self.substeps
        if self.scene:
            scene = scene_from_file(self.scene, friction, seconds)
            return scene, columns_in(scene, state)
        columns = np.argsort(np.round(state[KIND]) != -1, kind="stable")  # the pusher first
        kinds, constants = np.round(state[KIND, columns]), np.ascontiguousarray(state[EXTENT.start : KIND, columns])
        return scene_of(kinds.tobytes(), constants.tobytes(), friction, seconds), columns


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
