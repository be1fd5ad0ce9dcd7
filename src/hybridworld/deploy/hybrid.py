"""A surrogate that knows when to ask: (state, horizon, params) -> Forecast.

mode 1    the surrogate alone: one forward pass
mode 2    the surrogate and its error map; trajectories whose score exceeds τ(horizon, q) go to the reference solver,
          or, where a tolerance is given, those whose error bound exceeds it

Up to the longest horizon that training has seen, an answer is one forecast. Beyond it, it is a chain of forecasts.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch

from hybridworld.data.deferred import DeferredLog
from hybridworld.deploy.chain import Start, Steps, Way, chained, finished, naming
from hybridworld.deploy.deferral import Threshold, rule_for
from hybridworld.deploy.forecast import Forecast, by_horizon, first_of, like, merged
from hybridworld.errors import InvalidInput
from hybridworld.physics.arguments import (
    as_array,
    as_number,
    checked_beginning,
    checked_horizon,
    checked_params,
    checked_path,
    checked_states,
    shown,
    whole,
)
from hybridworld.physics.environment import Environment, Solve
from hybridworld.physics.spec import StateSpec
from hybridworld.surrogate.bundle import Bundle, save_bundle
from hybridworld.surrogate.horizons import composed
from hybridworld.surrogate.surrogate import Surrogate
from hybridworld.trust.bounds import COVERAGE, ErrorBound
from hybridworld.trust.calibration import Calibration
from hybridworld.trust.registry import find_signal
from hybridworld.trust.signal import Estimate, Ingredients, TrustSignal, distance
from hybridworld.trust.step_doubling import StepDoubling
from hybridworld.trust.tolerance import Delivered, check_tolerance, expected


class HybridModel:
    """A surrogate, its trust signal, its calibration, and the solver that it defers to.

    `trained` are the horizons that its training drew; without them, all whole ones up to the longest of the surrogate.
    `system` is the physical system, where it is known: it makes states to begin with. `bundle` is what `save` writes.
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
        bundle: Bundle | None = None,
    ) -> None:
        self.surrogate, self.calibration, self._solve = surrogate.eval(), calibration, solve
        self.system, self.bundle = system, bundle
        self.bound, self._cell_bound = bound, cell_bound  # of a score, and of the cells of an error map
        self.signal = signal or StepDoubling(surrogate, surrogate.std, surrogate.answered)
        self.longest = float(surrogate.horizons.max())
        """The longest horizon that is answered in one pass."""
        self.trained = frozenset(range(1, int(self.longest) + 1) if trained is None else trained)
        self.mapped_horizons = mapped_by(self.signal, surrogate.answered)
        """The horizons that have an error map, where these are not all."""
        self.log: DeferredLog | None = None
        """Where questions that the solver answers in mode 2 are kept, with its answers; `keeping` opens one."""

    @property
    def spec(self) -> StateSpec:
        """What its states mean."""
        return self.surrogate.spec

    @property
    def can_solve(self) -> bool:
        """Whether there is a solver to ask."""
        return self._solve is not None

    @property
    def other_number(self) -> str:
        """What it means that it has another number of objects than it was calibrated with; empty where it has not."""
        known, now = self.surrogate.trained_grid, self.spec.grid
        if known == now:
            return ""
        return (
            f"Training and calibration had {known[0]} objects, and here are {now[0]}: thresholds are those of {known[0]}, and "
            "there is no error bound."
        )

    @property
    def engine(self) -> str:
        """Who runs its network: `eager` is torch as it is."""
        return self.surrogate.engine.name if self.surrogate.engine else "eager"

    def validation_rmse(self, horizons: np.ndarray) -> np.ndarray | None:
        """The validation RMSE of normalised states at these horizons, linear in log h between those that are known.

        None where none is known.
        """
        known = self.bundle.validation.get("horizons", {}) if self.bundle else {}
        if not known:
            return None
        found = sorted((float(h), each["mse"] ** 0.5) for h, each in known.items())
        return np.interp(np.log2(horizons), *np.array([(np.log2(h), rmse) for h, rmse in found]).T)

    @property
    def trained_in_words(self) -> str:
        """The horizons that training drew, in words: `1, 2, 4`, or `whole, 1 to 64`."""
        few = len(self.trained) < 16
        return ", ".join(map(str, sorted(self.trained))) if few else f"whole, 1 to {self.longest:g}"

    def __repr__(self) -> str:
        return "\n  ".join(["<HybridModel", *self._described()]) + ">"

    def _described(self) -> Iterator[str]:
        """The lines of its description, from the system and the network to the error map, the thresholds and the solver."""
        config, network = self.surrogate.config, sum(weights.numel() for weights in self.surrogate.parameters())
        seen = "sees state and parameters" if config.params and self.spec.params else "sees the state alone"
        yield f"of {self.spec.name}: {config.backbone}, {network:,} weights, {seen}, on {self.surrogate.mean.device}"
        yield f"engine: {self.engine}"
        yield f"horizons: {self.trained_in_words}, longer ones in chains"
        if self.bundle and "data" in self.bundle.provenance:
            yield f"trained on {self.bundle.provenance['data']}"
        share = self.bundle.share_of_no_change if self.bundle else None
        if self.bundle and share is not None:
            yield f"reaches a validation MSE of {self.bundle.validation['mse']:.3g}, {share:.2g} times that of no change"
        yield f"error map: {self.signal.name}"
        known = f"from {self.calibration.size:,} trajectories" if self.calibration else "none: run `hybridworld calibrate`"
        yield f"thresholds and bounds: {known}"
        identity = self.system.identity if self.system else {}
        named = ", ".join(f"{name} {value}" for name, value in identity.items())
        yield f"solver: {'none, so mode 1 alone' if self._solve is None else named or 'given'}"

    def save(self, path: str | Path) -> None:
        """Write the model with its calibrations to one file, from which `hw.load` makes it again."""
        if self.bundle is None:
            raise InvalidInput("This model was put together by hand: one that was loaded or wrapped can be saved.")
        save_bundle(checked_path("The file", path), self.bundle)

    # How it answers.

    def predict(
        self,
        state: Any,
        horizon: Any,
        params: Any = None,
        mode: int = 2,
        q: float | None = None,
        threshold: Threshold | None = None,
        tolerance: float | None = None,
        coverage: float | None = None,
        error_map: bool = False,
        beginning: bool | None = None,
    ) -> Forecast:
        """The state `horizon` frames later, for one state or a batch, which may have one horizon per state.

        `params` are numbers in the order of `spec.params`, or a mapping by name. Tensors are answered by tensors. States that
        cannot exist are refused.

        A model of objects takes any number of them.

        In mode 2 the solver answers what is above the threshold that q stands for (0.75 unless said), or above `threshold`.
        With a `tolerance` instead (in deviations, mean over cells) it answers what is not bounded by it: of all answers at most
        a share 1 - coverage (0.1 unless said) then exceeds it, on data like the validation data. `error_map` asks for the map
        in mode 1 as well. `beginning` says whether the states are beginnings of trajectories, as the system draws them, or
        later frames: where this is known, thresholds and error bounds are those of such states.

        A horizon beyond the longest trained one is answered by a chain of shorter forecasts, with the gate at each link.
        """
        fitting = self.fitting(state)
        if fitting.system is not None:
            fitting.system.checked(state)
        return fitting.onward(state, horizon, params, mode, q, threshold, tolerance, coverage, error_map, beginning)

    def onward(self, *asked: Any, **named: Any) -> Forecast:
        """The forecast of `steps`, which takes the same arguments."""
        return finished(self.steps(*asked, **named))

    def steps(
        self,
        state: Any,
        horizon: Any,
        params: Any = None,
        mode: int = 2,
        q: float | None = None,
        threshold: Threshold | None = None,
        tolerance: float | None = None,
        coverage: float | None = None,
        error_map: bool = False,
        beginning: bool | None = None,
        began: np.ndarray | None = None,
    ) -> Steps[Forecast]:
        """What `predict` returns, from the answer of a surrogate: only a solver asks whether such a state can exist.

        It is made in steps: whoever takes them calls the networks and the solver. `began` (batch, channels, *grid) are the
        states with which these trajectories began, where that was earlier.
        """
        if as_number(mode) not in (1, 2):
            raise InvalidInput(
                f"The mode is {shown(mode)}: choose 1 (the surrogate alone) or 2 (with the solver where needed)."
            )
        states, single = checked_states(self.spec, state)
        if not len(states):
            raise InvalidInput(f"{self.spec.name}: there are no states; give at least 1.")
        checked_beginning(beginning)
        horizons = checked_horizon(horizon, 0 if single else len(states))
        blind = params is None and mode == 1 and not self.surrogate.config.params  # nobody looks at them
        rows = np.zeros((len(states), len(self.spec.params))) if blind else checked_params(self.spec, params, len(states))
        solve = self._solver(horizons) if mode == 2 else None  # before any work
        rule = rule_for(self.threshold, self.known_bound, mode, q, threshold, tolerance, coverage, beginning)
        way = Way(rule, solve, mapped=error_map or mode == 2, promised=tolerance is not None)
        start = Start(states, rows, states if began is None else began)
        if isinstance(horizons, float):
            forecast = yield from chained(self, start, horizons, way)
        else:
            parts = []
            for each, some in by_horizon(horizons):
                parts.append((some, (yield from chained(self, start.of(some), each, way))))
            forecast = merged(parts, horizons)
        finite = np.isfinite(forecast.state)
        if not finite.all():
            lost = int((~finite).any(axis=tuple(range(1, finite.ndim))).sum())
            note = f"{lost} of {len(states)} answers are not finite: the surrogate has none to give."
            forecast = replace(forecast, notes=(*forecast.notes, note))
        forecast = replace(forecast, start=states, params=None if blind else rows, beginning=beginning, model=self)
        return (first_of(forecast) if single else forecast).like(state)

    def rollout(
        self,
        state: Any,
        horizon: float,
        links: int,
        params: Any = None,
        mode: int = 2,
        q: float | None = None,
        threshold: Threshold | None = None,
        tolerance: float | None = None,
        coverage: float | None = None,
    ) -> Iterator[Forecast]:
        """`links` predictions of `horizon` frames, each from the answer before it, with the gate at each link.

        A tolerance is that of each link, as if it began from the truth: errors add up along the chain.
        """
        numbers, fitting = range(1, whole("The number of links", links, 1) + 1), self.fitting(state)
        began = checked_states(fitting.spec, state)[0]

        def answers(state: Any) -> Iterator[Forecast]:
            for link in numbers:
                asked = (state, horizon, params, mode, q, threshold, tolerance, coverage)
                with naming(link, "the rollout"):
                    forecast = fitting.predict(*asked) if link == 1 else fitting.onward(*asked, began=began)
                yield forecast
                state = forecast.state

        return answers(state)

    def solve(self, states: Any, horizon: Any, params: Any = None) -> np.ndarray:
        """The reference answer, for one state or a batch."""
        fitting = self.fitting(states)
        batch, single = checked_states(fitting.spec, states)
        horizons = checked_horizon(horizon, 0 if single else len(batch))
        solve, rows = fitting._solver(horizons), checked_params(self.spec, params, len(batch))
        if isinstance(horizons, float):
            answer = solve(batch, int(horizons), rows)
        else:
            answer = np.empty(batch.shape)
            for each, some in by_horizon(horizons):
                answer[some] = solve(batch[some], int(each), rows[some])
        return like(states, answer[0] if single else answer)

    def _solver(self, horizon: float | np.ndarray) -> Solve:
        if self._solve is None:
            raise InvalidInput(
                f"Mode 2 and true errors need a solver, and there is none for {self.spec.name}: name its system, or use mode 1 "
                "(with error_map=True for the map)."
            )
        fractions = np.atleast_1d(horizon)[np.atleast_1d(horizon) % 1 != 0]
        if len(fractions):
            raise InvalidInput(f"The horizon is {fractions[0]:g} frames: mode 2 may ask the solver, which takes whole frames.")
        return self._solve

    # What it promises.

    def threshold(self, horizon: float, q: float, beginning: bool | None = None) -> float:
        """τ(horizon, q) from the validation scores in the model's file, for beginnings or later frames if that is known."""
        if self.calibration is None:
            raise InvalidInput(
                f"The model of {self.spec.name} has no validation scores, so q has no threshold: "
                "run `hybridworld calibrate`, or give a threshold."
            )
        return self.calibration.threshold(horizon, q, beginning)

    def known_bound(self) -> ErrorBound:
        """What bounds errors by scores; raises where the model has no validation scores."""
        if self.bound is None:
            raise InvalidInput(
                f"The model of {self.spec.name} has no validation scores, so no error bound to hold a tolerance against: run "
                "`hybridworld calibrate`."
            )
        return self.bound

    def bounded(self, horizon: float) -> bool:
        """Does one forecast answer that horizon, with an error bound?"""
        mapped = self.mapped_horizons is None or horizon in self.mapped_horizons
        return mapped and not self.other_number and horizon <= self.longest and self.known_bound().covers(horizon)

    def delivers(
        self, horizon: float, tolerance: float, coverage: float | None = None, beginning: bool | None = None
    ) -> Delivered | None:
        """What that tolerance costs and delivers on the validation data; None where there is no bound for the horizon."""
        check_tolerance(tolerance)
        checked_beginning(beginning)
        checked_horizon(horizon, 0)
        share = COVERAGE if coverage is None else coverage
        return expected(self.known_bound(), horizon, tolerance, share, beginning) if self.bounded(horizon) else None

    def error_bounds(self, forecast: Forecast, coverage: float | None = None) -> np.ndarray | None:
        """What the error of each answer does not exceed in a share `coverage` of cases; 0 where the solver answered.

        Without a coverage it is 0.9, or as much as the calibration can promise. None where nothing is known: in mode 1, for a
        chain, for another number of objects, for a model without calibration; inf where that is so for some of the states only.
        """
        if not isinstance(forecast, Forecast):
            raise InvalidInput(f"The forecast is {shown(forecast)}: give what `predict` returned.")
        if self.bound is None or forecast.score is None:
            return None
        score, used = as_array("score", forecast.score), as_array("used_solver", forecast.used_solver)
        bounds, fitting = np.full(score.shape, np.inf), self.fitting(forecast.state)
        single = np.ndim(forecast.horizon) == 0
        for horizon in [forecast.horizon] if single else np.unique(forecast.horizon):
            if fitting.bounded(horizon):
                some = ... if single else forecast.horizon == horizon
                found = self.bound.of_answers(score[some], horizon, coverage, forecast.beginning)
                bounds[some] = np.where(used[some], 0.0, found)
        return like(forecast.score, bounds if np.isfinite(bounds).any() else None)

    def cell_bound(self, error_map: Any, horizon: float, coverage: float | None = None) -> np.ndarray:
        """What the error of each cell does not exceed in a share `coverage` of cells, from the error map of a forecast."""
        if self._cell_bound is None:
            why = "its states have no cells" if not self.spec.grid else "it was never calibrated: run `hybridworld calibrate`"
            raise InvalidInput(f"The model of {self.spec.name} has no bound per cell: {why}.")
        found, known = as_array("The error map", error_map), self.surrogate.trained_grid
        if self.spec.objects and found.shape[-1:] != known:
            raise InvalidInput(f"The error map is of {found.shape[-1]} objects: the bound per object holds for {known[0]}.")
        return like(error_map, self._cell_bound.of_answers(found, horizon, coverage))

    # What its maps and scores estimate.

    def error_maps(self, predictions: Any, truth: Any) -> np.ndarray:
        """What error maps estimate: the distance per cell, in deviations of the training data, (batch, *grid)."""
        estimate, single = self._true(predictions, truth)
        return like(predictions, (estimate.error_map[0] if single else estimate.error_map).numpy())

    def errors(self, predictions: Any, truth: Any) -> np.ndarray:
        """What scores estimate: the mean over cells of that distance, (batch,)."""
        estimate, single = self._true(predictions, truth)
        return like(predictions, (estimate.score[0] if single else estimate.score).numpy())

    def _true(self, predictions: Any, truth: Any) -> tuple[Estimate, bool]:
        """The estimate whose map is the true distance of each answer, and whether one state was given."""
        names = {"predictions": predictions, "truth": truth}
        a, b = (as_array(f"{self.spec.name}: the {name}", values) for name, values in names.items())
        shape = self.fitting(a).spec.shape
        if a.shape != b.shape or shape not in (a.shape, a.shape[1:]) or {a.dtype.kind, b.dtype.kind} != {"f"}:
            raise InvalidInput(
                f"{self.spec.name}: the predictions are {a.dtype} of shape {a.shape}, truth is {b.dtype} of shape {b.shape}; "
                f"expected floating-point numbers of the same shape, {shape} or (batch, {', '.join(map(str, shape))})."
            )
        single = a.shape == shape
        one, other = (torch.from_numpy(each.astype(np.float32)[None if single else ...]) for each in (a, b))
        return Estimate(one, distance(one, other, self.surrogate.std.cpu())), single

    # The same model, otherwise.

    def resized(self, grid: tuple[int, ...]) -> Self:
        """The same model for another number of objects: a network for sets takes any, and so does its solver.

        Thresholds stay those of the number that it was calibrated with; error bounds hold for that one alone.
        """
        other = copy(self)
        other.surrogate, other.log = self.surrogate.resized(grid), None  # what was kept is of one number
        if self.system is not None:
            other.system = self.system.resized(grid)
            other._solve = None if self._solve is None else other.system.solve
        with suppress(InvalidInput):  # what is not known by its name is the user's own, and stays
            other.signal = find_signal(self.signal.name, Ingredients(other.surrogate, other.system))
        return other

    def fitting(self, state: Any) -> Self:
        """This model, or for a set of another number of objects the one for these."""
        if not self.spec.objects:
            return self
        shape = as_array(f"{self.spec.name}: the state", state).shape
        if len(shape) < 2 or shape[-1] == self.spec.grid[0] or shape[-1] < 1:
            return self
        return self.resized(shape[-1:])

    def keeping(self, folder: str | Path, most: int | None = None) -> Self:
        """The same model, which keeps what its solver answers in mode 2 in that folder, for `hybridworld refine`.

        `most` is the number of answers that are kept: older ones make room (default: as many as fit into a gigabyte).
        """
        other, system = copy(self), self.system
        most = None if most is None else whole("The number of answers that are kept", most, 1)
        identity, version = (system.identity, system.version) if system else ({}, "none")
        other.log = DeferredLog(folder, self.spec, identity, version, most)
        return other

    def with_signal(self, signal: TrustSignal) -> Self:
        """The same model with a map by another signal, for which nothing is calibrated: no thresholds, no bounds."""
        other = copy(self)
        other.signal, other.mapped_horizons = signal, mapped_by(signal, self.surrogate.answered)
        other.calibration, other.bound, other._cell_bound = None, None, None
        return other

    def through(self, call: Callable[[Any], Any], solve: Solve | None) -> Self:
        """The same model with `call(network)` in place of its networks and `solve` as its solver: a server routes both."""
        other = copy(self)
        other.surrogate, other.signal, other._solve = call(self.surrogate), call(self.signal), solve
        return other


def mapped_by(signal: TrustSignal, answered: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """The horizons among those a surrogate answers for which the signal draws a map; None: all."""
    return composed(answered) if answered is not None and signal.cost.parts else answered
