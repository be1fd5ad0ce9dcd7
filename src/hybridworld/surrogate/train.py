"""The one training loop, for every system and every experiment.

    batch number k -> objective -> AdamW            k is all there is to the sampler: a batch is a pure function of (seed, k)
    after each epoch: validate, note, keep the best model; every minute: a checkpoint of everything

Run the same call again after any interruption, and it goes on; the final weights are those of an uninterrupted run.
"""

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_

from hybridworld.data.atomic import make_folder, only_one_in, write_atomically
from hybridworld.data.evidence import Watched, evidence_pairs
from hybridworld.data.pairs import Batch, Evidence, GuidedBatch, Pairs, TrajectorySource
from hybridworld.errors import HybridWorldError, InvalidInput
from hybridworld.physics.environment import Environment, Solve
from hybridworld.physics.symmetry import Symmetry
from hybridworld.surrogate.backbones import Backbone
from hybridworld.surrogate.bundle import Bundle, save_bundle
from hybridworld.surrogate.checkpoint import Checkpoints, Interrupts, State
from hybridworld.surrogate.config import RELATIVE, Config, TrainingConfig
from hybridworld.surrogate.horizons import drawn_horizons
from hybridworld.surrogate.memory import reuse_freed_memory
from hybridworld.surrogate.normalisation import MOST, Normalisation, measure
from hybridworld.surrogate.objective import Objective, relative_to_guide
from hybridworld.surrogate.parallel import Team, team
from hybridworld.surrogate.precision import check_precision, computing_in
from hybridworld.surrogate.surrogate import Surrogate
from hybridworld.surrogate.validation import errors_of_no_change, in_pieces, to_tensors, validation_errors

MODEL, METRICS = "model.safetensors", "metrics.jsonl"
MAP_EVERY = 5
"""Epochs between two looks at the error map."""


