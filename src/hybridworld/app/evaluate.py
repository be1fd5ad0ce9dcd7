"""`hybridworld evaluate`: trained models on trajectories they have not seen."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hybridworld.app.loading import load_model
from hybridworld.app.progress import stderr
from hybridworld.app.tables import publish
from hybridworld.bench.evaluation import Errors, evaluate
from hybridworld.physics.environment import Environment


def evaluate_models(
    names: Sequence[str], backbone: str | None, environment: Environment | None, data: Path, splits: Sequence[str] | None,
    horizons: Sequence[int] | None, count: int, as_json: bool, out: Path | None, device: str | None = None,
) -> None:  # fmt: skip
    """Print the errors of models per split and horizon; several models are seeds of one: mean and deviation."""
    bundles = [load_model(name, backbone, environment, device) for name in names]
    with stderr.status("") as status:
        found = evaluate(names, bundles, environment, data, splits, horizons, count, status.update)
    config = bundles[0].config
    publish(
        found,
        [
            ["split", "", *(f"h = {h}" for h in next(iter(found.values()))), "mean"],
            *(row for split, errors in found.items() for row in rows_of(split, errors)),
        ],
        f"{bundles[0].surrogate.spec.name}: errors of trained models",
        f"{len(names)} model{'s' if len(names) > 1 else ''} ({config.surrogate.backbone}, "
        f"{'with' if config.surrogate.params else 'without'} parameters); {count} pairs per horizon and split, every "
        "trajectory equally often. MSE is that of normalised states, nRMSE the rms error over the rms of the truth, averaged "
        "over channels.",
        as_json,
        out,
        "hybridworld evaluate",
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
