"""The card of a model: where it comes from, how good it is on each split and horizon, and where it fails.

Numbers are measured on trajectories that no training, epoch or threshold has seen, one pair per trajectory and horizon. What
counts as a failure is a rule about these numbers.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from hybridworld.bench.map_quality import MOST
from hybridworld.bench.metrics import auroc
from hybridworld.bench.promises import band
from hybridworld.data.evidence import fresh_pairs, numbers_in_share
from hybridworld.data.manifest import sha256
from hybridworld.data.pairs import Batch
from hybridworld.data.provenance import provenance, was_streamed
from hybridworld.deploy.calibrate import calibrations
from hybridworld.deploy.load import calibration_of, chosen_signal, default_signal
from hybridworld.errors import InvalidInput
from hybridworld.physics.environment import Environment
from hybridworld.physics.spec import SPLITS
from hybridworld.surrogate.bundle import Bundle
from hybridworld.surrogate.config import PRESETS, RELATIVE, Config, configure
from hybridworld.surrogate.parallel import SMALL
from hybridworld.surrogate.surrogate import Surrogate
from hybridworld.surrogate.train import samples_of
from hybridworld.trust.calibrate import calibration_arrays
from hybridworld.trust.calibration import Calibration, flagged
from hybridworld.trust.judge import judge
from hybridworld.trust.signal import TrustSignal

JUDGING = SPLITS[2:]
"""The splits that choose and calibrate nothing."""
Q = 0.75
"""The keep fraction whose deferral is measured."""
LOWEST_AUROC = 0.65
FAR_OFF = 0.1
"""A deferral that differs by more than this from what was asked, and by more than chance explains, is a failure."""
PATIENCE = 60.0
"""Seconds for the trajectories of a split, unless it is said how many."""
FEWEST, FIELDS, VECTORS = 16, 200, 2_000
SCHEDULED = ("epochs", "samples", "patience", "validation", "calibration")
"""Settings that follow from a budget in minutes."""


@dataclass(frozen=True)
class Cell:
    """The numbers of one split and horizon."""

    split: str
    horizon: int
    trajectories: int
    error: float
    """RMSE of normalised states, mean over trajectories, in deviations of the training data."""
    no_change: float
    """The error of answering with the state as it was."""
    auroc: float | None
    """The AUROC of the error map; None where all errors are equal."""
    deferred: float | None
    """What mode 2 hands to the solver at q = 0.75, with the threshold that the model carries."""


def default_count(environment: Environment) -> int:
    """Trajectories per split: few where the solver is slow."""
    sample = environment.initial("test", 0)
    environment.solve(sample.state, 1, sample.params)  # compiles
    if not environment.spec.is_field:
        return VECTORS
    began = time.perf_counter()
    environment.record(sample.state[None], environment.spec.frames - 1, sample.params[None])
    return int(np.clip(PATIENCE / (time.perf_counter() - began), FEWEST, FIELDS))


def measure_cells(
    bundle: Bundle, environment: Environment, count: int, tell: Callable[[str], None] = lambda what: None
) -> list[Cell]:
    """The cells of all splits that judge, at all horizons that the model was validated at."""
    horizons, signal = bundle.config.training.horizons, chosen_signal(bundle, environment)
    calibration = calibration_of(calibration_arrays(bundle.arrays, signal.name))
    found = []
    for split in JUDGING:
        tell(f"{split}: {count} trajectories")
        pairs = fresh_pairs(environment, split, numbers_in_share(environment, split, count), horizons)
        for horizon, batch in pairs.items():
            tell(f"{split}: h = {horizon}")
            found.append(_cell(bundle.surrogate, signal, calibration, split, horizon, batch))
    return found


def _cell(
    surrogate: Surrogate, signal: TrustSignal, calibration: Calibration | None, split: str, horizon: int, batch: Batch
) -> Cell:
    share = min(1.0, MOST / batch.states[:, 0].size)
    judged = judge(surrogate, signal, batch, cells=share)
    found = auroc(judged.cells[:, 1], judged.cells[:, 2])
    threshold = None if calibration is None else calibration.threshold(horizon, Q, beginning=False)
    deferred = None if threshold is None else float(flagged(judged.scores, threshold).mean())
    return Cell(
        split,
        horizon,
        len(batch.states),
        float(np.sqrt(judged.mse).mean()),
        float(np.sqrt(judged.no_change).mean()),
        float(found) if np.isfinite(found) else None,
        deferred,
    )


def failures(cells: Sequence[Cell], calibrating: int) -> list[str]:
    """What the numbers say against the model, in sentences; `calibrating` trajectories set its thresholds."""
    usual = {cell.horizon: cell.error for cell in cells if cell.split == JUDGING[0]}
    told = []
    for split in dict.fromkeys(cell.split for cell in cells):
        rows = [cell for cell in cells if cell.split == split]
        idle = [cell for cell in rows if cell.error >= cell.no_change]
        if idle:
            told.append(f"{split}: at h = {_horizons(idle)} it is no better than no change.")
        blind = {cell: cell.auroc for cell in rows if cell.auroc is not None and cell.auroc < LOWEST_AUROC}
        if blind:
            worst = min(blind.values())
            told.append(
                f"{split}: at h = {_horizons(blind)} its error map hardly finds the errors (AUROC down to {worst:.2f})."
            )
        astray = [cell for cell in rows if _astray(cell, calibrating)]
        if split != JUDGING[0]:  # under shift it shall defer more, and fails where it should and does not
            astray = [cell for cell in astray if (cell.deferred or 0) < 1 - Q and cell.error > usual.get(cell.horizon, 0)]
        if astray:
            shares = ", ".join(f"{cell.deferred:.0%}" for cell in astray)
            told.append(f"{split}: asked to defer {1 - Q:.0%}, it defers {shares} at h = {_horizons(astray)}.")
    return told


def _astray(cell: Cell, calibrating: int) -> bool:
    """Is the deferral far from what was asked for, and further than chance explains?"""
    if cell.deferred is None:
        return False
    low, high = band(Q, calibrating, cell.trajectories)
    return not low <= 1 - cell.deferred <= high and abs(cell.deferred - (1 - Q)) > FAR_OFF


def _horizons(cells: Iterable[Cell]) -> str:
    return ", ".join(str(cell.horizon) for cell in cells)


def card_of(
    name: str, path: Path, bundle: Bundle, environment: Environment, cells: Sequence[Cell], notes: Sequence[str] = ()
) -> dict[str, Any]:
    """Everything that a card says, as plain data. `notes` are further known failures, in sentences."""
    surrogate, config, known = bundle.surrogate, bundle.config, bundle.provenance
    signal = default_signal(bundle, environment)
    calibrating = calibrations(bundle).get(signal, {}).get("trajectories", 0)
    return {
        "name": name,
        "sha256": sha256(path),
        "bytes": path.stat().st_size,
        "system": surrogate.spec.name,
        "title": surrogate.spec.title,
        "grid": list(surrogate.spec.grid),
        "objects": surrogate.spec.objects,
        "network": network_in_words(config),
        "guided": config.surrogate.guide,
        "parameters": sum(each.numel() for each in surrogate.parameters()),
        "sees_parameters": config.surrogate.params and bool(surrogate.spec.params),
        "resolved": bundle.reference.get("resolved", 1),
        "data": known.get("data", "unknown"),
        "from": known.get("from"),
        "recipe": recipe_of(bundle, environment),
        "samples": samples_of(bundle),
        "core_hours": core_hours(bundle),
        "data_counted": "data seconds" in known or was_streamed(known),
        "chosen_by": known.get("chosen by"),
        "calibrated_by": calibrating,
        "signal": signal,
        "relative_to_guide": bundle.validation.get(RELATIVE),
        "worth": known.get("worth"),
        "trained_with": {each: known.get(each) for each in ("hybridworld", "torch", "cpu") if each in known},
        "cells": [asdict(cell) for cell in cells],
        "failures": [*failures(cells, calibrating), *notes],
        "measured_with": provenance(),
    }


def network_in_words(config: Config) -> str:
    """The network in words."""
    network = config.surrogate
    return f"{network.backbone}, guided by the system's own solver on a coarse grid" if network.guide else network.backbone


def core_hours(bundle: Bundle) -> float | None:
    """Core-hours of training, and of making the data where that was part of it; small states are trained on one core."""
    known = bundle.provenance
    if "seconds" not in known:
        return None
    threads = int(known.get("threads", 1))
    training = threads if prod(bundle.surrogate.spec.grid) >= SMALL else 1
    return (training * known["seconds"] + threads * known.get("data seconds", 0.0)) / 3600


def recipe_of(bundle: Bundle, environment: Environment) -> str:
    """The command that trains such a model: its settings where they differ from those of its preset."""
    known, spec = bundle.provenance, bundle.surrogate.spec
    preset = known.get("preset", "laptop")
    words = ["hybridworld train", str(known.get("system", spec.name))]
    if bundle.reference.get("resolved", 1) > 1:
        words.append(f"--resolved {bundle.reference['resolved']}")
    if known.get("from"):
        words.append(f"--from {known['from name']}")
    if "minutes" in known:
        words.append(f"--minutes {known['minutes']:g}")
    if was_streamed(known):
        words.append("--stream")
    elif "data seconds" not in known:
        words.append("--data DIR")
    words.append(f"--preset {preset}")
    if preset in PRESETS:
        words += [f"--set {setting}" for setting in _settings(bundle, configure(spec, preset, (), environment.presets))]
    return " ".join(words)


def _settings(bundle: Bundle, usual: Config) -> Iterator[str]:
    """`section.key=value` where a model differs from the usual, but for what follows from --from and --minutes."""
    known, theirs = bundle.provenance, usual.model_dump(mode="json")
    for section, settings in bundle.config.model_dump(mode="json").items():
        for key, value in settings.items():
            follows = (section == "surrogate" and "from" in known) or (key in SCHEDULED and "minutes" in known)
            if value != theirs[section][key] and value is not None and not follows:
                shown = ",".join(map(str, value)) if isinstance(value, list) else value
                yield f"{section}.{key}={str(shown).lower() if isinstance(value, bool) else shown}"


def card_at(path: Path) -> dict[str, Any] | None:
    """The card beside a model, if it has one; a card of another file is refused."""
    beside = path.with_suffix(".json")
    if not beside.is_file():
        return None
    card = json.loads(beside.read_text())
    if card["sha256"] != sha256(path):
        raise InvalidInput(f"{beside} is the card of another file than {path}: make it anew with `hybridworld card {path}`.")
    return card
