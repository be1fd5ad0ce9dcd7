"""A gate that monitors itself: mode 2 over time, with a record of its own health.

    deferral    what share was handed to the solver, beside the 1 - q that was asked for, or that a tolerance costs
    drift       do recent scores still look like the validation scores? (a Kolmogorov-Smirnov test per window, `trust.drift`)
    audits      a small random share of the accepted answers is solved anyway: an unbiased estimate of their error
    adaptive    optional: the threshold follows recent scores, so that the deferral stays 1 - q under drift

Scores of different horizons are compared by their rank among the validation scores of their horizon, from 0 to 1.
"""

from collections import defaultdict, deque
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hybridworld.deploy.deferral import KEEP
from hybridworld.deploy.forecast import Forecast, by_horizon, merged
from hybridworld.deploy.hybrid import HybridModel
from hybridworld.errors import InvalidInput
from hybridworld.physics.arguments import (
    as_array,
    checked_horizon,
    checked_params,
    checked_seed,
    checked_states,
    number,
    shown,
    whole,
)
from hybridworld.trust.bounds import COVERAGE

WINDOW, FALSE_ALARMS = 500, 0.001
"""Answers per test of drift, and the share of tests that may fire without any."""


@dataclass(frozen=True)
class Drift:
    """One test of one window of scores."""

    answers: int
    """Answers that had been given when the window was full."""
    p_value: float
    alarm: bool


@dataclass(frozen=True)
class Health:
    """What a gate has seen so far."""

    answers: int
    deferral: float
    expected_deferral: float
    """1 - q; with a tolerance, the share of the validation answers at the horizons asked for that no bound promises."""
    drifts: tuple[Drift, ...]
    audits: int
    error: float
    """Mean error of accepted answers, estimated from the audits (nan before the first)."""
    error_deviation: float
    """Standard error of that estimate."""
    coverage: float
    """Share of audited answers whose error was below its bound (nan without bounds)."""
    exceeding: float = float("nan")
    """With a tolerance: the share of all answers above it, estimated from the audits; promised is at most 1 - coverage."""
    exceeding_accepted: float = float("nan")
    """The share of the accepted answers above the tolerance, estimated from the audits."""

    @property
    def alarm(self) -> bool:
        """Whether the latest window looked unlike the validation data."""
        return bool(self.drifts) and self.drifts[-1].alarm


