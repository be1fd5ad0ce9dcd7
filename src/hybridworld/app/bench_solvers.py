"""`hybridworld bench solvers`: compiled solvers against their NumPy twins."""

from functools import partial
from pathlib import Path

from hybridworld.app.progress import progress_bar
from hybridworld.app.tables import publish
from hybridworld.bench.solvers import SolverTiming, ticks, time_solver
from hybridworld.physics.environment import Environment

HEADERS = ("system", "batch", "NumPy", "compiled", "gain", "float32", "gain", "difference", "warm-up")


def report_solvers(environments: list[Environment], frames: int, repeats: int, as_json: bool, out: Path | None) -> None:
    """Measure, then print a table, or one JSON object: system -> timings."""
    timings: dict[str, SolverTiming] = {}
    with progress_bar() as bar:
        for environment in environments:
            task = bar.add_task(environment.spec.name, total=ticks(environment, repeats))
            timings[environment.spec.name] = time_solver(environment, frames, repeats, partial(bar.advance, task))
    publish(
        {name: timing.as_dict() for name, timing in timings.items()},
        [HEADERS, *([name, *solver_cells(timing)] for name, timing in timings.items())],
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
