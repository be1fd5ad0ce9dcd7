"""What the page asks for beyond the protocol: what there is, states to begin with, states drawn by hand, true futures, files.

Forecasts come from the protocol itself, so whatever the page shows, a program can ask for.
"""

from dataclasses import asdict
from io import BytesIO
from typing import Any

import h5py
import numpy as np
from pydantic import Field

from hybridworld.deploy.answer import forecast_file
from hybridworld.deploy.chain import finished
from hybridworld.deploy.hybrid import HybridModel
from hybridworld.deploy.question import Question
from hybridworld.errors import nearest
from hybridworld.physics.brushes import Brush
from hybridworld.physics.environment import Environment, stacked
from hybridworld.physics.spec import SPLITS, Parameter, StateSpec
from hybridworld.physics.spec import Field as Quantity
from hybridworld.serve.catalogue import Catalogue, Served
from hybridworld.serve.limits import Limits, Refusal
from hybridworld.serve.protocol import check_physical, forecast_of, outputs_of, read_question
from hybridworld.serve.solvers import Solvers
from hybridworld.serve.tensors import InputTensor, Scalar, Strict, checked, read_tensors, split_body, write_answer

LEVELS = np.linspace(0, 1, 101)
BYTES = 64 * 2**20
"""The largest size of one answer, in bytes."""


class DrawRequest(Strict):
    """A gesture on a state: the input `state` (1, channels, *grid), where, and with which brush."""

    brush: str
    points: list[list[float]] = Field(description="Places in the units of the axes.")
    settings: dict[str, float] = Field(default_factory=dict)
    inputs: list[InputTensor]


class FutureRequest(Strict):
    """The true future of the input `state` (1, channels, *grid) with `params` (1, n), at each `every` frames up to `frames`."""

    frames: int
    every: int
    inputs: list[InputTensor]


# What there is.


def describe(catalogue: Catalogue, limits: Limits) -> dict[str, Any]:
    """Everything the page has to know before the first question."""
    return {
        "models": [describe_one(served) for served in catalogue.all],
        "problems": dict(catalogue.problems),
        "splits": list(SPLITS),
        "limits": {"horizon": limits.horizon, "count": limits.count, "seconds": limits.seconds},
    }


def describe_one(served: Served) -> dict[str, Any]:
    """A model or a bare system, as plain JSON."""
    spec, system, model = served.spec, served.system, served.model
    told: dict[str, Any] = {
        "name": served.name,
        "system": spec.name,
        "title": spec.title,
        "fields": [{"name": each.name, "unit": each.unit, "channels": _channels(spec, each)} for each in spec.fields],
        "channels": list(spec.channels),
        "draw": next(k for k, each in enumerate(spec.fields) if spec.draw in spec.components(each)),
        "position": _channels(spec, spec.position) if spec.position and not spec.objects else None,
        "objects": spec.objects,
        "bodies": describe_bodies(spec) if spec.position and spec.objects else None,
        "axes": [asdict(axis) for axis in spec.axes],
        "grid": list(spec.grid),
        "frame_step": spec.frame_step,
        "time_unit": spec.time_unit,
        "frames": spec.frames,
        "params": [
            {
                "name": each.name,
                "unit": each.unit,
                "meaning": each.meaning,
                "low": _low(each),
                "high": _high(each),
                "sets": spec.channels.index(each.sets) if each.sets else None,
            }
            for each in spec.params
        ],
        "kinds": {regime: list(shares) for regime, shares in spec.kinds.items()},
        "solver": system is not None,
        "brushes": [describe_brush(each) for each in served.brushes.values()],
        "longest": max(spec.horizons) if model is None else int(model.longest),
        "model": None,
    }
    if model is not None:
        told["model"] = {
            "source": "ships with the package" if served.path is None else served.path.name,
            "std": [float(value) for value in model.surrogate.std],
            "guided": served.guided,
            "signals": [{"name": name, "passes": signal.cost.passes} for name, signal in served.signals.items()],
            "trajectories": model.calibration.size if model.calibration else 0,
            "coverage": 0.0 if model.bound is None else model.bound.most,
        }
    return told


