"""A model as one ONNX file, for programs that have no torch: the graph, and in its metadata all that modes 1 and 2 take.

    states, horizons[, params][, then] -> state            any number of rows; `then` is what the guide makes of the states

The metadata entry `hybridworld` is JSON: the spec of the states, the longest horizon, deviations, the guide, thresholds per
horizon and keep fraction, the reference. The file is opened with ONNX Runtime and its answers are compared with those of the
model before it gets its name.
"""

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hybridworld.data.atomic import make_place, write_atomically
from hybridworld.data.evidence import Solved
from hybridworld.deploy.hybrid import HybridModel
from hybridworld.deploy.load import assemble, calibration_of, solver_of
from hybridworld.errors import HybridWorldError, InvalidInput
from hybridworld.physics.environment import Environment
from hybridworld.physics.spec_text import spec_to_text
from hybridworld.surrogate.bundle import Bundle
from hybridworld.surrogate.engines.engine import exported
from hybridworld.surrogate.engines.in_onnxruntime import FILE, ONNXRUNTIME, write_onnx
from hybridworld.surrogate.surrogate import Surrogate
from hybridworld.surrogate.wrapped import Wrapped
from hybridworld.trust.calibrate import calibration_arrays
from hybridworld.trust.step_doubling import StepDoubling

METADATA, OUTPUT, FORMAT = "hybridworld", "state", 1
SHARES = np.round(np.linspace(0, 1, 101), 2)
"""Keep fractions whose thresholds are in the file."""
ROWS = (1, 2, 5)
"""States of the questions by which the file is checked."""
OFF = 1e-3
"""Deviations by which the answers of both may differ: orders of summation do."""


def export_onnx(bundle: Bundle, path: Path, given: Environment | None = None) -> float:
    """Write the file; returns the largest difference between its answers and the model's, in deviations."""
    import onnx

    if isinstance(bundle.surrogate, Wrapped):
        raise InvalidInput("A wrapped model is code of yours: export that itself, hybridworld has no network to write.")
    surrogate, system = bundle.surrogate.eval().cpu(), solver_of(bundle, given)
    if surrogate.config.guide and system is None:
        raise InvalidInput(f"The model of {surrogate.spec.name} is guided by the solver of its system: name it with --system.")
    questions = questions_of(surrogate, system)
    with tempfile.TemporaryDirectory() as folder:
        write_onnx(exported(surrogate, questions[1]), Path(folder))
        model = onnx.load(Path(folder) / FILE)
    rename(model, tuple(questions[1]))
    onnx.helper.set_model_props(model, {METADATA: json.dumps(described(assemble(bundle, system), bundle))})
    content = model.SerializeToString()
    off = difference(surrogate, content, questions)
    if not off <= OFF:
        raise HybridWorldError(
            f"ONNX Runtime answers differently from the model, by up to {off:.2g} deviations: {path} is not written."
        )
    write_atomically(make_place(path), content)
    return off


def check_installed() -> None:
    """Raise where a package is missing."""
    if ONNXRUNTIME.missing:
        raise InvalidInput(
            f"Export needs more packages ({', '.join(ONNXRUNTIME.missing)}): pip install 'hybrid-world-models[engines]'."
        )


def described(model: HybridModel, bundle: Bundle) -> dict[str, Any]:
    """What a program has to know beside the graph, as plain data."""
    surrogate, config = model.surrogate, bundle.config.surrogate
    calibration = calibration_of(calibration_arrays(bundle.arrays, StepDoubling.name))
    guide = None
    if config.guide:
        guide = {"factor": surrogate.backbone.factor, "steps": config.guide_steps, "scheme": config.guide_scheme}
    known: dict[str, Any] = {}
    if calibration is not None:
        known = {
            "trajectories": calibration.size,
            "q": SHARES.tolist(),
            "thresholds": {f"{h:g}": np.quantile(scores, SHARES).tolist() for h, scores in calibration.scores.items()},
        }
    return {
        "format": FORMAT,
        "spec": json.loads(spec_to_text(surrogate.spec)),
        "longest": model.longest,
        "deviations": surrogate.std.tolist(),
        "params": surrogate.sees_params,
        "guide": guide,
        "signal": StepDoubling.name,
        "calibration": known,
        "reference": bundle.reference,
        "provenance": bundle.provenance,
    }


def questions_of(surrogate: Surrogate, system: Environment | None) -> list[dict[str, Tensor]]:
    """Inputs of the graph: states of the system at random frames, or without it random numbers, at random horizons."""
    rng, spec, most = np.random.default_rng(0), surrogate.spec, max(ROWS)
    if system is not None:
        blocks = list(Solved(system.unresolved, "val").blocks(most))
        rows = torch.from_numpy(np.concatenate([block.params for block in blocks]).astype(np.float32))
        whole = np.concatenate([block.states for block in blocks])
        states = torch.from_numpy(whole[np.arange(most), :, rng.integers(0, whole.shape[2], most)].copy())
    else:
        unit, mean = (each.reshape(-1, *[1] * len(spec.grid)) for each in (surrogate.std, surrogate.mean))
        states = mean + unit * torch.from_numpy(rng.normal(size=(most, *spec.shape)).astype(np.float32))
        rows = surrogate.param_mean.expand(most, -1)
    horizons = torch.from_numpy(rng.integers(1, int(surrogate.horizons.max()) + 1, most).astype(np.float32))
    then = surrogate.ask_guide(states, horizons, rows) if surrogate.config.guide else None
    inputs = surrogate.inputs(states, horizons, rows, then)
    return [{name: values[:count].contiguous() for name, values in inputs.items()} for count in ROWS]


def difference(surrogate: Surrogate, content: bytes, questions: list[dict[str, Tensor]]) -> float:
    """The largest one between ONNX Runtime and eager torch, in deviations."""
    import onnxruntime

    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    unit, off = surrogate.std.reshape(-1, *[1] * len(surrogate.spec.grid)), 0.0
    for inputs in questions:
        (found,) = session.run([OUTPUT], {name: values.numpy() for name, values in inputs.items()})
        with torch.inference_mode():
            off = max(off, float(((torch.from_numpy(found) - surrogate.answer(**inputs)) / unit).abs().max()))
    return off


def rename(model: Any, names: tuple[str, ...]) -> None:
    """Inputs get the names of `Surrogate.inputs`, the output is `state`."""
    graph = model.graph
    new = {each.name: name for each, name in zip(graph.input, names, strict=True)} | {graph.output[0].name: OUTPUT}
    for each in (*graph.input, *graph.output):
        each.name = new[each.name]
    for node in graph.node:
        node.input[:] = [new.get(name, name) for name in node.input]
        node.output[:] = [new.get(name, name) for name in node.output]
