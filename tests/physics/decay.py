"""A system of one number that is right in every respect, for faults to be put in."""

from dataclasses import dataclass

import numpy as np

import hybridworld as hw
from hybridworld.physics.spec import REGIMES

RATE = hw.Parameter(
    "rate", "1/s", "decay", {"id": ((1.0, 2.0),), "ood-near": ((2.0, 3.0),), "ood-far": ((3.0, 4.0),)}, allowed=(0, 10)
)
SPEC = hw.StateSpec(
    name="decay", title="Decay", fields=(hw.Field("x", "m"),), axes=(hw.Axis("x", 0, 1, "wall"),), grid=(),
    frame_step=0.1, time_unit="s", frames=65, draw="x", parameters=(RATE,), horizons=(1, 2, 4),
)  # fmt: skip


@dataclass(frozen=True)
class Decay(hw.Environment):
    """dx/dt = -rate x: right in every respect."""

    described: hw.StateSpec = SPEC

    @property
    def spec(self):
        return self.described

    def sample(self, rng, split):
        return hw.Sample(rng.uniform(1, 2, size=1), np.array([RATE.draw(rng, REGIMES[split])]))

    def advance(self, states, frames, params):
        return states * np.exp(-params * frames * 0.1)
