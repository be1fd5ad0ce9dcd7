"""Ball 3D: a spinning ball that bounces in a box.

    dx/dt = v,   dv/dt = (0, 0, g),   dw/dt = 0;      at a wall: v_normal -> -e v_normal

State: position x (of the centre), velocity v, spin w. Box [-0.5, 0.5]^2 x [0, 1] m, radius 0.05 m, so the centre moves in
[-0.45, 0.45]^2 x [0.05, 0.95]. Restitution e and gravity g are drawn per trajectory. The flow is smooth between bounces and
jumps at them; a ball that has lost its energy lies on the floor.

Scheme: per frame 50 substeps of semi-implicit Euler (first v, then x with the new v); a substep that ends inside a wall while
moving outward is put back on the wall and its normal velocity becomes -e times itself. In flight it conserves the shadow
energy v^2/2 - g z + (g dt/2) v_z exactly, and it converges to the event-driven solution (`exact`) with first order.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from hybridworld.errors import InvalidInput
from hybridworld.physics.arguments import describe_cell
from hybridworld.physics.brushes import Brush, Setting
from hybridworld.physics.environment import Environment, Sample
from hybridworld.physics.spec import Axis, Field, Parameter, StateSpec
from hybridworld.physics.symmetry import Symmetry, square_symmetries
from hybridworld.physics.threads import over_trajectories

RADIUS, CLEARANCE = 0.05, 0.075
LOW = np.array([-0.5, -0.5, 0.0]) + RADIUS
HIGH = np.array([0.5, 0.5, 1.0]) - RADIUS
REACH = 0.2
"""How far (m) inside a wall a centre may be: networks put it up to 0.13 m there, and the solver brings it back."""
CHUNK = 1024  # balls per piece of work: enough to outweigh a thread

RESTITUTION = Parameter(
    name="restitution",
    unit="1",
    meaning="share of the normal velocity that a bounce leaves",
    ranges={"id": ((0.70, 0.95),), "ood-near": ((0.50, 0.70), (0.95, 0.99)), "ood-far": ((0.30, 0.50),)},
    allowed=(0.0, 1.0),
)
GRAVITY = Parameter(
    name="gravity",
    unit="m/s^2",
    meaning="vertical acceleration (negative: downward)",
    ranges={
        "id": ((-10.5, -9.0),),
        "ood-near": ((-12.0, -10.5), (-9.0, -7.5)),
        "ood-far": ((-15.0, -12.0), (-7.5, -5.0)),
    },
    allowed=(-100.0, 0.0),
)


@lru_cache(maxsize=64)
def ranges(fastest: float) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and the highest position and velocity of a ball whose velocities are at most that fast."""
    most = np.full(3, fastest)
    return np.concatenate([LOW - REACH, -most]), np.concatenate([HIGH + REACH, most])