def describe_bodies(spec: StateSpec) -> dict[str, Any]:
    """The channels by which objects are drawn, chosen as in figures/scenes.py, and how those that actions drive are known."""
    assert spec.position
    pointing = [each for each in spec.fields if each.kind == "vector" and each.unit == "1"][:2]
    extent = next((each for each in spec.fields if each.kind == "extent"), None)
    velocity = next((each for each in spec.fields if each.rate_of == spec.position.name), None)
    return {
        "position": _channels(spec, spec.position),
        "velocity": _channels(spec, velocity),
        "extent": _channels(spec, extent),
        "pointing": [_channels(spec, each) for each in pointing] if len(pointing) == 2 else [],
        "driven": {"channel": spec.channels.index(spec.driven[0]), "value": spec.driven[1]} if spec.driven else None,
    }


def describe_brush(brush: Brush) -> dict[str, Any]:
    """A brush as plain data, without its function."""
    return {
        "name": brush.name, "meaning": brush.meaning, "gesture": brush.gesture,
        "settings": [asdict(each) for each in brush.settings],
    }  # fmt: skip


def thresholds(served: Served, query: dict[str, str], limits: Limits) -> dict[str, Any]:
    """q -> the threshold of a horizon; no entries for a model without calibration. No finite threshold is null."""
    horizon = _whole(query, "horizon", 1, limits.horizon)
    model = served.model
    if model is None or model.calibration is None:
        return {"q": [], "threshold": []}
    found = [model.threshold(min(horizon, model.longest), float(q)) for q in LEVELS]
    return {"q": LEVELS.tolist(), "threshold": [value if np.isfinite(value) else None for value in found]}


# States.


def start(served: Served, solvers: Solvers, query: dict[str, str], limits: Limits) -> tuple[bytes, int | None]:
    """The outputs `state` and `params` of trajectories seed, seed + 1 ... of a split, or of split `blank`, to draw on."""
    system = _system(served)
    split = query.get("split", "test")
    if split == "blank":
        params = np.array([[(_low(each) + _high(each)) / 2 for each in system.spec.params]])
        return _states(system.blank()[None], params, [{}])
    if split not in SPLITS:
        raise Refusal(422, f"Unknown split '{split[:40]}': choose one of {', '.join(SPLITS)}, or blank.")
    seed = _whole(query, "seed", 0, 2**53)
    count = _whole(query, "count", 1, limits.count)
    _check_size(count * int(np.prod(system.spec.shape)))
    frame = _whole(query, "frame", 0, system.spec.frames - 1)
    samples, states = solvers.initial(system, split, range(seed, seed + count), frame)
    return _states(states, stacked(samples)[1], [dict(sample.origin) for sample in samples])


def draw(served: Served, body: bytes, header: str | None, limits: Limits) -> tuple[bytes, int | None]:
    """The output `state` after a gesture."""
    content, rest = split_body(body, header)
    asked = checked(DrawRequest, content)
    system = _system(served)
    brush, known = served.brushes.get(asked.brush), ", ".join(served.brushes) or "none"
    if brush is None:
        raise Refusal(422, f"There is no brush '{asked.brush[:80]}': choose {known}.{nearest(asked.brush, served.brushes)}")
    if len(asked.points) > limits.points or any(len(point) != len(system.spec.axes) for point in asked.points):
        raise Refusal(422, f"A gesture has at most {limits.points} points, each with {len(system.spec.axes)} coordinates.")
    points = np.array(asked.points, float).reshape(-1, len(system.spec.axes))
    for axis, places in zip(system.spec.axes, points.T, strict=True):
        reach = axis.high - axis.low
        if not ((places >= axis.low - reach) & (places <= axis.high + reach)).all():
            raise Refusal(422, f"A point of the gesture lies far outside of {axis.name}, {axis.low:g} to {axis.high:g}.")
    state = _state(served, read_tensors(asked.inputs, rest))
    drawn = brush(state, points, asked.settings)[None]
    check_physical(served, drawn)
    return write_answer({"model_name": served.name}, {"state": drawn}, ["state"])


