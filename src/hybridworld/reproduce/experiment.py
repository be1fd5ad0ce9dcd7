"""What the entries are measured on, for one system at one scale: data, trained models, judged pairs. Made once, then cached.

Everything lies in a cache folder under the hash of all that it depends on, so a second run finds it, an interrupted run goes
on, and a change of scale, seed, solver or setting makes anew what depends on it, and nothing else.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from hybridworld.bench.metrics import relative_errors
from hybridworld.data.atomic import make_folder, write_atomically
from hybridworld.data.dataset import Dataset
from hybridworld.data.evidence import CALIBRATING, Solved, Supplied, fresh_pairs, numbers_in_share
from hybridworld.data.generate import generate
from hybridworld.data.pairs import Batch, Evidence, Pairs, TrajectorySource
from hybridworld.data.plan import Plan
from hybridworld.data.provenance import DATASET, STREAM, provenance
from hybridworld.data.stream import Stream
from hybridworld.deploy.hybrid import HybridModel
from hybridworld.errors import HybridWorldError
from hybridworld.physics.environment import Environment
from hybridworld.physics.spec_text import spec_to_text
from hybridworld.physics.threads import thread_count
from hybridworld.reproduce.scales import Setting
from hybridworld.surrogate.bundle import Bundle, load_bundle
from hybridworld.surrogate.config import Config, configure
from hybridworld.surrogate.parallel import threads_for
from hybridworld.surrogate.surrogate import Surrogate
from hybridworld.surrogate.train import METRICS, MODEL, Task, Watch, train
from hybridworld.trust.calibration import Calibration
from hybridworld.trust.judge import judge
from hybridworld.trust.signal import Estimate, TrustSignal
from hybridworld.trust.step_doubling import StepDoubling

VERSION = 3
"""The version of the measurements: raise it when the same inputs would give other numbers."""
VARIANTS: dict[str, tuple[str, ...]] = {
    "main": (),
    "all horizons": (),
    "single horizon": ("training.horizons=64",),
    "dagger 0": ("training.dagger=0",),
    "dagger 1": ("training.dagger=1",),
    "self-consistency": ("training.objective=self-consistency", "surrogate.residual=plain"),
}
"""Name -> settings over those of the scale. `all horizons` is what ablations are compared with: like `main`, but always trained
with the budget of the ablations, also where the main model was given."""
DONE = "done"
"""The file in the folder of a training that has ended."""
STATE_ALONE, UNET = "state alone", "U-Net"
UNET_COST = {"euler2d": 5, "oregonator": 14}
"""How many times longer a training step of the paper's U-Net takes than one of `leap`, on the grids of `laptop` and a CPU."""
CACHED_AS = {"all horizons": "ladder"}
"""Variants that caches know by another name."""
STEP = StepDoubling.name


class Untrained(HybridWorldError):
    """A result takes a training that was not to be made."""


@dataclass(frozen=True)
class Cell:
    """One split and horizon: what was judged about its pairs."""

    rmse: np.ndarray  # (pairs,), of normalised states
    scores: Mapping[str, np.ndarray]  # signal -> (pairs,)
    relative: tuple[float, float]  # nRMSE and VRMSE of the predictions


@dataclass(frozen=True)
class Gated:
    """What mode 2 answered to the pairs of a cell, as it is deployed."""

    rmse: np.ndarray  # (pairs,), of normalised states
    deferred: np.ndarray  # bool (pairs,)


