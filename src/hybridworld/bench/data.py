"""How fast do trajectories and training pairs come, and how much memory do they take? All in one run, on the same cores."""

import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path

from hybridworld.data.dataset import Dataset
from hybridworld.data.generate import estimate_seconds, generate, record_shard
from hybridworld.data.pairs import Pairs, TrajectorySource
from hybridworld.data.plan import Plan, Shard
from hybridworld.data.stream import Stream
from hybridworld.physics.environment import Environment
from hybridworld.physics.threads import thread_limit

BATCH = {True: 8, False: 128}  # on a grid, and of state vectors
SHARDS = 16  # per worker: enough for its memory to be warm
GROWTH = 4  # memory is measured for some trajectories and for so many times as many


@dataclass(frozen=True)
class DataTiming:
    """Rates per second; memory in MB of a process of its own, beyond what it has at rest."""

    trajectories: int
    workers: int
    dtype: str
    solver_rate: float
    generated_rate: float
    share_of_solver: float
    full_size: int
    full_minutes: float
    full_bytes: int
    disk_pairs: float
    stream_pairs: float
    unet_pairs: float | None
    generation_memory: list[float]
    loading_memory: list[float]

    def as_dict(self) -> dict[str, object]:
        """All numbers as plain data."""
        return asdict(self)


def time_data(environment: Environment, count: int | None, workers: int, dtype: str, tell: Callable[[str], None]) -> DataTiming:
    """Measure on `count` train trajectories; `tell` hears what is being measured."""
    spec = environment.spec
    count = count or SHARDS * workers * Plan(environment, {"train": 1}, dtype).shard_size
    plan = Plan(environment, {"train": count}, dtype)
    tell("warm-up")
    estimate_seconds(plan, workers)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "data"
        solver, generated = [], []
        for repeat in range(2):  # the first of each fills caches of the system
            tell(f"solver alone ({repeat + 1} of 2)")
            solver.append(_seconds(_solve_all, plan, workers))
            shutil.rmtree(root, ignore_errors=True)
            tell(f"solver and disk ({repeat + 1} of 2)")
            generated.append(_seconds(generate, plan, root, workers))
        tell("pairs from disk")
        disk = _pairs_rate(environment, Dataset(root).source("train"))
        tell("pairs from the stream")
        with Stream(environment) as stream:
            streamed = _pairs_rate(environment, stream)
        tell("the paper's U-Net")
        unet = unet_rate(environment)
        tell("memory of generation")
        small = 2 * (workers + 1) * plan.shard_size
        large = GROWTH * small
        generation = [peak_memory(_generate_aside, environment, n, workers, dtype) for n in (small, large)]
        tell("memory of loading")
        loading = [peak_memory(_load, environment, n, dtype) for n in (small, large)]
    rate = count / min(generated)
    full = sum(spec.counts.values())
    return DataTiming(
        count, workers, dtype, count / min(solver), rate, min(solver) / min(generated), full, full / rate / 60,
        full * plan.trajectory_bytes, disk, streamed, unet, generation, loading,
    )  # fmt: skip


def _seconds(function: Callable, *arguments: object) -> float:
    began = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - began


def _solve_all(plan: Plan, workers: int) -> None:
    """Solve the trajectories as generation does, without the disk."""

    def work(shard: Shard) -> None:
        with thread_limit(1):
            record_shard(plan.environment, shard)

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(work, plan.shards))


def _pairs_rate(environment: Environment, source: TrajectorySource) -> float:
    """Augmented pairs per second, after the first batch."""
    size = BATCH[bool(environment.spec.grid)]
    pairs = Pairs(source, batch=size, symmetries=environment.symmetries, shifts=True)
    pairs.batch(0)
    batches, began = 0, time.perf_counter()
    while time.perf_counter() - began < 2.0:
        batches += 1
        pairs.batch(batches)
    return batches * size / (time.perf_counter() - began)


def unet_rate(environment: Environment) -> float | None:
    """Samples per second at which the paper's U-Net trains, for itself; None for what is no picture."""
    if len(environment.spec.grid) != 2:
        return None
    # Not above: processes whose memory is measured import this file, and torch would leave them memory to use again.
    from hybridworld.bench.plain_loops import network_rate

    return network_rate(environment)


def peak_memory(function: Callable, *arguments: object) -> float:
    """MB of memory of its own (not of mapped files) that a fresh process needs for a call, beyond what it has before it."""
    context = get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_watched, args=(sender, function, arguments))
    process.start()
    peak = receiver.recv()
    process.join()
    return float(peak)


def _watched(sender, function: Callable, arguments: tuple) -> None:
    peak, over = 0.0, threading.Event()
    function(*arguments, warm=True)
    before = _own_memory()

    def watch() -> None:
        nonlocal peak
        while not over.wait(0.005):
            peak = max(peak, _own_memory() - before)

    thread = threading.Thread(target=watch)
    thread.start()
    function(*arguments)
    over.set()
    thread.join()
    sender.send(peak)


def _own_memory() -> float:
    """Anonymous memory of this process in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) / 1e3
    return 0.0


def _generate_aside(environment: Environment, count: int, workers: int, dtype: str, warm: bool = False) -> None:
    with tempfile.TemporaryDirectory() as folder:
        generate(Plan(environment, {"train": 1 if warm else count}, dtype), Path(folder), 1 if warm else workers)


def _load(environment: Environment, count: int, dtype: str, warm: bool = False) -> None:
    with tempfile.TemporaryDirectory() as folder:
        generate(Plan(environment, {"train": 1 if warm else count}, dtype), Path(folder), 1)
        pairs = Pairs(Dataset(Path(folder)).source("train"), batch=BATCH[bool(environment.spec.grid)])
        for number in range(1 if warm else 50):
            pairs.batch(number)
