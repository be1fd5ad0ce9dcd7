"""Variables in which a network works.

Those of an ideal gas: whatever finite numbers the network answers with, they are a state that can exist.

    (density, momentum, energy)  <->  (log density, velocity, 0.3 log pressure)

The logarithms also tame the tail: the energy of a fresh blast is a thousand times the usual.
"""

from math import exp

import torch
from torch import Tensor

LOG_LIMIT = 14.0
"""The largest absolute value of log density and of log pressure: wider ranges within a field overflow in a float32 solver."""
FASTEST = 1e3
"""The largest absolute value of a velocity's component."""
COLDEST = 4e-6
"""Internal over kinetic energy, at least: less than that is lost when their sum is rounded to float32."""
OF_PRESSURE = 0.3
"""Brings the spread of log pressure near those of the others."""


def signed_log(z: Tensor) -> Tensor:
    """z near zero, and the logarithm of what is large: sign(z) log(1 + |z|)."""
    return z.sign() * z.abs().log1p()


def gas_variables(states: Tensor, gamma: float) -> Tensor:
    """Density, momentum and energy (batch, channels, *grid) -> log density, velocity and 0.3 log pressure."""
    density = states[:, :1].clamp(min=torch.finfo(states.dtype).tiny)
    momentum, energy = states[:, 1:-1], states[:, -1:]
    velocity = momentum / density
    kinetic = 0.5 * (momentum * velocity).sum(dim=1, keepdim=True)
    pressure = (gamma - 1) * torch.maximum(energy - kinetic, COLDEST * kinetic)
    logs = [each.clamp(min=exp(-LOG_LIMIT)).log() for each in (density, pressure)]
    return torch.cat([logs[0], velocity, OF_PRESSURE * logs[1]], dim=1)


def gas_state(variables: Tensor, gamma: float) -> Tensor:
    """Inverse of `gas_variables`: density and pressure are positive for any finite input."""
    density = variables[:, :1].clamp(-LOG_LIMIT, LOG_LIMIT).exp()
    velocity = variables[:, 1:-1].clamp(-FASTEST, FASTEST)
    pressure = (variables[:, -1:] / OF_PRESSURE).clamp(-LOG_LIMIT, LOG_LIMIT).exp()
    kinetic = 0.5 * density * velocity.square().sum(dim=1, keepdim=True)
    internal = torch.maximum(pressure / (gamma - 1), COLDEST * kinetic)
    return torch.cat([density, density * velocity, kinetic + internal], dim=1)