@dataclass(frozen=True)
class Ball3D(Environment):
    """Rigid-body flight with collisions; see the module's docstring."""

    frame_step: float = 0.01
    substeps: int = 50

    @property
    def spec(self) -> StateSpec:
        return StateSpec(
            name="ball3d",
            title="Ball 3D: a bouncing ball",
            fields=(
                Field("position", "m", "vector"),
                Field("velocity", "m/s", "vector"),
                Field("spin", "rad/s", "axial"),
            ),
            axes=(Axis("x", -0.5, 0.5, "wall"), Axis("y", -0.5, 0.5, "wall"), Axis("z", 0.0, 1.0, "wall")),
            grid=(),
            frame_step=self.frame_step,
            time_unit="s",
            frames=101,
            draw="position_z",
            parameters=(RESTITUTION, GRAVITY),
            counts={"train": 1000, "val": 200, "test": 200, "ood-near": 200, "ood-far": 200},
        )

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        return square_symmetries(dimensions=3)

    def with_steps(self, factor: float) -> tuple[Environment, float]:
        return replace(self, substeps=max(round(factor * self.substeps), 1)), 1

    def sample(self, rng: np.random.Generator, split: str) -> Sample:
        regime = self.spec.regime(split)
        params = np.array([RESTITUTION.draw(rng, regime), GRAVITY.draw(rng, regime)])
        position = rng.uniform(LOW - RADIUS + CLEARANCE, HIGH + RADIUS - CLEARANCE)
        direction = rng.normal(size=3)
        velocity = rng.uniform(1.0, 3.0) * direction / np.linalg.norm(direction)
        spin = rng.uniform(-5.0, 5.0, size=3)
        return Sample(np.concatenate([position, velocity, spin]), params)

    def blank(self) -> np.ndarray:
        return np.concatenate([(LOW + HIGH) / 2, np.zeros(6)])

    @property
    def brushes(self) -> tuple[Brush, ...]:
        def throw(state: np.ndarray, points: np.ndarray, speed: float) -> np.ndarray:
            start, end = points
            return np.concatenate([np.clip(start, LOW, HIGH), speed * (end - start), state[6:]])

        speed = Setting("speed", "m/s per m", 1.0, 10.0, 5.0)
        return (Brush("throw", "Throw the ball: from where it starts to where it heads.", "arrow", throw, (speed,)),)

    def conserved(self, states: np.ndarray, params: np.ndarray) -> dict[str, np.ndarray]:
        """Per unit mass, kept in flight: mechanical energy; momentum only horizontally, and until the first wall."""
        velocity = states[:, 3:6]
        return {"energy": 0.5 * (velocity**2).sum(axis=1) - params[:, 1] * states[:, 2], "momentum": velocity}

    def check_physical(self, states: np.ndarray) -> None:
        low, high = ranges((HIGH - LOW).min() / (self.frame_step / self.substeps))
        inside = (states[:, :6] >= low) & (states[:, :6] <= high)
        if not inside.all():
            row, channel = map(int, np.argwhere(~inside)[0])
            why = "m: the ball must be in its box" if channel < 3 else "m/s: a faster ball crosses the box within a substep"
            told = describe_cell(self.spec, states, (row, channel))
            raise InvalidInput(f"ball3d: {told}; allowed is {low[channel]:g} to {high[channel]:g} {why}.")

    def advance(self, states: np.ndarray, frames: int, params: np.ndarray) -> np.ndarray:
        from hybridworld.physics.kernels.ball3d import advance

        return self._in_chunks(advance, states, params, self.frame_step / self.substeps, frames * self.substeps)

    def exact(self, states: np.ndarray, frames: int, params: np.ndarray) -> np.ndarray:
        from hybridworld.physics.kernels.ball3d import exact

        return self._in_chunks(exact, states, params, frames * self.frame_step)

    def _in_chunks(self, kernel, states: np.ndarray, params: np.ndarray, *arguments) -> np.ndarray:
        answer, params = states.astype(np.float64), np.ascontiguousarray(params)

        def work(index: int, threads: int) -> None:
            chunk = slice(index * CHUNK, (index + 1) * CHUNK)
            kernel(answer[chunk], params[chunk], LOW, HIGH, *arguments)

        over_trajectories(work, -(-len(states) // CHUNK), CHUNK)
        return answer

    def advance_numpy(self, states: np.ndarray, frames: int, params: np.ndarray) -> np.ndarray:
        x, v, spin = np.split(states.astype(np.float64), 3, axis=1)
        dt = self.frame_step / self.substeps
        e = params[:, :1]
        for _ in range(frames * self.substeps):
            v[:, 2] += params[:, 1] * dt
            x += v * dt
            strikes = ((x < LOW) & (v < 0)) | ((x > HIGH) & (v > 0))
            if strikes.any():
                x = np.where(strikes, np.clip(x, LOW, HIGH), x)
                v = np.where(strikes, -e * v, v)
        return np.concatenate([x, v, spin], axis=1)
