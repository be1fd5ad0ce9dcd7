"""What training makes small. z is a normalised state, f the surrogate, h a horizon, λ the weight `dagger`.

supervised          (1 - λ) |f(z, h) - z_h|^2  +  λ |f(f(z, h/2), h/2) - target|^2
                        chain:   target = z_h, the trajectory's own future (the paper's recipe)
                        solver:  target = what the solver makes of the mid state f(z, h/2) (DAgger proper)
self-consistency    |f(z, h) - f(f(z, h/2), h/2)|^2, whose trivial minimum is f(z, h) = z: the ablation
"""

from collections.abc import Callable
from math import ceil

import numpy as np
import torch
from torch import Tensor, nn

from hybridworld.errors import HybridWorldError, InvalidInput
from hybridworld.surrogate.config import TrainingConfig
from hybridworld.surrogate.surrogate import Surrogate

Solve = Callable[[np.ndarray, int, np.ndarray], np.ndarray]
"""Environment.solve: (states, frames, params) -> states."""


class Objective(nn.Module):
    """The loss of a batch, as a module, so that DistributedDataParallel can wrap the whole of it.

    The second term is computed on a share λ of the batch (rounded up) and weighted so that its expectation is that of the
    formula: on the whole batch it would triple the cost of a step for a tenth of the loss. `shard` = (rank, world): the batch
    holds the samples rank, rank + world, ... of the one that all processes share.
    """

    def __init__(
        self, surrogate: Surrogate, training: TrainingConfig, solve: Solve | None = None, shard: tuple[int, int] = (0, 1)
    ) -> None:
        super().__init__()
        if training.objective == "supervised" and training.dagger > 0 and training.dagger_kind == "solver" and solve is None:
            raise InvalidInput("training.dagger_kind=solver needs a solver: name the system, or choose chain.")
        self.surrogate, self.training_config, self._solve = surrogate, training, solve
        self._rank, self._world = shard
        self.unsolved = 0
        """Mid states so far that the solver refused: they are left out."""

    def forward(self, states: Tensor, horizons: Tensor, params: Tensor, futures: Tensor) -> Tensor:
        """Mean over the samples of all processes, once these processes average it."""
        f, share = self.surrogate.advance, self.training_config.dagger
        z = self.surrogate.normalise(states)
        if self.training_config.objective == "self-consistency":
            return squared(f(z, horizons, params) - self._chain(z, horizons, params)).mean()
        target = self.surrogate.normalise(futures)
        loss = torch.zeros((), device=z.device)
        if share < 1:
            loss = (1 - share) * squared(f(z, horizons, params) - target).mean()
        of_all = ceil(share * len(z) * self._world)
        mine = len(range(self._rank, of_all, self._world))
        if mine:
            part = [values[:mine] for values in (z, horizons, params, target)]
            errors = self._dagger_solver(*part) if self.training_config.dagger_kind == "solver" else self._dagger_chain(*part)
            loss = loss + share * self._world / of_all * errors.sum()
        return loss

    def _chain(self, z: Tensor, horizons: Tensor, params: Tensor) -> Tensor:
        mid = self.surrogate.advance(z, horizons / 2, params)
        return self.surrogate.advance(mid, horizons / 2, params)

    def _dagger_chain(self, z: Tensor, horizons: Tensor, params: Tensor, target: Tensor) -> Tensor:
        return squared(self._chain(z, horizons, params) - target)

    def _dagger_solver(self, z: Tensor, horizons: Tensor, params: Tensor, target: Tensor) -> Tensor:
        """The solver takes whole frames, so odd horizons have no mid state: they are supervised directly."""
        even = horizons % 2 == 0
        direct = squared(self.surrogate.advance(z[~even], horizons[~even], params[~even]) - target[~even])
        if not even.any():
            return direct
        z, half, params = z[even], horizons[even] / 2, params[even]
        with torch.no_grad():
            mid = self.surrogate.advance(z, half, params)
            answers, found = self._ask(self.surrogate.denormalise(mid), half, params)
        mid, half, params = mid[found], half[found], params[found]
        errors = squared(self.surrogate.advance(mid, half, params) - self.surrogate.normalise(answers))
        return torch.cat([direct, errors])

    def _ask(self, states: Tensor, frames: Tensor, params: Tensor) -> tuple[Tensor, Tensor]:
        """The solver's answers, and of which states; a prediction may be a state that cannot exist."""
        assert self._solve is not None
        rows, answers = [], []
        for row in range(len(states)):
            try:
                state, param = (values[row].double().cpu().numpy() for values in (states, params))
                answers.append(self._solve(state[None], int(frames[row]), param[None])[0])
                rows.append(row)
            except HybridWorldError:
                self.unsolved += 1
        found = torch.tensor(rows, dtype=torch.long, device=states.device)
        shape = (0, *states.shape[1:])
        return torch.as_tensor(
            np.stack(answers) if answers else np.empty(shape), dtype=states.dtype, device=states.device
        ), found


def squared(errors: Tensor) -> Tensor:
    """Mean square per sample."""
    return errors.square().flatten(1).mean(dim=1)
