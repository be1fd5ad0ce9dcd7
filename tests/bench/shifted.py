"""An oscillator whose damping is stronger out of distribution, a small model of it, and a log of what that defers."""

from dataclasses import dataclass

import numpy as np

import hybridworld as hw
from hybridworld.data.deferred import DeferredLog
from hybridworld.deploy.calibrate import calibrate_bundle, calibrating_evidence
from hybridworld.surrogate.bundle import load_bundle
from hybridworld.surrogate.train import MODEL, Task, train
from hybridworld.trust.judge import Judged
from tests.surrogate.flows import Oscillator, table, tiny


@dataclass(frozen=True)
class Shifted(Oscillator):
    """Damping 0.1 to 0.5 in distribution, 2 to 3 in `ood-far`."""

    def sample(self, rng, split):
        low, high = (2.0, 3.0) if split == "ood-far" else (0.1, 0.5)
        return hw.Sample(rng.normal(size=2), np.array([rng.uniform(low, high)]))


SYSTEM = Shifted()


def trained(folder):
    """A model that has learned for a moment, so that more learning is better everywhere."""
    config = tiny(SYSTEM.spec, "surrogate.width=32", "training.epochs=1", "training.samples=6400", "training.calibration=60")
    train(Task(config, table(SYSTEM, count=256), table(SYSTEM, "val"), system=SYSTEM), folder)
    bundle = load_bundle(folder / MODEL, system=SYSTEM)
    return calibrate_bundle(bundle, "step-doubling", *calibrating_evidence(bundle, None, SYSTEM), SYSTEM)


def kept(root, answer=SYSTEM.solve, count=240, split="ood-far"):
    """A log of questions about a split; `answer` may lie."""
    log = DeferredLog(root, SYSTEM.spec, SYSTEM.identity, SYSTEM.version)
    samples = [SYSTEM.initial(split, number) for number in range(count)]
    states, params = np.stack([each.state for each in samples]), np.stack([each.params for each in samples])
    for horizon in (1, 4, 16):
        log.add(states, horizon, params, answer(states, horizon, params))
    log.flush()
    return root


def wrong(states, horizon, params):
    """Not what the solver says."""
    return -SYSTEM.solve(states, horizon, params) - 1.0


def judged(scores, errors, horizon=4):
    """Answers with these scores and errors."""
    scores, errors = np.asarray(scores, float), np.asarray(errors, float)
    return Judged(np.full(len(scores), horizon), scores, errors, errors**2, np.ones(len(scores)), np.empty((0, 3)))
