"""`hybridworld bench data`: trajectories and training pairs per second, and the memory they take."""

from functools import partial
from pathlib import Path

from hybridworld.app.durations import time_in_words
from hybridworld.app.progress import stderr
from hybridworld.app.tables import publish
from hybridworld.bench.data import DataTiming, time_data
from hybridworld.data.room import size_in_words
from hybridworld.physics.environment import Environment
from hybridworld.physics.threads import thread_count

HEADERS = (
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


def report_data(
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
        [["", *systems], *([header, *numbers] for header, *numbers in zip(HEADERS, *rows, strict=True))],
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
