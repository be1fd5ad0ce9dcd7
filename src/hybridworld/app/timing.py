"""`hybridworld bench solvers`: the table."""

import json
from pathlib import Path

from rich.console import Console
from rich.table import Table

from hybridworld.app.progress import progress_bar
from hybridworld.evaluate.bench_solvers import SolverTiming, ticks, time_solver
from hybridworld.evaluate.provenance import footnote
from hybridworld.physics.environment import Environment

HEADERS = ("system", "batch", "NumPy", "compiled", "gain", "float32", "gain", "difference", "warm-up")


def show(environments: list[Environment], frames: int, repeats: int, as_json: bool, out: Path | None) -> None:
    """Measure, then print a table, or one JSON object: system -> timings."""
    timings: dict[str, SolverTiming] = {}
    with progress_bar() as bar:
        for environment in environments:
            task = bar.add_task(environment.spec.name, total=ticks(environment, repeats))
            timings[environment.spec.name] = time_solver(environment, frames, repeats, lambda: bar.advance(task))  # noqa: B023
    if as_json:
        print(json.dumps({name: timing.as_dict() for name, timing in timings.items()}, indent=2))
    else:
        table = Table(*HEADERS, box=None, header_style="dim", padding=(0, 0, 0, 1))
        for name, timing in timings.items():
            table.add_row(name, *cells(timing))
        console = Console(highlight=False)
        console.print(f"{frames} frames per call, milliseconds; NumPy: the plain twin of the compiled solver", soft_wrap=True)
        console.print(table)
        console.print(f"[dim]{footnote()}[/dim]", soft_wrap=True)
    if out:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(markdown(timings, frames, repeats))


def cells(timing: SolverTiming) -> list[str]:
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


def markdown(timings: dict[str, SolverTiming], frames: int, repeats: int) -> str:
    """The table for the docs, with its provenance."""
    rows = [HEADERS, ["---"] * len(HEADERS), *([name, *cells(timing)] for name, timing in timings.items())]
    body = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return (
        "# Compiled solvers against their NumPy twins\n\n"
        f"Made by `make bench`. Milliseconds for {frames} frames, the best of {repeats}; fields averaged over the first "
        "test trajectories, one at a time on all threads; state vectors as a batch. Warm-up is the first call of a process, "
        "with kernels from the disk cache where there are any. The difference between the two forms is the largest one, "
        "relative to the largest value of its channel.\n\n"
        f"{body}\n\n{footnote()}\n"
    )
