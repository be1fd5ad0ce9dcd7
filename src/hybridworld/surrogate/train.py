"""The one training loop, for every system and every experiment.

    batch number k -> objective -> AdamW            k is all there is to the sampler: a batch is a pure function of (seed, k)
    after each epoch: validate, note, keep the best model; every minute: a checkpoint of everything

Run the same call again after any interruption, and it goes on; the final weights are those of an uninterrupted run.
"""

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.nn.utils import clip_grad_norm_

from hybridworld.data.atomic import make_folder, only_one_in, write_atomically
from hybridworld.data.evidence import evidence_pairs
from hybridworld.data.pairs import Batch, Evidence, GuidedBatch, Pairs, TrajectorySource
from hybridworld.errors import HybridWorldError, InvalidInput
from hybridworld.physics.environment import Environment
from hybridworld.physics.symmetry import Symmetry
from hybridworld.surrogate.backbones import Backbone
from hybridworld.surrogate.bundle import Bundle, save_bundle
from hybridworld.surrogate.checkpoint import Checkpoints, Interrupts, State
from hybridworld.surrogate.config import Config, TrainingConfig
from hybridworld.surrogate.horizons import drawn_horizons
from hybridworld.surrogate.normalisation import measure
from hybridworld.surrogate.objective import Objective, Solve, relative_to_guide
from hybridworld.surrogate.parallel import Team, team
from hybridworld.surrogate.surrogate import Surrogate
from hybridworld.surrogate.validation import in_pieces, scores, scores_of_no_change, to_tensors

