"""A model that goes on learning: half of each batch is what it deferred, half is a replay of what it knows.

    log, replay -> a training from the model's weights, with its units -> a blend of old and new weights -> a calibration

A short training forgets a little of what a long one knew. Weights between the two forget less and keep most of what was learned
(Wortsman et al. 2022): the blend goes as far towards the new ones as validation data allow.

Whether the outcome is better than the model is for `bench.refine` to say.
"""

import tempfile
import time
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from hybridworld.data.dataset import Dataset
from hybridworld.data.deferred import Deferred
from hybridworld.data.evidence import Held, Recorded, Solved, Until, evidence_pairs
from hybridworld.data.manifest import data_hash
from hybridworld.data.pairs import Batch, Evidence, TrajectorySource
from hybridworld.deploy.calibrate import calibrate_bundle, calibrating_evidence, with_reference
from hybridworld.deploy.load import SIGNAL
from hybridworld.errors import InvalidInput
from hybridworld.physics.environment import Environment
from hybridworld.surrogate.backbones import BACKBONES
from hybridworld.surrogate.budget import FEWEST_CALIBRATING, pace
from hybridworld.surrogate.bundle import Bundle
from hybridworld.surrogate.checkpoint import State
from hybridworld.surrogate.config import checked
from hybridworld.surrogate.surrogate import Surrogate
from hybridworld.surrogate.train import Task, Watch, samples_of, train
from hybridworld.surrogate.validation import errors_of_no_change, in_pieces, validation_errors
from hybridworld.trust.calibrate import calibrated_signals
from hybridworld.trust.signal import Estimate, distance
from hybridworld.trust.step_doubling import StepDoubling

