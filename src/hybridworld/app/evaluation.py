"""`hybridworld evaluate`: trained models on trajectories they have not seen."""

import json
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from hybridworld.app.progress import stderr
from hybridworld.data.dataset import Dataset
from hybridworld.errors import InvalidInput
from hybridworld.surrogate.bundle import load_bundle
from hybridworld.surrogate.validation import Score, scores, scores_of_no_change, validation_pairs


def evaluate_models(models: list[Path], data: Path, splits: list[str] | None, count: int, as_json: bool) -> None:
    """Per split and horizon the error of each model on the same pairs; several models are seeds of one: mean and deviation."""
    dataset, bundles = Dataset(data), [load_bundle(path) for path in models]
    for path, bundle in zip(models, bundles, strict=True):
        here, there = bundle.surrogate.spec, dataset.spec
        if (here.channels, here.grid) != (there.channels, there.grid):
            raise InvalidInput(
                f"{path} is about {here.name} with {', '.join(here.channels)} on the grid {here.grid or 'none'}; "
                f"{data} holds {there.name} with {', '.join(there.channels)} on {there.grid or 'none'}."
            )
    horizons = bundles[0].config.training.horizons
    found: dict[str, tuple[dict[int, Score], list[dict[int, Score]]]] = {}
    with stderr.status("") as status:
        for split in splits or [each for each in dataset.splits if each not in ("train", "val")]:
            status.update(f"{split}: reading pairs")
            pairs = validation_pairs(dataset.source(split), horizons, count, seed=0)
            of_models = []
            for number, bundle in enumerate(bundles):
                status.update(f"{split}: model {number + 1} of {len(bundles)}")
                of_models.append(scores(bundle.surrogate, pairs))
            found[split] = scores_of_no_change(bundles[0].surrogate, pairs), of_models
    content = {
        split: {
            str(h): {
                "no_change": no_change[h].mse,
                "mse": [each[h].mse for each in of_models],
                "nrmse": [each[h].nrmse for each in of_models],
            }
            for h in horizons
        }
        for split, (no_change, of_models) in found.items()
    }
    if as_json:
        print(json.dumps(content, indent=2))
        return
    table = Table(box=None, header_style="dim", padding=(0, 1, 0, 0))
    for header in ("split", "", *(f"h = {h}" for h in horizons), "mean"):
        table.add_column(header, justify="left" if header in ("split", "") else "right")
    for split, rows in content.items():
        mse = np.array([rows[str(h)]["mse"] for h in horizons])  # (horizons, models)
        nothing = np.array([rows[str(h)]["no_change"] for h in horizons])
        table.add_row(split, "normalised MSE", *in_figures(mse.mean(axis=1)), f"{mse.mean():.3g}")
        if len(models) > 1:
            table.add_row(
                "", "deviation over models", *in_figures(mse.std(axis=1, ddof=1)), f"{mse.mean(axis=0).std(ddof=1):.2g}"
            )
        table.add_row("", "no change", *in_figures(nothing), f"{nothing.mean():.3g}")
        nrmse = np.array([rows[str(h)]["nrmse"] for h in horizons]).mean(axis=1)
        table.add_row("", "nRMSE", *in_figures(nrmse), f"{nrmse.mean():.3g}")
    console = Console(highlight=False)
    console.print(table)
    console.print(f"[dim]{count} pairs per horizon; {len(models)} model{'s' if len(models) > 1 else ''}.[/dim]")


def in_figures(numbers: np.ndarray) -> list[str]:
    """Three significant figures each."""
    return [f"{number:.3g}" for number in numbers]
