"""The errors of trained models on trajectories they have not seen, per split and horizon, beside those of no change."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from hybridworld.data.dataset import Dataset, check_fits
from hybridworld.deploy.load import solver_of
from hybridworld.errors import HybridWorldError, InvalidInput
from hybridworld.physics.environment import Environment
from hybridworld.surrogate.bundle import Bundle
from hybridworld.surrogate.validation import errors_of_no_change, validation_errors, validation_pairs

Errors = dict[str, dict[str, list[float]]]
"""Horizon -> `no_change`, `mse`, `nrmse` -> one number per model."""


def evaluate(
    names: Sequence[str],
    bundles: Sequence[Bundle],
    environment: Environment | None,
    data: Path,
    splits: Sequence[str] | None,
    horizons: Sequence[int] | None,
    count: int,
    tell: Callable[[str], None] = lambda what: None,
) -> dict[str, Errors]:
    """Split -> the errors of these models on the same pairs; every horizon is answered in one pass.

    By default splits are all but `train` and `val`, and horizons those that the training of the first model lists. `tell` hears
    which split is being evaluated.
    """
    dataset = Dataset(data)
    for model, bundle in zip(names, bundles, strict=True):
        check_fits(model, bundle.surrogate.spec, data, dataset.spec)
        if bundle.surrogate.config.guide and solver_of(bundle, environment) is None:
            raise InvalidInput(
                f"{model} is guided by the solver of {bundle.surrogate.spec.name}: name that system with --system."
            )
    chosen = splits or [each for each in dataset.splits if each not in ("train", "val")]
    if not chosen:
        raise InvalidInput(f"{data} has only {', '.join(dataset.splits)}, which trained the model: name one with --split.")
    asked = sorted(set(horizons or bundles[0].config.training.horizons))
    found = {}
    for split in chosen:
        tell(f"{split}: {count} pairs per horizon")
        found[split] = errors_on(dataset, split, bundles, asked, count)
        check_finite(names, split, found[split])
    return found


def errors_on(dataset: Dataset, split: str, bundles: Sequence[Bundle], horizons: Sequence[int], count: int) -> Errors:
    """The errors of all models on the same pairs of one split."""
    pairs = validation_pairs(dataset.source(split), horizons, count, seed=0)
    still = errors_of_no_change(bundles[0].surrogate, pairs)
    each = [validation_errors(bundle.surrogate, pairs) for bundle in bundles]
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
