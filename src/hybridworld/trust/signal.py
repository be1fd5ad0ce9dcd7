"""What every trust signal gives: (state, horizon, params) -> a prediction, and a map of where it is doubtful."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Protocol

from torch import Tensor

from hybridworld.data.pairs import Batch, Pairs
from hybridworld.physics.environment import Environment
from hybridworld.surrogate.surrogate import Surrogate

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
    """Whether it needs true futures before it can be used."""
    equations: str = ""
    """What it has to know about the physics."""
    parts: bool = False
    """Whether it asks the network for parts of the horizon as well."""


class TrustSignal(Protocol):
    """A signal returns the prediction with the map, so that no forward pass is wasted."""

    name: str
    cost: Cost

    def __call__(self, states: Tensor, horizons: Tensor, params: Tensor) -> Estimate:
        """States (batch, channels, *grid), horizons (batch,), params (batch, n)."""


Makers = Mapping[str, Callable[[], TrustSignal]]
"""Name -> how to make that signal."""


@dataclass(frozen=True)
class Ingredients:
    """What signals are made of: a model, its system where that is known, and what only some of them need.

    The latter are functions, which are called by the signals that need them; None where there is no such thing.
    """

    surrogate: Surrogate
    system: Environment | None = None
    members: Callable[[], Sequence[Surrogate]] | None = None
    """Further networks, for an ensemble."""
    training: Callable[[], Pairs] | None = None
    validation: Callable[[], Mapping[int, Batch]] | None = None
    head_steps: int = 2_000
    """Limits the training of the error head, as `head_seconds` does; it ends earlier where it improves no more."""
    head_seconds: float = inf


def distance(a: Tensor, b: Tensor, unit: Tensor) -> Tensor:
    """Norm over channels of (a - b) / unit: (batch, channels, *grid) -> (batch, *grid). Not for gradients: at 0 it has none.

    `torch.norm` over so few channels is seventy times slower.
    """
    return ((a - b) / unit.reshape(-1, *[1] * (a.dim() - 2))).square().sum(dim=1).sqrt()
