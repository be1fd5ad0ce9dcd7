"""Was the recipe right? Trainings and their variants, over seeds."""

import numpy as np

from hybridworld.bench.intervals import mean_interval
from hybridworld.data.pairs import Batch
from hybridworld.reproduce.experiment import STATE_ALONE, UNET, Experiment
from hybridworld.reproduce.intervals import bare, geometric_mean, mean_of, over_runs, ratio_over_runs
from hybridworld.reproduce.ranking import auroc_of
from hybridworld.reproduce.rows import Row
from hybridworld.reproduce.rules import ALL_HORIZONS, LONGEST, SINGLE, STEP
from hybridworld.surrogate.validation import validation_errors

ALONE = "self-consistency"
SHOWN = 10  # epochs of a curve
WEIGHTS = {0.0: "dagger 0", 0.1: "all horizons", 1.0: "dagger 1"}
"""Weight of the DAgger part -> the variant that has it."""


def datasets(experiment: Experiment) -> list[Row]:
    """What was trained, and how well: the mean validation MSE over horizons, as training saw it; x is the seed."""
    rows = [
        Row("mse", "main", experiment.system, "val", seed, bare(experiment.model(seed=seed).validation["mse"]))
        for seed in experiment.seeds
    ]
    weights = sum(weight.numel() for weight in experiment.surrogate().parameters())
    return [*rows, Row("parameters, millions", "main", experiment.system, "val", 0, bare(weights / 1e6))]


def self_consistency(experiment: Experiment) -> list[Row]:
    """Trainings without labels: the curves of the first one over epochs, and over seeds what they come to (x = 0)."""
    rows, falls, ends = list[Row](), list[float](), list[float]()
    for seed in experiment.setting.ablated:
        records = experiment.history(ALONE, seed)
        still = [float(np.mean([each["no_change"]["mse"] for each in record["horizons"].values()])) for record in records]
        falls.append(records[0]["loss"] / max(records[-1]["loss"], 1e-30))
        ends.append(records[-1]["mse"] / still[-1])
        if seed == experiment.setting.ablated[0]:
            for number in sorted({*range(0, len(records), -(-len(records) // SHOWN)), len(records) - 1}):
                record, place = records[number], (ALONE, experiment.system, "val", records[number]["epoch"])
                rows.append(Row("loss", *place, bare(record["loss"])))
                rows.append(Row("mse", *place, bare(record["mse"])))
                rows.append(Row("mse of no change", *place, bare(still[number])))
    end = (experiment.system, "val", 0)
    rows.append(Row("fall of the loss", ALONE, *end, geometric_mean(falls)))
    rows.append(Row("mse over no change", ALONE, *end, over_runs(ends)))
    for variant in (ALONE, ALL_HORIZONS):
        distances = [float(to_identity(experiment, variant, seed)) for seed in experiment.setting.ablated]
        rows.append(Row("distance to the identity", variant, *end, over_runs(distances)))
    return rows


def to_identity(experiment: Experiment, variant: str, seed: int) -> float:
    """rms over validation pairs of the predicted change, in deviations."""

    def measured() -> float:
        held = {
            h: Batch(batch.states, batch.horizons, batch.params, batch.states)
            for h, batch in experiment.pairs("val", experiment.horizons).items()
        }
        found = validation_errors(experiment.surrogate(variant, seed), held)
        return float(np.sqrt(np.mean([each.mse for each in found.values()])))

    return float(experiment.remember(("identity", variant, seed), measured))


def single_horizon(experiment: Experiment) -> list[Row]:
    """A training at the longest horizon alone, against one at all: errors there, their ratio over seeds, and the AUROC."""
    place = (experiment.system, "val", LONGEST)
    cells = {
        variant: [experiment.cell("val", LONGEST, variant=variant, seed=seed) for seed in experiment.setting.ablated]
        for variant in (ALL_HORIZONS, SINGLE)
    }
    rows = []
    for variant, found in cells.items():
        rows.append(Row("mse", variant, *place, mean_of([mean_interval(cell.rmse**2) for cell in found])))
        rows.append(Row("auroc", variant, *place, mean_of([auroc_of(cell.scores[STEP], cell) for cell in found])))
    errors = {variant: [float((cell.rmse**2).mean()) for cell in found] for variant, found in cells.items()}
    return [*rows, Row("mse ratio", SINGLE, *place, ratio_over_runs(errors[SINGLE], errors[ALL_HORIZONS]))]


def dagger(experiment: Experiment) -> list[Row]:
    """The best validation MSE for three weights of the DAgger part (x), and their ratio to that of 0.1, over seeds."""
    mse = {
        weight: [float(experiment.model(variant, seed).validation["mse"]) for seed in experiment.setting.ablated]
        for weight, variant in WEIGHTS.items()
    }
    rows = [Row("mse", "DAgger", experiment.system, "val", weight, over_runs(values)) for weight, values in mse.items()]
    return rows + [
        Row("mse ratio", "DAgger", experiment.system, "val", weight, ratio_over_runs(mse[weight], mse[0.1]))
        for weight in (0.0, 1.0)
    ]


def networks(experiment: Experiment) -> list[Row]:
    """What else could have been trained in the same time: the validation MSE (x = 0), and the AUROC on test data.

    Where the dynamics have no parameters, every network sees the state alone.
    """
    rows, alone = [], (STATE_ALONE,) if experiment.environment.spec.params else ()
    for variant in (ALL_HORIZONS, *alone, UNET):
        rows.append(Row("mse", variant, experiment.system, "val", 0, bare(experiment.model(variant).validation["mse"])))
        for h in experiment.horizons:
            cell = experiment.cell("test", h, variant=variant)
            rows.append(Row("auroc", variant, experiment.system, "test", h, auroc_of(cell.scores[STEP], cell)))
    return rows
