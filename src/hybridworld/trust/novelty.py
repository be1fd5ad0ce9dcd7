"""Signals of novelty: how far does this state lie from those of the training data? They need no labels.

A state may be new and its answer right, or familiar and its answer wrong: these signals say nothing about the answer itself.
"""

import torch
from torch import Tensor, nn

from hybridworld.data.pairs import Pairs
from hybridworld.errors import InvalidInput
from hybridworld.surrogate.surrogate import Surrogate
from hybridworld.surrogate.validation import to_tensors
from hybridworld.trust.signal import Cost, Estimate, Ingredients, Makers

PAIRS = {True: 1_000, False: 20_000}
"""Training pairs whose features are looked at, over all horizons: of fields, and of state vectors."""
RIDGE = 1e-4
"""Added to the covariance of features, as a share of their mean variance, for features that never vary."""


class InputAmplitude:
    """|z|, norm over channels: how many deviations of the training data each cell of the input lies from the mean."""

    name = "input amplitude"
    cost = Cost(passes=1)

    def __init__(self, surrogate: Surrogate) -> None:
        self._surrogate = surrogate

    @classmethod
    def offers(cls, given: Ingredients) -> Makers:
        """The signal for any model."""
        return {cls.name: lambda: cls(given.surrogate)}

    def __call__(self, states: Tensor, horizons: Tensor, params: Tensor) -> Estimate:
        """One pass, for the prediction alone."""
        return Estimate(self._surrogate(states, horizons, params), self._surrogate.normalise(states).norm(dim=1))


class DensityGuard:
    """Distance of the network's features from those of its training data:   sqrt((f - μ)ᵀ Σ⁻¹ (f - μ)), per cell.

    f is what enters the last layer; μ and Σ are its mean and covariance over training pairs of a similar horizon, so the
    distance falls as a Gaussian density of the features rises (Mahalanobis; Lee et al. 2018). NVIDIA PhysicsNeMo ships a guard
    that watches a model's latent features, too. On validation data of Ball 3D this distance ranks errors at least as well as
    that to the nearest neighbours; it stores no features, and gives a map at the price of a matrix product.
    """

    name = "density guard"

    def __init__(self, surrogate: Surrogate, training: Pairs) -> None:
        last = getattr(surrogate.backbone, "last", None)
        if last is None:
            raise InvalidInput("The backbone does not name its last layer `last`, whose input the density guard watches.")
        self._last: nn.Module = last
        self._surrogate, moments, seen, number = surrogate, dict[int, _Moments](), 0, 0
        while seen < PAIRS[surrogate.spec.is_field]:
            states, horizons, params, _ = to_tensors(training.batch(number), surrogate.mean.device)
            with torch.no_grad():
                features = self._pass(states, horizons, params)[1]
            for band in torch.unique(bands(horizons)).tolist():
                moments.setdefault(band, _Moments()).add(features[bands(horizons) == band])
            seen, number = seen + len(states), number + 1
        self._fitted = {band: each.whitening() for band, each in moments.items()}
        self.cost = Cost(passes=1, training=f"features of {seen:,} training pairs")

    @classmethod
    def offers(cls, given: Ingredients) -> Makers:
        """The signal for a network that names its last layer, where there are training pairs."""
        f, pairs = given.surrogate, given.training
        named = hasattr(getattr(f, "backbone", None), "last")
        return {cls.name: lambda: cls(f, pairs())} if pairs and named else {}

    def __call__(self, states: Tensor, horizons: Tensor, params: Tensor) -> Estimate:
        """One pass; each state is compared with the training pairs whose horizons are nearest to its own."""
        prediction, features = self._pass(states, horizons, params)
        error_map = prediction.new_empty(len(states), *states.shape[2:])
        for wanted in torch.unique(bands(horizons)).tolist():
            rows = bands(horizons) == wanted
            mean, whitening = self._fitted[min(self._fitted, key=lambda band: abs(band - wanted))]
            error_map[rows] = ((features[rows].double() - mean) @ whitening).norm(dim=-1).to(error_map)
        return Estimate(prediction, error_map)

    def _pass(self, states: Tensor, horizons: Tensor, params: Tensor) -> tuple[Tensor, Tensor]:
        """The prediction, and what enters the last layer: (batch, *grid, features)."""
        seen: list[Tensor] = []
        watch = self._last.register_forward_pre_hook(lambda layer, inputs: seen.append(inputs[0]))
        try:
            with self._surrogate.eager():
                prediction = self._surrogate(states, horizons, params)
        finally:
            watch.remove()
        return prediction, seen[0] if isinstance(self._last, nn.Linear) else seen[0].movedim(1, -1)


class _Moments:
    """Count, sum and sum of squares of features, from which follow their mean and covariance."""

    def __init__(self) -> None:
        self.count, self.sum, self.squares = 0, torch.zeros(()), torch.zeros(())

    def add(self, features: Tensor) -> None:
        rows = features.flatten(0, -2).double()
        self.count, self.sum, self.squares = self.count + len(rows), self.sum + rows.sum(dim=0), self.squares + rows.T @ rows

    def whitening(self) -> tuple[Tensor, Tensor]:
        """The mean, and W such that (f - mean) W has unit covariance."""
        mean = self.sum / self.count
        covariance = self.squares / self.count - torch.outer(mean, mean)
        ridge = RIDGE * covariance.diagonal().mean().clamp(min=1e-12)
        inverse = torch.linalg.inv(covariance + ridge * torch.eye(len(mean), dtype=mean.dtype, device=mean.device))
        return mean, torch.linalg.cholesky((inverse + inverse.T) / 2)


def bands(horizons: Tensor) -> Tensor:
    """Horizons within a factor of √2 of a power of 2 share a band, whose number is the exponent."""
    return torch.log2(horizons).round().int()