class Gate:
    """Answers with `model` in mode 2 and watches. `false_alarms` is the rate per window on data like the validation data.

    What goes to the solver is decided by the keep fraction q (0.75 unless said), or by a `tolerance` that the error bounds of
    that `coverage` must promise: see `HybridModel.predict`.
    """

    def __init__(
        self,
        model: HybridModel,
        q: float | None = None,
        window: int = WINDOW,
        false_alarms: float = FALSE_ALARMS,
        adaptive: bool = False,
        audit: float = 0.0,
        coverage: float | None = None,
        seed: int = 0,
        tolerance: float | None = None,
    ) -> None:
        if not isinstance(model, HybridModel):
            raise InvalidInput(f"The model of a gate is {shown(model)}: give a loaded one, as hw.load('ball3d').")
        if model.calibration is None:
            raise InvalidInput(f"The model of {model.spec.name} has no validation scores: run `hybridworld calibrate`.")
        if not isinstance(adaptive, bool):
            raise InvalidInput(f"adaptive is {shown(adaptive)}: it must be True or False.")
        keep = KEEP if q is None else q
        promised = COVERAGE if coverage is None else coverage
        for name, value in {"audit share": audit, "false alarm rate": false_alarms, "coverage": promised, "q": keep}.items():
            if not 0 <= (found := number(f"The {name}", value)) <= 1:
                raise InvalidInput(f"The {name} is {found:g}: it must be from 0 to 1.")
        if whole("The window", window) < 20:
            raise InvalidInput(f"The window is {window} answers: a test needs at least 20.")
        if tolerance is not None:
            if q is not None or adaptive:
                raise InvalidInput("A tolerance decides by itself what goes to the solver: it excludes q and adaptive=True.")
            model.delivers(max(model.calibration.scores), tolerance, promised)  # raises where there are no bounds
        if model.bound is not None and coverage is not None:
            model.bound.check(coverage)
        self.model, self.q, self.tolerance = model, keep, tolerance
        self._calibration, self._adaptive, self._audit, self._coverage = model.calibration, adaptive, audit, coverage
        self._window, self._false_alarms = window, false_alarms
        self._rng = np.random.default_rng(checked_seed(seed))
        self._recent: dict[float, deque[float]] = defaultdict(lambda: deque(maxlen=window))  # horizon -> scores
        self._shares: dict[float, float] = {}  # horizon -> share of these
        self._fresh: list[list[float]] = []  # ranks since the last test
        self._answers = self._deferred = 0
        self._expected = 0.0  # with a tolerance: answers that the validation data let expect to be deferred
        self._drifts: list[Drift] = []
        self._errors: list[float] = []
        self._covered: list[bool] = []

    def __repr__(self) -> str:
        health = self.health
        rule = f"q = {self.q:g}{', adaptive' * self._adaptive}" if self.tolerance is None else f"tolerance {self.tolerance:g}"
        shares = f"{health.deferral:.1%}; expected {health.expected_deferral:.1%}"
        told = [
            f"{rule}; {health.answers:,} answers, {self._deferred:,} by the solver ({shares})",
            f"{len(self._drifts)} windows tested for drift, {sum(each.alarm for each in self._drifts)} alarms",
            f"{health.audits:,} audits" + (f", mean error {health.error:.3g}" if health.audits else ""),
        ]
        return f"<Gate of {self.model.spec.name}: {'; '.join(told)}>"

    def predict(self, state: Any, horizon: Any, params: Any = None) -> Forecast:
        """The forecast of `HybridModel.predict` in mode 2; what is audited is answered by the solver as well."""
        if np.ndim(horizon) == 0:
            return self._answered(state, horizon, params)
        states, single = checked_states(self.model.fitting(state).spec, state)
        rows = checked_params(self.model.spec, params, len(states))
        horizons = np.atleast_1d(checked_horizon(horizon, 0 if single else len(states)))
        parts = [(some, self._answered(states[some], each, rows[some])) for each, some in by_horizon(horizons)]
        return replace(merged(parts, horizons), start=states, params=rows, model=self.model).like(state)

    def _answered(self, given: Any, horizon: Any, params: Any) -> Forecast:
        """The forecast for states that are all asked about one horizon."""
        state = as_array("The state", given)
        if self.tolerance is None:
            forecast = self.model.predict(state, horizon, params, 2, self.q, self._threshold)
        else:
            forecast = self.model.predict(state, horizon, params, 2, tolerance=self.tolerance, coverage=self._coverage)
            self._expected += np.size(forecast.used_solver) * self._expected_share(horizon, self.tolerance)
        scores = self.observe(forecast)
        if scores is None:
            return forecast.like(given)
        single = np.ndim(forecast.used_solver) == 0
        chosen = ~np.atleast_1d(forecast.used_solver) & (self._rng.random(len(scores)) < self._audit)
        if not chosen.any():
            return forecast.like(given)
        assert forecast.start is not None and forecast.params is not None
        states, rows = (each[None] if single else each for each in (forecast.start, forecast.params))
        truth = self.model.solve(states[chosen], horizon, rows[chosen])
        answers = forecast.state[None] if single else forecast.state.copy()
        errors = self.model.errors(answers[chosen], truth)
        self._errors += errors.tolist()
        bounds = self.model.error_bounds(forecast, self._coverage)
        if bounds is not None:
            self._covered += (errors <= np.atleast_1d(bounds)[chosen]).tolist()
        answers[chosen] = truth
        used = np.atleast_1d(forecast.used_solver) | chosen
        audited = replace(forecast, state=answers[0] if single else answers, used_solver=used[0] if single else used)
        return audited.like(given)

    def observe(self, forecast: Forecast) -> np.ndarray | None:
        """Count an answer of mode 2, made here or elsewhere; returns its scores (batch,), None where nothing was judged."""
        self._answers += np.size(forecast.used_solver)
        self._deferred += int(np.sum(forecast.used_solver))
        asked = forecast.links[0] if forecast.links else forecast  # later links start from answers, not from what was asked
        if asked.score is None:
            return None
        scores = np.atleast_1d(as_array("score", asked.score))
        for horizon, some in by_horizon(np.broadcast_to(asked.horizon, len(scores))):
            self._recent[horizon].extend(scores[some].tolist())
            self._watch(self._calibration.ranks(horizon, scores[some]))
        return scores

    @property
    def deferral(self) -> float:
        """The share of all answers that the solver gave."""
        return self._deferred / max(self._answers, 1)

    @property
    def alarm(self) -> bool:
        """Whether the latest window looked unlike the validation data."""
        return bool(self._drifts) and self._drifts[-1].alarm

    @property
    def health(self) -> Health:
        """What the gate has seen so far: counts, deferral, errors found by audits, and the latest test of drift."""
        count, errors = len(self._errors), np.array(self._errors)
        deferral, expected, exceeding = self.deferral, 1 - self.q, float("nan")
        if self.tolerance is not None:
            expected = self._expected / max(self._answers, 1)
            exceeding = float(np.mean(errors > self.tolerance)) if count else exceeding
        return Health(
            self._answers,
            deferral,
            expected,
            tuple(self._drifts),
            count,
            float(errors.mean()) if count else float("nan"),
            float(errors.std(ddof=1) / np.sqrt(count)) if count > 1 else float("nan"),
            float(np.mean(self._covered)) if self._covered else float("nan"),
            (1 - deferral) * exceeding,
            exceeding,
        )

    def _expected_share(self, horizon: float, tolerance: float) -> float:
        """Share of the answers at that horizon that no bound is expected to promise."""
        if horizon not in self._shares:
            found = self.model.delivers(horizon, tolerance, self._coverage)
            self._shares[horizon] = 1.0 if found is None else found.deferred
        return self._shares[horizon]

    def _threshold(self, horizon: float) -> float:
        """The threshold at a horizon: frozen, or such that a share q of the recent answers would have been kept."""
        recent = self._recent[horizon]
        if self._adaptive and len(recent) == self._window and 0 < self.q < 1:
            known = np.nan_to_num(np.array(recent), nan=np.inf, posinf=np.inf)  # what cannot be judged is the worst
            return float(np.quantile(known, self.q, method="inverted_cdf"))
        return self.model.threshold(horizon, self.q)

    def _watch(self, ranks: np.ndarray) -> None:
        self._fresh.extend(ranks.tolist())
        while len(self._fresh) >= self._window:
            window, self._fresh = self._fresh[: self._window], self._fresh[self._window :]
            p_value = self._calibration.drift_p_value(np.array(window))
            self._drifts.append(Drift(self._answers - len(self._fresh), p_value, p_value < self._false_alarms))
