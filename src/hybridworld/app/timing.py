"""`hybridworld bench`: the tables."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hybridworld.app.progress import progress_bar, stderr
from hybridworld.app.tables import publish
from hybridworld.app.words import time_in_words
from hybridworld.bench.data import DataTiming, time_data
from hybridworld.bench.solvers import SolverTiming, ticks, time_solver
from hybridworld.data.room import size_in_words
from hybridworld.physics.environment import Environment
from hybridworld.physics.threads import thread_count

if TYPE_CHECKING:
    from hybridworld.bench.training import TrainTiming

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
        "rate is that of its training steps alone (forward, backward, AdamW; two random states each) on all threads. Memory is "
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
        f"{timing.unet_pairs:.3g} /s" if timing.unet_pairs else "-",
        f"{min(timing.disk_pairs, timing.stream_pairs) / timing.unet_pairs:.0f}x" if timing.unet_pairs else "-",
        " / ".join(f"{memory:.0f} MB" for memory in timing.generation_memory),
        " / ".join(f"{memory:.0f} MB" for memory in timing.loading_memory),
    ]


def show_train(
    environments: list[Environment], seconds: float, steps: int | None, compiled: bool, as_json: bool, out: Path | None
) -> None:
    """Measure, then print a table, or one JSON object: system -> rates of training."""
    from hybridworld.bench.training import time_training  # torch, for which no other table should wait

    timings: dict[str, TrainTiming] = {}
    with stderr.status("") as status:
        for environment in environments:
            name = environment.spec.name
            tell = partial(lambda name, what: status.update(f"{name}: {what}"), name)
            timings[name] = time_training(environment, seconds, steps, compiled, tell)
    columns = [train_cells(timing) for timing in timings.values()]
    headers = list(dict.fromkeys(header for column in columns for header in column))
    publish(
        {name: timing.as_dict() for name, timing in timings.items()},
        [["", *timings], *([header, *(column.get(header, "-") for column in columns)] for header in headers)],
        "Training: our loop beside a plain one",
        "The paper's networks, batches and objective (preset `paper`), on the same cores in one run. The plain loop is what "
        "one writes by hand: batches wait in memory, `torch.optim.AdamW` as it comes, the second (DAgger) term on the whole "
        "batch, nothing else; the same loop is also shown with our objective and without the term. Our loop is the one of "
        "`hybridworld train`: fresh trajectories from a solver in the background, callbacks, and a checkpoint in each round. "
        "Loops take turns in rounds; rates are medians over rounds, in samples per second, after a warm-up. Validation was "
        "timed on one forward pass of pairs per horizon and scaled to the paper's number. The paper's training is its number "
        "of samples at our rate, plus its validations. The network alone makes supervised steps with fused AdamW in the "
        "default memory format; each line below changes one thing.",
        as_json,
        out,
    )


def train_cells(timing: "TrainTiming") -> dict[str, str]:
    """What is said about one system: header -> text."""
    return {
        "batch": f"{timing.batch} on {timing.threads} thread{'s' * (timing.threads > 1)}",
        "plain loop": f"{timing.plain_whole:.3g} /s",
        "plain loop, our objective": f"{timing.plain_share:.3g} /s",
        "plain loop, no second term": f"{timing.plain_none:.3g} /s",
        "our loop": f"{timing.ours:.3g} /s",
        "our loop over the plain one": f"{timing.ratio:.3g}x",
        "the same, with our objective in both": f"{timing.ratio_same_objective:.3g}x",
        "validation": f"{timing.validation_s:.2g} s, {timing.validation_share:.1%} of an epoch",
        "the paper's training": f"{timing.epochs} x {timing.samples} samples, {time_in_words(3600 * timing.paper_hours)}",
        "one state forward": f"{timing.forward_ms:.3g} ms",
        "network alone": f"{timing.net_rate:.3g} /s in batches of {timing.net_batch}",
    } | {f"... {name}": "not available" if gain is None else f"{gain:.2f}x" for name, gain in timing.variants.items()}
