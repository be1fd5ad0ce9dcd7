"""The guide of a network: the system's own solver on a coarse grid."""

from dataclasses import replace
from math import ceil, floor
from typing import Any

import numpy as np

from hybridworld.errors import InvalidInput
from hybridworld.physics.environment import Environment
from hybridworld.physics.grids import coarsen


class Guide:
    """(states, horizons, params) -> their futures on a grid `factor` times coarser, float32 where the system offers it.

    It runs the system's own scheme, or the one of its `variants` that `scheme` names, never the finer grid of a `Resolved` one.
    A system with a field `frame_step` is run for any real horizon h: ceil(h) * steps frames of equal length. One without is run
    for whole frames, and between two of them the answer is interpolated linearly in time.
    """

    def __init__(self, environment: Environment, factor: int, steps: int = 1, scheme: str | None = None) -> None:
        system = environment.unresolved
        if scheme is not None:
            schemes = system.variants()
            if scheme not in schemes:
                choices = ", ".join(schemes) or "none"
                raise InvalidInput(f"{system.spec.name} has no scheme '{scheme}' for a guide: there is {choices}.")
            system = schemes[scheme]
        coarse: Any = system.coarsened(factor)
        self.environment = coarse.in_precision("float32") if coarse.offers("dtype") else coarse
        self.factor, self.steps = factor, steps

    def __call__(self, states: np.ndarray, horizons: np.ndarray, params: np.ndarray | None) -> np.ndarray:
        """States (batch, channels, *grid), horizons (batch,) in frames -> float32 (batch, channels, *coarse grid)."""
        now = coarsen(self.environment.spec, states, self.factor)
        then = np.empty(now.shape, np.float32)
        for horizon in np.unique(horizons):
            rows = np.flatnonzero(horizons == horizon)
            then[rows] = self._run(now[rows], float(horizon), None if params is None else params[rows])
        return then

    def _run(self, states: np.ndarray, horizon: float, params: np.ndarray | None) -> np.ndarray:
        """The futures of states that all have the same horizon."""
        environment: Any = self.environment
        if environment.offers("frame_step"):
            frames = ceil(horizon) * self.steps
            step = environment.frame_step * horizon / frames
            return replace(environment, frame_step=step).solve(states, frames, params)
        before = environment.solve(states, floor(horizon), params)
        if floor(horizon) == horizon:
            return before
        after = environment.solve(before, 1, params)
        return before + (horizon - floor(horizon)) * (after - before)
