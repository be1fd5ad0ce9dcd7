"""Is a model better after it has learned from what it deferred? Judged on what neither of the two has learned from.

    deferred            pairs of the log whose trajectories are held out; their answers are solved anew where there is a solver
    in distribution     trajectories of `val`, or of a dataset's `test`, that have chosen and calibrated nothing

Both models answer the same questions, so errors are compared trajectory by trajectory. A candidate replaces a model only if the
whole 95 % interval of the ratio of errors says so: below 1 on what was deferred, at most MARGIN above 1 in distribution.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from hybridworld.bench.intervals import LOG, Interval, bootstrap_weights, ratio_interval
from hybridworld.data.deferred import Deferred, read_log
from hybridworld.data.evidence import fresh_pairs, numbers_in_share, pairs_of
from hybridworld.data.pairs import Batch, Evidence
from hybridworld.data.provenance import provenance
from hybridworld.deploy.deferral import KEEP
from hybridworld.deploy.hybrid import HybridModel
from hybridworld.deploy.load import assemble, solver_of
from hybridworld.deploy.refine import Replay, Tell, recalibrated, retrained
from hybridworld.errors import InvalidInput
from hybridworld.physics.environment import Environment
from hybridworld.surrogate.bundle import Bundle
from hybridworld.surrogate.wrapped import Wrapped
from hybridworld.trust.calibration import flagged
from hybridworld.trust.judge import Judged, judge

MARGIN = 0.05
"""How much larger errors in distribution may be, with the whole interval: what is below is noise to a user."""
FEWEST = 20
"""Trajectories that judge, of each kind: fewer can show nothing."""
JUDGES = 256, 2048
"""Trajectories that judge in distribution, fields and state vectors, at most; and pairs of the log that are solved anew."""
WRONG, ALLOWED = 0.02, 0.1
"""An answer in a log is wrong if the solver's own is that far from it, in deviations; a log may hold that share of them."""
AIM, REPLAY, EVIDENCE, CALIBRATION = 0.97, 0.1, 0.08, 0.1
"""Of a budget: what is given away, and the shares of its parts, of which evidence has two; the rest is for training."""
PIECE = 64
"""Pairs of a log that are solved anew together."""
LEAST = 0.3
"""The share of a budget that training gets at least."""
DRAWS = 400


@dataclass(frozen=True)
class Compared:
    """Answers of two models to the same questions, one row per pair; `trajectories` tells which pairs belong together."""

    before: Judged
    after: Judged
    trajectories: np.ndarray

    @property
    def count(self) -> int:
        """The number of independent trajectories."""
        return len(np.unique(self.trajectories))

    def ratio(self) -> Interval:
        """Errors after over errors before; each octave of horizons counts by its number of pairs, not by its errors' size."""
        units = np.empty(len(self.before.errors))
        octaves = np.round(np.log2(self.before.horizons))
        for octave in np.unique(octaves):
            units[octaves == octave] = max(self.before.errors[octaves == octave].mean(), 1e-12)
        return ratio_interval(self.after.errors / units, self.before.errors / units, self.trajectories, LOG)


@dataclass(frozen=True)
class Gated:
    """Two gates on the same questions: what they defer, and how wrong what they keep is; means over horizons."""

    deferral: tuple[float, float]
    """By the calibrated thresholds of each."""
    kept_error: tuple[float, float]
    equal_error: tuple[float, float]
    """The least that each has to defer so that the answers that it keeps are no more wrong than those that the first keeps."""
    fall: Interval
    """1 - the second of these over the first."""


def gated(compared: Compared, before: HybridModel, after: HybridModel, q: float = KEEP) -> Gated:
    """Both gates at the keep fraction q, and the deferral at equal error."""
    horizons = np.unique(compared.before.horizons)
    rows = [compared.before.horizons == h for h in horizons]
    old, new = ([each.of(some) for some in rows] for each in (compared.before, compared.after))
    limits = [[model.threshold(h, q) for h in horizons] for model in (before, after)]
    shares = [
        np.mean([flagged(each.scores, limit).mean() for each, limit in zip(judged, limit_of, strict=True)])
        for judged, limit_of in zip((old, new), limits, strict=True)
    ]
    errors = [
        np.nanmean([_mean(each.errors[~flagged(each.scores, limit)]) for each, limit in zip(judged, limit_of, strict=True)])
        for judged, limit_of in zip((old, new), limits, strict=True)
    ]
    groups = np.unique(compared.trajectories, return_inverse=True)[1]
    weights = np.concatenate([np.ones((1, len(groups))), bootstrap_weights(groups, DRAWS)])
    found = [
        _at_equal_error(a, b, limit, weights[:, some]) for a, b, limit, some in zip(old, new, limits[0], rows, strict=True)
    ]
    first, second = (np.mean([each[part] for each in found], axis=0) for part in (0, 1))
    falls = (first - second) / np.maximum(first, 1e-12)  # 0 where neither defers anything
    low, high = np.quantile(falls[1:], (0.025, 0.975))
    return Gated(
        (float(shares[0]), float(shares[1])), (float(errors[0]), float(errors[1])),
        (float(first[0]), float(second[0])), Interval(float(falls[0]), float(low), float(high)),
    )  # fmt: skip


