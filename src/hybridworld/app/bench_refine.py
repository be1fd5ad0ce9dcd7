"""`hybridworld bench refine`: a model meets a shift, learns from what it defers, and is judged on fresh trajectories."""

import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hybridworld.app.loading import load_model
from hybridworld.app.progress import announce
from hybridworld.app.refine import described, errors_of, gates_of, in_words
from hybridworld.app.tables import Rows, publish_sections
from hybridworld.bench.refine import Compared, Gated, compare_on, meet_shift, refine
from hybridworld.deploy.deferral import KEEP
from hybridworld.deploy.load import solver_of
from hybridworld.errors import InvalidInput
from hybridworld.physics.environment import Environment
from hybridworld.surrogate.bundle import Bundle, save_bundle


def report_refinement(
    model: str, refined: str | None, environment: Environment | None, split: str, count: int, minutes: float, judges: int,
    as_json: bool, out: Path | None, backbone: str | None = None, save: Path | None = None,
) -> None:  # fmt: skip
    """Measure and publish. With `refined` two models are compared that are there already."""
    bundle = load_model(model, backbone, environment)
    spec, system = bundle.surrogate.spec, solver_of(bundle, environment)
    if system is None:
        raise InvalidInput(f"There is no solver for {spec.name}: name its system with --system.")
    known: dict[str, Any] = {"model": model, "split": split}
    if refined is not None:
        after = load_model(refined, backbone, environment)
        how, command = how_made(after), f"hybridworld bench refine {model} --refined {refined} --split {split}"
    else:
        after, told = learned(bundle, system, environment, split, count, minutes)
        known, how = known | told, how_learned(told, split, count, minutes)
        command = f"hybridworld bench refine {model} --split {split} --count {count} --minutes {minutes:g}"
        if save is not None:
            save_bundle(save, after)
    found = compare_on((split, "test"), (bundle, after), judges, system, announce)
    publish_sections(
        known | {"splits": {name: errors_of(both) | gates_of(gates) for name, (both, gates) in found.items()}},
        {"": rows_of(found)},
        f"{spec.name}: learning from {split}",
        f"{how} Judged on {judges:,} fresh trajectories of each split, one question per horizon at a random frame. Deferred: "
        f"at q = {KEEP:g}, with the thresholds in each model's file. Equal error: the least that each has to defer so that "
        "the answers that it keeps are no more wrong than those that the model before keeps at that q. Means over horizons; "
        "intervals: 95 %, by trajectory.",
        as_json,
        out,
        f"{command} --judges {judges}",
    )


def learned(
    bundle: Bundle, system: Environment, given: Environment | None, split: str, count: int, minutes: float
) -> tuple[Bundle, dict[str, Any]]:
    """The model after the shift, whatever the verdict, and what there is to tell."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        asked, deferred = meet_shift(bundle, split, count, log, system, announce)
        found = refine(bundle, log, minutes, time.monotonic(), None, given, announce)
    return found.bundle, {"asked": asked, "questions_deferred": deferred, **described(found)}


def how_learned(told: Mapping[str, Any], split: str, count: int, minutes: float) -> str:
    """How the model was refined and what its own evidence said, in sentences for the page."""
    deferred, known = (in_words(told[part]["error_ratio"]) for part in ("deferred", "in_distribution"))
    verdict = "accepted" if told["accepted"] else "refused"
    return (
        f"{count:,} trajectories of {split} were asked about once per horizon, at random frames: "
        f"{told['questions_deferred']:,} of {told['asked']:,} questions were deferred and kept. {told['learned']:,} answers "
        f"were learned from in a budget of {minutes:g} minutes ({told['steps']:,} steps, blend {told['blend']:.0%}). By its "
        f"own held-out evidence the refinement was {verdict}: errors after / before {deferred} on what was deferred, {known} "
        "in distribution."
    )


def how_made(refined: Bundle) -> str:
    """How a refined model was made, in sentences, from its provenance."""
    parts = [
        f"{told['learned']:,} answers were learned from in a budget of {told['minutes']:g} minutes ({told['steps']:,} steps, "
        f"blend {told['blend']:.0%})."
        for told in refined.provenance.get("refined", [])
    ]
    return " ".join(parts) or "The second model was not made by `refine`."


def rows_of(found: Mapping[str, tuple[Compared, Gated]]) -> Rows:
    """One row per split."""
    rows = [["split", "errors, after / before", "deferred", "error of kept answers", "deferred at equal error", "it falls by"]]
    for split, (both, gates) in found.items():
        shares = (f"{before:.1%} -> {after:.1%}" for before, after in (gates.deferral, gates.equal_error))
        deferral, equal = shares
        errors = f"{gates.kept_error[0]:.3g} -> {gates.kept_error[1]:.3g}"
        rows.append([split, in_words(both.ratio()), deferral, errors, equal, in_words(gates.fall, ".0%")])
    return rows
