"""Signals that know the physics: what the dynamics conserve, and how well the solver itself is resolved."""

from functools import partial

import numpy as np
import torch
from torch import Tensor

from hybridworld.errors import InvalidInput
from hybridworld.physics.environment import Environment
from hybridworld.trust.signal import Cost, Estimate, Ingredients, Makers, Propagator

VARIANTS = ("fixed-order", "geometric-mean")
"""The variants of Richardson extrapolation."""


class ConservationResidual:
    """|Q(f(s, T)) - Q(s)| for a quantity Q that the dynamics keep between events: one number per trajectory or cell."""

    def __init__(self, f: Propagator, environment: Environment, quantity: str) -> None:
        spec = environment.spec
        sample = environment.initial("val", 0)
        known = environment.conserved(sample.state[None], sample.params[None])
        if quantity not in known:
            raise InvalidInput(f"{spec.name} declares no conserved quantity '{quantity}': it has {', '.join(known) or 'none'}.")
        self._f, self._environment, self._quantity = f, environment, quantity
        self.name, self.cost = f"{quantity} residual", Cost(passes=1, equations=f"the {quantity}")

    @classmethod
    def offers(cls, given: Ingredients) -> Makers:
        """One signal for each quantity that the system conserves."""
        if given.system is None:
            return {}
        sample = given.system.initial("val", 0)
        quantities = given.system.conserved(sample.state[None], sample.params[None])
        return {f"{each} residual": partial(cls, given.surrogate, given.system, each) for each in quantities}

    def __call__(self, states: Tensor, horizons: Tensor, params: Tensor) -> Estimate:
        """The estimate, from one pass."""
        later = self._f(states, horizons, params)
        before, after = (self._of(each, params) for each in (states, later))
        residual = np.abs(after - before)
        grid = self._environment.spec.grid
        per_cell = len(grid) < residual.ndim and residual.shape[residual.ndim - len(grid) :] == grid
        components = tuple(range(1, residual.ndim - len(grid) * per_cell))
        return Estimate(later, torch.from_numpy(np.sqrt((residual**2).sum(axis=components))).to(later))

    def _of(self, states: Tensor, params: Tensor) -> np.ndarray:
        arrays = (each.detach().cpu().double().numpy() for each in (states, params))
        return np.asarray(self._environment.conserved(*arrays)[self._quantity])


class Richardson:
    """|s_dt - s_dt/2|, the solver against itself with half its time step: the truncation error of the solver.

    `fixed-order`: s_dt against the extrapolation 2 s_dt/2 - s_dt of a first-order scheme. `geometric-mean`: against
    sign * sqrt(|s_dt * s_dt/2|). It costs more than the answer it judges; it is here as the classical rival.
    """

    def __init__(self, f: Propagator, unit: Tensor, environment: Environment, variant: str = "fixed-order") -> None:
        if variant not in VARIANTS:
            raise InvalidInput(f"Unknown variant '{variant}' of Richardson: choose {' or '.join(VARIANTS)}.")
        finer = environment.halved_step()
        if finer is None:
            raise InvalidInput(f"{environment.spec.name} does not say how to halve its time step.")
        self._f, self._unit, self._variant = f, unit, variant
        self._solvers = (environment, 1), finer
        self.name, self.cost = f"Richardson, {variant}", Cost(passes=1, equations="the solver, run at two step sizes")

    @classmethod
    def offers(cls, given: Ingredients) -> Makers:
        """Two signals, where the system says how to halve its step."""
        f, system = given.surrogate, given.system
        if system is None or system.halved_step() is None:
            return {}
        return {f"Richardson, {each}": partial(cls, f, f.std, system, each) for each in VARIANTS}

    def __call__(self, states: Tensor, horizons: Tensor, params: Tensor) -> Estimate:
        """The estimate, from one pass and two runs of the solver."""
        coarse, fine = (self._solve(*solver, states, horizons, params) for solver in self._solvers)
        better = 2 * fine - coarse if self._variant == "fixed-order" else np.sign(fine) * np.sqrt(np.abs(coarse * fine))
        unit = self._unit.cpu().numpy().reshape(-1, *[1] * (coarse.ndim - 2))
        error = np.sqrt((((coarse - better) / unit) ** 2).sum(axis=1))
        later = self._f(states, horizons, params)
        return Estimate(later, torch.from_numpy(error).to(later))

    def _solve(self, solver: Environment, factor: int, states: Tensor, horizons: Tensor, params: Tensor) -> np.ndarray:
        if (horizons != horizons.round()).any():
            raise InvalidInput("Richardson runs the solver, which takes whole frames: a horizon is a fraction of one.")
        now, given = (each.detach().cpu().double().numpy() for each in (states, params))
        answer = np.empty_like(now)
        for horizon in torch.unique(horizons).tolist():
            rows = (horizons == horizon).cpu().numpy()
            answer[rows] = solver.solve(now[rows], factor * int(horizon), given[rows])
        return answer