@dataclass
class Experiment:
    """One system at one scale, with its cache."""

    setting: Setting
    cache: Path
    given: tuple[Path, ...] = ()
    """Trained models to use instead of training: one per seed."""
    trains: bool = True
    """Is what is missing trained? Else what needs it raises `Untrained`."""
    tell: Callable[[str], None] = field(default=lambda text: None)
    held: ExitStack = field(default_factory=ExitStack)
    """Streams that stay open while the experiment is in use."""
    versions: set[str] = field(default_factory=set)
    """The versions of this package by which the results in use were measured."""
    _pairs: dict[tuple[str, tuple[int, ...]], dict[int, Batch]] = field(default_factory=dict)
    _surrogates: dict[tuple[str, int], Surrogate] = field(default_factory=dict)

    @property
    def system(self) -> str:
        """The name of the system."""
        return self.setting.environment.spec.name

    @property
    def environment(self) -> Environment:
        """The system, on the grid of the scale."""
        return self.setting.environment

    @property
    def horizons(self) -> tuple[int, ...]:
        """The paper's horizons of evaluation: all but the shortest of those of training."""
        return tuple(h for h in self.environment.spec.horizons if h > 1)

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds for which there is a model, or will be."""
        return tuple(range(len(self.given))) if self.given else self.setting.seeds

    @property
    def alike(self) -> list[tuple[str, int]]:
        """Variant and seed of runs that differ by their seed alone: main runs; where one model is given, runs of ablations."""
        if len(self.seeds) > 1:
            return [("main", seed) for seed in self.seeds]
        return [("all horizons", seed) for seed in self.setting.seeds]

    @property
    def threads(self) -> tuple[int, int]:
        """The number of threads of solvers, and of networks: times depend on them."""
        return thread_count(), threads_for(self.environment.spec)

    @cached_property
    def like_given(self) -> bool:
        """Were the models that are given, if any, trained as a training here would be?"""
        apart = {"training": {"seed", "calibration"}}
        mine = self.config("main", 0).model_dump(mode="json", exclude=apart)
        return all(load_bundle(path).config.model_dump(mode="json", exclude=apart) == mine for path in self.given)

    @cached_property
    def source(self) -> str:
        """The hash of where training pairs come from."""
        env = self.environment
        return digest(spec_to_text(env.spec), env.identity, self.setting.counts)

    @cached_property
    def key(self) -> str:
        """The hash of what every result depends on."""
        chosen = self.setting
        configs = {CACHED_AS.get(variant, variant): self.config(variant, 0).model_dump(mode="json") for variant in VARIANTS}
        files = [hashlib.sha256(path.read_bytes()).hexdigest() for path in self.given]
        return digest(VERSION, self.source, configs, self.seeds, chosen.seeds, chosen.pairs, chosen.head_steps, files)

    def remember(self, what: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """What `make` returns, plain data: from the cache, or made now and kept there."""
        what = tuple(CACHED_AS.get(part, part) if isinstance(part, str) else part for part in what)
        path = self.cache / "results" / f"{self.system}-{digest(self.key, what)}.json"
        if not path.is_file():
            noted = {"what": [self.system, self.setting.scale, *what], "found": make(), "provenance": provenance()}
            make_folder(path.parent)
            write_atomically(path, json.dumps(noted, default=str).encode())
        known = json.loads(path.read_text())
        self.versions.add(known["provenance"]["hybridworld"])
        return known["found"]

    # Models.

    def model(self, variant: str = "main", seed: int = 0) -> Bundle:
        """The trained model of a variant and seed: from the cache, given, or trained now."""
        return load_bundle(self.run(variant, seed))

    def run(self, variant: str = "main", seed: int = 0) -> Path:
        """The file of a trained model; METRICS lies beside it, unless the model was given."""
        if self.is_given(variant, seed):
            return self.given[seed]
        config, folder = self.config(variant, seed), self.folder(variant, seed)
        if not (folder / DONE).is_file():
            if not self.trains:
                raise Untrained(f"the training '{variant}' with seed {seed} has not been made")
            torch.set_num_threads(threads_for(self.environment.spec))
            with ExitStack() as stack:
                train(self.task(config, stack), folder, Watch(on_epoch=lambda state, record: self.tell(
                    f"training {variant}, seed {seed}: epoch {state.epoch} of {config.training.epochs}")))  # fmt: skip
            (folder / DONE).touch()
        return folder / MODEL

    def folder(self, variant: str, seed: int) -> Path:
        """Where a training is made."""
        config = self.config(variant, seed).model_dump(mode="json")
        return self.cache / "runs" / f"{self.system}-{digest(self.source, config)}"

    def is_given(self, variant: str, seed: int) -> bool:
        """Whether a model was given that is such a training."""
        return seed < len(self.given) and (variant == "main" or (variant == "all horizons" and self.like_given))

    def available(self, runs: Sequence[tuple[str, int]]) -> bool:
        """Whether these variants and seeds are there, or may be trained."""
        return self.trains or all(self.is_given(*run) or (self.folder(*run) / DONE).is_file() for run in runs)

    def history(self, variant: str = "main", seed: int = 0) -> list[dict[str, Any]]:
        """The records of a training, one per epoch."""
        path = self.run(variant, seed).with_name(METRICS)
        return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []

    def config(self, variant: str, seed: int) -> Config:
        """The settings of the scale, and of the variant."""
        preset, own = self.setting.preset, VARIANTS.get(variant, ())
        if variant == STATE_ALONE:
            own = ("surrogate.params=false",)
        elif variant == UNET:
            leap = self.config("main", seed).training
            samples = max(leap.samples // UNET_COST.get(self.system, 1), leap.batch)
            preset, own = "paper", (f"training.samples={samples}", "training.warmup=0")
        wishes = (*self.setting.wishes, *own, f"training.seed={seed}", "training.calibration=0")
        return configure(self.environment.spec, preset, wishes, self.environment.presets)

    def task(self, config: Config, stack: ExitStack) -> Task:
        """A training on the dataset of this scale, or straight from the solver."""
        env = self.environment
        if self.setting.counts:
            origin, kind = f"a dataset of the reproduction, {self.setting.scale}", DATASET
            source: TrajectorySource = self.dataset.source("train")
            val: Evidence = Supplied(self.dataset.source("val"), env)
        else:
            origin, kind = f"a stream from the solver of {self.system}, version {env.version}", STREAM
            source, val = stack.enter_context(Stream(env, "train")), Solved(env, "val")
        known = {
            "system": self.system,
            "source": kind,
            "data": origin,
            "seed": config.training.seed,
            "preset": self.setting.preset,
        }
        return Task(config, source, val, env.symmetries, env.solve, provenance={**known, **provenance()})

    @cached_property
    def dataset(self) -> Dataset:
        """The splits train and val, made here if they are not in the cache."""
        root = self.cache / "data" / f"{self.system}-{self.source}"
        self.tell("generating data")
        generate(Plan(self.environment, self.setting.counts), root, thread_count())
        return Dataset(root)

    def training_pairs(self, batch: int) -> Pairs:
        """Training pairs for rivals that are fitted; fields come straight from the solver, since few are needed."""
        if self.environment.spec.is_field:
            source: TrajectorySource = self.held.enter_context(Stream(self.environment, "train"))
        else:
            source = self.dataset.source("train")
        return Pairs(source, batch, seed=1, horizons=self.horizons)

    # Judged pairs.

    def pairs(self, split: str, horizons: tuple[int, ...]) -> dict[int, Batch]:
        """Horizon -> one pair per trajectory of a split; the same at each call."""
        if (split, horizons) not in self._pairs:
            self._pairs.clear()  # one split at a time is enough memory
            self.tell(f"solving {self.setting.pairs} trajectories of {split}")
            self._pairs[split, horizons] = fresh_pairs(self.environment, split, self.numbers(split), horizons)
        return self._pairs[split, horizons]

    def numbers(self, split: str) -> list[int]:
        """The trajectories that are judged; those of `val` have not chosen the epoch of any training."""
        return numbers_in_share(self.environment, split, self.setting.pairs, CALIBRATING if split == "val" else 0)

    def kinds(self, split: str) -> np.ndarray:
        """The kind of initial state of each trajectory that is judged; all are alike where a system has no kinds."""
        if not self.environment.spec.kinds:
            return np.zeros(self.setting.pairs, str)

        def look() -> list[str]:
            return [str(self.environment.initial(split, each).origin.get("kind", "")) for each in self.numbers(split)]

        return np.array(self.remember(("kinds", split), look))

    def cell(self, split: str, horizon: int, signals: Mapping[str, Callable[[], TrustSignal]] | None = None, seed: int = 0,
             variant: str = "main", horizons: tuple[int, ...] | None = None) -> Cell:  # fmt: skip
        """Pairs of a split and horizon, judged by step-doubling and by the signals given; each is cached for itself."""

        def make(name: str, signal: Callable[[], TrustSignal]) -> dict[str, Any]:
            batch = self.pairs(split, horizons or self.horizons)[horizon]
            self.tell(f"{name}, {split}, h = {horizon}")
            answers: list[np.ndarray] = []

            def look(states: torch.Tensor, estimate: Estimate, futures: torch.Tensor, error: torch.Tensor) -> None:
                answers.append(estimate.prediction.cpu().numpy())

            judged = judge(self.surrogate(variant, seed), signal(), batch, look=look)
            scores, rmse = (worst(values).tolist() for values in (judged.scores, np.sqrt(judged.mse)))
            return {"scores": scores, "rmse": rmse, "relative": relative_errors(np.concatenate(answers), batch.futures)}

        def doubling() -> TrustSignal:
            surrogate = self.surrogate(variant, seed)
            return StepDoubling(surrogate, surrogate.std)

        found = {}
        for name, signal in {STEP: doubling, **(signals or {})}.items():
            what = ("cell", variant, seed, split, horizon, horizons or self.horizons, name)
            found[name] = self.remember(what, partial(make, name, signal))
        scores = {name: np.array(each["scores"]) for name, each in found.items()}
        return Cell(np.array(found[STEP]["rmse"]), scores, tuple(found[STEP]["relative"]))

    def surrogate(self, variant: str = "main", seed: int = 0) -> Surrogate:
        """The network itself, loaded once."""
        if (variant, seed) not in self._surrogates:
            torch.set_num_threads(threads_for(self.environment.spec))
            self._surrogates[variant, seed] = self.model(variant, seed).surrogate
        return self._surrogates[variant, seed]

    def calibration(self, seed: int = 0) -> Calibration:
        """Thresholds from validation data, never from what is judged."""
        return Calibration({float(h): np.sort(self.cell("val", h, seed=seed).scores[STEP]) for h in self.horizons})

    def hybrid(self, seed: int = 0) -> HybridModel:
        """The model as it is deployed: with its thresholds and the solver that it defers to."""
        return HybridModel(self.surrogate(seed=seed), self.calibration(seed), self.environment.solve)

    def gated(self, split: str, horizon: int, q: float) -> Gated:
        """What the deployed model answers in mode 2 to the pairs of a cell."""

        def make() -> dict[str, Any]:
            model, batch = self.hybrid(), self.pairs(split, self.horizons)[horizon]
            self.tell(f"mode 2, {split}, h = {horizon}, q = {q:g}")
            forecast = model.predict(batch.states.astype(float), horizon, batch.params.astype(float), mode=2, q=q)
            rmse = rmse_of(forecast.state, batch.futures, model.surrogate.std.numpy())
            return {"rmse": worst(rmse).tolist(), "deferred": forecast.used_solver.tolist()}

        found = self.remember(("mode 2", split, horizon, q), make)
        return Gated(np.array(found["rmse"]), np.array(found["deferred"], bool))


def rmse_of(answers: np.ndarray, truth: np.ndarray, deviations: np.ndarray) -> np.ndarray:
    """Root mean square error of each normalised state: (batch, channels, *grid) -> (batch,)."""
    error = (answers - truth.astype(float)) / deviations.reshape(-1, *[1] * (truth.ndim - 2))
    return np.sqrt((error**2).mean(axis=tuple(range(1, error.ndim))))


def worst(values: np.ndarray) -> np.ndarray:
    """The values, with infinity in place of what is no number, so that it counts as the worst."""
    return np.where(np.isnan(values), np.inf, values)


def digest(*parts: Any) -> str:
    """Twelve letters that tell one set of values from another."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:12]