MODEL, METRICS = "model.safetensors", "metrics.jsonl"
PROBE_EVERY = 5  # epochs


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
    """Runs the guide of a guided surrogate."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """Goes into the model. A run goes on only with the `data` that it names."""


@dataclass(frozen=True)
class Watch:
    """Who looks on: all of it is optional, and none of it changes the result."""

    on_start: Callable[[State], None] = lambda state: None
    on_step: Callable[[State, float], None] = lambda state, loss: None
    on_epoch: Callable[[State, dict[str, Any]], None] = lambda state, record: None
    probe: Callable[[Surrogate, Mapping[int, Batch]], Mapping[int, float]] | None = None
    """Every few epochs: a number per horizon about the surrogate, from the validation pairs (the AUROC of its error map)."""


def train(task: Task, folder: Path, watch: Watch | None = None, device: str | None = None) -> State | None:
    """Train in `folder`, or go on there. Under torchrun only the leader has an outcome; it wrote `model.safetensors`."""
    watch = watch or Watch()
    us = team(device)
    make_folder(folder)
    with only_one_in(folder, "training") if us.leads else nullcontext(), torch.random.fork_rng():
        state = run(task, folder, watch, us)
    return state if us.leads else None


def run(task: Task, folder: Path, watch: Watch, us: Team) -> State:
    """The loop."""
    training = task.config.training
    if training.batch % us.world:
        raise InvalidInput(f"training.batch is {training.batch}: {us.world} processes cannot share it evenly.")
    checkpoints = Checkpoints(folder)
    state = begin(task, checkpoints.load(task.config, task.provenance.get("data"), task.train.spec.name), us)
    objective = Objective(state.surrogate, training, task.solve, (us.rank, us.world))
    objective.unsolved = state.unsolved
    model = us.share(objective)
    horizons, probabilities = drawn_horizons(training.horizons, training.draw)
    pairs = Pairs(
        task.train, training.batch // us.world, training.seed, horizons.tolist(),
        task.symmetries if training.augment else (), training.augment, (us.rank, us.world), probabilities.tolist(),
        state.surrogate.guide,
    )  # fmt: skip
    checks: dict[int, Batch] = {}
    if us.leads:
        if not state.finished:
            checks = evidence_pairs(task.val, training.horizons, training.validation, training.seed)
            state.chosen_by = min(len(batch.states) for batch in checks.values())
        state.no_change = {h: asdict(score) for h, score in scores_of_no_change(state.surrogate, checks).items()}
        lines = (json.dumps(record) + "\n" for record in state.history)
        write_atomically(folder / METRICS, "".join(lines).encode())
        watch.on_start(state)
    parameters = [parameter for parameter in state.surrogate.parameters() if parameter.requires_grad]
    with closing(pairs.batches(state.step)) as batches, Interrupts() as interrupts, checkpoints:
        while not state.finished:
            began = time.perf_counter()
            for group in state.optimiser.param_groups:
                group["lr"] = learning_rate(training, state.step)
            batch = next(batches)
            guide = torch.from_numpy(batch.guide).to(us.device) if isinstance(batch, GuidedBatch) else None
            loss = model(*to_tensors(batch, us.device), guide)
            value = loss.item()
            state.optimiser.zero_grad()
            loss.backward()
            clip_grad_norm_(parameters, training.clip)
            state.optimiser.step()
            if state.average:
                state.average.update_parameters(state.surrogate)
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


def begin(task: Task, found: dict[str, Any] | None, us: Team) -> State:
    """The state at the first step, or the one that was saved."""
    training = task.config.training
    torch.manual_seed(training.seed)  # initial weights, and whatever a user's network draws
    measured = None if found else measure(task.train.spec, task.train, training.horizons, training.seed)
    scales = measured.scales if measured else State.scales(found or {})
    surrogate = Surrogate(task.train.spec, task.config.surrogate, scales, task.backbone).to(us.device)
    if task.config.surrogate.guide:
        if task.system is None:
            raise InvalidInput("surrogate.guide=true needs the solver of the system: name the system.")
        surrogate.attach_guide(task.system)
    state = State(task.config, surrogate, task.provenance.get("data"))
    if measured:
        state.units = {"trajectories": measured.trajectories, "relative error": float(f"{measured.error:.2g}")}
    else:
        state.restore(found or {})
    return state


def learning_rate(training: TrainingConfig, step: int) -> float:
    """A linear rise over the warm-up, then half a cosine down to zero."""
    warmup = training.warmup * training.steps_per_epoch
    if step < warmup:
        return training.lr * (step + 1) / (warmup + 1)
    return training.lr * 0.5 * (1 + math.cos(math.pi * (step - warmup) / (training.steps - warmup)))


def end_epoch(task: Task, state: State, checks: Mapping[int, Batch], folder: Path, watch: Watch) -> None:
    """Validate, note it down, keep the best model, decide whether to go on."""
    began = time.perf_counter()
    training, judged = task.config.training, state.judged
    judged.eval()
    found = scores(judged, checks)
    record: dict[str, Any] = {
        "epoch": state.epoch,
        "step": state.step,
        "lr": learning_rate(training, state.step - 1),
        "loss": state.mean_loss,
        "mse": sum(score.mse for score in found.values()) / len(found),
        "horizons": {h: asdict(score) | {"no_change": state.no_change[h]} for h, score in found.items()},
    }
    if training.weighting == "guide":
        record["relative to guide"] = mean_relative_to_guide(judged, checks)
    if state.unsolved:
        record["unsolved"] = state.unsolved
    if watch.probe and (state.epoch % PROBE_EVERY == 0 or state.epoch == training.epochs):
        record["auroc"] = dict(watch.probe(judged, checks))
    judged.train()
    record["samples_per_second"] = state.rate
    state.end_epoch(record, time.perf_counter() - began)
    if state.best_epoch == state.epoch:
        save_bundle(folder / MODEL, best_bundle(task, state))
    with (folder / METRICS).open("a") as file:
        file.write(json.dumps(record) + "\n")
    watch.on_epoch(state, record)


def mean_relative_to_guide(surrogate: Surrogate, checks: Mapping[int, Batch]) -> float:
    """Mean over the validation pairs of the square error over the guide's: what a guided training makes small."""
    with torch.no_grad():
        pieces = (piece for batch in checks.values() for piece in in_pieces(batch, surrogate.mean.device))
        return float(torch.cat([relative_to_guide(surrogate, *piece) for piece in pieces]).mean())


def best_bundle(task: Task, state: State) -> Bundle:
    """The model with the lowest validation error, as it is now."""
    record = state.history[state.best_epoch - 1]
    known = {"epoch": state.best_epoch, "seconds": round(state.seconds, 1), "units": state.units, "chosen by": state.chosen_by}
    scored = {"mse": record["mse"], "horizons": {str(h): score for h, score in record["horizons"].items()}}
    reference = task.system.identity if task.system else {}
    return Bundle(state.judged, task.config, scored, {**task.provenance, **known}, reference=reference)