ANEW = 3_000_000
"""The first trajectory of `train` that is solved for a replay: no training comes so far, so these are new to the model."""
JUDGING = 2_000_000
"""The first trajectory of `val` that judges a candidate: others have chosen epochs and calibrated."""
MEMORY = 500_000_000
"""Bytes of a replay, at most."""
FEWEST, MOST = 8, 8192
"""The fewest and the most trajectories that are replayed, so that a model does not forget."""
VALIDATION = 32, 512
"""Trajectories that choose the blend, fields and state vectors; there is one epoch, so they choose nothing else."""
GENTLE, WARMUP = 0.1, 0.05
"""The learning rate begins at that share of the training's; the share of the steps in which it rises to it."""
TIMED_SHARE = 0.03
"""The share of the seconds in which steps are timed."""
LINES = 10
"""How often a training says how far it is."""
BLENDS = (1.0, 0.75, 0.5, 0.35, 0.25, 0.15)
"""How far from the old weights to the new ones."""

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Replay:
    """What a model shall not forget: trajectories like those that it was trained on, and others that calibrate and judge."""

    train: TrajectorySource
    val: Evidence
    judging: Evidence
    calibrating: Evidence
    calibrated_by: str
    """Where these come from, for the provenance."""
    origin: str

    @classmethod
    def solved(cls, bundle: Bundle, system: Environment, seconds: float, tell: Tell) -> "Replay":
        """A replay solved by the system's own solver, as large as `seconds` and memory allow."""
        spec = system.spec
        most = min(max(MEMORY // (4 * spec.frames * prod(spec.shape)), FEWEST), MOST)
        tell(f"replay: trajectories are solved, for {seconds:.0f} seconds")
        blocks = list(Until(Solved(system, "train", ANEW), time.monotonic() + seconds, FEWEST).blocks(most))
        origin = f"{sum(len(block.states) for block in blocks)} trajectories from the solver"
        judging, calibrating = Solved(system, "val", JUDGING), calibrating_evidence(bundle, None, system)
        return cls(Held(spec, blocks), Solved(system, "val"), judging, *calibrating, origin)

    @classmethod
    def recorded(cls, data: Path, bundle: Bundle, system: Environment | None) -> "Replay":
        """The split `train` of a dataset; where there is no solver, its `val` calibrates and its `test` judges."""
        dataset, spec = Dataset(data), bundle.surrogate.spec
        if (dataset.spec.name, dataset.spec.channels, dataset.spec.grid) != (spec.name, spec.channels, spec.grid):
            raise InvalidInput(f"{data} holds {dataset.spec.name} on {dataset.spec.grid}, the model is about {spec.name}.")
        needed = ("train",) if system else ("train", "val", "test")
        for split in needed:
            if split not in dataset.splits:
                raise InvalidInput(f"{data} has no split '{split}' to refine with: there is {', '.join(dataset.splits)}.")
        train, calibrating = dataset.source("train"), calibrating_evidence(bundle, data, system)
        origin = f"a dataset with the sha256 {data_hash(data)}"
        if system is not None:
            with_reference(system, dataset, data)
            return cls(train, Solved(system, "val"), Solved(system, "val", JUDGING), *calibrating, origin)
        val = Recorded(dataset.source("val"), end=max(1, dataset.count("val") // 2))
        return cls(train, val, Recorded(dataset.source("test")), *calibrating, origin)


def retrained(
    bundle: Bundle,
    deferred: Deferred,
    replay: Replay,
    system: Environment | None,
    seconds: float,
    told: Mapping[str, Any],
    tell: Tell,
) -> Bundle:
    """The model after so many seconds of training on both; it has no calibration yet, and the settings that it had.

    What is `told` about it joins the list `refined` of its provenance.
    """
    training, name, grid = bundle.config.training, bundle.config.surrogate.backbone, bool(bundle.surrogate.spec.grid)
    known = {name: value for name, value in bundle.provenance.items() if name != "worth"}  # that was another model
    task = Task(
        bundle.config, replay.train, replay.val, system.symmetries if system else (), system.solve if system else None,
        None if name in BACKBONES else type(bundle.surrogate.backbone), system, known, start=bundle, given=deferred.pairs,
    )  # fmt: skip
    tell("timing the training: a few steps")
    steps = steps_within(task, seconds)
    settings = training.model_dump() | {
        "epochs": 1, "samples": steps * training.batch, "patience": 1, "warmup": WARMUP, "lr": GENTLE * training.lr,
        "validation": min(training.validation, VALIDATION[0 if grid else 1]),
    }  # fmt: skip
    task = replace(task, config=checked({"surrogate": bundle.config.surrogate.model_dump(), "training": settings}))
    tell(f"training: {steps} steps of {training.batch} pairs, half of them from the log")

    def on_step(state: State, loss: float) -> None:
        if state.step % max(steps // LINES, 1) == 0:
            tell(f"training: {state.step} of {steps} steps")

    with tempfile.TemporaryDirectory() as folder:
        state = train(task, Path(folder), Watch(on_step=on_step))
    assert state is not None
    share, surrogate, scored = blended(bundle.surrogate, state.kept.eval(), task)
    tell(f"blend: {share:.0%} of the way from the old weights to the new ones")
    known |= {"samples": samples_of(bundle) + steps * training.batch}
    known["refined"] = [*known.get("refined", []), {**told, "steps": steps, "blend": share}]
    return Bundle(surrogate, bundle.config, scored, known, {}, bundle.reference)


def steps_within(task: Task, seconds: float) -> int:
    """The number of training steps that fit into so many seconds, measured on a few steps that are discarded."""
    each, _ = pace(task, TIMED_SHARE * seconds)
    return max(int((1 - TIMED_SHARE) * seconds / (each * task.config.training.batch)), 1)


def blended(old: Surrogate, new: Surrogate, task: Task) -> tuple[float, Surrogate, dict[str, Any]]:
    """The surrogate farthest towards the new one that validates no worse than the old one, else the least far.

    Returns how far that is, the surrogate, and its validation scores.
    """
    training = task.config.training
    checks = evidence_pairs(task.val, training.horizons, training.validation, training.seed)
    before, after, surrogate = mean_errors(old, checks), new.state_dict(), deepcopy(new)
    for share in BLENDS:
        mixed = {name: torch.lerp(weights, after[name], share) for name, weights in old.state_dict().items()}
        surrogate.load_state_dict(mixed)
        if float((mean_errors(surrogate, checks) / before).mean()) <= 1:
            break
    found, no_change = validation_errors(surrogate, checks), errors_of_no_change(old, checks)
    rows = {str(h): asdict(errors) | {"no_change": asdict(no_change[h])} for h, errors in found.items()}
    return share, surrogate, {"mse": sum(errors.mse for errors in found.values()) / len(found), "horizons": rows}


def mean_errors(surrogate: Surrogate, checks: Mapping[int, Batch]) -> Tensor:
    """One number per horizon: the mean of the errors that scores estimate."""
    found = []
    with torch.inference_mode():
        for batch in checks.values():
            errors = [
                Estimate(futures, distance(surrogate(states, horizons, params), futures, surrogate.std)).score
                for states, horizons, params, futures in in_pieces(surrogate, batch)
            ]
            found.append(torch.cat(errors).mean())
    return torch.stack(found)


def recalibrated(
    bundle: Bundle, like: Bundle, replay: Replay, system: Environment | None, deadline: float, tell: Tell
) -> Bundle:
    """The model, calibrated for each signal that `like` is calibrated for; with few trajectories after the deadline."""
    count = like.config.training.calibration or FEWEST_CALIBRATING
    for signal in calibrated_signals(like.arrays) or (StepDoubling.name,):
        evidence = Until(replay.calibrating, deadline, FEWEST_CALIBRATING)
        tell(f"calibrating: {signal}")
        bundle = calibrate_bundle(bundle, signal, evidence, replay.calibrated_by, system, count)
    kept = {SIGNAL: like.provenance[SIGNAL]} if SIGNAL in like.provenance else {}
    return replace(bundle, provenance={**bundle.provenance, **kept})
