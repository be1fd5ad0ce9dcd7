"""The Open Inference Protocol v2 of a hybrid model.

    inputs    state (batch, channels, *grid), horizon (batch, 1) in frames, params (batch, n; left out where n = 0)
    parameters    mode, q, tolerance, coverage, signal
    outputs   state, error_map (batch, *grid), score (batch,), used_solver (batch,), bound (batch,)

`state` comes back in the datatype in which it was sent. In mode 1 there is no error map, score or bound; a chain has no bound.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pydantic import Field

from hybridworld import __version__
from hybridworld.deploy.chain import Call, Steps, in_turn
from hybridworld.deploy.forecast import Forecast, by_horizon
from hybridworld.deploy.hybrid import HybridModel
from hybridworld.errors import nearest
from hybridworld.serve.catalogue import Served
from hybridworld.serve.limits import Limits, Refusal
from hybridworld.serve.tensors import (
    InputTensor,
    OutputRequest,
    OutputTensor,
    Scalar,
    Strict,
    checked,
    read_tensors,
    split_body,
)

VERSION, COVERAGE = "1", 0.9
PARAMETERS = {
    "mode": "1: the surrogate alone; 2 (the default): the solver answers what the error map flags",
    "q": "share of the validation data that mode 2 keeps on the surrogate, 0 to 1 (default 0.75)",
    "tolerance": "defer where the error bound exceeds it, in deviations of the training data; instead of q",
    "coverage": "share of answers whose error stays below its bound (default 0.9)",
    "signal": "the trust signal that draws the error map (default: the one of the model's file)",
    "binary_data_output": "true: every output as bytes behind the JSON",
}
OUTPUTS = {"state": "FP64", "error_map": "FP32", "score": "FP32", "used_solver": "BOOL", "bound": "FP64"}


class InferRequest(Strict):
    """A question: states, how far ahead, and their parameters."""

    id: str = Field("", max_length=1000)
    parameters: dict[str, Scalar] = Field(
        default_factory=dict, description="; ".join(f"{k}: {v}" for k, v in PARAMETERS.items())
    )
    inputs: list[InputTensor] = Field(description="state, horizon, params")
    outputs: list[OutputRequest] | None = Field(None, description=f"Of {', '.join(OUTPUTS)}; all that are known, by default.")


class InferResponse(Strict):
    """The answer, and in `parameters` what else is known about it."""

    model_name: str
    model_version: str
    id: str
    parameters: dict[str, Scalar]
    outputs: list[OutputTensor]


class TensorMetadata(Strict):
    """A tensor that a model takes or gives; -1 is a size of your choice."""

    name: str
    datatype: str
    shape: list[int]


class ModelMetadata(Strict):
    """What a model takes and gives."""

    name: str
    versions: list[str]
    platform: str
    inputs: list[TensorMetadata]
    outputs: list[TensorMetadata]


class ServerMetadata(Strict):
    """What the server is."""

    name: str
    version: str
    extensions: list[str]


class Fault(Strict):
    """Why there is no answer, in one sentence."""

    error: str


Part = tuple[np.ndarray, Forecast]
"""Rows, and their forecast."""


@dataclass(frozen=True)
class Question:
    """States whose future is asked for, and how."""

    states: np.ndarray  # (batch, channels, *grid), FP32 or FP64
    horizons: np.ndarray  # (batch,)
    params: np.ndarray | None  # (batch, n)
    mode: int = 2
    q: float | None = None
    tolerance: float | None = None
    coverage: float | None = None
    signal: str | None = None
    id: str = ""
    outputs: dict[str, bool] = field(default_factory=dict)  # name -> as bytes; empty: all that are known
    binary: bool = False  # all of them as bytes, where `outputs` does not say


def server_metadata() -> ServerMetadata:
    """The answer to GET /v2."""
    return ServerMetadata(name="hybridworld", version=__version__, extensions=["binary_tensor_data"])


def model_metadata(served: Served) -> ModelMetadata:
    """The answer to GET /v2/models/NAME."""
    spec = served.spec
    inputs = {"state": ("FP64", [-1, *spec.shape]), "horizon": ("FP64", [-1, 1])}
    if spec.params:
        inputs["params"] = ("FP64", [-1, len(spec.params)])
    shapes = {"state": [-1, *spec.shape], "error_map": [-1, *spec.grid]}
    return ModelMetadata(
        name=served.name,
        versions=[VERSION],
        platform="hybridworld",
        inputs=[TensorMetadata(name=name, datatype=kind, shape=shape) for name, (kind, shape) in inputs.items()],
        outputs=[TensorMetadata(name=name, datatype=kind, shape=shapes.get(name, [-1])) for name, kind in OUTPUTS.items()],
    )


# What is asked.


def read_question(served: Served, body: bytes, header: str | None, limits: Limits) -> Question:
    """The question in the body of a request, checked against the model and the limits before any work is done."""
    content, rest = split_body(body, header)
    asked = checked(InferRequest, content)
    tensors = read_tensors(asked.inputs, rest)
    states, horizons, params = checked_inputs(served, tensors, limits)
    outputs = {each.name: each.parameters.get("binary_data") for each in asked.outputs or ()}
    for name in outputs:
        if name not in OUTPUTS:
            raise Refusal(422, f"There is no output '{name[:80]}': choose {', '.join(OUTPUTS)}.{nearest(name, OUTPUTS)}")
    binary = _parameter(asked, "binary_data_output", bool, lambda value: True, "true or false", False)
    question = Question(
        states,
        horizons,
        params,
        mode=_parameter(asked, "mode", int, lambda value: value in (1, 2), "1 or 2", 2),
        q=_parameter(asked, "q", float, lambda value: 0 <= value <= 1, "a number from 0 to 1", None),
        tolerance=_parameter(asked, "tolerance", float, lambda value: 0 < value < np.inf, "a number above 0", None),
        coverage=_parameter(asked, "coverage", float, lambda value: 0 < value < 1, "a number between 0 and 1", None),
        signal=_parameter(asked, "signal", str, lambda value: True, "a name", None),
        id=asked.id,
        outputs={name: binary if wish is None else wish is True for name, wish in outputs.items()},
        binary=binary,
    )
    unknown = [name for name in asked.parameters if name not in PARAMETERS]
    if unknown:
        known = ", ".join(PARAMETERS)
        raise Refusal(422, f"There is no parameter '{unknown[0][:80]}': choose {known}.{nearest(unknown[0], PARAMETERS)}")
    if question.q is not None and question.tolerance is not None:
        raise Refusal(422, "q and tolerance are both given: a gate keeps a share, or it keeps to an error. Give one of them.")
    return question


def checked_inputs(
    served: Served, tensors: dict[str, np.ndarray], limits: Limits
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """States, horizons (batch,) and params, where they are what the model takes."""
    spec = served.spec
    for name in tensors:
        if name not in ("state", "horizon", "params"):
            raise Refusal(422, f"There is no input '{name[:80]}': give state, horizon{', params' if spec.params else ''}.")
    for name in ("state", "horizon"):
        if name not in tensors:
            raise Refusal(422, f"The input '{name}' is missing.")
    states, horizons, params = tensors["state"], tensors["horizon"], tensors.get("params")
    if states.dtype.kind != "f":
        raise Refusal(422, "The input 'state' must be FP32 or FP64.")
    if states.shape[1:] != spec.shape or not len(states):
        expected = ", ".join(map(str, spec.shape))
        raise Refusal(422, f"The input 'state' has the shape {list(states.shape)}; {served.name} takes [batch, {expected}].")
    if horizons.shape not in ((len(states), 1), (len(states),)) or horizons.dtype.kind not in "if":
        raise Refusal(422, f"The input 'horizon' must be numbers of shape [{len(states)}, 1], one per state.")
    horizons = horizons.reshape(-1).astype(np.float64)
    wrong = ~((horizons > 0) & (horizons <= limits.horizon))
    if wrong.any():
        raise Refusal(422, f"The horizon is {horizons[wrong][0]:g} frames: it must be above 0 and at most {limits.horizon}.")
    if params is not None:
        if params.dtype.kind not in "if" or params.shape != (len(states), len(spec.params)):
            names = ", ".join(each.name for each in spec.params) or "none"
            raise Refusal(422, f"The input 'params' must be numbers of shape [{len(states)}, {len(spec.params)}]: {names}.")
        params = params.astype(np.float64)
    check_physical(served, states)
    return states, horizons, params


def check_physical(served: Served, states: np.ndarray) -> None:
    """Refuse values that are not finite in the precision of networks, and states that cannot exist."""
    fits = np.abs(states) <= np.finfo(np.float32).max  # nan does not
    if not fits.all():
        row = int(np.argwhere(~fits)[0][0])
        raise Refusal(422, f"State {row} holds a value that is not finite, or beyond single precision.")
    if served.system is not None:
        served.system.check_physical(states)


def _parameter(asked: InferRequest, name: str, kind: type, allowed: Callable[[Any], bool], words: str, default: Any) -> Any:
    if name not in asked.parameters:
        return default
    value: Any = asked.parameters[name]
    if kind is float and type(value) is int and abs(value) < 2**53:
        value = float(value)
    if type(value) is not kind or not allowed(value):
        raise Refusal(422, f"The parameter '{name}' is {str(value)[:40]!r}: it must be {words}.")
    return value


# What is answered.


def forecast_of(
    model: HybridModel, question: Question, at_once: Callable[[Sequence[Steps[Part]]], list[Part]] = in_turn
) -> Steps[list[Part]]:
    """(rows, their forecast), for each horizon that was asked for; `at_once` takes the steps of several horizons together.

    The question was checked when it was read, so the model is asked as `onward` asks it.
    """
    options: dict[str, Any] = {"mode": question.mode}
    if question.q is not None:
        options["q"] = question.q
        if question.q in (0, 1):  # needs no calibration
            options["threshold"] = np.inf if question.q else -1.0
    if question.tolerance is not None:
        options |= {"tolerance": question.tolerance, "coverage": question.coverage or COVERAGE}

    def part(horizon: float, rows: np.ndarray) -> Steps[Part]:
        params = None if question.params is None else question.params[rows]
        return rows, (yield from model.steps(question.states[rows], horizon, params, **options))

    parts = [part(*asked) for asked in by_horizon(question.horizons)]
    if len(parts) == 1:
        return [(yield from parts[0])]
    return (yield Call(at_once, (parts,), network=False))


def outputs_of(model: HybridModel, question: Question, parts: list[Part]) -> dict[str, np.ndarray]:
    """The outputs that are known, or those that were asked for: an output that is wanted and not known is refused."""
    known: list[dict[str, np.ndarray | None]] = [
        {
            "state": forecast.state.astype(question.states.dtype, copy=False),
            "error_map": forecast.error_map,
            "score": forecast.score,
            "used_solver": forecast.used_solver,
            "bound": _bound(model, question, forecast),
        }
        for _, forecast in parts
    ]
    found: dict[str, np.ndarray] = {}
    for name in question.outputs or OUTPUTS:
        values = [value for part in known if (value := part[name]) is not None]
        if len(values) < len(parts):
            if question.outputs:
                raise Refusal(
                    422,
                    f"The output '{name}' is not known here: mode 1 has no error map, score or bound, and a chain, "
                    "an uncalibrated horizon and an uncalibrated signal have no bound.",
                )
            continue
        if len(parts) == 1:
            found[name] = values[0]
            continue
        joined = np.concatenate(values)
        found[name] = np.empty_like(joined)
        found[name][np.concatenate([rows for rows, _ in parts])] = joined
    return found


def facts_of(parts: list[Part]) -> dict[str, Scalar]:
    """What else is known about an answer, as scalars: seconds, the threshold where it is one, notes."""
    facts: dict[str, Scalar] = {}
    for _, forecast in parts:
        for name, seconds in forecast.seconds.items():
            key = "seconds_solver" if name == "solver" else "seconds_surrogate"
            facts[key] = float(facts.get(key, 0.0)) + seconds
    threshold = parts[0][1].threshold
    if len(parts) == 1 and threshold is not None and np.isfinite(threshold):
        facts["threshold"] = float(threshold)
    notes = dict.fromkeys(note for _, forecast in parts for note in forecast.notes)
    if notes:
        facts["notes"] = " ".join(notes)
    return facts


def _bound(model: HybridModel, question: Question, forecast: Forecast) -> np.ndarray | None:
    """Where nobody asked for a coverage, a calibration that is too small for the usual one gives no bound."""
    if question.outputs and "bound" not in question.outputs:
        return None
    if question.coverage is None and model.bound is not None and model.bound.most < COVERAGE:
        return None
    return model.error_bounds(forecast, question.coverage or COVERAGE)
