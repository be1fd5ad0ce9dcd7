"""A surrogate that knows when to ask: (state, horizon, params) -> Forecast.

mode 1    the surrogate alone: one forward pass
mode 2    the surrogate and its error map; trajectories whose score exceeds τ(horizon, q) go to the reference solver

Up to the longest horizon that training has seen, an answer is one forecast. Beyond it, it is a chain of forecasts.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from hybridworld.errors import InvalidInput, SolverFailure
from hybridworld.physics.arguments import checked_params, checked_states
from hybridworld.physics.environment import Environment
from hybridworld.physics.spec import StateSpec
from hybridworld.surrogate.horizons import chain_of
from hybridworld.surrogate.surrogate import Surrogate
from hybridworld.trust.bounds import ErrorBound
from hybridworld.trust.calibration import Calibration, flagged
from hybridworld.trust.signal import Estimate, TrustSignal, distance
from hybridworld.trust.step_doubling import StepDoubling

CELLS = 2**17
"""Values per channel in one forward pass, about."""

Solve = Callable[[np.ndarray, int, np.ndarray], np.ndarray]
"""Environment.solve, here or on a cluster."""


Threshold = float | Callable[[float], float]
"""Above it a score is deferred: one number, or a function of the horizon, since a chain has links of several horizons."""


@dataclass(frozen=True)
class Forecast:
    """An answer and what is known about it. For one state the arrays have no batch axis.

    `state` is float32 in mode 1, as surrogates compute, and always float64 in mode 2, which holds the answers of surrogate and
    solver exactly. Beyond the longest trained horizon the answer is a chain: `links` holds its parts, `used_solver` says if any
    of them went to the solver, and `error_map` is the sum of the maps of those that did not.
    """

    state: np.ndarray  # (batch, channels, *grid)
    used_solver: np.ndarray  # bool (batch,)
    error_map: np.ndarray | None = None  # (batch, *grid), in deviations of the training data; none in mode 1
    score: np.ndarray | None = None  # (batch,): the mean of the map
    threshold: float | None = None  # a score above it was deferred; none for a chain, whose links have their own
    seconds: dict[str, float] = field(default_factory=dict)  # `surrogate`; or `surrogate and error map`, `solver`
    horizon: float = float("nan")
    links: tuple["Forecast", ...] = ()
    notes: tuple[str, ...] = ()
    """What to know about this answer, in sentences: that it is a chain, or that no training has seen its horizon."""


class HybridModel:
    """A surrogate, its trust signal, its calibration, and the solver that it defers to.

    `trained` are the horizons that its training drew; without them, all whole ones up to the longest of the surrogate.
    `system` is the physical system, where it is known: it makes states to begin with.
    """

    def __init__(
        self,
        surrogate: Surrogate,
        calibration: Calibration | None = None,
        solve: Solve | None = None,
        bound: ErrorBound | None = None,
        cell_bound: ErrorBound | None = None,
        signal: TrustSignal | None = None,
        trained: Sequence[int] | None = None,
        system: Environment | None = None,
    ) -> None:
        self.surrogate, self.calibration, self._solve = surrogate.eval(), calibration, solve
        self.system = system
        self.bound, self.cell_bound = bound, cell_bound  # of a score, and of the cells of an error map
        self.signal = signal or StepDoubling(surrogate, surrogate.std)
        self.longest = float(surrogate.horizons.max())
        """The longest horizon that is answered in one pass."""
        self.trained = frozenset(range(1, int(self.longest) + 1) if trained is None else trained)

    @property
    def spec(self) -> StateSpec:
        """What its states mean."""
        return self.surrogate.spec

    def predict(
        self,
        state: np.ndarray,
        horizon: float,
        params: np.ndarray | None = None,
        mode: int = 2,
        q: float = 0.75,
        threshold: Threshold | None = None,
    ) -> Forecast:
        """The state `horizon` frames later, for one state or a batch. `threshold` overrides the one that q stands for.

        A horizon beyond the longest trained one is answered by a chain of shorter forecasts, with the gate at each link.
        """
        if mode not in (1, 2):
            raise InvalidInput(f"The mode is {mode}: choose 1 (the surrogate alone) or 2 (with the solver where needed).")
        states, single = checked_states(self.spec, state)
        if not len(states):
            raise InvalidInput(f"{self.spec.name}: there are no states; give at least 1.")
        if not (np.isfinite(horizon) and horizon > 0):
            raise InvalidInput(f"The horizon is {horizon:g} frames: it must be a positive number.")
        if params is None and mode == 1 and not self.surrogate.config.params:
            rows = np.zeros((len(states), len(self.spec.params)))  # nobody looks at them
        else:
            rows = checked_params(self.spec, params, len(states))
        solve = self._solver(horizon) if mode == 2 else None  # before any work
        spans = chain_of(horizon, self.longest)
        parts: list[Forecast] = []
        for number, span in enumerate(spans, 1):
            with _naming(number, "the forecast"):
                now = states if number == 1 else checked_states(self.spec, parts[-1].state)[0]
                if solve is None:
                    parts.append(self._surrogate_alone(now, span, rows))
                else:
                    parts.append(self._gated(now, span, rows, q, threshold, solve))
        forecast = replace(_joined(parts, horizon), notes=tuple(self._notes(horizon, spans, mode)))
        return _first(forecast) if single else forecast

    def rollout(
        self,
        state: np.ndarray,
        horizon: float,
        links: int,
        params: np.ndarray | None = None,
        mode: int = 2,
        q: float = 0.75,
        threshold: Threshold | None = None,
    ) -> Iterator[Forecast]:
        """`links` predictions of `horizon` frames, each from the answer before it, with the gate at each link."""
        for link in range(1, links + 1):
            with _naming(link, "the rollout"):
                forecast = self.predict(state, horizon, params, mode, q, threshold)
            yield forecast
            state = forecast.state

    def _notes(self, horizon: float, spans: Sequence[float], mode: int) -> Iterator[str]:
        if len(spans) > 1:
            chain = " + ".join(f"{span:g}" for span in spans)
            yield (
                f"{horizon:g} frames are more than the longest trained horizon, {self.longest:g}: the answer is a chain of "
                f"{chain} frames, and has no error bound."
            )
        unseen = sorted(set(spans) - self.trained)
        if unseen:
            known = ", ".join(map(str, sorted(self.trained))) if len(self.trained) < 16 else f"whole, 1 to {self.longest:g}"
            asked = ", ".join(f"{span:g}" for span in unseen)
            yield f"No training has seen a horizon of {asked} frames (it has seen {known}): expect larger errors."
        if mode == 2 and 1.0 in spans:
            yield "At 1 frame the error map compares with two half frames, which no training has seen alone."

    def _surrogate_alone(self, states: np.ndarray, horizon: float, params: np.ndarray) -> Forecast:
        seconds: dict[str, float] = {}
        with timed(seconds, "surrogate"), torch.inference_mode():
            answers = [self.surrogate(*piece).cpu().numpy() for piece in self._pieces(states, horizon, params)]
        return Forecast(np.concatenate(answers), np.zeros(len(states), bool), seconds=seconds, horizon=horizon)

    def _gated(
        self, states: np.ndarray, horizon: float, params: np.ndarray, q: float, threshold: Threshold | None, solve: Solve
    ) -> Forecast:
        limit = self.threshold(horizon, q) if threshold is None else threshold(horizon) if callable(threshold) else threshold
        seconds: dict[str, float] = {}
        with timed(seconds, "surrogate and error map"), torch.inference_mode():
            found = [_on_cpu(self.signal(*piece)) for piece in self._pieces(states, horizon, params)]
        predicted, error_map, score = (np.concatenate(parts) for parts in zip(*found, strict=True))
        answer = predicted.astype(np.float64)
        deferred = flagged(score, limit)
        with timed(seconds, "solver"):
            if deferred.any():
                answer[deferred] = solve(states[deferred], int(horizon), params[deferred])
        return Forecast(answer, deferred, error_map, score, limit, seconds, horizon)

    def error_bounds(self, forecast: Forecast, coverage: float = 0.9) -> np.ndarray | None:
        """What the error of each answer does not exceed in a share `coverage` of cases; 0 where the solver answered.

        None where nothing is known: in mode 1, for a chain, for a model without calibration.
        """
        if self.bound is None or forecast.score is None or forecast.links or not self.bound.covers(forecast.horizon):
            return None
        return np.where(forecast.used_solver, 0.0, self.bound(forecast.score, forecast.horizon, coverage))

    def threshold(self, horizon: float, q: float) -> float:
        """τ(horizon, q) from the validation scores in the model's file."""
        if self.calibration is None:
            raise InvalidInput(
                f"The model of {self.spec.name} has no validation scores, so q has no threshold: "
                "run `hybridworld calibrate`, or give a threshold."
            )
        return self.calibration.threshold(horizon, q)

    def solve(self, states: np.ndarray, horizon: float, params: np.ndarray | None = None) -> np.ndarray:
        """The reference answer."""
        return self._solver(horizon)(states, int(horizon), checked_params(self.spec, params, len(states)))

    def error_maps(self, predictions: np.ndarray, truth: np.ndarray) -> np.ndarray:
        """What error maps estimate: the distance per cell, in deviations of the training data, (batch, *grid)."""
        return self._true(predictions, truth).error_map.numpy()

    def errors(self, predictions: np.ndarray, truth: np.ndarray) -> np.ndarray:
        """What scores estimate: the mean over cells of that distance, (batch,)."""
        return self._true(predictions, truth).score.numpy()

    def _true(self, predictions: np.ndarray, truth: np.ndarray) -> Estimate:
        a, b = (torch.from_numpy(np.asarray(each, np.float32)) for each in (predictions, truth))
        return Estimate(a, distance(a, b, self.surrogate.std.cpu()))

    def _solver(self, horizon: float) -> Solve:
        if self._solve is None:
            raise InvalidInput(
                f"Mode 2 and true errors need a solver, and there is none for {self.spec.name}: name its system, or use mode 1."
            )
        if horizon != int(horizon):
            raise InvalidInput(f"The horizon is {horizon:g} frames: mode 2 may ask the solver, which takes whole frames.")
        return self._solve

    def _pieces(self, states: np.ndarray, horizon: float, params: np.ndarray) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Few enough rows at a time, as tensors."""
        size = max(1, CELLS // int(np.prod(self.spec.grid, dtype=int)))
        device = self.surrogate.mean.device
        for start in range(0, len(states), size):
            rows = slice(start, start + size)
            now, given = (torch.from_numpy(np.asarray(a[rows], np.float32)).to(device) for a in (states, params))
            yield now, torch.full((len(now),), float(horizon), device=device), given


def _joined(parts: Sequence[Forecast], horizon: float) -> Forecast:
    """The forecast of a chain; of a single link it is that link."""
    if len(parts) == 1:
        return parts[0]
    used = np.any([part.used_solver for part in parts], axis=0)
    seconds: dict[str, float] = {}
    for part in parts:
        for name, value in part.seconds.items():
            seconds[name] = seconds.get(name, 0.0) + value
    answer = Forecast(parts[-1].state, used, seconds=seconds, horizon=horizon, links=tuple(parts))
    maps = [_kept(part.error_map, part.used_solver) for part in parts if part.error_map is not None]
    scores = [_kept(part.score, part.used_solver) for part in parts if part.score is not None]
    return replace(answer, error_map=np.sum(maps, axis=0), score=np.sum(scores, axis=0)) if maps else answer


def _kept(values: np.ndarray, used_solver: np.ndarray) -> np.ndarray:
    """The values (batch, ...) of what the surrogate answered, 0 where the solver did."""
    return np.where(used_solver.reshape(-1, *[1] * (values.ndim - 1)), 0, values)


def _first(forecast: Forecast) -> Forecast:
    """The forecast of a single state, without the batch axis."""
    return replace(
        forecast,
        state=forecast.state[0],
        used_solver=forecast.used_solver[0],
        error_map=None if forecast.error_map is None else forecast.error_map[0],
        score=None if forecast.score is None else forecast.score[0],
        links=tuple(map(_first, forecast.links)),
    )


@contextmanager
def _naming(link: int, what: str) -> Iterator[None]:
    """Errors beyond the first link name it: the answer before it may be no state to go on from."""
    try:
        yield
    except (InvalidInput, SolverFailure) as error:
        if link == 1:
            raise
        raise SolverFailure(
            f"Link {link} of {what}: the answer of link {link - 1} is no state to go on from ({error}) "
            "Keep less on the surrogate (a smaller q), or take shorter links."
        ) from error


def _on_cpu(estimate: Estimate) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    prediction, error_map, score = (each.cpu().numpy() for each in (estimate.prediction, estimate.error_map, estimate.score))
    return prediction, error_map, score


@contextmanager
def timed(seconds: dict[str, float], part: str) -> Iterator[None]:
    """Add to seconds[part] what the block takes."""
    began = time.perf_counter()
    yield
    seconds[part] = seconds.get(part, 0.0) + time.perf_counter() - began