def _at_equal_error(old: Judged, new: Judged, limit: float, weights: np.ndarray) -> list[np.ndarray]:
    """The least deferral of each at which its kept answers are no more wrong than those of the old at its limit: (draws,)."""
    kept = ~flagged(old.scores, limit)
    allowed = (weights[:, kept] @ old.errors[kept]) / np.maximum(weights[:, kept].sum(axis=1), 1e-12)
    found = []
    for judged in (old, new):  # both choose a threshold with hindsight, so that neither gains by it
        order = np.argsort(judged.scores, kind="stable")
        sizes = np.cumsum(weights[:, order], axis=1)
        errors = np.cumsum(weights[:, order] * judged.errors[order], axis=1) / np.maximum(sizes, 1e-12)
        most = np.where((errors <= allowed[:, None] * (1 + 1e-9)) & (sizes > 0), sizes, 0).max(axis=1)
        found.append(1 - most / sizes[:, -1])
    return found


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else float("nan")


@dataclass(frozen=True)
class Refinement:
    """The outcome of a refinement: the candidate, and the evidence for and against it."""

    bundle: Bundle
    """The refined model, which may replace the one before."""
    learned: int
    """Pairs of the log that it has learned from."""
    deferred: Compared
    known: Compared
    """Both models on trajectories in distribution."""
    gates: Gated
    """The gates of both models on trajectories in distribution."""

    @property
    def better(self) -> bool:
        """Whether the error on deferred states has fallen: its whole 95 % interval lies below that of the model before."""
        return self.deferred.ratio().high < 1

    @property
    def no_worse(self) -> bool:
        """Whether the error in distribution has grown by no more than MARGIN, at the upper end of its 95 % interval."""
        return self.known.ratio().high <= 1 + MARGIN

    @property
    def accepted(self) -> bool:
        """Whether the candidate may replace the model."""
        return self.better and self.no_worse


def refine(
    bundle: Bundle,
    log: Path,
    minutes: float,
    began: float,
    data: Path | None = None,
    given: Environment | None = None,
    tell: Tell = lambda what: None,
) -> Refinement:
    """Train a candidate on a log within a budget that runs since `began` (of time.monotonic), and compare it with the model."""
    budget = 60 * minutes
    surrogate, system = bundle.surrogate, solver_of(bundle, given)
    if isinstance(surrogate, Wrapped):
        raise InvalidInput("A wrapped model was not trained here, so it cannot be refined here: train it where it comes from.")
    if system is None and data is None:
        raise InvalidInput(f"There is no solver for {surrogate.spec.name} to replay: give --data DIR, or name its --system.")
    before = assemble(bundle, system)
    if before.calibration is None:
        raise InvalidInput(f"The model of {before.spec.name} has no validation scores to compare with: run `calibrate` first.")
    pairs = read_log(log, surrogate.spec, bundle.reference if system is None else system.identity)
    pairs = pairs.of(pairs.pairs.horizons <= float(surrogate.horizons.max()))
    held, learned = pairs.of(pairs.held_out), pairs.of(~pairs.held_out)
    for some in (held, learned):
        if len(set(some.trajectories)) < FEWEST:
            raise InvalidInput(
                f"{log} has {len(pairs)} answers about {len(set(pairs.trajectories))} trajectories, of which "
                f"{len(set(held.trajectories))} are held out to judge: at least {FEWEST} are needed there; keep more."
            )
    tell(f"log: {len(learned)} pairs to learn from, {len(held)} held out")
    deferred, first = ask(before, from_log(held, system, surrogate.std.cpu().numpy(), log), EVIDENCE * budget)
    if data is not None:
        replay = Replay.recorded(data, bundle, system)
    else:
        assert system is not None
        replay = Replay.solved(bundle, system, REPLAY * budget, tell)
    tell("evidence in distribution")
    known, second = ask(before, fresh(replay.judging, bundle), EVIDENCE * budget)
    spent, judging = time.monotonic() - began, first + second  # which it takes once more in the end
    seconds = max((AIM - CALIBRATION) * budget - spent - judging, LEAST * budget)
    told = {"learned": len(learned), "minutes": minutes, "replay": replay.origin, **provenance()}
    candidate = retrained(bundle, learned, replay, system, seconds, told, tell)
    candidate = recalibrated(candidate, bundle, replay, system, began + AIM * budget - judging, tell)
    tell("comparing")
    after = assemble(candidate, system)
    in_distribution = known.compared(after)
    return Refinement(candidate, len(learned), deferred.compared(after), in_distribution, gated(in_distribution, before, after))


@dataclass(frozen=True)
class Questions:
    """Pairs that judge, the trajectories that they belong to, and what the model before makes of them."""

    pairs: Batch
    trajectories: np.ndarray
    before: Judged

    def compared(self, after: HybridModel) -> Compared:
        """The answers of both models to the same questions."""
        return Compared(self.before, judge(after.surrogate, after.signal, self.pairs), self.trajectories)


