"""`hybridworld generate` and `hybridworld data`: datasets made, shown and verified."""

import json
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from hybridworld.app.progress import progress_bar, stderr
from hybridworld.app.words import time_in_words
from hybridworld.data.atomic import make_folder
from hybridworld.data.dataset import Dataset
from hybridworld.data.format_check import format_faults
from hybridworld.data.generate import check_room, estimate_seconds, generate
from hybridworld.data.manifest import Manifest
from hybridworld.data.plan import Plan, at_scale, parse_counts
from hybridworld.data.room import size_in_words
from hybridworld.errors import InvalidInput
from hybridworld.physics.environment import Environment
from hybridworld.physics.threads import thread_count


def generate_dataset(
    environment: Environment,
    root: Path,
    scale: str | None,
    count: str | None,
    splits: list[str] | None,
    dtype: str,
    workers: int | None,
    dask: str | None,
) -> None:
    """Say what it will cost, then make it; the same command goes on after an interruption."""
    if scale and count:
        raise InvalidInput("Give --scale or --count, not both.")
    environment, counts = (environment, parse_counts(count)) if count else at_scale(environment, scale or "laptop")
    for split in splits or ():
        environment.spec.regime(split)
    plan = Plan(environment, {split: n for split, n in counts.items() if not splits or split in splits}, dtype)
    workers = workers or thread_count()
    check_room(plan, root)
    shown = ", ".join(f"{split} {n}" for split, n in plan.counts.items())
    stderr.print(f"{environment.spec.name}: {shown}; {len(plan.shards)} shards below {root}", highlight=False, soft_wrap=True)
    seconds = estimate_seconds(plan, workers)
    stderr.print(f"{size_in_words(plan.nbytes)}, about {time_in_words(seconds)} on {workers} workers", highlight=False)

    total = sum(plan.counts.values())
    with progress_bar() as bar:
        task = bar.add_task("trajectories", total=total)
        try:
            generate(plan, root, workers, dask, lambda shard: bar.advance(task, shard.count))
        except KeyboardInterrupt:
            raise KeyboardInterrupt("Interrupted: run the same command again, it goes on from there.") from None
    Console(highlight=False).print(f"{total} trajectories in {root}. Next: hybridworld data info {root}", soft_wrap=True)


def show_dataset(root: Path, as_json: bool, pictures: Path | None) -> None:
    """Print what is there; draw the first trajectory of each split."""
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
    """The same as plain data."""
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
    manifest = Manifest.load(root)
    files = sorted(path for path in root.glob("data/*/*") if path.suffix in (".hdf5", ".h5"))
    if not files and manifest is None:
        raise InvalidInput(f"{root} holds no dataset: there is no manifest.json and no data/SPLIT/*.hdf5.")
    faults: dict[str, str] = {}
    with progress_bar() as bar:
        task = bar.add_task("files", total=max(len(manifest.shards), len(files)) if manifest else len(files))
        if manifest:
            for name, fault in manifest.verify(root):
                bar.advance(task)
                if fault:
                    faults[name] = fault
        for path in files:
            name = path.relative_to(root).as_posix()
            found = [] if name in faults else format_faults(path)
            if not found and not manifest:
                found = not_finite(path)
            if found:
                faults[name] = "; ".join(found)
            if not manifest:
                bar.advance(task)
    for name, fault in faults.items():
        print(f"{name}: {fault}")
    if not faults:
        how = "every byte is as the manifest says" if manifest else "the layout is right, all values are finite (no manifest)"
        print(f"{root}: {len(files)} files, {how}.")
    return len(faults)


def not_finite(path: Path) -> list[str]:
    """Fields of a foreign file that hold nan or infinity; ours were checked when they were made."""
    import h5py

    with h5py.File(path) as file:
        return [
            f"{name} holds values that are not finite"
            for rank in range(3)
            for name, field in file[f"t{rank}_fields"].items()
            if not all(np.isfinite(field[row]).all() for row in range(len(field)))
        ]
