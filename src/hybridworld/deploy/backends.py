"""The three ways to move a state forward for an agent, which all answer with a Forecast: solver, surrogate, and both gated."""

from collections.abc import Callable
from typing import Any

import numpy as np

from hybridworld.deploy.forecast import Forecast, timed
from hybridworld.deploy.hybrid import HybridModel
from hybridworld.errors import InvalidInput, nearest
from hybridworld.physics.environment import Environment

BACKENDS = ("solver", "surrogate", "hybrid")

Move = Callable[[np.ndarray, int, np.ndarray], Forecast]
"""(states (batch, channels, *grid), frames, params (batch, n)) -> Forecast."""


def mover(backend: str, environment: Environment, model: HybridModel | None, mapped: bool = True, **wishes: Any) -> Move:
    """What moves states; `wishes` (q, threshold, tolerance) are for the hybrid, `mapped` asks for maps of the surrogate."""
    if backend not in BACKENDS:
        raise InvalidInput(f"The backend is '{backend}': choose {', '.join(BACKENDS)}.{nearest(backend, BACKENDS)}")
    if backend == "solver":
        return lambda states, frames, params: solved(environment, states, frames, params)
    if model is None:
        raise InvalidInput(f"The backend {backend} needs a model of {environment.spec.name}: name one.")
    if model.spec.grid != environment.spec.grid:
        model = model.resized(environment.spec.grid)
    known = model
    if backend == "surrogate":
        return lambda states, frames, params: known.onward(states, frames, params, mode=1, error_map=mapped)
    return lambda states, frames, params: known.onward(states, frames, params, mode=2, **wishes)


def solved(environment: Environment, states: np.ndarray, frames: int, params: np.ndarray) -> Forecast:
    """The solver's answer as a Forecast, in which the solver was used for every state."""
    seconds: dict[str, float] = {}
    with timed(seconds, "solver"):
        answer = environment.solve(states, frames, params)
    return Forecast(answer, np.ones(len(states), bool), seconds=seconds, horizon=frames)


def action_limits(environment: Environment) -> tuple[list[int], np.ndarray, np.ndarray]:
    """The columns of the parameters that an agent chooses, with their lowest and highest values in the range of training."""
    spec = environment.spec
    columns = [column for column, each in enumerate(spec.params) if each.role == "action"]
    if not columns:
        raise InvalidInput(f"{spec.name} has no parameter with the role `action`, so there is nothing for an agent to choose.")
    ranges = [spec.params[column].ranges["id"] for column in columns]
    low, high = (np.array([pick(end for interval in each for end in interval) for each in ranges]) for pick in (min, max))
    return columns, low, high
