"""Step-doubling, the error map that a surrogate draws of itself:

    e(s, T) = | f(s, T) - f(f(s, T/2), T/2) |          norm over channels, per cell; per trajectory for a state vector

The true flow gives zero: advancing by T is advancing by T/2 twice. Where f is close to it, so is e; where f fails (shocks,
fronts, contacts), its two answers part. It needs no labels, no second model and no knowledge of the equations. Its blind
spot: a wrong f that is consistent with itself, like f(s, T) = s, has the map zero.
"""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

Propagator = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(states, horizons, params) -> states."""


@dataclass(frozen=True)
class Estimate:
    """A prediction, and where it is doubtful."""

    prediction: Tensor  # (batch, channels, *grid)
    error_map: Tensor  # (batch, *grid)

    @property
    def score(self) -> Tensor:
        """One number per trajectory: the mean of its map, (batch,)."""
        return self.error_map.flatten(1).mean(dim=1) if self.error_map.dim() > 1 else self.error_map


class StepDoubling:
    """The signal of a propagator `f`; `unit` (channels,) makes channels comparable: a surrogate's own deviations."""

    def __init__(self, f: Propagator, unit: Tensor) -> None:
        self._f, self._unit = f, unit

    def __call__(self, states: Tensor, horizons: Tensor, params: Tensor) -> Estimate:
        """Single shot at T against two chained halves: three forward passes, one of which is the prediction."""
        whole = self._f(states, horizons, params)
        twice = self._f(self._f(states, horizons / 2, params), horizons / 2, params)
        return Estimate(whole, distance(whole, twice, self._unit))


def distance(a: Tensor, b: Tensor, unit: Tensor) -> Tensor:
    """Norm over channels of (a - b) / unit: (batch, channels, *grid) -> (batch, *grid)."""
    return ((a - b) / unit.reshape(-1, *[1] * (a.dim() - 2))).norm(dim=1)
