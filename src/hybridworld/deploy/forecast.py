"""An answer and what is known about it; how answers to one question are put together and shown."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from hybridworld.errors import InvalidInput
from hybridworld.physics.arguments import as_array
from hybridworld.surrogate.horizons import listed

if TYPE_CHECKING:
    from hybridworld.deploy.hybrid import HybridModel
    from hybridworld.figures.style import Page

ROWS, VECTORS = 4, 6  # of a picture: fields are rows, state vectors share one


@dataclass(frozen=True, repr=False)
class Forecast:
    """An answer and what is known about it. For one state the arrays have no batch axis; for tensors they are tensors.

    `state` is float32 in mode 1, as surrogates compute, and always float64 in mode 2, which holds the answers of surrogate and
    solver exactly; of a tensor it has the type. Beyond the longest trained horizon the answer is a chain: `links` holds its
    parts, `used_solver` says if any of them went to the solver, and `error_map` is the sum of the maps of those that did not.
    Where each state has a horizon of its own, `horizon` and `threshold` have one number per state (nan: a chain).
    """

    state: np.ndarray  # (batch, channels, *grid)
    used_solver: np.ndarray  # bool (batch,)
    error_map: np.ndarray | None = None  # (batch, *grid), in deviations of the training data; none in mode 1
    score: np.ndarray | None = None  # (batch,): the mean of the map
    threshold: Any = None  # a score above it was deferred; none for a chain, whose links have their own
    seconds: dict[str, float] = field(default_factory=dict)  # `surrogate`; or `surrogate and error map`, `solver`
    horizon: Any = float("nan")
    links: "tuple[Forecast, ...]" = ()
    notes: tuple[str, ...] = ()
    """What to know about this answer, in sentences: that it is a chain, or that no training has seen its horizon."""
    start: np.ndarray | None = None  # what was asked about, (batch, channels, *grid)
    params: np.ndarray | None = None  # (batch, number of spec.params)
    beginning: bool | None = None  # do the states begin their trajectories? None: it was not said
    model: "HybridModel | None" = field(default=None, compare=False)
    """The model that answered."""

    def __repr__(self) -> str:
        used, horizons = np.atleast_1d(as_array("used_solver", self.used_solver)), np.atleast_1d(self.horizon)
        ahead = f"{_span(horizons)} frame{'' if (horizons == 1).all() else 's'} ahead"
        told = ["1 state" if np.ndim(self.used_solver) == 0 else f"{len(used)} states", ahead]
        if self.score is None:
            told.append("by the surrogate alone")
        else:
            scores = np.atleast_1d(as_array("score", self.score))
            told += [f"{int(used.sum())} of {len(used)} by the solver", f"scores {_span(scores)}"]
        if isinstance(self.threshold, float):
            told.append(f"threshold {self.threshold:.3g}")
        name = "" if self.model is None else f" of {self.model.spec.name}"
        return "\n  note: ".join([f"<Forecast{name}: {', '.join(told)}>", *self.notes])

    def __getstate__(self) -> dict[str, Any]:
        """A forecast travels without the model that made it."""
        return {**self.__dict__, "model": None}

    def plot(self, check: bool | None = None) -> "Page":
        """Input, true future, surrogate, error map and true error, as `hybridworld predict --check` draws them.

        Of a batch, the first few. The solver is asked about these unless `check` is False; by default, where there is one.
        """
        model, start, params = self.model, self.start, self.params
        if model is None or start is None:
            raise InvalidInput("A forecast that was stored or sent has lost its model, so it cannot be drawn.")
        single = np.ndim(self.used_solver) == 0
        some = np.s_[None] if single else np.s_[: ROWS if model.spec.grid else VECTORS]
        start, used = start[some], np.atleast_1d(as_array("used_solver", self.used_solver))
        rows = None if params is None else params[some]
        horizon = self.horizon if np.ndim(self.horizon) == 0 else self.horizon[some]
        alone = model.onward(start, horizon, rows, mode=1).state
        known = model.can_solve and (params is not None or not model.spec.params)
        truth = model.solve(start, horizon, rows) if (known if check is None else check) else None
        error_map = None if self.error_map is None else as_array("error map", self.error_map)[some]
        horizons = np.broadcast_to(self.horizon, len(used))
        names = [f"{row}" if np.ndim(self.horizon) == 0 else f"{row}, h = {horizons[row]:g}" for row in range(len(start))]
        title = f"{model.spec.name}, {listed([*{*horizons[: len(start)].tolist()}])} ahead"
        return forecast_page(model, names, start, alone, used, error_map, truth, title)

    def like(self, given: Any) -> "Forecast":
        """The forecast with tensors in place of arrays, where a tensor was given."""
        if not isinstance(given, Tensor):
            return self
        arrays: dict[str, Any] = {name: getattr(self, name) for name in ("used_solver", "error_map", "score")}
        tensors: dict[str, Any] = {
            name: None if each is None else torch.as_tensor(each, device=given.device) for name, each in arrays.items()
        }
        return replace(self, state=like(given, self.state), links=tuple(link.like(given) for link in self.links), **tensors)


def like(given: Any, values: np.ndarray | None) -> Any:
    """The values as a tensor of the same type and place, where a tensor was given."""
    return torch.as_tensor(values).to(given) if isinstance(given, Tensor) and values is not None else values


def forecast_page(
    model: "HybridModel", names: Sequence[str], states: np.ndarray, alone: np.ndarray, used_solver: np.ndarray,
    error_map: np.ndarray | None, truth: np.ndarray | None, title: str,
) -> "Page":  # fmt: skip
    """The first few forecasts beside what is known about them; `alone` is what the surrogate says without the solver."""
    from hybridworld.figures.forecasts import ForecastRow, page_of_forecasts

    error = None if truth is None or error_map is None else model.error_maps(alone, truth)
    parts = {"state": states, "prediction": alone, "error_map": error_map, "truth": truth, "error": error}
    known = {name: values for name, values in parts.items() if values is not None}

    def row_of(label: str, rows: int | slice) -> ForecastRow:
        return ForecastRow(label, **{name: values[rows] for name, values in known.items()})

    if not model.spec.grid:
        return page_of_forecasts(model.spec, [row_of("", slice(VECTORS))], title)
    who = ["deferred" if used else "kept" for used in used_solver]
    shown = [row_of(f"{names[row]}, {who[row]}", row) for row in range(min(ROWS, len(states)))]
    return page_of_forecasts(model.spec, shown, title)


def joined(parts: Sequence[Forecast], horizon: float) -> Forecast:
    """The forecast of a chain; of a single link it is that link."""
    if len(parts) == 1:
        return parts[0]
    used = np.any([part.used_solver for part in parts], axis=0)
    answer = Forecast(parts[-1].state, used, seconds=_seconds(parts), horizon=horizon, links=tuple(parts))
    maps = [_kept(part.error_map, part.used_solver) for part in parts if part.error_map is not None]
    scores = [_kept(part.score, part.used_solver) for part in parts if part.score is not None]
    return replace(answer, error_map=np.sum(maps, axis=0), score=np.sum(scores, axis=0)) if maps else answer


def by_horizon(horizons: np.ndarray) -> list[tuple[float, np.ndarray]]:
    """Each horizon that occurs, and the rows that have it."""
    if len(horizons) and (horizons == horizons[0]).all():  # mostly; and `unique` takes its time
        return [(float(horizons[0]), np.arange(len(horizons)))]
    return [(float(horizon), np.flatnonzero(horizons == horizon)) for horizon in np.unique(horizons)]


def merged(parts: Sequence[tuple[np.ndarray, Forecast]], horizons: np.ndarray) -> Forecast:
    """Forecasts of some rows each, as one forecast of all rows in their order."""
    order = np.argsort(np.concatenate([rows for rows, _ in parts]))

    def together(name: str) -> Any:
        values = [getattr(part, name) for _, part in parts]
        return None if values[0] is None else np.concatenate(values)[order]

    limits = [np.full(len(rows), np.nan if part.threshold is None else part.threshold) for rows, part in parts]
    notes = dict.fromkeys(note for _, part in parts for note in part.notes)
    return Forecast(
        together("state"), together("used_solver"), together("error_map"), together("score"),
        None if parts[0][1].score is None else np.concatenate(limits)[order],
        _seconds([part for _, part in parts]), horizons, notes=tuple(notes),
    )  # fmt: skip


def first_of(forecast: Forecast) -> Forecast:
    """The forecast of a single state, without the batch axis."""
    names = ("state", "used_solver", "error_map", "score", "start", "params")
    values = {name: getattr(forecast, name) for name in names}
    first: dict[str, Any] = {name: None if each is None else each[0] for name, each in values.items()}
    return replace(forecast, links=tuple(map(first_of, forecast.links)), **first)


def _span(values: np.ndarray) -> str:
    """The range of the finite values, or the one there is."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return "unknown"
    low, high = f"{finite.min():.3g}", f"{finite.max():.3g}"
    return low if low == high else f"{low} to {high}"


def _kept(values: np.ndarray, used_solver: np.ndarray) -> np.ndarray:
    """The values (batch, ...) of what the surrogate answered, 0 where the solver did."""
    return np.where(used_solver.reshape(-1, *[1] * (values.ndim - 1)), 0, values)


@contextmanager
def timed(seconds: dict[str, float], part: str) -> Iterator[None]:
    """Add to seconds[part] what the block takes."""
    began = time.perf_counter()
    yield
    seconds[part] = seconds.get(part, 0.0) + time.perf_counter() - began


def _seconds(parts: Sequence[Forecast]) -> dict[str, float]:
    """Part -> the seconds that it took in all forecasts together."""
    names = dict.fromkeys(name for part in parts for name in part.seconds)
    return {name: sum(part.seconds.get(name, 0.0) for part in parts) for name in names}
