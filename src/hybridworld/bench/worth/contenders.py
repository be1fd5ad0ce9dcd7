"""Whatever could answer for a system: its solvers on any grid, with any step, of any order; its NumPy twin; surrogates."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from hybridworld.errors import InvalidInput
from hybridworld.physics.environment import Environment, stacked
from hybridworld.physics.grids import coarsen, refine
from hybridworld.physics.resolved import prolonged
from hybridworld.physics.spec import StateSpec
from hybridworld.physics.threads import SMALL, over_trajectories, thread_limit

if TYPE_CHECKING:
    from hybridworld.deploy.hybrid import HybridModel

COARSER, FINER, STEPS, KEEP = (8, 4, 2), (2, 3), (0.5, 1, 2, 4), (0.9, 0.75, 0.5)

Answer = Callable[[np.ndarray, int, np.ndarray], tuple[np.ndarray, np.ndarray | None]]
"""(states, horizon, params) -> states, and which of them a gate handed to the solver."""


class Starts(NamedTuple):
    """States that trajectories come through, with the parameters of their dynamics."""

    states: np.ndarray
    params: np.ndarray

    def part(self, begin: int, end: int) -> "Starts":
        """The starts from number `begin` up to, but not including, `end`."""
        return Starts(self.states[begin:end], self.params[begin:end])


class Known(NamedTuple):
    """What is known of starts besides: the kinds of their initial states, and horizon -> their recorded futures.

    The futures are empty where the reference solver itself gives the truth.
    """

    kinds: Sequence[str] = ()
    futures: Mapping[int, np.ndarray] = {}


class Method(NamedTuple):
    """One way to answer; `mark` is its name in a picture, `scheme` which of the system's variants it runs, if not its own.

    `explanation` is what a table says about it beside its name.
    """

    name: str
    kind: Literal["twin", "reference", "solver", "no change", "mode 1", "mode 2"]
    mark: str
    answer: Answer
    scheme: str = ""
    explanation: str = ""

    def __call__(self, starts: Starts, horizon: int) -> tuple[np.ndarray, np.ndarray | None]:
        """The states `horizon` frames later, and which of them were handed to the solver."""
        return self.answer(starts.states, horizon, starts.params)


def draw_starts(
    environment: Environment, split: str, count: int, horizons: Sequence[int], seed: int = 0
) -> tuple[Starts, Known]:
    """The first trajectories of a split, each at a random frame that leaves room for the longest horizon.

    Where the reference is no semigroup, so a `Resolved` one, the futures are those of the same recorded trajectory.
    """
    last = max(environment.spec.frames - 1 - max(horizons), 0)
    frames = np.random.default_rng(seed).integers(0, last + 1, count).tolist()
    samples = [environment.initial(split, number) for number in range(count)]
    ahead = (0,) if environment.semigroup else (0, *horizons)
    found = {horizon: np.empty((count, *environment.spec.shape)) for horizon in ahead}

    def work(index: int, threads: int) -> None:
        wanted = {frames[index] + horizon: horizon for horizon in ahead}
        with thread_limit(threads):
            run = environment.trajectory(samples[index].state, max(wanted), samples[index].params)
            for frame, state in enumerate(run):
                if frame in wanted:
                    found[wanted[frame]][index] = state

    over_trajectories(work, count, SMALL)
    kinds = [str(each.origin.get("kind", "")) for each in samples]
    return Starts(found.pop(0), stacked(samples)[1]), Known(kinds, found)


def methods_for(environment: Environment, hybrid: "HybridModel | None" = None) -> list[Method]:
    """The reference first, then every other method that applies to this system."""
    found = solvers_for(environment)
    if hybrid is not None:
        found.append(Method("mode 1", "mode 1", "mode 1", surrogate_answer(hybrid), explanation="the surrogate alone"))
        if hybrid.calibration is not None:
            found += [Method(f"mode 2, q = {q:g}", "mode 2", f"mode 2, q = {q:g}", gated_answer(hybrid, q)) for q in KEEP]
    return found


def solvers_for(environment: Environment) -> list[Method]:
    """The reference, its NumPy twin, no change, and every scheme, grid and step that the system offers.

    These run in single precision where there is a choice, since that is faster and its error far below that of grid and step;
    double precision stands there for the system's own grid and step. What takes more work than the reference is no rival:
    work is the number of cells times the number of steps.
    """
    system, name = environment.unresolved, "compiled solver" if has_twin(environment.unresolved) else "solver"
    exactly = ", float64" if system.offers("dtype") or has_twin(system) else ""
    if environment is system:
        found = [Method(f"{name}{exactly}", "reference", exactly[2:] or name, solver_answer(environment))]
    else:
        times = environment.identity["resolved"]
        found = [Method(f"reference, {times}x finer", "reference", "reference", solver_answer(environment))]
        found.append(Method(f"{name}{exactly}", "solver", exactly[2:] or name, solver_answer(system)))
    if has_twin(system):
        why = "the paper's kind of baseline"
        found.append(Method("NumPy twin", "twin", "NumPy twin", twin_answer(system), explanation=why))
    found.append(Method("no change", "no change", "no change", lambda states, horizon, params: (states, None)))
    single = system.in_precision("float32") if system.offers("dtype") else system
    schemes = {"": single, **single.variants()}
    grids = [*(1 / factor for factor in COARSER), 1.0, *map(float, FINER)] if system.spec.is_field else [1.0]
    most, power = environment.identity.get("resolved", 1), len(system.spec.grid) + 1  # finer grids take more steps as well
    for (scheme, solver), ratio, steps in product(schemes.items(), grids, STEPS):
        if (scheme, ratio, steps) == ("", 1.0, 1) and not system.offers("dtype"):
            continue  # stands there already
        if system.spec.is_field and ratio**power * steps > most**power:
            continue
        mark = ", ".join(filter(None, [scheme, grid_in_words(ratio), steps_in_words(steps)])) or "float32"
        try:
            answer = rival_answer(solver, ratio, steps)
        except InvalidInput:  # a grid that the factor does not divide, no choice of grid, or no step to choose
            continue
        found.append(Method(f"{name}, {mark}", "solver", mark, answer, scheme))
    return found


def grid_in_words(ratio: float) -> str:
    """The grid in words, for example `4x coarser`; empty for the system's own grid."""
    return "" if ratio == 1 else f"{ratio:g}x finer" if ratio > 1 else f"{1 / ratio:g}x coarser"


