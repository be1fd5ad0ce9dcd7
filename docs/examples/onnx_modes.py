"""Modes 1 and 2 with ONNX Runtime and NumPy: no torch anywhere.

    hybridworld export euler2d --onnx euler2d.onnx
    python docs/examples/onnx_modes.py euler2d.onnx --horizon 16 --count 4

The solver, and the guide of a guided model, are those of hybridworld.physics, which needs NumPy and numba alone.
"""

import argparse
import json

import numpy as np
import onnxruntime

from hybridworld.physics.registry import find_system
from hybridworld.surrogate.guide import Guide


class OnnxModel:
    """A file that `hybridworld export` has written; `system` is its physical system, by default the built-in one."""

    def __init__(self, path, system=None):
        self.session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        self.inputs = [each.name for each in self.session.get_inputs()]
        self.known = json.loads(self.session.get_modelmeta().custom_metadata_map["hybridworld"])
        self.system = (system or find_system(self.known["spec"]["name"])).resolved(self.known["reference"].get("resolved", 1))
        guide = self.known["guide"]
        self.guide = guide and Guide(self.system, guide["factor"], guide["steps"], guide["scheme"])
        self.deviations = np.array(self.known["deviations"]).reshape(-1, *[1] * len(self.system.spec.grid))

    def mode1(self, states, horizon, params):
        """The surrogate alone: states (batch, channels, *grid) `horizon` frames later."""
        horizons = np.full(len(states), horizon, np.float32)
        given = {"states": states.astype(np.float32), "horizons": horizons, "params": params.astype(np.float32)}
        if self.guide:
            given["then"] = self.guide(given["states"], horizons, given["params"])
        return self.session.run(None, {name: given[name] for name in self.inputs})[0]

    def mode2(self, states, horizon, params, q=0.75):
        """Answers, who was deferred, and the scores: the solver answers where the score exceeds the threshold of q."""
        answers = self.mode1(states, horizon, params).astype(float)
        first = np.floor(horizon / 2) if horizon >= 2 else horizon / 2  # step-doubling: two halves against the whole
        twice = self.mode1(self.mode1(states, first, params), horizon - first, params)
        error_map = np.sqrt((((answers - twice) / self.deviations) ** 2).sum(axis=1))
        scores = error_map.reshape(len(states), -1).mean(axis=1)
        deferred = ~(scores <= self.threshold(horizon, q))
        if deferred.any():
            answers[deferred] = self.system.solve(states[deferred], int(horizon), params[deferred])
        return answers, deferred, scores

    def threshold(self, horizon, q):
        """From the validation scores in the file: linear in log2 of the horizon."""
        if q in (0, 1):
            return np.inf if q else -1.0
        known = self.known["calibration"]
        horizons = sorted(known["thresholds"], key=float)
        limits = [np.interp(q, known["q"], known["thresholds"][each]) for each in horizons]
        return np.interp(np.log2(horizon), np.log2([float(each) for each in horizons]), limits)


def main():
    """Answer a few questions in both modes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--horizon", type=int, default=16)
    parser.add_argument("--count", type=int, default=4)
    parser.add_argument("--q", type=float, default=0.75)
    asked = parser.parse_args()
    model = OnnxModel(asked.file)
    states, params = model.system.initials("test", range(asked.count))
    alone = model.mode1(states, asked.horizon, params)
    answers, deferred, scores = model.mode2(states, asked.horizon, params, asked.q)
    for number, (score, solver) in enumerate(zip(scores, deferred, strict=True)):
        moved = np.abs(answers[number] - alone[number]).max()
        print(
            f"test {number}: score {score:.4f}, by the {'solver' if solver else 'surrogate'}, mode 2 - mode 1 up to {moved:.3g}"
        )


if __name__ == "__main__":
    main()
