"""A damped pendulum, an ordinary differential equation: d2angle/dt2 = -(g / length) sin(angle) - damping dangle/dt."""

from dataclasses import dataclass

import numpy as np

from hybridworld import Environment, Field, Parameter, Sample, StateSpec

GRAVITY, STEPS = 9.81, 20  # m/s^2; Runge-Kutta steps per frame

LENGTH = Parameter(
    "length", "m", "of the rod",
    ranges={"id": ((0.8, 1.2),), "ood-near": ((1.2, 1.4),), "ood-far": ((1.4, 2.0),)}, allowed=(0.1, 10.0),
)  # fmt: skip
DAMPING = Parameter("damping", "1/s", "by the air", ranges={"id": ((0.0, 0.2),)}, allowed=(0.0, 10.0))


@dataclass(frozen=True)
class Pendulum(Environment):
    """A state is (angle, rate): it has no grid."""

    frame_step: float = 0.05

    @property
    def spec(self) -> StateSpec:
        return StateSpec(
            name="pendulum",
            title="A damped pendulum",
            fields=(Field("angle", "rad"), Field("rate", "rad/s")),
            axes=(),
            grid=(),
            frame_step=self.frame_step,
            time_unit="s",
            frames=129,
            draw="angle",
            parameters=(LENGTH, DAMPING),
        )

    def sample(self, rng: np.random.Generator, split: str) -> Sample:
        params = np.array([LENGTH.draw(rng, self.spec.regime(split)), DAMPING.draw(rng, "id")])
        return Sample(np.array([rng.uniform(-2.5, 2.5), rng.uniform(-1.0, 1.0)]), params)

    def advance(self, states: np.ndarray, frames: int, params: np.ndarray) -> np.ndarray:
        """Runge-Kutta of fourth order, for all states at once."""
        length, damping = params.T
        step = self.frame_step / STEPS

        def slope(y: np.ndarray) -> np.ndarray:
            angle, rate = y.T
            return np.stack([rate, -GRAVITY / length * np.sin(angle) - damping * rate], axis=1)

        y = states.astype(np.float64)
        for _ in range(frames * STEPS):
            a = slope(y)
            b = slope(y + step / 2 * a)
            c = slope(y + step / 2 * b)
            d = slope(y + step * c)
            y = y + step / 6 * (a + 2 * b + 2 * c + d)
        return y
