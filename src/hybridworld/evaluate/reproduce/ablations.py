"""Was the recipe right? Trainings and their variants: rows, as in `measures`."""

import numpy as np

from hybridworld.data.pairs import Batch
from hybridworld.evaluate.metrics import auroc_interval, mean_interval
from hybridworld.evaluate.reproduce.measures import LONGEST, Row, of_interval
from hybridworld.evaluate.reproduce.study import STEP, Study
from hybridworld.surrogate.validation import scores


def datasets(study: Study) -> list[Row]:
    """What was trained, and how well: the mean validation MSE over the ladder, as training saw it."""
    rows = []
    for seed in study.seeds:
        bundle = study.model(seed=seed)
        rows.append(Row(f"validation MSE, seed {seed}", 0, float(bundle.validation["mse"]), "val"))
        if seed == 0:
            weights = sum(weight.numel() for weight in bundle.surrogate.parameters())
            rows.append(Row("parameters, millions", 0, weights / 1e6, "val"))
    return rows


def self_consistency(study: Study) -> list[Row]:
    """Loss, error and distance to the identity over the epochs of a training without labels."""
    rows = []
    for record in study.history("self-consistency"):
        rows += [
            Row("self-consistency loss", record["epoch"], record["loss"], "val"),
            Row("validation MSE", record["epoch"], record["mse"], "val"),
            Row(
                "MSE of no change",
                record["epoch"],
                float(np.mean([each["no_change"]["mse"] for each in record["horizons"].values()])),
                "val",
            ),
        ]
    found = study.remember(
        ("identity",), lambda: {"distance": to_identity(study, "self-consistency"), "main": to_identity(study, "main")}
    )
    last = max((row.x for row in rows), default=0)
    return [
        *rows,
        Row("distance to the identity, at the end", last, found["distance"], "val"),
        Row("the same, supervised", last, found["main"], "val"),
    ]


def to_identity(study: Study, variant: str) -> float:
    """rms over validation pairs of the predicted change, in deviations."""
    surrogate = study.surrogate(variant)
    held = {
        h: Batch(batch.states, batch.horizons, batch.params, batch.states)
        for h, batch in study.pairs("val", study.ladder).items()
    }
    return float(np.sqrt(np.mean([each.mse for each in scores(surrogate, held).values()])))


def single_horizon(study: Study) -> list[Row]:
    """A training at the longest horizon alone: its error there, and what its error map is worth."""
    rows = []
    for name, variant in (("ladder", "main"), ("single horizon", "single horizon")):
        cell = study.cell("val", LONGEST, variant=variant)
        each = np.arange(len(cell.rmse))
        rows.append(of_interval(f"MSE, {name}", LONGEST, mean_interval(cell.rmse**2), "val"))
        rows.append(of_interval(f"AUROC, {name}", LONGEST, auroc_interval(cell.scores[STEP], cell.rmse, each), "val"))
    return rows


def dagger(study: Study) -> list[Row]:
    """The best validation MSE for three weights of the DAgger part."""
    variants = {0.0: "dagger 0", 0.1: "main", 1.0: "dagger 1"}
    return [
        Row("validation MSE", weight, float(study.model(variant).validation["mse"]), "val")
        for weight, variant in variants.items()
    ]
