"""How a question is answered: by a chain of links, each from the answer before it, mostly by a single one.

Each link is answered by the surrogate alone, by the surrogate with its error map, or by both and the solver (`gated`).

A forecast is made in `Steps`: whenever it needs a network or the solver it yields the call, and goes on with the answer. So
whoever makes it decides where networks and solvers run; `finished` calls them on the spot.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from hybridworld.deploy.deferral import Deferral, Rule
from hybridworld.deploy.forecast import Forecast, joined, timed
from hybridworld.errors import InvalidInput, SolverFailure
from hybridworld.physics.arguments import checked_states
from hybridworld.physics.environment import Solve
from hybridworld.surrogate.horizons import chain_of, listed
from hybridworld.surrogate.pieces import row_slices
from hybridworld.trust.signal import Estimate

if TYPE_CHECKING:
    from hybridworld.deploy.hybrid import HybridModel


T = TypeVar("T")


@dataclass(frozen=True)
class Call:
    """What a forecast waits for: f(*inputs), of a network or of the solver."""

    f: Callable[..., Any]
    inputs: tuple[Any, ...]
    network: bool = True

    def __call__(self) -> Any:
        """The answer, here and now."""
        if not self.network:
            return self.f(*self.inputs)
        with torch.inference_mode():
            return self.f(*self.inputs)


Steps = Generator[Call, Any, T]
"""Yields calls, is sent their answers, and returns what it was made for."""


def in_turn(many: Sequence[Steps[T]]) -> list[T]:
    """What each of them returns, made one after the other."""
    return [finished(steps) for steps in many]


def finished(steps: Steps[T]) -> T:
    """What the steps return, with each call made on the spot."""
    try:
        call = next(steps)
        while True:
            try:
                answer = call()
            except Exception as error:
                call = steps.throw(error)
            else:
                call = steps.send(answer)
    except StopIteration as end:
        return end.value


class Start(NamedTuple):
    """Trajectories, one per row: where they are, their parameters, and where they began."""

    states: np.ndarray  # (batch, channels, *grid)
    params: np.ndarray  # (batch, number of spec.params)
    began: np.ndarray  # as states

    def of(self, rows: np.ndarray) -> "Start":
        """The same for these rows of the batch."""
        return Start(*(each[rows] for each in self))


@dataclass(frozen=True)
class Way:
    """How the links of a chain are answered: by which rule, by which solver, with an error map or not."""

    rule: Rule
    solve: Solve | None
    """Who answers what the rule defers; None in mode 1."""
    mapped: bool
    """Whether each link has an error map."""
    promised: bool
    """Whether the answers shall hold a tolerance."""


def chained(model: "HybridModel", start: Start, horizon: float, way: Way) -> Steps[Forecast]:
    """The forecast of a chain; what shall be promised and cannot, is solved."""
    if way.solve is not None and way.promised and not model.bounded(horizon):
        return (yield from solver_alone(model, start, horizon, way.solve))
    spans = chain_of(horizon, model.longest, model.mapped_horizons if way.mapped else model.surrogate.answered)
    parts: list[Forecast] = []
    for link, span in enumerate(spans, 1):
        with naming(link, "the forecast"):
            now = start if link == 1 else start._replace(states=checked_states(model.spec, parts[-1].state)[0])
            if way.solve is not None:
                parts.append((yield from gated(model, now, span, way.rule(span, link == 1), way.solve)))
            else:
                parts.append((yield from (mapped if way.mapped else surrogate_alone)(model, now, span)))
    told = tuple(notes(model, horizon, spans, 1 if way.solve is None else 2))
    return replace(joined(parts, horizon), notes=told) if told else joined(parts, horizon)


def surrogate_alone(model: "HybridModel", start: Start, horizon: float) -> Steps[Forecast]:
    """The forecast of the surrogate, without a map."""
    seconds: dict[str, float] = {}
    answers = []
    with timed(seconds, "surrogate"):
        for piece in pieces(model, start, horizon):
            answers.append((yield Call(model.surrogate, piece)).cpu().numpy())
    return Forecast(np.concatenate(answers), np.zeros(len(start.states), bool), seconds=seconds, horizon=horizon)


def mapped(model: "HybridModel", start: Start, horizon: float) -> Steps[Forecast]:
    """The forecast of the surrogate, with its error map."""
    seconds: dict[str, float] = {}
    found = []
    with timed(seconds, "surrogate and error map"):
        for piece in pieces(model, start, horizon):
            found.append(on_cpu((yield Call(model.signal, piece))))
    predicted, error_map, score = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return Forecast(predicted, np.zeros(len(start.states), bool), error_map, score, None, seconds, horizon)


def gated(model: "HybridModel", start: Start, horizon: float, deferral: Deferral, solve: Solve) -> Steps[Forecast]:
    """The forecast of surrogate and solver: the deferral says who answers what."""
    forecast = yield from mapped(model, start, horizon)
    assert forecast.score is not None
    deferred, threshold = deferral(forecast.score)
    answer, asked = forecast.state.astype(np.float64), start.of(deferred)
    with timed(forecast.seconds, "solver"):
        if deferred.any():
            answer[deferred] = yield Call(solved, (model, asked, horizon, solve), network=False)
    return replace(forecast, state=answer, used_solver=deferred, threshold=threshold)


def solver_alone(model: "HybridModel", start: Start, horizon: float, solve: Solve) -> Steps[Forecast]:
    """The forecast of the solver, for answers about which nothing can be promised."""
    seconds: dict[str, float] = {}
    with timed(seconds, "solver"):
        answer = yield Call(solved, (model, start, horizon, solve), network=False)
    why = model.other_number.removesuffix(".") or f"There is no error bound at {listed([horizon])}"
    note = f"{why}, so with a tolerance the solver answers everything."
    return Forecast(answer, np.ones(len(start.states), bool), seconds=seconds, horizon=horizon, notes=(note,))


def solved(model: "HybridModel", start: Start, horizon: float, solve: Solve) -> np.ndarray:
    """The answers of the solver, which are kept if the model keeps them."""
    answer = solve(start.states, int(horizon), start.params)
    if model.log is not None:
        model.log.add(start.states, int(horizon), start.params, np.asarray(answer, np.float64), start.began)
    return answer


def pieces(model: "HybridModel", start: Start, horizon: float) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """States, horizons and params as tensors, a few rows at a time."""
    device = model.surrogate.mean.device
    for rows in row_slices(model.spec, len(start.states)):
        now, given = (torch.from_numpy(np.asarray(a[rows], np.float32)).to(device) for a in (start.states, start.params))
        yield now, torch.full((len(now),), float(horizon), device=device), given


def on_cpu(estimate: Estimate) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Prediction, error map and score as arrays."""
    prediction, error_map, score = (each.cpu().numpy() for each in (estimate.prediction, estimate.error_map, estimate.score))
    return prediction, error_map, score


def notes(model: "HybridModel", horizon: float, spans: Sequence[float], mode: int) -> Iterator[str]:
    """What to know about an answer with links of these spans, in sentences."""
    if model.other_number:
        yield model.other_number
    if len(spans) > 1:
        chain = " + ".join(f"{span:g}" for span in spans)
        why = f"more than the longest trained horizon, {model.longest:g}"
        if model.surrogate.answered is not None:
            why = f"not answered in one pass, as {listed(model.surrogate.answered)} are"
        yield f"{horizon:g} frames are {why}: the answer is a chain of {chain} frames, and has no error bound."
    unseen = sorted(set(spans) - model.trained)
    if unseen:
        asked, seen = listed(unseen), model.trained_in_words
        yield f"No training has seen a horizon of {asked} (it has seen {seen}): expect larger errors."
    if mode == 2 and 1.0 in spans:
        yield "At 1 frame the error map compares with two half frames, which no training has seen alone."


@contextmanager
def naming(link: int, what: str) -> Iterator[None]:
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