@dataclass(frozen=True)
class Task:
    """What to train, and on what."""

    config: Config
    train: TrajectorySource
    val: Evidence
    """What chooses the best epoch; calibration and tests never see it."""
    symmetries: Sequence[Symmetry] = ()
    solve: Solve | None = None
    backbone: type[Backbone] | None = None
    system: Environment | None = None
    """The system whose solver runs the guide of a guided surrogate."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """Facts that go into the model. A run goes on only with the `data`, and `from` the model, that they name."""
    start: Bundle | None = None
    """A trained model to go on from: its weights and units, with a fresh optimiser."""
    units: int = MOST
    """Trajectories, at most, from which units are measured."""
    given: Batch | None = None
    """Pairs that half of each batch comes from, beside those that are drawn from `train`."""


@dataclass(frozen=True)
class Watch:
    """Functions that look on: each is optional, and none changes the result."""

    on_start: Callable[[State], None] = lambda state: None
    on_step: Callable[[State, float], None] = lambda state, loss: None
    on_epoch: Callable[[State, dict[str, Any]], None] = lambda state, record: None
    map_quality: Callable[[Surrogate, Mapping[int, Batch]], Mapping[int, float]] | None = None
    """Every few epochs: a number per horizon about the surrogate, from the validation pairs (the AUROC of its error map)."""
    checkpoint_due: Callable[[float], bool] | None = None
    """Whether it is time for a checkpoint, so many seconds after the last one (default: every minute)."""
    tell: Callable[[str, str], None] = lambda subject, news: None
    """What is being prepared before the first step, and how far it is: `measuring units`, `12 trajectories`."""


def train(task: Task, folder: Path, watch: Watch | None = None, device: str | None = None) -> State | None:
    """Train in `folder`, or go on there. Under torchrun only the leader has an outcome; it wrote `model.safetensors`."""
    watch = watch or Watch()
    us = team(device)
    make_folder(folder)
    with only_one_in(folder, "training") if us.leads else nullcontext(), torch.random.fork_rng():
        state = run(task, folder, watch, us)
    return state if us.leads else None


def run(task: Task, folder: Path, watch: Watch, us: Team) -> State:
    """The state of a training that has ended."""
    training = task.config.training
    if training.batch % us.world:
        raise InvalidInput(f"training.batch is {training.batch}: {us.world} processes cannot share it evenly.")
    check_precision(training.precision, us.device)
    checkpoints = Checkpoints(folder, watch.checkpoint_due)
    saved = checkpoints.load(task.config, task.provenance, task.train.spec.name)
    state = begin(task, saved, us, watch.tell if us.leads else lambda subject, news: None)
    objective = Objective(state.surrogate, training, task.solve, (us.rank, us.world))
    objective.unsolved = state.unsolved
    model = us.share(objective)
    checks: dict[int, Batch] = {}
    if us.leads:
        if not state.finished:
            evidence = Watched(
                task.val, lambda done: watch.tell("trajectories for validation", f"{done} of {training.validation}")
            )
            checks = evidence_pairs(evidence, training.horizons, training.validation, training.seed)
            state.chosen_by = min(len(batch.states) for batch in checks.values())
        state.no_change = {h: asdict(errors) for h, errors in errors_of_no_change(state.surrogate, checks).items()}
        if task.start and not state.step:
            state.began_with = validated(task, state, checks)[training.measure]
        lines = (json.dumps(record) + "\n" for record in state.history)
        write_atomically(folder / METRICS, "".join(lines).encode())
        watch.on_start(state)
    with closing(pairs_for(task, state, us).batches(state.step)) as batches, Interrupts() as interrupts, checkpoints:
        while not state.finished:
            began = time.perf_counter()
            value = update(state, model, next(batches), us)
            state.unsolved = objective.unsolved
            state.advance(value, time.perf_counter() - began)
            if not math.isfinite(value):
                raise HybridWorldError(
                    f"The loss is not finite at step {state.step}: try a smaller training.lr. What came before is in {folder}."
                )
            if us.leads:
                watch.on_step(state, value)
            if state.step % training.steps_per_epoch == 0:
                if us.leads:
                    end_epoch(task, state, checks, folder, watch)
                state.finished = us.agree(state.finished)
            if us.leads:
                checkpoints.save_if_due(state, at_once=state.finished or interrupts.asked is not None)
            interrupts.stop_if_asked()
    return state


def pairs_for(task: Task, state: State, us: Team) -> Pairs:
    """The random batches that this process learns from."""
    training = task.config.training
    horizons, probabilities = drawn_horizons(training.horizons, training.draw)
    return Pairs(
        task.train, training.batch // us.world, training.seed, horizons.tolist(),
        task.symmetries if training.augment else (), training.augment, (us.rank, us.world), probabilities.tolist(),
        state.surrogate.guide, task.given,
    )  # fmt: skip


def update(state: State, model: nn.Module, batch: Batch, us: Team) -> float:
    """One step of the optimiser; returns the loss before it."""
    training = state.config.training
    for group in state.optimiser.param_groups:
        group["lr"] = learning_rate(training, state.step)
    guide = torch.from_numpy(batch.guide).to(us.device) if isinstance(batch, GuidedBatch) else None
    with computing_in(training.precision, us.device):
        loss = model(*to_tensors(batch, us.device), guide)
    value = loss.item()
    state.optimiser.zero_grad()
    loss.backward()
    clip_grad_norm_([each for each in state.surrogate.parameters() if each.requires_grad], training.clip)
    state.optimiser.step()
    if state.average:
        state.average.update_parameters(state.surrogate)
    return value


def begin(
    task: Task, found: dict[str, Any] | None, us: Team, tell: Callable[[str, str], None] = lambda subject, news: None
) -> State:
    """The state at the first step, or the one that was saved."""
    reuse_freed_memory()
    training, start = task.config.training, task.start
    torch.manual_seed(training.seed)  # initial weights, and whatever a user's network draws
    measured = None
    if found:
        scales = Normalisation.among(found["surrogate"])
    elif start:
        scales = Normalisation.among(start.surrogate.state_dict())
    else:
        measured = measure(task.train.spec, task.train, training.horizons, training.seed, task.units, tell)
        scales = measured.scales
    surrogate = Surrogate(task.train.spec, task.config.surrogate, scales, task.backbone).to(us.device)
    if start:
        surrogate.load_state_dict(start.surrogate.state_dict())
    if task.config.surrogate.guide:
        if task.system is None:
            raise InvalidInput("surrogate.guide=true needs the solver of the system: name the system.")
        surrogate.attach_guide(task.system)
    state = State(task.config, surrogate, task.provenance)
    if found:
        state.restore(found)
    elif start:
        state.units = dict(start.provenance.get("units", {}))
    elif measured:
        state.units = {"trajectories": measured.trajectories, "relative error": float(f"{measured.error:.2g}")}
    return state


def learning_rate(training: TrainingConfig, step: int) -> float:
    """The learning rate of a step: a linear rise over the warm-up, then half a cosine down to zero."""
    warmup = training.warmup * training.steps_per_epoch
    if step < warmup:
        return training.lr * (step + 1) / (warmup + 1)
    return training.lr * 0.5 * (1 + math.cos(math.pi * (step - warmup) / (training.steps - warmup)))


def end_epoch(task: Task, state: State, checks: Mapping[int, Batch], folder: Path, watch: Watch) -> None:
    """End an epoch: validate, write the record, keep the best model, and decide whether to go on."""
    began = time.perf_counter()
    training = task.config.training
    record: dict[str, Any] = {
        "epoch": state.epoch,
        "step": state.step,
        "lr": learning_rate(training, state.step - 1),
        "loss": state.mean_loss,
        **validated(task, state, checks),
    }
    if state.unsolved:
        record["unsolved"] = state.unsolved
    if watch.map_quality and (state.epoch % MAP_EVERY == 0 or state.epoch == training.epochs):
        with evaluating(state.kept):
            record["auroc"] = dict(watch.map_quality(state.kept, checks))
    record["samples_per_second"] = state.rate
    state.end_epoch(record, time.perf_counter() - began)
    if state.best_epoch == state.epoch:
        save_bundle(folder / MODEL, best_bundle(task, state))
    with (folder / METRICS).open("a") as file:
        file.write(json.dumps(record) + "\n")
    watch.on_epoch(state, record)


def validated(task: Task, state: State, checks: Mapping[int, Batch]) -> dict[str, Any]:
    """The validation errors of the model that would be kept now: the mean over horizons, and each horizon."""
    model = state.kept
    with evaluating(model):
        found = validation_errors(model, checks)
        record: dict[str, Any] = {
            "mse": sum(errors.mse for errors in found.values()) / len(found),
            "horizons": {h: asdict(errors) | {"no_change": state.no_change[h]} for h, errors in found.items()},
        }
        if task.config.training.weighting == "guide":
            record[RELATIVE] = mean_relative_to_guide(model, checks)
    return record


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Switch off what is random in a model while it is validated."""
    model.eval()
    yield
    model.train()


