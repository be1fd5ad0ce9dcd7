"""Small systems whose flow is known, as environments and as trajectories in memory."""

from dataclasses import dataclass, replace

import numpy as np
import torch

import hybridworld as hw
from hybridworld.data.evidence import Recorded
from hybridworld.surrogate.config import configure
from hybridworld.surrogate.normalisation import Normalisation
from hybridworld.surrogate.surrogate import Surrogate

REGIMES = ("id", "ood-near", "ood-far")
DAMPING = hw.Parameter("damping", "1/s", "decay of the amplitude", dict.fromkeys(REGIMES, ((0.1, 0.5),)), (0, 10))
OSCILLATOR = hw.StateSpec(
    name="oscillator", title="Damped oscillator", fields=(hw.Field("position", "m"), hw.Field("velocity", "m/s")),
    axes=(), grid=(), frame_step=0.1, time_unit="s", frames=33, draw="position", parameters=(DAMPING,),
    horizons=(1, 2, 4, 8, 16),
)  # fmt: skip
RING = replace(
    OSCILLATOR, name="ring", title="A wave that fades", fields=(hw.Field("u", "1"),),
    axes=(hw.Axis("x", 0, 1, "periodic"),), grid=(16,), draw="u", frames=17, horizons=(1, 2, 4, 8),
)  # fmt: skip


@dataclass(frozen=True)
class Oscillator(hw.Environment):
    """Position and velocity turn by one radian per second, and their amplitude decays."""

    frame_step: float = 0.1
    longest: int = 16

    @property
    def spec(self):
        doublings = tuple(2**power for power in range(self.longest.bit_length()))
        return replace(OSCILLATOR, frame_step=self.frame_step, frames=2 * self.longest + 1, horizons=doublings)

    def sample(self, rng, split):
        return hw.Sample(rng.normal(size=2), np.array([DAMPING.draw(rng, "id")]))

    def advance(self, states, frames, params):
        time = self.frame_step * frames
        turned = np.exp((-1j - params[:, 0]) * time) * (states[:, 0] + 1j * states[:, 1])
        return np.stack([turned.real, turned.imag], axis=1)


@dataclass(frozen=True)
class Ring(hw.Environment):
    """A few waves that travel by one cell in two frames, and fade."""

    @property
    def spec(self):
        return RING

    def sample(self, rng, split):
        x = np.arange(16) / 16
        waves = [rng.normal() * np.sin(2 * np.pi * (k * x + rng.uniform())) for k in (1, 2, 3)]
        return hw.Sample(np.sum(waves, axis=0)[None], np.array([DAMPING.draw(rng, "id")]))

    def advance(self, states, frames, params):
        phase = np.exp(-2j * np.pi * np.arange(9) * frames / 32)
        moved = np.fft.irfft(np.fft.rfft(states) * phase, 16)
        return moved * np.exp(-0.1 * frames * params)[..., None]


@dataclass(frozen=True)
class Drift(hw.Environment):
    """A wave on a ring that travels by a fraction of its length per frame and fades; its step cannot be chosen."""

    grid: tuple[int, ...] = (32,)

    @property
    def spec(self):
        return replace(RING, name="drift", grid=self.grid)

    def sample(self, rng, split):
        x = np.arange(self.grid[0]) / self.grid[0]
        waves = [rng.normal() * np.sin(2 * np.pi * (k * x + rng.uniform())) for k in (1, 2, 3)]
        return hw.Sample(np.sum(waves, axis=0)[None], np.array([DAMPING.draw(rng, "id")]))

    def advance(self, states, frames, params):
        """First-order upwind: it smears on a coarse grid."""
        speed = 0.4 * self.grid[0] / 32
        for _ in range(frames):
            states = states - speed * (states - np.roll(states, 1, -1))
            states = states * (1 - 0.1 * params[..., None])
        return states


class Table:
    """Trajectories in memory: states (trajectory, frame, channel, *grid)."""

    def __init__(self, spec, states, params):
        self.spec, self.frames = spec, states.shape[1]
        self._states, self._params = states.astype(np.float32), params

    def window(self, drawn):
        return range(len(self._states))

    def params(self, trajectories):
        return self._params[trajectories]

    def read(self, trajectories, frames):
        return self._states[trajectories, frames]

    def blocks(self, count):
        return Recorded(self).blocks(count)


def table(environment, split="train", count=64):
    samples = [environment.initial(split, seed) for seed in range(count)]
    params = np.stack([sample.params for sample in samples])
    states = environment.record(np.stack([sample.state for sample in samples]), environment.spec.frames - 1, params)
    return Table(environment.spec, np.moveaxis(states, 2, 1), params)


def ones(spec, horizons=(1, 2, 4, 8)):
    """Scales with mean 0, deviation 1, and changes of 1."""
    channels, params = len(spec.channels), len(spec.params)
    return Normalisation(
        *(
            np.asarray(each, np.float32)
            for each in (
                np.zeros(channels), np.ones(channels), np.zeros(params), np.ones(params),
                horizons, np.ones((len(horizons), channels)),
            )
        )
    )  # fmt: skip


def tiny(spec, *wishes, preset="smoke"):
    """A config with a small network."""
    width = "surrogate.width=8"
    return configure(spec, preset, [width, *wishes])


def surrogate(spec, *wishes, scales=None):
    """One that does something: a new one predicts no change."""
    net = Surrogate(spec, tiny(spec, *wishes).surrogate, scales or ones(spec)).eval()
    for weights in net.backbone.last.parameters():
        torch.nn.init.normal_(weights, std=0.3)
    return net
