"""`hybridworld predict`: the main job. States in, forecasts out, with what is known about each of them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from rich.console import Console
from rich.table import Table

from hybridworld.app.progress import stderr
from hybridworld.data.atomic import make_folder
from hybridworld.data.provenance import provenance
from hybridworld.data.room import check_memory
from hybridworld.data.trajectory import with_params
from hybridworld.data.well import file_image
from hybridworld.data.well_file import WellFile, opened
from hybridworld.deploy.forecast import Forecast, forecast_page
from hybridworld.deploy.hybrid import KEEP, HybridModel
from hybridworld.errors import InvalidInput
from hybridworld.physics.arguments import checked_params, checked_states
from hybridworld.physics.environment import Sample
from hybridworld.physics.spec import StateSpec

FORECAST = "forecast"
"""The group of a file that says what its last frame is."""

WAIT, COPIES = 100_000, 8
"""Frames that are solved at most before a forecast, and arrays like the states that are in memory together."""


@dataclass(frozen=True)
class Request:
    """How to answer."""

    horizon: float
    mode: int
    q: float | None
    coverage: float | None  # of error bounds; none: 0.9, or as much as the calibration can promise
    check: bool  # ask the solver for the truth about all of them
    tolerance: float | None = None  # instead of q
    error_map: bool = False  # in mode 1 as well

    @property
    def options(self) -> dict[str, Any]:
        """As `HybridModel.predict` takes them."""
        return {name: getattr(self, name) for name in ("mode", "q", "tolerance", "coverage", "error_map")}


@dataclass(frozen=True)
class Question:
    """States whose future is asked for."""

    names: Sequence[str]
    states: np.ndarray  # (count, channels, *grid)
    params: np.ndarray  # (count, number of spec.params)


@dataclass(frozen=True)
class Answer:
    """A forecast, what the surrogate alone would have said, and the truth if it was asked for."""

    forecast: Forecast
    surrogate: np.ndarray  # (count, channels, *grid)
    error_bounds: np.ndarray | None = None  # (count,)
    truth: np.ndarray | None = None
    errors: np.ndarray | None = None  # (count,), of the forecast
    surrogate_errors: np.ndarray | None = None  # (count,)


def predict_to_files(name: str, model: HybridModel, question: Question, request: Request, out: Path) -> dict[str, Any]:
    """Answer, write it as HDF5 and as a picture, and return what there is to tell."""
    make_folder(out)
    with stderr.status("warming up") as status:
        if request.tolerance is None:
            model.predict(question.states[:1], request.horizon, question.params[:1], request.mode, threshold=-1.0)
            model.predict(question.states, request.horizon, question.params, request.mode, threshold=np.inf)
        else:
            model.predict(question.states[:1], request.horizon, question.params[:1], **request.options)
            model.solve(question.states[:1], request.horizon, question.params[:1])
        status.update(f"{len(question.names)} forecasts")
        answer = ask(model, question, request)
        status.update("writing")
        stem = f"{model.spec.name}-h{request.horizon:g}-mode{request.mode}"
        files = {"data": out / f"{stem}.hdf5", "picture": out / f"{stem}.png"}
        told = describe(name, model, question, answer, request)
        version = model.system.version if model.system else "none"
        write_forecasts(files["data"], model.spec, version, question, answer, told)
        forecast, title = answer.forecast, f"{model.spec.name}, {request.horizon:g} frames ahead"
        shown = (answer.surrogate, forecast.used_solver, forecast.error_map, answer.truth)
        forecast_page(model, question.names, question.states, *shown, title).savefig(files["picture"])
    return told | {"files": {kind: str(path) for kind, path in files.items()}}


# What is asked.


def from_split(
    model: HybridModel, split: str, seed: int, count: int, frame: int, changes: Mapping[str, float] | None = None
) -> Question:
    """Trajectories seed, seed + 1 ... of a split, `frame` frames after their beginning; `changes` replace what was drawn."""
    environment = model.system
    if environment is None:
        raise InvalidInput(
            f"There is no solver for {model.spec.name} to make states: give --input FILE, or --system FILE.py:CLASS."
        )
    if frame < 0:
        raise InvalidInput(f"The frame is {frame}: it must be 0 or more.")
    if frame > WAIT:
        raise InvalidInput(f"The frame is {frame:,}: at most {WAIT:,} frames are solved before a forecast.")
    check_memory(COPIES * 8.0 * count * np.prod(model.spec.shape), f"{count:,} forecasts", "ask for fewer with --count")
    samples = [environment.initial(split, number) for number in range(seed, seed + count)]
    states, params = (np.stack([getattr(sample, part) for sample in samples]) for part in ("state", "params"))
    params = with_params(model.spec, params, changes or {})
    if frame and environment.semigroup:
        states = environment.solve(states, frame, params)
    elif frame:
        *_, states = environment.trajectory(states, frame, params)  # on the finer grid throughout
    return Question([f"{split} {number}" for number in range(seed, seed + count)], states, params)


def from_file(path: Path, spec: StateSpec, frame: int | None, changes: Mapping[str, float] | None = None) -> Question:
    """States in the layout of The Well (one of their frames), or as two datasets: `state` (count, ...) and `params`.

    By default the frame is the last one of a file that holds a forecast, which so goes on, and the first one of others.
    """
    states, params = _plain(path) or _well(path, spec, frame)
    batch, _ = checked_states(spec, states)
    if changes:
        names = [each.name for each in spec.params]
        if params is None and any(name not in changes for name in names):
            raise InvalidInput(f"{path} has no params: give all of {', '.join(names)} with --param.")
        params = with_params(spec, np.zeros((len(batch), len(names))) if params is None else params, changes)
    return Question([f"{path.stem} {row}" for row in range(len(batch))], batch, checked_params(spec, params, len(batch)))


def _plain(path: Path) -> tuple[np.ndarray, np.ndarray | None] | None:
    """What the datasets `state` and `params` of a file hold; None where there is no `state`."""
    with opened(path) as file:
        if "state" not in file:
            return None
        return _numbers(path, file["state"]), _numbers(path, file["params"]) if "params" in file else None


def _numbers(path: Path, values: h5py.Dataset | h5py.Group) -> np.ndarray:
    kind = getattr(values, "dtype", None)
    if kind is None or kind.kind not in "fiu":
        raise InvalidInput(
            f"{path}: {values.name} is {'a group' if kind is None else kind}; expected a dataset of real numbers."
        )
    return values[()].astype(np.float64)


def _well(path: Path, spec: StateSpec, frame: int | None) -> tuple[np.ndarray, np.ndarray]:
    file = WellFile(path)
    if file.spec.shape != spec.shape:
        raise InvalidInput(f"{path} holds states of shape {file.spec.shape}; those of {spec.name} have shape {spec.shape}.")
    with opened(path) as content:
        default = file.spec.frames - 1 if FORECAST in content else 0
    frame = default if frame is None else frame
    if not -file.spec.frames <= frame < file.spec.frames:
        raise InvalidInput(f"The frame is {frame}: {path} has the frames 0 to {file.spec.frames - 1}.")
    states = np.empty((file.count, *spec.shape))
    for row, state in enumerate(states):
        file.fill(state, row, frame % file.spec.frames)
    return states, file.params


# What is answered.


def ask(model: HybridModel, question: Question, request: Request) -> Answer:
    """The forecast, and what it takes to judge it."""
    inputs = (question.states, request.horizon, question.params)
    forecast = model.predict(*inputs, **request.options)
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
        gate |= {"q": KEEP if request.q is None else request.q} if request.tolerance is None else promised(model, request)
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


def promised(model: HybridModel, request: Request) -> dict[str, Any]:
    """The tolerance, and what the validation data say about it; None where there is no bound."""
    assert request.tolerance is not None
    found = model.delivers(request.horizon, request.tolerance, request.coverage)
    shares = {} if found is None else {name: None if np.isnan(value) else value for name, value in asdict(found).items()}
    return {"tolerance": request.tolerance, "validation": shares or None}


def finite(value: float | None) -> float | None:
    """The value if it is a finite number."""
    return value if value is not None and np.isfinite(value) else None


# How it is told.


def show(told: dict[str, Any]) -> None:
    """A table with a row per trajectory, and a line about all."""
    rows = told["trajectories"]
    titles = {
        "score": "score",
        "error_bound": f"bound {told.get('coverage', 0):.0%}",
        "surrogate_error": "surrogate's error",
        "error": "error",
    }
    shown = {key: title for key, title in titles.items() if key in rows[0]}
    table = Table("", "by", *shown.values(), "ms", box=None, header_style="dim", padding=(0, 0, 0, 2))
    for row in rows:
        numbers = (f"{row[key]:.3g}" for key in shown)
        who = "solver" if row["used_solver"] else "surrogate"
        table.add_row(row["name"], who, *numbers, f"{1e3 * row['seconds']:.3g}")
    console = Console(highlight=False)
    console.print(f"[bold]{told['system']}[/bold]  {told['horizon']:g} frames ahead, mode {told['mode']}", soft_wrap=True)
    console.print(table)
    if told["mode"] == 2:
        console.print(f"  {told['deferred']} of {len(rows)} went to the solver: {why_deferred(told)}", soft_wrap=True)
        if "tolerance" in told:
            console.print(f"  {promise_in_words(told)}", soft_wrap=True)
        rest = f"thresholds and bounds rest on {told['calibrated_by']:,} validation trajectories"
        console.print(f"  {rest}, judged by {told['signal']}", soft_wrap=True)
    parts = ", ".join(f"{part} {1e3 * seconds:.3g} ms" for part, seconds in told["seconds"].items())
    console.print(f"  {parts}, after a warm-up; engine: {told['engine']}", soft_wrap=True)
    if "error" in rows[0]:
        before, after = (np.sqrt(np.mean([row[key] ** 2 for row in rows])) for key in ("surrogate_error", "error"))
        console.print(f"  rms error {after:.3g}, of the surrogate alone {before:.3g}", soft_wrap=True)
    for note in told["notes"]:
        console.print(f"  [yellow]note:[/yellow] {note}", soft_wrap=True)
    if shown:
        console.print("  [dim]scores and errors in deviations of the training data[/dim]")
    for path in told["files"].values():
        console.print(f"  {path}", soft_wrap=True, markup=False)


def why_deferred(told: dict[str, Any]) -> str:
    """The thresholds, of each link where the forecast is a chain."""
    if "tolerance" in told:
        return f"no bound promises {told['tolerance']:g} for them"
    if told["links"]:
        parts = (
            f"{link['deferred']} at h = {link['horizon']:g}"
            + ("" if link["threshold"] is None else f" (above {link['threshold']:.3g})")
            for link in told["links"]
        )
        return f"{', then '.join(parts)}, q = {told['q']:g}"
    if told["threshold"] is None:
        return "no score is too high"
    return f"their scores exceed {told['threshold']:.3g} (q = {told['q']:g} of the validation data)"


def promise_in_words(told: dict[str, Any]) -> str:
    """What a tolerance promises, what the validation data say about the accepted answers, and with a check, what came true."""
    most, tolerance, known = f"{1 - told['coverage']:.3g}", told["tolerance"], told["validation"]
    said = f"promised: of all answers a share of at most {most} exceeds {tolerance:g}"
    if known and known["exceeding_accepted"] is not None:
        said += f"; of the accepted validation answers {known['exceeding_accepted']:.1%} do, of all {known['exceeding']:.1%}"
    errors = [row["error"] for row in told["trajectories"] if not row["used_solver"] and "error" in row]
    if errors:
        said += f"; here {sum(error > tolerance for error in errors)} of {len(errors)} accepted ones"
    return said


def write_forecasts(
    path: Path, spec: StateSpec, version: str, question: Question, answer: Answer, told: dict[str, Any]
) -> None:
    """Start and forecast as the two frames of trajectories in The Well's layout; all else in the group `forecast`."""
    forecast = answer.forecast
    leap = replace(spec, frame_step=spec.frame_step * told["horizon"], frames=2)
    rows = zip(question.names, question.states, question.params, strict=True)
    samples = [Sample(state, params, {"name": name}) for name, state, params in rows]
    states = np.stack([question.states, forecast.state], axis=1)
    path.write_bytes(file_image(leap, version, "forecast", range(len(samples)), samples, states, "float64").data)
    known = {
        "used_solver": forecast.used_solver,
        "score": forecast.score,
        "error_map": forecast.error_map,
        "error_bound": answer.error_bounds,
        "error": answer.errors,
        "truth": answer.truth,
        "surrogate": answer.surrogate,
    }
    with h5py.File(path, "a") as file:
        group = file.create_group(FORECAST)
        group.attrs.update(description=json.dumps(told), provenance=json.dumps(provenance()))
        for name, values in known.items():
            if values is not None:
                group[name] = values
