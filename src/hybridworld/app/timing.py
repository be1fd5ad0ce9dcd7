"""`hybridworld bench`: the tables."""

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from hybridworld.app.progress import progress_bar, stderr
from hybridworld.app.words import size_in_words, time_in_words
from hybridworld.data.provenance import footnote
from hybridworld.evaluate.bench_data import DataTiming, time_data
from hybridworld.evaluate.bench_solvers import SolverTiming, ticks, time_solver
from hybridworld.physics.environment import Environment
from hybridworld.physics.threads import thread_count

SOLVER_HEADERS = ("system", "batch", "NumPy", "compiled", "gain", "float32", "gain", "difference", "warm-up")
DATA_HEADERS = (
    "measured on",
    "solver alone",
    "to disk",
    "share of the solver",
    "the full set",
    "pairs from disk",
    "pairs from stream",
    "the paper's U-Net takes",
    "slower source over that",
    "memory, generating",
    "memory, loading",
)


def show_solvers(environments: list[Environment], frames: int, repeats: int, as_json: bool, out: Path | None) -> None:
    """Measure, then print a table, or one JSON object: system -> timings."""
    timings: dict[str, SolverTiming] = {}
    with progress_bar() as bar:
        for environment in environments:
            task = bar.add_task(environment.spec.name, total=ticks(environment, repeats))
            timings[environment.spec.name] = time_solver(environment, frames, repeats, partial(bar.advance, task))
    publish(
        {name: timing.as_dict() for name, timing in timings.items()},
        [SOLVER_HEADERS, *([name, *solver_cells(timing)] for name, timing in timings.items())],
        "Compiled solvers against their NumPy twins",
        f"Milliseconds for {frames} frames, the best of {repeats}; fields averaged over the first test trajectories, one at a "
        "time on all threads; state vectors as a batch. Warm-up is the first call of a process, with kernels from the disk "
        "cache where there are any. The difference between the two forms is the largest one, relative to the largest value "
        "of its channel.",
        as_json,
        out,
    )


def solver_cells(timing: SolverTiming) -> list[str]:
    """The numbers of one row, as text."""
    single = timing.float32_ms
    return [
        str(timing.batch),
        f"{timing.numpy_ms:.4g}",
        f"{timing.compiled_ms:.3g}",
        f"{timing.speedup:.3g}x",
        f"{single:.3g}" if single else "-",
        f"{timing.numpy_ms / single:.3g}x" if single else "-",
        f"{timing.max_relative_difference:.1e}",
        f"{timing.warmup_s:.2g} s",
    ]


def show_data(
    environments: list[Environment], count: int | None, dtype: str, workers: int | None, as_json: bool, out: Path | None
) -> None:
    """Measure, then print a table, or one JSON object: system -> rates and memory."""
    timings: dict[str, DataTiming] = {}
    with stderr.status("") as status:
        for environment in environments:
            name = environment.spec.name
            tell = partial(lambda name, what: status.update(f"{name}: {what}"), name)
            timings[name] = time_data(environment, count, workers or thread_count(), dtype, tell)
    systems = list(timings)
    rows = [data_cells(timings[name]) for name in systems]
    publish(
        {name: timing.as_dict() for name, timing in timings.items()},
        [["", *systems], *([header, *numbers] for header, *numbers in zip(DATA_HEADERS, *rows, strict=True))],
        "Data: trajectories, training pairs, memory",
        f"{dtype} trajectories; workers solve one trajectory at a time each. `solver alone` records every frame in memory; "
        "`to disk` adds the HDF5 file, fsync and sha256. Pairs are augmented, in batches of 8 (128 state vectors). The U-Net's "
        "rate is an upper bound: three times its forward arithmetic at the rate of a large matrix product here. Memory is "
        "that of a fresh process beyond its start, for some trajectories and for four times as many; splits below 256 MB are "
        "loaded whole. Files are written past the system's cache, so pairs come from a cold disk.",
        as_json,
        out,
    )


def data_cells(timing: DataTiming) -> list[str]:
    """The numbers of one system, as text."""
    return [
        f"{timing.trajectories} on {timing.workers} workers",
        f"{timing.solver_rate:.3g} /s",
        f"{timing.generated_rate:.3g} /s",
        f"{timing.share_of_solver:.0%}",
        f"{timing.full_size}, {size_in_words(timing.full_bytes)}, {time_in_words(60 * timing.full_minutes)}",
        f"{timing.disk_pairs:.3g} /s",
        f"{timing.stream_pairs:.3g} /s",
        f"{timing.unet_pairs:.3g} /s at most" if timing.unet_pairs else "-",
        f"{min(timing.disk_pairs, timing.stream_pairs) / timing.unet_pairs:.0f}x" if timing.unet_pairs else "-",
        " / ".join(f"{memory:.0f} MB" for memory in timing.generation_memory),
        " / ".join(f"{memory:.0f} MB" for memory in timing.loading_memory),
    ]


def publish(content: dict, rows: list[Sequence[str]], title: str, how: str, as_json: bool, out: Path | None) -> None:
    """Print rows (the first is the header) or the content as JSON; write the rows as Markdown, with their provenance."""
    if as_json:
        print(json.dumps(content, indent=2))
    else:
        table = Table(*rows[0], box=None, header_style="dim", padding=(0, 0, 0, 1))
        for row in rows[1:]:
            table.add_row(*row)
        console = Console(highlight=False)
        console.print(f"[bold]{title}[/bold]")
        console.print(table)
        console.print(f"[dim]{how}\n{footnote()}[/dim]", soft_wrap=True)
    if out:
        lines = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
        body = "\n".join(f"| {' | '.join(row)} |" for row in lines)
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(f"# {title}\n\nMade by `make bench`. {how}\n\n{body}\n\n{footnote()}\n")