def future(served: Served, solvers: Solvers, body: bytes, header: str | None, limits: Limits) -> tuple[bytes, int | None]:
    """The outputs `state` (states, channels, *grid), the first of them now, and the solver's seconds in `parameters`."""
    content, rest = split_body(body, header)
    asked = checked(FutureRequest, content)
    system = _system(served)
    tensors = read_tensors(asked.inputs, rest)
    state, params = _state(served, tensors), _params(served, tensors)
    if not (1 <= asked.every <= asked.frames <= limits.horizon and asked.frames % asked.every == 0):
        raise Refusal(422, f"frames must be at most {limits.horizon}, and a whole multiple of every, which is at least 1.")
    _check_size((1 + asked.frames // asked.every) * state.size)
    states, seconds = solvers.future(system, state, asked.frames, params[0], asked.every)
    facts: dict[str, Scalar] = {"seconds_solver": seconds}
    return write_answer({"parameters": facts}, {"state": np.asarray(states, np.float64)}, ["state"])


def download(served: Served, model: HybridModel | None, what: str, body: bytes, header: str | None, limits: Limits) -> bytes:
    """HDF5 of a question of the protocol: its states (`what` is `state`), or with their forecast (`forecast`)."""
    question = read_question(served, body, header, limits)
    params = np.zeros((len(question.states), 0)) if question.params is None else question.params
    if what == "state":
        return _state_file(question.states, params)
    if what != "forecast" or model is None:
        raise Refusal(422, f"There is no file '{what[:40]}': choose state{'' if model is None else ' or forecast'}.")
    if len(set(question.horizons)) > 1:
        raise Refusal(422, "A file has one horizon: give the same for each state.")
    known = outputs_of(model, question, finished(forecast_of(model, question)))
    drawn = Question([f"drawn {k}" for k in range(len(params))], question.states, params)
    horizon = float(question.horizons[0])
    about = {"model": served.name, "horizon": horizon}
    return forecast_file(served.spec, served.system, drawn, horizon, known.pop("state"), about, known).getvalue()


# Checks.


def _system(served: Served) -> Environment:
    if served.system is None:
        raise Refusal(422, f"{served.name} has no solver: name its system with --system FILE.py:CLASS.")
    return served.system


def _state(served: Served, tensors: dict[str, np.ndarray]) -> np.ndarray:
    state = tensors.get("state")
    if state is None or state.dtype.kind != "f" or state.shape != (1, *served.spec.shape):
        raise Refusal(422, f"The input 'state' must be FP32 or FP64 of shape {[1, *served.spec.shape]}.")
    check_physical(served, state)
    return state[0].astype(np.float64)


def _params(served: Served, tensors: dict[str, np.ndarray]) -> np.ndarray:
    shape = (1, len(served.spec.params))
    params = tensors.get("params", np.zeros((1, 0)))
    if params.dtype.kind not in "if" or params.shape != shape:
        raise Refusal(422, f"The input 'params' must be numbers of shape {list(shape)}.")
    return params.astype(np.float64)


def _check_size(values: int) -> None:
    if 8 * values > BYTES:
        raise Refusal(413, f"The answer would have {8 * values} bytes, and may have {BYTES}: ask for fewer states.")


def _whole(query: dict[str, str], name: str, low: int, high: int) -> int:
    text = query.get(name, str(low))
    if not (text.isascii() and text.isdigit() and len(text) < 20 and low <= int(text) <= high):
        raise Refusal(422, f"{name} is '{text[:40]}': it must be a whole number from {low} to {high}.")
    return int(text)


def _states(states: np.ndarray, params: np.ndarray, origins: list[dict[str, Any]]) -> tuple[bytes, int | None]:
    tensors = {"state": np.asarray(states, np.float64), "params": np.asarray(params, np.float64)}
    plain = [{name: value if isinstance(value, str) else float(value) for name, value in each.items()} for each in origins]
    return write_answer({"origins": plain}, tensors, tensors)


def _state_file(states: np.ndarray, params: np.ndarray) -> bytes:
    """HDF5 that `hybridworld predict --input` reads: the datasets `state` (count, channels, *grid) and `params` (count, n)."""
    content = BytesIO()
    with h5py.File(content, "w") as file:
        file["state"], file["params"] = states, params
    return content.getvalue()


def _channels(spec: StateSpec, each: Quantity | None) -> list[int]:
    """Where a field stands among the channels; nowhere, if there is none."""
    return [spec.channels.index(name) for name in spec.components(each)] if each else []


def _low(parameter: Parameter) -> float:
    return min(low for intervals in parameter.ranges.values() for low, _ in intervals)


def _high(parameter: Parameter) -> float:
    return max(high for intervals in parameter.ranges.values() for _, high in intervals)
