"""`hybridworld bench promises`: does what a calibration says hold on trajectories that nothing has seen?"""

from pathlib import Path

import numpy as np

from hybridworld.app.loading import load_model
from hybridworld.app.progress import progress_bar
from hybridworld.app.tables import Rows, publish_sections
from hybridworld.bench.promises import WINDOWS, Promises, band, keep_promises, tested_horizons
from hybridworld.deploy.gate import FALSE_ALARMS, WINDOW
from hybridworld.deploy.load import solver_of
from hybridworld.errors import InvalidInput
from hybridworld.physics.environment import Environment
from hybridworld.surrogate.horizons import calibrated_horizons
from hybridworld.trust.bounds import check_coverage
from hybridworld.trust.calibration import check_keep_fraction

STATES = ("beginnings of trajectories", "random frames")


def report_promises(
    model: str, environment: Environment | None, trajectories: int | None, draws: int, q: float, coverage: float,
    as_json: bool, out: Path | None, backbone: str | None = None,
) -> None:  # fmt: skip
    """Measure how well the promises of a model hold, and publish the tables."""
    check_keep_fraction(q)
    check_coverage(coverage)
    bundle = load_model(model, backbone, environment)
    spec, training = bundle.surrogate.spec, bundle.config.training
    solver = solver_of(bundle, environment)
    if solver is None:
        raise InvalidInput(f"There is no solver for {spec.name}: name its system with --system.")
    count = trajectories or training.calibration
    with progress_bar() as bar:
        task = bar.add_task("draws", total=draws)
        found = keep_promises(
            bundle.surrogate, solver, training.horizons, tested_horizons(training.horizons), count, draws, q, coverage,
            lambda done: bar.update(task, completed=done),
        )  # fmt: skip
    publish_sections(
        content_of(found, q, coverage) | {"model": model},
        sections_of(found, q, coverage),
        f"{spec.name}: do the promises hold?",
        f"One trained model, {draws} draws; in each, {count:,} trajectories calibrate at "
        f"{len(calibrated_horizons(training.horizons))} horizons and {count:,} others test, half of each at their beginning.",
        as_json,
        out,
        f"hybridworld bench promises {model}",
    )


def content_of(found: Promises, q: float, coverage: float) -> dict:
    """All numbers as plain data."""
    return {
        "horizons": found.horizons, "trajectories": found.trajectories, "q": q, "promised_coverage": coverage,
        "deferral": found.deferral.tolist(), "coverage": found.coverage.tolist(), "alarms": found.alarms.tolist(),
    }  # fmt: skip


def sections_of(found: Promises, q: float, coverage: float) -> dict[str, Rows]:
    """The tables by their headings."""
    deferred = "went to the solver"
    covered = f"had an error below their {coverage:.0%} bound"
    windows = WINDOWS * len(found.alarms)
    alarms = (
        f"False alarms\nShare of {windows} windows of {min(WINDOW, found.trajectories // 2)} answers, horizons mixed, that "
        f"raised the alarm; the stated rate is {FALSE_ALARMS:g}."
    )
    rates = zip(STATES, found.alarms.mean(axis=0), strict=True)
    return {
        **section("Deferral", deferred, found.deferral, 1 - q, found),
        **section("Coverage", covered, found.coverage, coverage, found),
        alarms: [["states", "alarms"], *([name, f"{rate:.4f}"] for name, rate in rates)],
    }


def section(name: str, what: str, values: np.ndarray, promised: float, found: Promises) -> dict[str, Rows]:
    """The table of one promise, (draws, kinds of states, horizons), with the band in which it would lie.

    Each kind of states is promised this share, from half of the trajectories.
    """
    count = found.trajectories // 2
    low, high = band(promised, count, count)
    inside = np.mean((values >= low) & (values <= high))
    text = (
        f"Share of the answers that {what}; promised are {promised:.0%} of either kind of states. With {count:,} trajectories "
        f"{low:.1%} to {high:.1%} are to be expected in 95 % of cells (draws x horizons x kinds): {inside:.0%} lie there."
    )
    rows = [
        [f"{states}, {end}", *(f"{100 * value:.1f} %" for value in pick(values[:, kind], axis=0))]
        for kind, states in enumerate(STATES)
        for end, pick in (("mean", np.mean), ("lowest", np.min), ("highest", np.max))
    ]
    return {f"{name}\n{text}": [["", *(f"h = {h}" for h in found.horizons)], *rows]}