def mean_relative_to_guide(surrogate: Surrogate, checks: Mapping[int, Batch]) -> float:
    """Mean over the validation pairs of the square error over the guide's: what a guided training makes small."""
    with torch.no_grad():
        pieces = (piece for batch in checks.values() for piece in in_pieces(surrogate, batch))
        return float(torch.cat([relative_to_guide(surrogate, *piece) for piece in pieces]).mean())


def best_bundle(task: Task, state: State) -> Bundle:
    """The model with the lowest validation error, as it is now; seconds and samples count all trainings that led to it."""
    record, before = state.history[state.best_epoch - 1], task.start
    known = {
        "epoch": state.best_epoch,
        "seconds": round(state.seconds + (before.provenance.get("seconds", 0) if before else 0), 1),
        "samples": record["step"] * task.config.training.batch + (samples_of(before) if before else 0),
        "units": state.units,
        "chosen by": state.chosen_by,
    }
    errors = {name: record[name] for name in ("mse", RELATIVE) if name in record}
    errors["horizons"] = {str(h): each for h, each in record["horizons"].items()}
    reference = task.system.identity if task.system else {}
    return Bundle(state.kept, task.config, errors, {**task.provenance, **known}, reference=reference)


def samples_of(bundle: Bundle) -> int:
    """Pairs that a model has learned from; older files tell the epoch alone."""
    training = bundle.config.training
    return bundle.provenance.get("samples", bundle.provenance.get("epoch", 0) * training.steps_per_epoch * training.batch)
