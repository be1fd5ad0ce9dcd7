"""Signals that are fitted to true errors: rivals that need labels, which step-doubling does not."""

import copy
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from sklearn.neighbors import KNeighborsRegressor
from torch import Tensor, nn

from hybridworld.data.pairs import Batch, Pairs
from hybridworld.surrogate.backbones import default_backbone, find_backbone
from hybridworld.surrogate.conditioning import Conditioning
from hybridworld.surrogate.surrogate import CONDITION, Surrogate
from hybridworld.surrogate.validation import in_pieces, to_tensors
from hybridworld.trust.signal import Cost, Estimate, Ingredients, Makers, distance

SMALLEST = 1e-6  # of an error, in deviations: a logarithm needs one
WIDTH_OF_CELLS, WIDTH_OF_OBJECTS, WIDTH_OF_VECTORS = 16, 48, 128  # of the error head: half of a surrogate's, or less
POINTS, NEIGHBOURS = 20_000, 25
HELD_OUT = 8
"""Batches that the error head never trains on: they tell when to stop."""
CHECK = 50
"""Training steps of the error head between two looks at these."""
PATIENCE = 12
"""Looks without a better one before the training of the error head stops."""


class ErrorHead(nn.Module):
    """A second, smaller network that was trained to predict log |f(s, T) - truth| per cell."""

    name = "learned error head"

    def __init__(self, surrogate: Surrogate, seed: int = 0) -> None:
        super().__init__()
        spec = surrogate.spec
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.conditioning = Conditioning(len(spec.params) if surrogate.config.params else 0, CONDITION)
            make = find_backbone(default_backbone(spec), spec)
            width = WIDTH_OF_CELLS if spec.is_field else WIDTH_OF_OBJECTS if spec.objects else WIDTH_OF_VECTORS
            self.network = make(len(spec.channels), spec.boundaries, CONDITION, width)
        self.to(surrogate.mean.device)
        self._surrogate = [surrogate]  # in a list, so that its weights are not this module's
        self.cost = Cost(passes=2, training="a network", labels=True)
        self.steps = 0
        """Training steps so far; the weights are the best among them."""

    @classmethod
    def offers(cls, given: Ingredients) -> Makers:
        """The signal where there are training pairs; it is trained when it is made."""
        f, pairs = given.surrogate, given.training
        return {cls.name: lambda: cls(f).fit(pairs(), given.head_steps, seconds=given.head_seconds)} if pairs else {}

    def log_error(self, states: Tensor, horizons: Tensor, params: Tensor) -> Tensor:
        """The logarithm of the error per cell: (batch, *grid)."""
        surrogate = self._surrogate[0]
        z = surrogate.normalise(states)
        return self.network(z, self.conditioning(horizons, surrogate.conditions(z, params))).mean(dim=1)

    def forward(self, states: Tensor, horizons: Tensor, params: Tensor) -> Estimate:
        """The estimate, from one pass of the surrogate and one of the head."""
        return Estimate(self._surrogate[0](states, horizons, params), self.log_error(states, horizons, params).exp())

    def fit(self, pairs: Pairs, most_steps: int = 2_000, lr: float = 1e-3, seconds: float = np.inf) -> "ErrorHead":
        """Train on pairs with known futures until the loss on held-out pairs stops improving, and keep the best weights.

        The first batches are held out, and training begins with the next. `most_steps` and `seconds` limit the training: give
        those of the surrogate's own. `steps` says how many it took.
        """
        optimiser = torch.optim.AdamW(self.parameters(), lr=lr)
        slower = torch.optim.lr_scheduler.ReduceLROnPlateau(optimiser, factor=0.5, patience=PATIENCE // 4)
        held_out = [self._labelled(pairs.batch(number)) for number in range(HELD_OUT)]
        best, lowest, waited = copy.deepcopy(self.state_dict()), self._loss_on(held_out), 0
        deadline = time.monotonic() + seconds
        while self.steps < most_steps and waited < PATIENCE and time.monotonic() < deadline:
            loss = self._loss(*self._labelled(pairs.batch(HELD_OUT + self.steps)))
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            self.steps += 1
            if self.steps % CHECK == 0 or self.steps == most_steps:
                found = self._loss_on(held_out)
                slower.step(found)
                waited += 1
                if found < lowest:
                    best, lowest, waited = copy.deepcopy(self.state_dict()), found, 0
        self.load_state_dict(best)
        self.cost = replace(self.cost, training=f"a network, {self.steps:,} steps")
        return self.eval()

    def _labelled(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """States, horizons, params, and the logarithm of the true error map."""
        surrogate = self._surrogate[0]
        states, horizons, params, futures = to_tensors(batch, surrogate.mean.device)
        with torch.no_grad():
            error = distance(surrogate(states, horizons, params), futures, surrogate.std)
        return states, horizons, params, (error + SMALLEST).log()

    def _loss(self, states: Tensor, horizons: Tensor, params: Tensor, truth: Tensor) -> Tensor:
        return (self.log_error(states, horizons, params) - truth).square().mean()

    def _loss_on(self, batches: Sequence[tuple[Tensor, Tensor, Tensor, Tensor]]) -> float:
        with torch.no_grad():
            return sum(float(self._loss(*batch)) for batch in batches) / len(batches)


class LocalConformal:
    """Locally adaptive conformal prediction: the mean error of the validation answers that resemble this one.

    A state vector is described by itself and its prediction, a cell of a field by its values, their predicted change and the
    steepness around it. The width of a normalised conformal interval is this estimate times a constant, so it ranks alike.
    """

    name = "locally adaptive conformal"
    cost = Cost(passes=1, training="neighbours among validation answers", labels=True)

    def __init__(self, surrogate: Surrogate, validation: Mapping[int, Batch], seed: int = 0) -> None:
        self._surrogate, rng = surrogate, np.random.default_rng(seed)
        self._fitted: dict[float, KNeighborsRegressor] = {}
        for horizon, batch in validation.items():
            points, errors = [], []
            with torch.no_grad():
                for states, horizons, params, futures in in_pieces(surrogate, batch):
                    later = surrogate(states, horizons, params)
                    points.append(self._features(states, later))
                    errors.append(distance(later, futures, surrogate.std).flatten().cpu().numpy())
            x, y = np.concatenate(points), np.concatenate(errors)
            rows = rng.permutation(len(y))[:POINTS]
            self._fitted[horizon] = KNeighborsRegressor(min(NEIGHBOURS, len(rows))).fit(x[rows], y[rows])

    @classmethod
    def offers(cls, given: Ingredients) -> Makers:
        """The signal where there are validation pairs."""
        f, pairs = given.surrogate, given.validation
        return {cls.name: lambda: cls(f, pairs())} if pairs else {}

    def __call__(self, states: Tensor, horizons: Tensor, params: Tensor) -> Estimate:
        """The estimate, from one pass and the neighbours of each state at the fitted horizon nearest to its own."""
        later = self._surrogate(states, horizons, params)
        error_map = later.new_empty(len(states), *states.shape[2:])
        for horizon in torch.unique(horizons).tolist():
            rows = horizons == horizon
            nearest = min(self._fitted, key=lambda known, h=horizon: abs(np.log2(known / h)))  # type: ignore[misc]
            found = self._fitted[nearest].predict(self._features(states[rows], later[rows]))
            error_map[rows] = torch.from_numpy(found).to(later).reshape(error_map[rows].shape)
        return Estimate(later, error_map)

    def _features(self, states: Tensor, later: Tensor) -> np.ndarray:
        """What neighbours are compared by: (batch * cells, features)."""
        now, then = (self._surrogate.normalise(each) for each in (states, later))
        parts = [now, then]
        if self._surrogate.spec.is_field:
            steep = sum(torch.gradient(then, dim=axis)[0].square() for axis in range(2, then.dim()))
            parts = [now, then - now, torch.as_tensor(steep).sqrt()]
        return torch.cat(parts, dim=1).movedim(1, -1).flatten(0, -2).detach().cpu().numpy()
