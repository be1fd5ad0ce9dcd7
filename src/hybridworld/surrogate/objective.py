"""What training makes small. z is a normalised state, f the surrogate, h a horizon, λ the weight `dagger`.

supervised          (1 - λ) |f(z, h) - z_h|^2  +  λ |f(f(z, a), b) - target|^2           a + b = h: its halves, whole frames
                        chain:   target = z_h, the trajectory's own future (the paper's recipe)
                        solver:  target = what the solver makes of the mid state f(z, a) (DAgger proper)
self-consistency    |f(z, h) - f(f(z, a), b)|^2, whose trivial minimum is f(z, h) = z: the ablation
"""

from math import ceil

import numpy as np
import torch
from torch import Tensor, nn

from hybridworld.errors import InvalidInput, SolverFailure
from hybridworld.physics.environment import Solve
from hybridworld.surrogate.config import TrainingConfig
from hybridworld.surrogate.horizons import halves
from hybridworld.surrogate.surrogate import Surrogate

SMALLEST = 1e-12  # mean square of a change, where nothing changes at all
SLIGHT = 0.2  # error of an object or cell, in units of change, below which it counts by its square under `robust`
GUIDE_FLOOR = 0.01  # mean square error in deviations below which a guide counts as right
STILL = 0.1  # share of the mean square change at a horizon that is added to that of each sample under `sample`


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

    def forward(self, states: Tensor, horizons: Tensor, params: Tensor, futures: Tensor, guide: Tensor | None = None) -> Tensor:
        """Mean over the samples of all processes, once these processes average it; `guide`: its answers to the states."""
        if self.training_config.weighting == "guide":
            return self._relative_to_guide(states, horizons, params, futures, guide)
        f, share = self.surrogate.advance, self.training_config.dagger
        z, (first_half, second_half) = self.surrogate.normalise(states), halves(horizons)
        if self.training_config.objective == "self-consistency":
            return squared(f(z, horizons, params) - f(f(z, first_half, params), second_half, params)).mean()
        target = self.surrogate.normalise(futures)
        mine, of_all = self._shared(share, len(z))
        # One pass for the answers and for the mid states: a small network costs as much per call as per sample.
        direct = z if share < 1 else z[:0]
        first = f(
            torch.cat([direct, z[mine]]),
            torch.cat([horizons[: len(direct)], first_half[mine]]),
            torch.cat([params[: len(direct)], params[mine]]),
        )
        answers, mid = first.split([len(direct), len(z[mine])])
        loss = torch.zeros((), device=z.device)
        if share < 1:
            loss = (1 - share) * self._lost(answers, target, z, horizons).mean()
        if len(mid):
            second = self._ask_solver if self.training_config.dagger_kind == "solver" else self._chain
            errors = second(mid, z[mine], second_half[mine], params[mine], target[mine], horizons[mine])
            loss = loss + share * self._world / of_all * errors.sum()
        return loss

    def _relative_to_guide(
        self, states: Tensor, horizons: Tensor, params: Tensor, futures: Tensor, guide: Tensor | None
    ) -> Tensor:
        """Mean over the batch of the errors relative to the guide's, so that no kind of state outweighs the others."""
        net, share = self.surrogate, self.training_config.dagger
        errors, usual = errors_beside_guide(net, states, horizons, params, futures, guide)
        loss = (1 - share) * (errors / usual).mean()
        if share:
            mine, of_all = self._shared(share, len(states))
            first, rest = halves(horizons[mine])
            mid = net.advance(net.normalise(states[mine]), first, params[mine])
            again = net.in_deviations(net.advance(mid, rest, params[mine])) - net.standardise(futures[mine])
            loss = loss + share * self._world / of_all * (squared(again) / usual[mine]).sum()
        return loss

    def _shared(self, share: float, batch: int) -> tuple[slice, int]:
        """The samples of this batch that are chained as well, and how many these are in the batches of all processes."""
        of_all = ceil(share * (batch * self._world))  # rounded alike for any number of processes
        return slice(len(range(self._rank, of_all, self._world))), of_all

    def _lost(self, answers: Tensor, target: Tensor, z: Tensor, horizons: Tensor) -> Tensor:
        """What these answers about z cost, one number per sample; see `training.weighting`."""
        weighting, errors = self.training_config.weighting, answers - target
        if weighting == "none":
            return squared(errors)
        unit = self.surrogate.unit_of_change(horizons)  # (batch, channels)
        if weighting == "robust":
            weights = torch.where(unit > SMALLEST, 1 / unit.clamp(min=SMALLEST), 0).reshape(
                *unit.shape, *[1] * (errors.dim() - 2)
            )
            return ((weights * errors).square().mean(dim=1, keepdim=True) + SLIGHT**2).sqrt().flatten(1).mean(dim=1)
        usual = unit.square().mean(dim=1).clamp(min=SMALLEST)
        return squared(errors) / (usual if weighting == "horizon" else squared(target - z) + STILL * usual)

    def _chain(self, mid: Tensor, z: Tensor, rest: Tensor, params: Tensor, target: Tensor, horizons: Tensor) -> Tensor:
        """The second half, `rest` frames, compared with the trajectory's future."""
        return self._lost(self.surrogate.advance(mid, rest, params), target, z, horizons)

    def _ask_solver(self, mid: Tensor, z: Tensor, rest: Tensor, params: Tensor, target: Tensor, horizons: Tensor) -> Tensor:
        """The second half, compared with what the solver makes of the mid state.

        The solver takes whole frames, so a single frame has no mid state: it is supervised directly.
        """
        one = rest != rest.floor()
        direct = self._lost(self.surrogate.advance(z[one], 2 * rest[one], params[one]), target[one], z[one], horizons[one])
        mid, rest, params, horizons = mid[~one].detach(), rest[~one], params[~one], horizons[~one]
        answers, found = self._ask(self.surrogate.denormalise(mid), rest, params)
        again = self.surrogate.advance(mid[found], rest[found], params[found])
        return torch.cat([direct, self._lost(again, self.surrogate.normalise(answers), z[~one][found], horizons[found])])

    def _ask(self, states: Tensor, frames: Tensor, params: Tensor) -> tuple[Tensor, Tensor]:
        """The solver's answers, and of which states; a prediction may be a state that cannot exist."""
        assert self._solve is not None
        rows, answers = [], []
        for row in range(len(states)):
            try:
                state, param = (values[row].double().cpu().numpy() for values in (states, params))
                answers.append(self._solve(state[None], int(frames[row]), param[None])[0])
                rows.append(row)
            except (InvalidInput, SolverFailure):
                self.unsolved += 1
        found = torch.tensor(rows, dtype=torch.long, device=states.device)
        shape = (0, *states.shape[1:])
        return torch.as_tensor(
            np.stack(answers) if answers else np.empty(shape), dtype=states.dtype, device=states.device
        ), found


def relative_to_guide(
    net: Surrogate, states: Tensor, horizons: Tensor, params: Tensor, futures: Tensor, guide: Tensor | None = None
) -> Tensor:
    """The square error of each sample over that of the guide, whose answers are `guide` if they are known already."""
    errors, usual = errors_beside_guide(net, states, horizons, params, futures, guide)
    return errors / usual


def errors_beside_guide(
    net: Surrogate, states: Tensor, horizons: Tensor, params: Tensor, futures: Tensor, guide: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The square error of each sample, and that of the guide, at least about `GUIDE_FLOOR`."""
    guide = net.ask_guide(states, horizons, params) if guide is None else guide
    answers = net.correct(net.normalise(states), states, guide, horizons, params)
    coarse, target = net.backbone.base(net.normalise(guide)), net.standardise(futures)
    own, found = (squared(net.in_deviations(each) - target) for each in (coarse, answers))
    return found, own + GUIDE_FLOOR


def squared(errors: Tensor) -> Tensor:
    """The mean square of each sample."""
    return errors.square().flatten(1).mean(dim=1)
