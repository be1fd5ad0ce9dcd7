"""How horizon and parameters steer a network: one vector per sample, which scales and shifts features (FiLM)."""

import math

import torch
from torch import Tensor, nn

WAVES = 64
SLOWEST, FASTEST = 1 / 16, 2.0
"""Radians per doubling of the horizon. The fastest wave is well sampled by horizons that double, so that what was learned at
these carries over to the horizons between them."""


class Conditioning(nn.Module):
    """(horizon, params) -> c:   log2 h -> 64 sines and cosines, joined by the parameters -> 128 -> c of length `size`."""

    rates: Tensor

    def __init__(self, params: int, size: int = 64) -> None:
        super().__init__()
        rates = torch.logspace(math.log2(SLOWEST), math.log2(FASTEST), WAVES // 2, base=2)
        self.register_buffer("rates", rates, persistent=False)
        self.layers = nn.Sequential(nn.Linear(WAVES + params, 128), nn.SiLU(), nn.Linear(128, size))

    def forward(self, horizons: Tensor, params: Tensor) -> Tensor:
        """Horizons in frames (batch,), any positive real; params (batch, n), normalised -> (batch, size)."""
        angles = torch.log2(horizons)[:, None] * self.rates
        return self.layers(torch.cat([angles.sin(), angles.cos(), params], dim=1))


class FiLM(nn.Module):
    """x -> (1 + a) x + b, with a and b per feature, linear in the conditioning vector (Perez et al. 2018)."""

    def __init__(self, condition: int, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(condition, 2 * features)

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        """x (batch, features, *grid), condition (batch, size)."""
        a, b = self.linear(condition).unflatten(1, (2, -1, *[1] * (x.dim() - 2))).unbind(1)
        return torch.addcmul(b, x, 1 + a)
