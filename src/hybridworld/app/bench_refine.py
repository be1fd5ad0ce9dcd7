"""`hybridworld bench refine`: a model meets a shift, learns from what it defers, and is judged on fresh trajectories."""

import tempfile
from pathlib import Path

from hybridworld.app.loading import load_model
from hybridworld.app.progress import announce
from hybridworld.app.refine import described, errors_of, gates_of, in_words
from hybridworld.app.tables import Rows, publish_sections
from hybridworld.bench.refine import Shown, show_shift
from hybridworld.deploy.hybrid import KEEP
from hybridworld.physics.environment import Environment
from hybridworld.surrogate.bundle import save_bundle


def report_refinement(
    model: str, environment: Environment | None, split: str, count: int, minutes: float, judges: int, as_json: bool,
    out: Path | None, backbone: str | None = None, save: Path | None = None,
) -> None:  # fmt: skip
    """Measure and publish; the refined model is written to `save`, if that is given, whatever the verdict."""
    bundle = load_model(model, backbone, environment)
    with tempfile.TemporaryDirectory() as folder:
        found = show_shift(bundle, split, count, minutes, Path(folder) / "log", judges, environment, announce)
    if save is not None:
        save_bundle(save, found.refinement.bundle)
    content = {
        "model": model, "split": split, "minutes": minutes, "asked": found.asked, "deferred": found.deferred,
        "refinement": described(found.refinement),
        "splits": {name: errors_of(both) | gates_of(gates) for name, (both, gates) in found.splits.items()},
    }  # fmt: skip
    spec = bundle.surrogate.spec
    verdict = "accepted" if found.refinement.accepted else "refused"
    publish_sections(
        content,
        {"": rows_of(found)},
        f"{spec.name}: learning from {split}",
        f"{count:,} trajectories of {split} were asked about once at each of {len(bundle.config.training.horizons)} horizons, "
        f"at random frames: {found.deferred:,} of {found.asked:,} questions were deferred and kept. "
        f"{found.refinement.learned:,} answers were learned from in a budget of {minutes:g} minutes. By its own held-out "
        f"evidence the refinement was {verdict}: errors after / before {in_words(found.refinement.deferred.ratio())} on what "
        f"was deferred, {in_words(found.refinement.known.ratio())} in distribution. The table is about {judges:,} fresh "
        f"trajectories of each split. Deferred: at q = {KEEP:g} with the thresholds in the model's file. Equal error: what the "
        "refined model defers if the answers that it keeps are as wrong as those that the model kept before. Intervals: 95 %, "
        "by trajectory.",
        as_json,
        out,
        f"hybridworld bench refine {model} --split {split} --count {count} --minutes {minutes:g}",
    )


def rows_of(found: Shown) -> Rows:
    """One row per split."""
    rows = [["split", "errors, after / before", "deferred", "error of kept answers", "deferred at equal error", "it falls by"]]
    for split, (both, gates) in found.splits.items():
        deferral, errors = gates.deferral, gates.kept_error
        rows.append(
            [
                split, in_words(both.ratio()), f"{deferral[0]:.1%} -> {deferral[1]:.1%}",
                f"{errors[0]:.3g} -> {errors[1]:.3g}", f"{gates.equal_error:.1%}", in_words(gates.fall, ".0%"),
            ]
        )  # fmt: skip
    return rows
