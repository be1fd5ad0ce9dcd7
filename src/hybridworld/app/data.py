"""`hybridworld data`: datasets shown and verified."""

import json
from pathlib import Path

from rich.console import Console
from rich.table import Table

from hybridworld.app.progress import progress_bar
from hybridworld.data.atomic import make_folder
from hybridworld.data.dataset import Dataset
from hybridworld.data.manifest import Manifest
from hybridworld.data.room import size_in_words
from hybridworld.data.verification import verify


def show_dataset(root: Path, as_json: bool, pictures: Path | None) -> None:
    """Print what a dataset holds, and draw the first trajectory of each split."""
    dataset, manifest = Dataset(root), Manifest.load(root)
    spec = dataset.spec
    if as_json:
        print(json.dumps(describe(dataset, manifest), indent=2))
        return
    from hybridworld.figures.trajectories import draw_trajectory

    console = Console(highlight=False)
    grid = " x ".join(map(str, spec.grid)) if spec.grid else "state vector"
    console.print(f"[bold]{spec.name}[/bold]  {', '.join(spec.channels)}; {grid}", soft_wrap=True)
    console.print(
        f"  {dataset.frames} frames, {spec.frame_step:g} apart; {'made here' if manifest else 'no manifest: not made here'}"
    )
    if dataset.ignored:
        console.print(f"  not part of the state: {', '.join(dataset.ignored)}", soft_wrap=True)
    table = Table(box=None, header_style="dim", padding=(0, 0, 0, 2))
    for header in ("split", "trajectories", "size", *(parameter.name for parameter in spec.params)):
        table.add_column(header)
    folder = pictures or root / "pictures"
    make_folder(folder)
    for split in dataset.splits:
        draw_trajectory(spec, dataset.trajectory(split, 0), f"{spec.name}, {split} 0", folder / f"{split}.png")
        values = dataset.params(split)
        ranges = [f"{low:.3g}..{high:.3g}" for low, high in zip(values.min(axis=0), values.max(axis=0), strict=True)]
        table.add_row(split, str(dataset.count(split)), size_in_words(dataset.nbytes(split)), *ranges)
    console.print(table)
    console.print(f"  a picture per split: {folder}", soft_wrap=True)


def describe(dataset: Dataset, manifest: Manifest | None) -> dict[str, object]:
    """What a dataset holds, as plain data for JSON."""
    spec = dataset.spec
    return {
        "name": spec.name,
        "channels": list(spec.channels),
        "grid": list(spec.grid),
        "frames": dataset.frames,
        "frame_step": spec.frame_step,
        "parameters": [parameter.name for parameter in spec.params],
        "ignored": list(dataset.ignored),
        "has_manifest": manifest is not None,
        "splits": {split: {"trajectories": dataset.count(split), "bytes": dataset.nbytes(split)} for split in dataset.splits},
    }


def verify_dataset(root: Path) -> int:
    """Print each fault with the name of its file; returns how many there are."""
    with progress_bar() as bar:
        task = bar.add_task("files")
        found = verify(root, lambda done, total: bar.update(task, completed=done, total=total))
    for name, fault in found.faults.items():
        print(f"{name}: {fault}")
    if not found.faults:
        how = (
            "every byte is as the manifest says"
            if found.manifest
            else "the layout is right, all values are finite (no manifest)"
        )
        print(f"{root}: {found.files} files, {how}.")
    return len(found.faults)
