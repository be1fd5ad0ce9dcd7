"""`hybridworld bench trust`: a model's error map, gate, bounds and alarm, measured on data it has not seen."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hybridworld.app.loading import load_model, tell
from hybridworld.app.progress import progress_bar
from hybridworld.app.tables import Rows, publish_sections
from hybridworld.bench.trust import SPLITS_OF_DATA, WINDOWS, measure_trust
from hybridworld.data.dataset import Dataset, check_fits
from hybridworld.deploy.engines import set_engine
from hybridworld.deploy.gate import FALSE_ALARMS, WINDOW
from hybridworld.deploy.load import assemble, calibration_of, chosen_signal, solver_of
from hybridworld.physics.environment import Environment
from hybridworld.surrogate.engines.registry import EAGER
from hybridworld.surrogate.horizons import composed
from hybridworld.trust.bounds import check_coverage
from hybridworld.trust.calibrate import calibration_arrays
from hybridworld.trust.calibration import check_keep_fraction

ROWS: dict[str, tuple[str, ...]] = {
    "RMSE of mode 1": ("rmse",),
    "deferred": ("deferred",),
    "cut, frozen threshold": ("frozen",),
    "its share of the oracle's, as many": ("share_of_oracle",),
    "cut, random, as many": ("random",),
    "cut, oracle, as many": ("oracle",),
    "cut, matched q": ("matched",),
    "cut, oracle at q": ("oracle_at_q",),
    "95th percentile of the error, mode 1": ("percentile", "mode 1"),
    "95th percentile, mode 2": ("percentile", "mode 2"),
    "95th percentile, oracle, as many": ("percentile", "oracle"),
}
"""Rows of the table of mode 2 -> where their numbers stand; errors are printed as they are, all else in per cent."""


def report_trust(
    model: str, members: Sequence[str], environment: Environment | None, data: Path, count: int, q: float, coverage: float,
    as_json: bool, out: Path | None, signal: str | None = None, backbone: str | None = None, engine: str = EAGER,
    rivals: bool = True,
) -> None:  # fmt: skip
    """Measure a model's error map, gate, bounds and alarm, and publish the tables.

    `members` are further networks for the ensemble.
    """
    check_keep_fraction(q)
    check_coverage(coverage)
    bundles, dataset = [load_model(each, backbone, environment) for each in (model, *members)], Dataset(data)
    for each, bundle in zip((model, *members), bundles, strict=True):
        check_fits(each, bundle.surrogate.spec, data, dataset.spec)
    bundles = [bundle.like(dataset.spec) for bundle in bundles]
    config, spec, solver = bundles[0].config, bundles[0].surrogate.spec, solver_of(bundles[0], environment)
    chosen = chosen_signal(bundles[0], solver, signal, model)
    hybrid = assemble(bundles[0], solver, signal=chosen)
    set_engine(hybrid, engine, tell)
    answered = bundles[0].surrogate.answered or ()
    horizons = [h for h in config.training.horizons if h in composed(answered)] or config.training.horizons
    with progress_bar() as bar:
        task = bar.add_task("fitting", total=None)
        content = measure_trust(
            [bundle.surrogate for bundle in bundles],
            horizons,
            solver,
            dataset,
            count,
            q,
            coverage,
            lambda what, done, total: bar.update(task, description=what, completed=done, total=total),
            calibration_of(calibration_arrays(bundles[0].arrays, chosen.name)),
            config.training.steps,
            bundles[0].provenance.get("seconds", np.inf),
            chosen.name,
            rivals,
        )
    publish_sections(
        {"model": model, "engine": hybrid.engine, **content},
        sections_of(content),
        f"{spec.name}: the error map and its rivals",
        f"{config.surrogate.backbone} that sees {'state and parameters' if config.surrogate.params else 'the state alone'}; "
        f"{count} pairs per horizon and split, every trajectory equally often. Intervals: 95 %, over trajectories "
        f"(docs/trust.md, Intervals). Engine: {hybrid.engine}. Thresholds and fitted rivals have seen train and val only.",
        as_json,
        out,
        "hybridworld bench trust",
    )


def sections_of(content: dict[str, Any]) -> dict[str, Rows]:
    """The tables by their headings."""
    q, coverage = content["q"], content["bounds"]["coverage"]
    horizons = list(next(iter(content["mode2"].values())))
    heads = [f"h = {h}" for h in horizons]
    sections: dict[str, Rows] = {
        "What the tables rest on\nIndependent trajectories behind each number, at every horizon.": [
            ["", "trajectories", "pairs per horizon"],
            ["thresholds", f"{content['calibrated_by']:,}", f"{content['calibrated_by']:,}"],
            *(
                ["val, for fitted rivals" if split == "val" else split, f"{trajectories:,}", f"{content['pairs']:,}"]
                for split, trajectories in content["trajectories"].items()
            ),
        ],
        "What the signals cost\nForward passes per answer, the prediction among them.": [
            ["signal", "passes", "more training", "labels", "knows of the physics"],
            *(
                [name, str(cost["passes"]), cost["training"] or "-", "yes" if cost["labels"] else "-", cost["equations"] or "-"]
                for name, cost in content["costs"].items()
            ),
        ],
    }
    text = "How well a score picks out the quarter of the answers with the largest error: 1 is perfect, 0.5 is chance."
    for split, found in content["auroc"].items():
        sections[f"AUROC, {split}\n{text}"] = auroc_rows(found)
    text = (
        "The same for objects, of all answers together: the quarter with the largest error, those that an action drives left "
        "out. Signals with one number per scene have no map of objects."
    )
    for split, found in content["auroc_of_objects"].items():
        sections[f"AUROC of objects, {split}\n{text}"] = auroc_rows(found)
    text = "The same inside each kind of initial state, averaged over kinds by their share: what a score knows beyond the kind."
    for split, found in content["auroc_within_kinds"].items():
        sections[f"AUROC within kinds, {split}\n{text}"] = auroc_rows(found)
    text = (
        f"The RMSE of the surrogate (normalised states, mean over trajectories), and by how much {content['signal']} cuts it "
        f"when q = {q:g}. The frozen threshold is that of the validation data (of later frames, if these are known apart from "
        "beginnings of trajectories), with the share it really defers; random and oracle deferral hand over as many. Matched q "
        "sets the threshold on the test data, as the paper does: not to be had in use. Percentiles count a deferred answer as "
        "one without error."
    )
    sections[f"Mode 2\n{text}"] = [
        ["split", "", *heads],
        *(row for split, found in content["mode2"].items() for row in cut_rows(split, found)),
    ]
    bounds = content["bounds"]
    sections[
        f"Error bounds\nShare of the errors on test data below their {coverage:.0%} bound, over {SPLITS_OF_DATA} random "
        "splits into trajectories that calibrate and trajectories that test."
    ] = [
        ["", *heads, "all horizons"],
        *(
            [name, *(f"{100 * value:.1f} %" for value in [*bounds["by_horizon"][name], bounds["all"][name]])]
            for name in ("lowest", "mean", "highest")
        ),
    ]
    sections[
        f"Alarm\nShare of {WINDOWS} windows of {WINDOW} answers (at most one per trajectory, horizons mixed) that raise it, "
        f"at a stated rate of false alarms of {FALSE_ALARMS:g}. `half against half`: trajectories of test, {SPLITS_OF_DATA} "
        "random halves calibrate and the rest is watched."
    ] = [["split", "alarms"], *([split, f"{rate:.4f}"] for split, rate in content["alarms"].items())]
    if content["overhead"]:
        sections["Price of the map\nMode 2 with nothing deferred over mode 1, medians of calls that take turns."] = [
            ["batch", "times"],
            *([str(size), f"{ratio:.2f}"] for size, ratio in content["overhead"].items()),
        ]
    return sections


def auroc_rows(found: dict[int, dict[str, Sequence[float]]]) -> Rows:
    """The table of AUROCs: a row per signal, a column per horizon."""
    return [
        ["signal", *(f"h = {h}" for h in found), "mean"],
        *(
            [name, *(interval_in_words(row[name]) for row in found.values()), mean_of([row[name][0] for row in found.values()])]
            for name in next(iter(found.values()))
        ),
    ]


def interval_in_words(interval: Sequence[float]) -> str:
    """A value with its interval as text, for example `.913 (.90-.93)`."""
    value, low, high = (f"{number:.3f}".removeprefix("0") for number in interval)
    return f"{value} ({low}-{high})"


def mean_of(values: Sequence[float]) -> str:
    """The mean of the values that are numbers, as text with three digits."""
    return f"{np.nanmean(values):.3f}".removeprefix("0")


def cut_rows(split: str, found: dict[int, dict[str, Any]]) -> list[list[str]]:
    """The rows of one split in the table of mode 2: errors, deferral and cuts."""
    rows = []
    for words, (key, *more) in ROWS.items():
        numbers = [each[key][more[0]] if more else each[key] for each in found.values()]
        rows.append(["", words, *(f"{x:.3g}" if key in ("rmse", "percentile") else per_cent(x) for x in numbers)])
    rows[0][0] = split
    return rows


def per_cent(share: float | Sequence[float]) -> str:
    """A share in words, for example `24 %`, or with an interval `24 (21-27) %`."""
    if isinstance(share, float):
        return f"{100 * share:.0f} %"
    value, low, high = (f"{100 * number:.0f}" for number in share)
    return f"{value} ({low}-{high}) %"
