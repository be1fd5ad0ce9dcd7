"""Signals from disagreement: ask one question in several ways, and see how far the answers lie apart. No labels.

Step-doubling is the simplest of them. Here are its generalisations (other splits of the horizon, the symmetries of the
system) and its rivals (noise on the input, several networks).
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from hybridworld.errors import InvalidInput
from hybridworld.physics.spec import StateSpec
from hybridworld.physics.symmetry import Symmetry
from hybridworld.surrogate.horizons import split
from hybridworld.trust.signal import Cost, Estimate, Ingredients, Makers, Propagator, TrustSignal, distance
from hybridworld.trust.step_doubling import StepDoubling


class ManySplits:
    """rms over shares a of |f(s, T) - f(f(s, aT), (1 - a)T)|, in whole frames: step-doubling has the one share 1/2."""

    name = "many splits"

    def __init__(self, f: Propagator, unit: Tensor, shares: Sequence[float] = (0.25, 0.5, 0.75)) -> None:
        if not shares or not all(0 < share < 1 for share in shares):
            raise InvalidInput(f"The shares are {', '.join(map(str, shares)) or 'none'}: each must lie between 0 and 1.")
        self._f, self._unit, self._shares = f, unit, shares
        self.cost = Cost(passes=1 + 2 * len(shares), parts=True)

    @classmethod
    def offers(cls, given: Ingredients) -> Makers:
        """The signal for a model that answers every horizon."""
        f = given.surrogate
        return {cls.name: lambda: cls(f, f.std)} if f.answered is None else {}

    def __call__(self, states: Tensor, horizons: Tensor, params: Tensor) -> Estimate:
        """The estimate, from one pass and two more per share."""
        whole = self._f(states, horizons, params)
        parts = (split(horizons, share) for share in self._shares)
        others = (self._f(self._f(states, first, params), second, params) for first, second in parts)
        return Estimate(whole, rms([distance(whole, other, self._unit) for other in others]))


class Symmetric:
    """rms over symmetries g of |f(s, T) - g⁻¹ f(g s, T)|: the true flow commutes with each of them.

    Three symmetries serve as well as all; which ones they are is fixed by `seed`.
    """

    name = "symmetries"

    def __init__(
        self, f: Propagator, unit: Tensor, spec: StateSpec, symmetries: Sequence[Symmetry], count: int = 3, seed: int = 0
    ) -> None:
        moving = [each for each in symmetries if not each.is_identity]
        if not moving:
            raise InvalidInput(f"{spec.name} declares no symmetries: this signal has nothing to compare.")
        if count < 1:
            raise InvalidInput(f"The number of symmetries is {count}: it must be at least 1.")
        chosen = np.random.default_rng(seed).permutation(len(moving))[:count]
        self._symmetries = [moving[index] for index in chosen]
        self._f, self._unit, self._spec = f, unit, spec
        self.cost = Cost(passes=1 + len(self._symmetries), equations="its symmetries")

    @classmethod
    def offers(cls, given: Ingredients) -> Makers:
        """The signal for a model whose system is known and has symmetries."""
        f, symmetries = given.surrogate, given.system.symmetries if given.system else ()
        some = any(not each.is_identity for each in symmetries)
        return {cls.name: lambda: cls(f, f.std, f.spec, symmetries)} if some else {}

    def __call__(self, states: Tensor, horizons: Tensor, params: Tensor) -> Estimate:
        """The estimate, from one pass and one more per symmetry."""
        whole = self._f(states, horizons, params)
        others = (self._image(self._f(self._image(states, each), horizons, params), each.inverse) for each in self._symmetries)
        return Estimate(whole, rms([distance(whole, other, self._unit) for other in others]))

    def _image(self, states: Tensor, symmetry: Symmetry) -> Tensor:
        return torch.from_numpy(symmetry.apply(self._spec, states.detach().cpu().numpy())).to(states)


class Combined:
    """rms of the maps of several signals about the same propagator, each in units of the same deviations.

    Signals know nothing of each other: each makes its own prediction, and `cost` counts it.
    """

    def __init__(self, *signals: TrustSignal) -> None:
        if not signals:
            raise InvalidInput("There are no signals to combine: give at least 1.")
        self._signals, costs = signals, [signal.cost for signal in signals]
        self.name = " + ".join(signal.name for signal in signals)
        self.cost = Cost(
            sum(cost.passes for cost in costs),
            "; ".join(cost.training for cost in costs if cost.training),
            any(cost.labels for cost in costs),
            "; ".join(cost.equations for cost in costs if cost.equations),
            any(cost.parts for cost in costs),
        )

    @classmethod
    def offers(cls, given: Ingredients) -> Makers:
        """The combinations that have a name: the symmetries with step-doubling, and with many splits."""
        composing = {**StepDoubling.offers(given), **ManySplits.offers(given)}
        return {
            f"{name} + {other}": lambda make=make, also=also: cls(make(), also())  # type: ignore[misc]
            for other, also in Symmetric.offers(given).items()
            for name, make in composing.items()
        }

    def __call__(self, states: Tensor, horizons: Tensor, params: Tensor) -> Estimate:
        """The estimate; its prediction is that of the first signal."""
        found = [signal(states, horizons, params) for signal in self._signals]
        return Estimate(found[0].prediction, rms([each.error_map for each in found]))


class RandomAugmentation:
    """Deviation of f(s + noise, T) over `count` draws of noise of `size` deviations: test-time augmentation."""

    name = "random augmentation"

    def __init__(self, f: Propagator, unit: Tensor, size: float = 0.01, count: int = 4, seed: int = 0) -> None:
        if count < 2:
            raise InvalidInput(f"The number of draws is {count}: a deviation needs at least 2.")
        if not 0 < size < np.inf:
            raise InvalidInput(f"The size of the noise is {size:g} deviations: it must be a positive number.")
        self._f, self._unit, self._size, self._count, self._seed = f, unit, size, count, seed
        self.cost = Cost(passes=1 + count)

    @classmethod
    def offers(cls, given: Ingredients) -> Makers:
        """The signal for any model."""
        f = given.surrogate
        return {cls.name: lambda: cls(f, f.std)}

    def __call__(self, states: Tensor, horizons: Tensor, params: Tensor) -> Estimate:
        """The estimate; every state gets the same noise, so that an answer does not depend on its neighbours in the batch."""
        rng = torch.Generator().manual_seed(self._seed)
        whole = self._f(states, horizons, params)
        column = self._unit.reshape(-1, *[1] * (states.dim() - 2))
        noises = (torch.randn(states.shape[1:], generator=rng).to(states) * self._size * column for _ in range(self._count))
        others = [self._f(states + noise, horizons, params) for noise in noises]
        return Estimate(whole, spread(others, self._unit))


class Ensemble:
    """Deviation over networks that differ by their seeds; the prediction is that of the first, as for other signals."""

    name = "ensemble"

    def __init__(self, members: Sequence[Propagator], unit: Tensor) -> None:
        if len(members) < 2:
            raise InvalidInput(f"The number of members of an ensemble is {len(members)}: it needs at least 2.")
        self._members, self._unit = members, unit
        self.cost = Cost(passes=len(members), training=f"{len(members) - 1} more surrogates")

    @classmethod
    def offers(cls, given: Ingredients) -> Makers:
        """The signal for several networks."""
        f, others = given.surrogate, given.members
        return {cls.name: lambda: cls([f, *others()], f.std)} if others else {}

    def __call__(self, states: Tensor, horizons: Tensor, params: Tensor) -> Estimate:
        """The estimate, from one pass per member."""
        answers = [member(states, horizons, params) for member in self._members]
        return Estimate(answers[0], spread(answers, self._unit))


class GradientMagnitude:
    """|∇ f(s, T)|, norm over channels and axes: steep places are where surrogates tend to fail. Fields only."""

    name = "gradient magnitude"
    cost = Cost(passes=1)

    def __init__(self, f: Propagator, unit: Tensor, spec: StateSpec) -> None:
        if not spec.grid:
            raise InvalidInput(f"{spec.name} has no grid, so there is no gradient to take.")
        self._f, self._unit, self._spec = f, unit, spec

    @classmethod
    def offers(cls, given: Ingredients) -> Makers:
        """The signal for fields."""
        f = given.surrogate
        return {cls.name: lambda: cls(f, f.std, f.spec)} if f.spec.grid else {}

    def __call__(self, states: Tensor, horizons: Tensor, params: Tensor) -> Estimate:
        """The estimate, from one pass."""
        whole = self._f(states, horizons, params)
        values = whole / self._unit.reshape(-1, *[1] * (whole.dim() - 2))
        axes = range(len(self._spec.grid))
        return Estimate(whole, sum(self._difference(values, axis).square().sum(dim=1) for axis in axes).sqrt())  # type: ignore[union-attr]

    def _difference(self, values: Tensor, axis: int) -> Tensor:
        """Central differences per cell: across a periodic edge, one-sided at any other."""
        if self._spec.axes[axis].boundary == "periodic":
            return (values.roll(-1, 2 + axis) - values.roll(1, 2 + axis)) / 2
        return torch.gradient(values, dim=2 + axis)[0]


def rms(maps: Sequence[Tensor]) -> Tensor:
    """Root of the mean square of several maps."""
    return torch.stack(list(maps)).square().mean(dim=0).sqrt()


def spread(answers: Sequence[Tensor], unit: Tensor) -> Tensor:
    """Deviation of several answers, norm over channels: (batch, *grid)."""
    mean = torch.stack(list(answers)).mean(dim=0)
    return rms([distance(answer, mean, unit) for answer in answers])
