"""The smallest system that can be acted on: a point on a line that moves with the action."""

from dataclasses import dataclass

import numpy as np

import hybridworld as hw
from hybridworld.physics.task import Task


@dataclass(frozen=True)
class Cart(hw.Environment):
    """dx/dt = drift + push."""

    @property
    def spec(self):
        return hw.StateSpec(
            name="cart", title="Cart", fields=(hw.Field("x", "m"),), axes=(), grid=(), frame_step=0.1, time_unit="s", frames=9,
            draw="x", horizons=(1, 2, 4, 8),
            parameters=(
                hw.Parameter("drift", "m/s", "", {"id": ((-0.1, 0.1),), "ood-near": ((0.1, 0.2),), "ood-far": ((0.2, 0.3),)}),
                hw.Parameter("push", "m/s", "", {"id": ((-1.0, 1.0),)}, (-2.0, 2.0), "action"),
            ),
        )  # fmt: skip

    def sample(self, rng, split):
        drift = self.spec.parameter("drift").draw(rng, self.spec.regime(split))
        return hw.Sample(rng.uniform(-1, 1, 1), np.array([drift, rng.uniform(-1, 1)]))

    def advance(self, states, frames, params):
        return states + 0.1 * frames * params.sum(axis=1, keepdims=True)

    def task(self, rng, state):
        goal = state + rng.choice([-1, 1]) * rng.uniform(1, 2)

        def missed(states):
            return np.abs(states[:, 0] - goal[0])

        return Task("go there", goal, 0.1, "m", missed, missed)
