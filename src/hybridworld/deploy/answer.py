"""A question asked, and what there is to tell about its answer: as plain data, and as a file."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from hybridworld.data.atomic import write_atomically
from hybridworld.data.provenance import provenance
from hybridworld.data.well import file_image
from hybridworld.deploy.deferral import KEEP
from hybridworld.deploy.forecast import Forecast
from hybridworld.deploy.hybrid import HybridModel
from hybridworld.deploy.question import FORECAST, Question
from hybridworld.physics.environment import Environment, Sample
from hybridworld.physics.spec import StateSpec


@dataclass(frozen=True)
class Request:
    """How a question shall be answered."""

    horizon: float
    mode: int
    q: float | None
    coverage: float | None  # of error bounds; none: 0.9, or as much as the calibration can promise
    check: bool  # ask the solver for the truth about all of them
    tolerance: float | None = None  # instead of q
    error_map: bool = False  # in mode 1 as well

    @property
    def options(self) -> dict[str, Any]:
        """The options by the names under which `HybridModel.predict` takes them."""
        return {name: getattr(self, name) for name in ("mode", "q", "tolerance", "coverage", "error_map")}


@dataclass(frozen=True)
class Answer:
    """A forecast, what the surrogate alone would have said, and the truth if it was asked for."""

    forecast: Forecast
    surrogate: np.ndarray  # (count, channels, *grid)
    error_bounds: np.ndarray | None = None  # (count,)
    truth: np.ndarray | None = None
    errors: np.ndarray | None = None  # (count,), of the forecast
    surrogate_errors: np.ndarray | None = None  # (count,)


def warm_up(model: HybridModel, question: Question, request: Request) -> None:
    """Answer a part of the question in the same way, so that what is compiled or allocated first is not timed."""
    states, horizon, params = question.states, request.horizon, question.params
    if request.tolerance is None:
        model.predict(states[:1], horizon, params[:1], request.mode, threshold=-1.0)
        model.predict(states, horizon, params, request.mode, threshold=np.inf)
    else:
        model.predict(states[:1], horizon, params[:1], **request.options)
        model.solve(states[:1], horizon, params[:1])


def ask(model: HybridModel, question: Question, request: Request) -> Answer:
    """The forecast with its error bounds, and with a check also the truth and the true errors."""
    inputs = (question.states, request.horizon, question.params)
    forecast = model.predict(*inputs, **request.options, beginning=question.beginning)
    alone = forecast.state if request.mode == 1 else model.predict(*inputs, mode=1).state
    answer = Answer(forecast, alone)
    answer = replace(answer, error_bounds=model.error_bounds(forecast, request.coverage))
    if request.check:
        truth = model.solve(*inputs)
        errors, surrogate_errors = (model.errors(each, truth) for each in (forecast.state, alone))
        answer = replace(answer, truth=truth, errors=errors, surrogate_errors=surrogate_errors)
    return answer


def describe(name: str, model: HybridModel, question: Question, answer: Answer, request: Request) -> dict[str, Any]:
    """All but the states, as plain data; None stands for a threshold that no score exceeds, since JSON has no infinity.

    `links` has the horizon, the threshold and the number of deferred trajectories of each part of a chain.
    """
    forecast, count = answer.forecast, len(question.names)
    deferred, solver = int(forecast.used_solver.sum()), forecast.seconds.get("solver", 0.0)
    seconds = (sum(forecast.seconds.values()) - solver) / count + forecast.used_solver * solver / max(deferred, 1)
    known = {
        "seconds": seconds,
        "score": forecast.score,
        "error_bound": answer.error_bounds,
        "surrogate_error": answer.surrogate_errors,
        "error": answer.errors,
    }
    gate: dict[str, Any] = {}
    if request.mode == 2:
        gate = {"threshold": finite(forecast.threshold), "deferred": deferred, "coverage": request.coverage}
        if request.coverage is None and model.bound:
            gate["coverage"] = model.bound.default
        by_share = {"q": KEEP if request.q is None else request.q}
        gate |= by_share if request.tolerance is None else promised(model, request, question.beginning)
        gate |= {"signal": model.signal.name, "calibrated_by": model.calibration.size if model.calibration else 0}
        gate["links"] = [
            {"horizon": link.horizon, "threshold": finite(link.threshold), "deferred": int(link.used_solver.sum())}
            for link in forecast.links
        ]
    return {
        "model": name,
        "system": model.spec.name,
        "horizon": request.horizon,
        "mode": request.mode,
        "engine": model.engine,
        **gate,
        "notes": list(forecast.notes),
        "seconds": forecast.seconds,
        "trajectories": [
            {"name": question.names[row], "used_solver": bool(forecast.used_solver[row])}
            | {key: finite(float(values[row])) for key, values in known.items() if values is not None}
            for row in range(count)
        ],
    }


def promised(model: HybridModel, request: Request, beginning: bool | None) -> dict[str, Any]:
    """The tolerance, and what the validation data say about it; None where there is no bound."""
    assert request.tolerance is not None
    found = model.delivers(request.horizon, request.tolerance, request.coverage, beginning)
    shares = {} if found is None else {name: None if np.isnan(value) else value for name, value in asdict(found).items()}
    return {"tolerance": request.tolerance, "validation": shares or None}


def finite(value: float | None) -> float | None:
    """The value where it is a finite number, else None."""
    return value if value is not None and np.isfinite(value) else None


def write_forecasts(path: Path, model: HybridModel, question: Question, answer: Answer, told: dict[str, Any]) -> None:
    """Write all that is known about an answer into one file."""
    forecast = answer.forecast
    known = {
        "used_solver": forecast.used_solver,
        "score": forecast.score,
        "error_map": forecast.error_map,
        "error_bound": answer.error_bounds,
        "error": answer.errors,
        "truth": answer.truth,
        "surrogate": answer.surrogate,
    }
    about = {"description": json.dumps(told), "provenance": json.dumps(provenance())}
    content = forecast_file(model.spec, model.system, question, told["horizon"], forecast.state, about, known)
    write_atomically(path, content.getbuffer())


def forecast_file(
    spec: StateSpec, system: Environment | None, question: Question, horizon: float, answers: np.ndarray,
    about: Mapping[str, Any], known: Mapping[str, np.ndarray | None],
) -> BytesIO:  # fmt: skip
    """HDF5 with start and answer as two frames of trajectories in The Well's layout.

    The group `forecast` has the attributes `about` and what else is known, an array each.
    """
    leap = replace(spec, frame_step=spec.frame_step * horizon, frames=2)
    rows = zip(question.names, question.states, question.params, strict=True)
    samples = [Sample(state, params, {"name": name}) for name, state, params in rows]
    frames, version = np.stack([question.states, answers], axis=1), system.version if system else "none"
    content = BytesIO(file_image(leap, version, "forecast", range(len(samples)), samples, frames, "float64").data)
    with h5py.File(content, "a") as file:
        group = file.create_group(FORECAST)
        group.attrs.update(about)
        for name, values in known.items():
            if values is not None:
                group[name] = values
    return content
