"""Models that nobody trained here, of the oscillator in tests.surrogate.flows: as users write them, in one file."""

import numpy as np
import torch
from torch import nn

FRAME = 0.1


def leap(states, horizon, params):
    """One explicit step over the whole horizon, in NumPy: wrong, and the more so the longer."""
    x, v = states.T
    time = FRAME * horizon
    return np.stack([x + time * (v - params[:, 0] * x), v + time * (-x - params[:, 0] * v)], axis=1)


def leap_in_torch(states, horizon, params):
    x, v = states.unbind(1)
    time = FRAME * horizon
    return torch.stack([x + time * (v - params[:, 0] * x), v + time * (-x - params[:, 0] * v)], dim=1)


def undamped(states, horizon):
    """It knows nothing of the damping."""
    x, v = states.T
    time = FRAME * horizon
    return np.stack([x + time * v, v - time * x], axis=1)


def repeated(states, horizon, params):
    """A step of one frame, repeated."""
    for _ in range(round(horizon)):
        states = leap(states, 1, params)
    return states


def quarter(states, horizon):
    """A model in parts: NumPy that is handed to torch and back."""
    return torch.as_tensor(undamped(np.asarray(states), horizon)) if horizon > 1 else undamped(states, horizon)


def resting(states, horizon):
    """Hardly anything changes, whatever the horizon."""
    return states * 0.99


class Leap(nn.Module):
    """The same with a weight."""

    def __init__(self):
        super().__init__()
        self.rate = nn.Parameter(torch.tensor(1.0))

    def forward(self, states, horizon, params):
        return states + self.rate * (leap_in_torch(states, horizon, params) - states)


class Sized(Leap):
    """One that cannot be made without arguments."""

    def __init__(self, rate):
        super().__init__()
        nn.init.constant_(self.rate, rate)


def load():
    """What a user's file does: make the network, and give it its weights."""
    return Sized(0.9).eval()


def broken():
    raise OSError("there are no weights here")


def number():
    return 7
