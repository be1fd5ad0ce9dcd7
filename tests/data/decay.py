"""A system that costs nothing, for tests of what surrounds a solver."""

from dataclasses import dataclass, replace

import numpy as np

import hybridworld as hw

RATE = hw.Parameter(
    "rate", "1/s", "decay", {"id": ((1.0, 2.0),), "ood-near": ((2.0, 3.0),), "ood-far": ((3.0, 4.0),)}, allowed=(0, 10)
)
SPEC = hw.StateSpec(
    name="decay", title="Decay", fields=(hw.Field("u", "m"), hw.Field("w", "m/s", "vector")),
    axes=(hw.Axis("x", 0, 1, "periodic"), hw.Axis("y", 0, 2, "open")), grid=(6, 4),
    frame_step=0.1, time_unit="s", frames=9, draw="u", parameters=(RATE,), horizons=(1, 2, 4),
    counts={"train": 40, "val": 12, "test": 12, "ood-near": 8, "ood-far": 8},
)  # fmt: skip


@dataclass(frozen=True)
class Decay(hw.Environment):
    """du/dt = -rate u in each cell."""

    grid: tuple[int, ...] = (6, 4)

    @property
    def spec(self):
        return replace(SPEC, grid=self.grid)

    def sample(self, rng, split):
        rate = RATE.draw(rng, self.spec.regime(split))
        return hw.Sample(rng.normal(size=self.spec.shape), np.array([rate]), {"kind": "noise", "scale": rng.uniform()})

    def advance(self, states, frames, params):
        return states * np.exp(-0.1 * frames * params)[..., None, None]