def steps_in_words(factor: float) -> str:
    """The step in words, for example `step / 4`; empty for the system's own step."""
    return "" if factor == 1 else f"step / {factor:g}" if factor > 1 else f"step x {1 / factor:g}"


def has_twin(environment: Environment) -> bool:
    """Whether there is a second form of the solver, in plain NumPy."""
    shape = environment.spec.shape
    return environment.advance_numpy(np.ones((1, *shape)), 0, np.ones((1, len(environment.spec.params)))) is not None


def solver_answer(environment: Environment) -> Answer:
    """An answer by the system's own solver."""
    return lambda states, horizon, params: (environment.solve(states, horizon, params), None)


def twin_answer(environment: Environment) -> Answer:
    """An answer by the NumPy twin of the solver."""
    return lambda *question: (np.asarray(environment.advance_numpy(*question)), None)


def rival_answer(environment: Environment, ratio: float = 1.0, steps: float = 1) -> Answer:
    """An answer by the solver on a grid with `ratio` times as many cells along each axis and `steps` times as many steps.

    To a coarser grid by cell averages and back by linear interpolation, to a finer one by `prolonged` and back by averages:
    both are part of the price. Raises where the system does not offer it.
    """
    spec, factor = environment.spec, round(max(ratio, 1 / ratio))
    solver, frames = environment, 1.0
    if ratio < 1:
        solver = environment.coarsened(factor)
    elif ratio > 1:
        solver = environment.resized(tuple(factor * cells for cells in spec.grid))
    if steps != 1:
        changed = solver.with_steps(steps)
        if changed is None or changed[0] == solver:
            raise InvalidInput(f"{spec.name} offers no step that is {1 / steps:g} times its own.")
        solver, frames = changed
    weights = interpolation(spec, factor) if ratio < 1 else []

    def answer(states: np.ndarray, horizon: int, params: np.ndarray) -> tuple[np.ndarray, None]:
        count = horizon * frames
        if count != int(count):
            raise InvalidInput(f"{horizon} frames are no whole number of frames that are {1 / frames:g} times as long.")
        if ratio < 1:
            return interpolated(solver.solve(coarsen(spec, states, factor), int(count), params), weights), None
        if ratio > 1:
            return coarsen(spec, solver.solve(prolonged(solver, spec, states, factor), int(count), params), factor), None
        return solver.solve(states, int(count), params), None

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
    """A method that answers with the surrogate alone (mode 1)."""
    return lambda states, horizon, params: (hybrid.predict(states, horizon, params, mode=1).state, None)


def gated_answer(hybrid: "HybridModel", q: float) -> Answer:
    """An answer in mode 2, with the threshold that the validation data gave."""
    thresholds: dict[int, float] = {}

    def answer(states: np.ndarray, horizon: int, params: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if horizon not in thresholds:
            thresholds[horizon] = hybrid.threshold(horizon, q, beginning=False)
        forecast = hybrid.predict(states, horizon, params, mode=2, threshold=thresholds[horizon])
        return forecast.state, forecast.used_solver

    return answer
