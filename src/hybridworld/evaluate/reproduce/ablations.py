"""Was the recipe right, and does it go on? Trainings and their variants, and chains of predictions: rows, as in `measures`."""

import numpy as np

from hybridworld.data.pairs import Batch
from hybridworld.deploy.hybrid import HybridModel
from hybridworld.evaluate.metrics import auroc_interval, mean_interval
from hybridworld.evaluate.reproduce.measures import LONGEST, Q, Row, of_interval
from hybridworld.evaluate.reproduce.study import STEP, Study
from hybridworld.surrogate.validation import scores

LINKS, ROLLED = (1, 2, 4, 8), 32


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


# Does it go on?


def rollout(study: Study) -> list[Row]:
    """Chains of predictions at the longest horizon, alone and gated, against the solver: RMSE after k links."""

    def make() -> list[tuple[str, int, list[float]]]:
        env, surrogate = study.environment, study.surrogate()
        model = HybridModel(surrogate, study.calibration(), env.solve)
        samples = [env.initial("test", seed) for seed in range(ROLLED)]
        states, params = (np.stack([getattr(sample, part) for sample in samples]) for part in ("state", "params"))
        std = surrogate.std.numpy().reshape(-1, *[1] * (states.ndim - 2))
        found = []
        for name, mode in (("mode 1", 1), ("mode 2", 2)):
            now, truth = states, states
            for link in range(1, max(LINKS) + 1):
                truth = env.solve(truth, LONGEST, params)
                now = chained(model, now, params, mode)
                if link in LINKS:
                    axes = tuple(range(1, states.ndim))
                    found.append((name, link, np.sqrt((((now - truth) / std) ** 2).mean(axis=axes)).tolist()))
        return found

    rows = []
    for name, link, values in study.remember(("rollout", LINKS, ROLLED), make):
        rows.append(of_interval(f"RMSE, {name}", link, mean_interval(np.array(values))))
    return rows


def chained(model: HybridModel, states: np.ndarray, params: np.ndarray, mode: int) -> np.ndarray:
    """One more link; a state from which the solver cannot go on stays with the surrogate."""
    try:
        return np.asarray(model.predict(states, LONGEST, params, mode, Q).state, float)
    except ValueError:
        rows = [one(model, state, each, mode) for state, each in zip(states, params, strict=True)]
        return np.stack(rows)


def one(model: HybridModel, state: np.ndarray, params: np.ndarray, mode: int) -> np.ndarray:
    """The same for one state."""
    try:
        return np.asarray(model.predict(state, LONGEST, params, mode, Q).state, float)
    except ValueError:
        return np.asarray(model.predict(state, LONGEST, params, 1).state, float)
