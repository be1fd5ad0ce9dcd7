"""`hybridworld evaluate`: trained models on trajectories they have not seen."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hybridworld.app.models import check_fits, load_model
from hybridworld.app.progress import stderr
from hybridworld.app.tables import publish
from hybridworld.data.dataset import Dataset
from hybridworld.deploy.load import solver_of
from hybridworld.errors import HybridWorldError, InvalidInput
from hybridworld.physics.environment import Environment
from hybridworld.surrogate.bundle import Bundle
from hybridworld.surrogate.validation import scores, scores_of_no_change, validation_pairs

Errors = dict[str, dict[str, list[float]]]
"""Horizon -> `no_change`, `mse`, `nrmse` -> one number per model."""


def evaluate_models(
    models: Sequence[str], backbone: str | None, environment: Environment | None, data: Path, splits: Sequence[str] | None,
    horizons: Sequence[int] | None, count: int, as_json: bool, out: Path | None, device: str | None = None,
) -> None:  # fmt: skip
    """Per split and horizon the error of each model on the same pairs; several models are seeds of one: mean and deviation.

    Every horizon is answered in one pass; by default they are those that the training of the first model lists.
    """
    dataset, bundles = Dataset(data), [load_model(model, backbone, environment, device) for model in models]
    for model, bundle in zip(models, bundles, strict=True):
        check_fits(model, bundle.surrogate.spec, data, dataset.spec)
        if bundle.surrogate.config.guide and solver_of(bundle, environment) is None:
            raise InvalidInput(
                f"{model} is guided by the solver of {bundle.surrogate.spec.name}: name that system with --system."
            )
    chosen = splits or [each for each in dataset.splits if each not in ("train", "val")]
    if not chosen:
        raise InvalidInput(f"{data} has only {', '.join(dataset.splits)}, which trained the model: name one with --split.")
    config = bundles[0].config
    asked = sorted(set(horizons or config.training.horizons))
    with stderr.status("") as status:
        found = {}
        for split in chosen:
            status.update(f"{split}: {count} pairs per horizon")
            found[split] = errors_on(dataset, split, bundles, asked, count)
            check_finite(models, split, found[split])
    publish(
        found,
        [
            ["split", "", *(f"h = {h}" for h in asked), "mean"],
            *(row for split, errors in found.items() for row in rows_of(split, errors)),
        ],
        f"{dataset.spec.name}: errors of trained models",
        f"{len(models)} model{'s' if len(models) > 1 else ''} ({config.surrogate.backbone}, "
        f"{'with' if config.surrogate.params else 'without'} parameters); {count} pairs per horizon and split, every "
        "trajectory equally often. MSE is that of normalised states, nRMSE the rms error over the rms of the truth, averaged "
        "over channels.",
        as_json,
        out,
        "hybridworld evaluate",
    )


def errors_on(dataset: Dataset, split: str, bundles: Sequence[Bundle], horizons: Sequence[int], count: int) -> Errors:
    """Of all models, on the same pairs."""
    pairs = validation_pairs(dataset.source(split), horizons, count, seed=0)
    still = scores_of_no_change(bundles[0].surrogate, pairs)
    each = [scores(bundle.surrogate, pairs) for bundle in bundles]
    return {
        str(h): {
            "no_change": [still[h].mse],
            "mse": [found[h].mse for found in each],
            "nrmse": [found[h].nrmse for found in each],
        }
        for h in pairs
    }


def check_finite(models: Sequence[str], split: str, errors: Errors) -> None:
    """Raise where an error is no number: that is no result."""
    for horizon, numbers in errors.items():
        for kind in ("mse", "nrmse"):
            for model, value in zip(models, numbers[kind], strict=True):
                if not np.isfinite(value):
                    raise HybridWorldError(
                        f"{model}: the error on '{split}' at horizon {horizon} is not finite, which is no result: look at the "
                        "data with `hybridworld data verify`, or train the model anew."
                    )


def rows_of(split: str, errors: Errors) -> list[list[str]]:
    """Mean and deviation over the models, beside "no change"."""
    mse, still, nrmse = (
        np.array([errors[h][name] for h in errors]) for name in ("mse", "no_change", "nrmse")
    )  # (horizons, models)
    rows = [[split, "MSE", *in_figures(mse)]]
    if mse.shape[1] > 1:
        deviations = [*mse.std(axis=1, ddof=1), mse.mean(axis=0).std(ddof=1)]
        rows.append(["", "deviation over models", *(f"{number:.2g}" for number in deviations)])
    return [*rows, ["", "no change", *in_figures(still)], ["", "nRMSE", *in_figures(nrmse)]]


def in_figures(numbers: np.ndarray) -> list[str]:
    """Means over the models, and over the horizons as well, in three significant figures."""
    return [f"{number:.3g}" for number in (*numbers.mean(axis=1), numbers.mean())]
