"""What every trust signal gives: (state, horizon, params) -> a prediction, and a map of where it is doubtful."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

Propagator = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(states, horizons, params) -> states."""


@dataclass(frozen=True)
class Estimate:
    """A prediction, and how far off it may be; the map is in the units of the signal, and only its order matters."""

    prediction: Tensor  # (batch, channels, *grid)
    error_map: Tensor  # (batch, *grid)

    @property
    def score(self) -> Tensor:
        """One number per trajectory: the mean of its map, (batch,)."""
        return self.error_map.flatten(1).mean(dim=1) if self.error_map.dim() > 1 else self.error_map


@dataclass(frozen=True)
class Cost:
    """What a signal asks for beyond a trained surrogate."""

    passes: int
    """Forward passes of a network per answer, the prediction among them."""
    training: str = ""
    """What else has to be trained or fitted."""
    labels: bool = False
    """Does it need true futures before it can be used?"""
    equations: str = ""
    """What it has to know about the physics."""


class TrustSignal(Protocol):
    """A signal returns the prediction with the map, so that no forward pass is wasted."""

    name: str
    cost: Cost

    def __call__(self, states: Tensor, horizons: Tensor, params: Tensor) -> Estimate:
        """States (batch, channels, *grid), horizons (batch,), params (batch, n)."""


def distance(a: Tensor, b: Tensor, unit: Tensor) -> Tensor:
    """Norm over channels of (a - b) / unit: (batch, channels, *grid) -> (batch, *grid)."""
    return ((a - b) / unit.reshape(-1, *[1] * (a.dim() - 2))).norm(dim=1)
