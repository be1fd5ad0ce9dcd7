"""A model of Ball 3D of my own: states and horizon in, states out."""

from pathlib import Path

import numpy as np
import torch
from torch import nn

import hybridworld as hw

WEIGHTS = Path(__file__).with_name("my_model.pt")
LONGEST = 32


class Net(nn.Module):
    """A change that grows with the horizon, from the state, the horizon and the parameters (gravity, restitution)."""

    def __init__(self, width: int = 256) -> None:
        super().__init__()
        self.register_buffer("scale", torch.ones(9))  # of the channels
        self.layers = nn.Sequential(
            nn.Linear(12, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, width), nn.GELU(),
            nn.Linear(width, 9),
        )  # fmt: skip

    def forward(self, states, horizon, params):
        time = torch.as_tensor(horizon, dtype=states.dtype).expand(len(states))[:, None] / LONGEST
        return states + self.scale * time * self.layers(torch.cat([states / self.scale, time, params / 10], dim=1))


def load() -> Net:
    """The trained model, as `my_model.py:load` names it."""
    model = Net()
    model.load_state_dict(torch.load(WEIGHTS, weights_only=True))
    return model


def train(steps: int = 6_000, trajectories: int = 1_000) -> None:
    """On random pairs of the reference solver's trajectories, every horizon from 1 to 32 frames."""
    system, rng = hw.system("ball3d"), np.random.default_rng(0)
    starts, params = system.initials("train", range(trajectories))
    frames = system.record(starts, system.spec.frames - 1, params)  # (trajectories, channels, frames)
    torch.manual_seed(0)
    model = Net()
    model.scale = torch.from_numpy(frames.std(axis=(0, 2)))
    optimiser = torch.optim.Adam(model.parameters(), 2e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    for _ in range(steps):
        row, horizon = rng.integers(trajectories, size=256), rng.integers(1, LONGEST + 1, 256)
        now = rng.integers(0, frames.shape[2] - horizon)
        states, futures = (torch.from_numpy(frames[row, :, frame]) for frame in (now, now + horizon))
        answer = model(states, torch.from_numpy(horizon), torch.from_numpy(params[row]).float())
        loss = ((answer - futures) / model.scale).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    torch.save(model.state_dict(), WEIGHTS)


if __name__ == "__main__":
    train()
    wrapped = hw.wrap(f"{__file__}:load", "ball3d", horizons=range(1, LONGEST + 1))
    wrapped.save(WEIGHTS.with_suffix(".safetensors"))
    start = hw.system("ball3d").initial("test", seed=0)
    forecast = wrapped.predict(start.state, 32, start.params, tolerance=0.5)
    print("solver" if forecast.used_solver else "surrogate", f"with a score of {forecast.score:.3g}")