Pieces = Iterator[tuple[Batch, np.ndarray]]
"""Some pairs and their trajectories at a time, solved when they are asked for."""


def ask(model: HybridModel, pieces: Pieces, seconds: float) -> tuple[Questions, float]:
    """As many of the questions as so many seconds allow, and the seconds in which the model has answered them."""
    found: list[tuple[Batch, np.ndarray, Judged]] = []
    deadline, answering = time.monotonic() + seconds, 0.0
    for pairs, trajectories in pieces:
        began = time.monotonic()
        found.append((pairs, trajectories, judge(model.surrogate, model.signal, pairs)))
        answering += time.monotonic() - began
        if time.monotonic() > deadline and len({name for _, names, _ in found for name in names.tolist()}) >= FEWEST:
            break
    pairs, trajectories, judged = zip(*found, strict=True)
    return Questions(_together(pairs), np.concatenate(trajectories), _together(judged)), answering


def fresh(evidence: Evidence, bundle: Bundle) -> Pieces:
    """One pair per trajectory and horizon, in distribution."""
    training, grid = bundle.config.training, bool(bundle.surrogate.spec.grid)
    seen = 0
    for pairs in pairs_of(evidence.blocks(JUDGES[0 if grid else 1]), training.horizons, np.random.default_rng(0)):
        count = len(pairs.states) // len(training.horizons)
        yield pairs, seen + np.tile(np.arange(count), len(training.horizons))
        seen += count


def from_log(held: Deferred, system: Environment | None, unit: np.ndarray, log: Path) -> Pieces:
    """What was deferred, shuffled; where there is a solver, with the answers that it gives now.

    A log that it contradicts too often is refused.
    """
    order = np.random.default_rng(0).permutation(len(held))[: JUDGES[0] if held.pairs.states.ndim > 2 else JUDGES[1]]
    for start in range(0, len(order), PIECE):
        piece = held.of(order[start : start + PIECE])
        yield piece.pairs if system is None else solved_anew(piece.pairs, system, unit, log), piece.trajectories


def solved_anew(pairs: Batch, system: Environment, unit: np.ndarray, log: Path) -> Batch:
    """The same questions with the answers of the solver."""
    futures = np.empty_like(pairs.futures)
    for horizon in np.unique(pairs.horizons):
        some = pairs.horizons == horizon
        futures[some] = system.solve(pairs.states[some].astype(float), int(horizon), pairs.params[some].astype(float))
    apart = np.sqrt((((futures - pairs.futures) / unit.reshape(-1, *[1] * (futures.ndim - 2))) ** 2).sum(axis=1))
    wrong = int((apart.reshape(len(futures), -1).mean(axis=1) > WRONG).sum())
    if wrong > ALLOWED * len(futures):
        raise InvalidInput(
            f"{log}: {wrong} of {len(futures)} answers are not what the solver of {system.spec.name} gives: the log is "
            "damaged, or from another system. Nothing was learned from it."
        )
    return replace(pairs, futures=futures)


def _together(parts: Sequence[Any]) -> Any:
    """Several batches, or judgements of batches, joined into one."""
    first = parts[0]
    columns = {each.name: np.concatenate([getattr(part, each.name) for part in parts]) for each in fields(first)}
    return type(first)(**columns)


# Shown on a shift.


FRESH = 1_000_000
"""The first trajectory of a split that judges: those that are asked about begin at 0."""


def meet_shift(bundle: Bundle, split: str, count: int, log: Path, system: Environment, tell: Tell) -> tuple[int, int]:
    """Ask a model about `count` trajectories of a split, once per horizon; how many questions, and how many were deferred.

    What was deferred is in the log then.
    """
    tell(f"asking about {count} trajectories of {split}")
    keeping, horizons = assemble(bundle, system).keeping(log), bundle.config.training.horizons
    asked = deferred = 0
    for horizon, batch in fresh_pairs(system, split, numbers_in_share(system, split, count), horizons).items():
        forecast = keeping.onward(batch.states.astype(float), horizon, batch.params.astype(float))
        asked, deferred = asked + len(batch.states), deferred + int(forecast.used_solver.sum())
    assert keeping.log is not None
    keeping.log.flush()
    return asked, deferred


def compare_on(
    splits: Sequence[str], bundles: tuple[Bundle, Bundle], judges: int, system: Environment, tell: Tell
) -> dict[str, tuple[Compared, Gated]]:
    """Split -> two models and their gates on `judges` fresh trajectories of it, one question per horizon."""
    before, after = (assemble(bundle, system) for bundle in bundles)
    horizons, found = bundles[0].config.training.horizons, {}
    for split in splits:
        tell(f"judging on {judges} fresh trajectories of {split}")
        pairs = fresh_pairs(system, split, numbers_in_share(system, split, judges, FRESH), horizons, seed=1)
        batch, numbers = _together(list(pairs.values())), np.tile(np.arange(judges), len(horizons))
        both = Questions(batch, numbers, judge(before.surrogate, before.signal, batch)).compared(after)
        found[split] = (both, gated(both, before, after))
    return found
