"""Whatever could answer for a system: its solver, its NumPy twin, single precision, coarser grids, a surrogate, a gated one."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from hybridworld.errors import InvalidInput
from hybridworld.physics.environment import Environment
from hybridworld.physics.grids import coarsen, refine
from hybridworld.physics.spec import StateSpec

if TYPE_CHECKING:
    from hybridworld.deploy.hybrid import HybridModel

FACTORS, KEEP = (2, 4, 8), (0.9, 0.75, 0.5)

Answer = Callable[[np.ndarray, int, np.ndarray], tuple[np.ndarray, np.ndarray | None]]
"""(states, horizon, params) -> states, and which of them a gate handed to the solver."""


class Starts(NamedTuple):
    """States that trajectories come through, with the parameters of their dynamics."""

    states: np.ndarray
    params: np.ndarray

    def part(self, begin: int, end: int) -> "Starts":
        """Some of them."""
        return Starts(self.states[begin:end], self.params[begin:end])


class Method(NamedTuple):
    """One way to answer; `mark` is its name in a picture."""

    name: str
    kind: Literal["twin", "reference", "solver", "mode 1", "mode 2"]
    mark: str
    answer: Answer

    def __call__(self, starts: Starts, horizon: int) -> tuple[np.ndarray, np.ndarray | None]:
        """The states `horizon` frames later, and which of them were handed to the solver."""
        return self.answer(starts.states, horizon, starts.params)


def draw_starts(environment: Environment, split: str, count: int, longest: int, seed: int = 0) -> Starts:
    """The first trajectories of a split, each at a random frame that leaves room for the longest horizon."""
    last = max(environment.spec.frames - 1 - longest, 0)
    frames = np.random.default_rng(seed).integers(0, last + 1, count)
    samples = [environment.initial(split, number) for number in range(count)]
    states = [environment.solve(each.state, int(frame), each.params) for each, frame in zip(samples, frames, strict=True)]
    return Starts(np.stack(states), np.stack([each.params for each in samples]))


def methods_for(environment: Environment, hybrid: "HybridModel | None" = None) -> list[Method]:
    """The reference first, then every other method that applies to this system."""
    found = solvers_for(environment)
    if hybrid is not None:
        found.append(Method("mode 1 (the surrogate alone)", "mode 1", "mode 1", surrogate_answer(hybrid)))
        if hybrid.calibration is not None:
            found += [Method(f"mode 2, q = {q:g}", "mode 2", f"mode 2, q = {q:g}", gated_answer(hybrid, q)) for q in KEEP]
    return found


def solvers_for(environment: Environment) -> list[Method]:
    """The reference, its NumPy twin, and what is cheaper than the reference."""
    twin = has_twin(environment)
    name, exactly = ("compiled solver", ", float64") if twin else ("solver", "")
    found = [Method(f"{name}{exactly}", "reference", exactly[2:] or name, solver_answer(environment))]
    if twin:
        found.append(Method("NumPy twin (the paper's kind of baseline)", "twin", "NumPy twin", twin_answer(environment)))
    cheaper: dict[str, Callable[[], Answer]] = {"float32": lambda: solver_answer(environment.in_precision("float32"))}
    cheaper |= {f"{factor}x coarser": lambda factor=factor: coarse_answer(environment, factor) for factor in FACTORS}  # type: ignore[misc]
    for mark, make in cheaper.items():
        try:
            found.append(Method(f"{name}, {mark}", "solver", mark, make()))
        except InvalidInput:  # no grid, a grid that the factor does not divide, or no choice of precision
            continue
    return found


def has_twin(environment: Environment) -> bool:
    """Is there a second form of the solver, in plain NumPy?"""
    shape = environment.spec.shape
    return environment.advance_numpy(np.ones((1, *shape)), 0, np.ones((1, len(environment.spec.params)))) is not None


def solver_answer(environment: Environment) -> Answer:
    """The system's own solver."""
    return lambda states, horizon, params: (environment.solve(states, horizon, params), None)


def twin_answer(environment: Environment) -> Answer:
    """The same in plain NumPy."""
    return lambda *question: (np.asarray(environment.advance_numpy(*question)), None)


def coarse_answer(environment: Environment, factor: int) -> Answer:
    """The solver on a coarser grid: cell averages down, linear interpolation up, both part of the price."""
    coarse, spec = environment.coarsened(factor), environment.spec
    weights = interpolation(spec, factor)

    def answer(states: np.ndarray, horizon: int, params: np.ndarray) -> tuple[np.ndarray, None]:
        return interpolated(coarse.solve(coarsen(spec, states, factor), horizon, params), weights), None

    return answer


def interpolation(spec: StateSpec, factor: int) -> list[np.ndarray]:
    """`refine` as a matrix (cells, coarse cells) per grid axis: products of matrices are several times faster."""
    lines = [replace(spec, axes=(axis,), grid=(cells,)) for axis, cells in zip(spec.axes, spec.grid, strict=False)]
    return [refine(line, np.eye(line.grid[0] // factor), factor).T for line in lines]


def interpolated(states: np.ndarray, weights: Sequence[np.ndarray]) -> np.ndarray:
    """Coarse states (batch, channels, *coarse grid) on the fine grid."""
    for axis, matrix in enumerate(weights, states.ndim - len(weights)):
        states = np.moveaxis(np.moveaxis(states, axis, -1) @ matrix.T, -1, axis)
    return states


def surrogate_answer(hybrid: "HybridModel") -> Answer:
    """Mode 1."""
    return lambda states, horizon, params: (hybrid.predict(states, horizon, params, mode=1).state, None)


def gated_answer(hybrid: "HybridModel", q: float) -> Answer:
    """Mode 2 with the threshold that the validation data gave."""
    thresholds: dict[int, float] = {}

    def answer(states: np.ndarray, horizon: int, params: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if horizon not in thresholds:
            thresholds[horizon] = hybrid.threshold(horizon, q)
        forecast = hybrid.predict(states, horizon, params, mode=2, threshold=thresholds[horizon])
        return forecast.state, forecast.used_solver

    return answer
