"""Step-doubling, the error map that a surrogate draws of itself:

    e(s, T) = | f(s, T) - f(f(s, a), b) |          a + b = T; norm over channels, per cell; per trajectory for a state vector

The two horizons a and b are the halves of T: whole frames, so T/2 twice where T is even. The true flow gives zero: advancing by
T is advancing by a, then by b. Where f is close to it, so is e; where f fails (shocks,
fronts, contacts), its two answers part. It needs no labels, no second model and no knowledge of the equations. Its blind
spot: a wrong f that is consistent with itself, like f(s, T) = s, has the map zero.
"""

from collections.abc import Sequence

from torch import Tensor

from hybridworld.surrogate.horizons import composed, halves, halves_among
from hybridworld.trust.signal import Cost, Estimate, Ingredients, Makers, Propagator, distance


class StepDoubling:
    """The signal of a propagator `f`; `unit` (channels,) makes channels comparable: a surrogate's own deviations.

    Where `f` answers some horizons alone, `answered`, the two parts are the most equal ones among these.
    """

    name = "step-doubling"
    cost = Cost(passes=3, parts=True)

    def __init__(self, f: Propagator, unit: Tensor, answered: Sequence[int] | None = None) -> None:
        self._f, self._unit, self._answered = f, unit, answered

    @classmethod
    def offers(cls, given: Ingredients) -> Makers:
        """The signal, for every model except one that answers only fixed horizons of which none is the sum of two others."""
        f = given.surrogate
        return {cls.name: lambda: cls(f, f.std, f.answered)} if f.answered is None or composed(f.answered) else {}

    def __call__(self, states: Tensor, horizons: Tensor, params: Tensor) -> Estimate:
        """Single shot at T against two chained halves: three forward passes, one of which is the prediction."""
        whole = self._f(states, horizons, params)
        first, second = halves(horizons) if self._answered is None else halves_among(horizons, self._answered)
        twice = self._f(self._f(states, first, params), second, params)
        return Estimate(whole, distance(whole, twice, self._unit))
