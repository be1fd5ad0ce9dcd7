"""Make a dataset in which every fault is found: solve, write aside, sync, hash, rename, note it in the manifest.

Each shard is a pure function of the system, the split and its seeds, so whatever interrupts a run, the next one with the same
arguments ends with the same bytes, on any number of workers, here or on a cluster.
"""

import errno
import hashlib
import mmap
import os
import threading
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hybridworld.data.atomic import make_folder, move_into_place, only_one_in, write_atomically
from hybridworld.data.manifest import Manifest
from hybridworld.data.moments import moments, stats_yaml
from hybridworld.data.plan import Plan, Shard
from hybridworld.data.room import check_disk
from hybridworld.data.well import file_image
from hybridworld.errors import HybridWorldError
from hybridworld.physics.environment import Environment, Sample, room_for, stacked
from hybridworld.physics.threads import thread_limit

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
SPARE = 1.02  # of the bytes, for metadata
PATIENCE = 15.0  # seconds for an estimate
PAGE, CHUNK = mmap.PAGESIZE, 2**24


class Finished(NamedTuple):
    """A shard that stands aside on disk, safe but not yet renamed."""

    shard: Shard
    aside: Path
    entry: dict[str, Any]


def generate(
    plan: Plan,
    root: Path,
    workers: int,
    dask: str | None = None,
    report: Callable[[Shard], None] = lambda shard: None,
) -> Manifest:
    """Make what the plan has and the directory lacks. `report` hears of each shard, also of those found done."""
    check_room(plan, root)
    with only_one_in(root, "generator"):
        manifest = Manifest.load(root) or Manifest.of(plan)
        manifest.check_fits(plan, root)
        manifest.identity = plan.environment.identity  # from here on also in a folder of format 1
        todo = [shard for shard in plan.shards if not manifest.has(shard, root)]
        clear_asides(root)
        for shard in plan.shards:
            (root / shard.path).parent.mkdir(parents=True, exist_ok=True)
            if manifest.has(shard, root):
                report(shard)
        manifest.save(root)
        try:
            with closing(_work(plan, root, todo, workers, dask)) as finished:
                for done in finished:
                    move_into_place(done.aside, root / done.shard.path)
                    manifest.shards[str(done.shard.path)] = done.entry
                    manifest.save(root)
                    report(done.shard)
            parts = [entry["moments"] for _, entry in sorted(manifest.shards.items()) if "moments" in entry]
            if parts:
                write_atomically(root / "stats.yaml", stats_yaml(plan.environment.spec, parts).encode())
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            made = sum(manifest.has(shard, root) for shard in plan.shards)
            raise HybridWorldError(
                f"Writing below {root} failed after {made} of {len(plan.shards)} shards ({error.strerror or error}): "
                "make room and run the same command again, it goes on from there."
            ) from error
        finally:
            clear_asides(root)
    return manifest


def clear_asides(root: Path) -> None:
    """Delete what stands aside: shards that an interrupted run did not finish."""
    for aside in root.rglob(".*.part"):
        aside.unlink()


def check_room(plan: Plan, root: Path) -> None:
    """Make the folder; raise if its disk cannot hold what the plan has and the folder lacks."""
    manifest = Manifest.load(root)
    here = sum(entry["bytes"] for entry in manifest.shards.values()) if manifest else 0
    instead = "ask for fewer trajectories, for float16, or for another disk"
    check_disk(SPARE * plan.nbytes - here, make_folder(root), "The dataset", instead)


def estimate_seconds(plan: Plan, workers: int) -> float:
    """About how long the plan takes, from one trajectory of each of its splits (state vectors: from a batch).

    A slow solver is timed until PATIENCE is over; the other splits then count like those before.
    """
    environment, spec = plan.environment, plan.environment.spec
    count = 1 if spec.grid else 64
    first = environment.initial(next(iter(plan.counts)), 0)
    environment.solve(first.state, 1, first.params)  # compiles on the first run
    spent = timed = seconds = 0.0
    with thread_limit(1):
        for split, wanted in plan.counts.items():
            if spent < PATIENCE:
                began = time.perf_counter()
                record_shard(environment, Shard(spec.name, split, 0, 0, count))
                each = time.perf_counter() - began
                spent, timed, seconds = spent + each, timed + wanted, seconds + each * wanted / count
    return seconds / timed * sum(plan.counts.values()) / workers


_memory = threading.local()  # what a worker uses again for each shard: new memory of that size costs as much as the solver


