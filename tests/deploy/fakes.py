"""A model whose scores and errors are told by its states, a solver that counts what it is asked, trials in this process."""

import json

import numpy as np
import torch

from hybridworld.data.evidence import Recorded
from hybridworld.deploy.hybrid import HybridModel
from hybridworld.surrogate.bundle import Bundle, save_bundle
from hybridworld.surrogate.engines import trial
from hybridworld.trust.calibrate import calibrate
from hybridworld.trust.calibration import Calibration
from hybridworld.trust.signal import Cost, Estimate
from hybridworld.trust.step_doubling import StepDoubling
from tests.surrogate.flows import OSCILLATOR, surrogate, table, tiny

DAMPING = np.array([0.3])


class Told:
    """A signal that predicts no change; the score is the first channel of the state."""

    name, cost = "told", Cost(passes=1)

    def __call__(self, states, horizons, params):
        return Estimate(states.clone(), states[:, 0].clone())


class Solver:
    """Adds `error(states)` to the second channel, and remembers the rows that it was asked for."""

    def __init__(self, error=lambda states: 1.0):
        self.error, self.rows, self.calls = error, [], 0

    def __call__(self, states, frames, params):
        assert len(states) == len(params) and isinstance(frames, int)
        self.calls += 1
        self.rows += [row.copy() for row in states]
        answer = np.array(states, np.float64)
        answer[:, 1] += self.error(states)
        return answer


def told(scores, solver=None, bound=None):
    """Scores by horizon -> a model of the oscillator that answers as told."""
    calibration = Calibration({horizon: np.sort(values) for horizon, values in scores.items()})
    return HybridModel(surrogate(OSCILLATOR), calibration, solver or Solver(), bound, signal=Told())


def with_scores(scores):
    """States that have these scores."""
    return np.stack([scores, np.zeros(len(scores))], axis=1)


def seeded(spec):
    """A surrogate that does something, the same each time."""
    torch.manual_seed(0)
    return surrogate(spec)


def saved(path, environment, count=24):
    """A small model of the system, calibrated (without `count`: not), as a file; and the arrays that are in it."""
    net, arrays = seeded(environment.spec), {}
    if count:
        arrays = calibrate(net, StepDoubling(net, net.std), Recorded(table(environment, "val", count)), (1, 4), count)
    save_bundle(path, Bundle(net, tiny(environment.spec), arrays=arrays))
    return arrays


def tried_here(names, folder, threads):
    """What `try_engines` tells, of engines that end no process."""
    trial.main(folder, threads, names)
    return [trial.Trial(**json.loads((folder / trial.result(number)).read_text())) for number in range(len(names))]