def record_shard(environment: Environment, shard: Shard) -> tuple[list[Sample], np.ndarray]:
    """The samples of a shard's trajectories, and the trajectories (count, channels, frames, *grid).

    The second lies in memory that the next call from the same thread uses again.
    """
    samples = [environment.initial(shard.split, seed) for seed in shard.seeds]
    states, params = stacked(samples)
    frames = environment.spec.frames - 1
    room = getattr(_memory, "room", None)
    if room is None or len(room) < len(states) or room[:1].shape != room_for(states[:1], frames).shape:
        room = _memory.room = room_for(states, frames)
    return samples, environment.record(states, frames, params, room[: len(states)])


def image_memory(size: int) -> np.ndarray:
    """Bytes that begin at a page and have room for whole pages, as direct writing asks for."""
    image = getattr(_memory, "image", None)
    if image is None or image.size < size:
        image = _memory.image = np.frombuffer(mmap.mmap(-1, -(-size // PAGE) * PAGE), np.uint8)
    return image[:size]


def make_shard(environment: Environment, shard: Shard, dtype: str) -> tuple[np.ndarray, dict[str, Any]]:
    """The bytes of a shard's file (in memory that is used again), and its entry in the manifest without size and hash."""
    samples, saved = record_shard(environment, shard)
    states = saved.swapaxes(1, 2)
    image = file_image(
        environment.spec, environment.version, shard.split, shard.seeds, samples, states, dtype, image_memory,
        environment.identity,
    )  # fmt: skip
    entry: dict[str, Any] = {"split": shard.split, "first": shard.first, "count": shard.count}
    return image, entry | ({"moments": moments(saved)} if shard.split == "train" else {})


def shard_bytes(environment: Environment, shard: Shard, dtype: str) -> tuple[bytes, dict[str, Any]]:
    """The bytes of a shard's file and its entry in the manifest, made by a worker on another machine."""
    with thread_limit(1):
        image, entry = make_shard(environment, shard, dtype)
        return image.tobytes(), entry


def seal(root: Path, shard: Shard, content: memoryview, entry: dict[str, Any]) -> Finished:
    """Write a shard's bytes aside, down to the disk, and hash them."""
    path = root / shard.path
    aside = path.with_name(f".{path.name}.part")
    write_through(aside, content)
    return Finished(shard, aside, {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content), **entry})


def write_through(path: Path, content: memoryview) -> None:
    """Write a file down to the disk: past the system's cache if content lies in `image_memory`, which spares a copy."""
    plain = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    image = getattr(_memory, "image", None)
    if image is not None and np.shares_memory(image[:1], np.frombuffer(content, np.uint8)[:1]):
        with suppress(OSError, AttributeError):  # not every system can; what is really wrong comes up below
            _write(path, plain | os.O_DIRECT, image[: -(-len(content) // PAGE) * PAGE].data, len(content))
            return
    _write(path, plain, content, len(content))


def _write(path: Path, flags: int, content: memoryview, size: int) -> None:
    descriptor = os.open(path, flags, 0o644)
    try:
        done = 0
        while done < len(content):
            done += os.pwrite(descriptor, content[done : done + CHUNK], done)
        os.ftruncate(descriptor, size)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _work(plan: Plan, root: Path, todo: list[Shard], workers: int, dask: str | None) -> Generator[Finished]:
    """Finished shards, in whatever order they come."""
    if dask is None:
        yield from _on_threads(plan, root, todo, workers)
        return
    from hybridworld.data.cluster import on_cluster

    for shard, content, entry in on_cluster(dask, workers, shard_bytes, plan.environment, todo, plan.dtype):
        yield seal(root, shard, memoryview(content), entry)


def _on_threads(plan: Plan, root: Path, todo: list[Shard], workers: int) -> Iterator[Finished]:
    """Finished shards: at most `workers` are solved at a time, and one more thread hashes or waits for the disk."""
    stop, solving = threading.Event(), threading.Semaphore(workers)

    def make(shard: Shard) -> Finished | None:
        with solving, thread_limit(1):
            if stop.is_set():
                return None
            image, entry = make_shard(plan.environment, shard, plan.dtype)
        return None if stop.is_set() else seal(root, shard, image.data, entry)

    waiting = iter(todo)
    pending: set[Future] = set()
    with ThreadPoolExecutor(workers + 1) as pool:
        try:
            while True:
                while len(pending) < 2 * (workers + 1) and (shard := next(waiting, None)) is not None:
                    pending.add(pool.submit(make, shard))
                if not pending:
                    return
                done, pending = wait(pending, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        finally:
            stop.set()
