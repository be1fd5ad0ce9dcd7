"""The same work on a dask.distributed cluster: a worker that dies costs a retry, not a trajectory."""

import sys
from collections.abc import Callable, Iterator
from typing import Any

from hybridworld.data.plan import Shard
from hybridworld.errors import InvalidInput
from hybridworld.physics.environment import Environment

RETRIES = 3
IN_THE_AIR = 2  # shards per worker, so that memory stays bounded


def on_cluster(
    address: str, workers: int, work: Callable[..., tuple[bytes, dict]], environment: Environment, todo: list[Shard], dtype: str
) -> Iterator[tuple[Shard, bytes, dict[str, Any]]]:
    """(shard, bytes, entry) of each shard as it is done; `address`: of a scheduler, or `local` for processes here."""
    try:
        from distributed import Client, LocalCluster, as_completed
    except ImportError as error:
        raise InvalidInput("--dask needs dask.distributed: pip install 'hybrid-world-models[dask]' brings it.") from error
    ship_by_value(environment)
    cluster = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) if address == "local" else None
    try:
        client = Client(cluster or address, timeout="5s")
    except (OSError, TimeoutError, ValueError) as error:
        raise InvalidInput(f"No dask scheduler answers at '{address}' ({error}).") from error
    try:
        waiting, shards = iter(todo), {}
        running = as_completed(with_results=True)

        def submit_next() -> None:
            if (shard := next(waiting, None)) is not None:
                future = client.submit(work, environment, shard, dtype, pure=False, retries=RETRIES)
                shards[future.key] = shard
                running.add(future)

        for _ in range(IN_THE_AIR * max(len(client.scheduler_info()["workers"]), 1)):
            submit_next()
        for future, (content, entry) in running:
            yield shards.pop(future.key), content, entry
            del future, content  # lets the cluster forget the bytes
            submit_next()
    finally:
        client.close()
        if cluster:
            cluster.close()


def ship_by_value(environment: Environment) -> None:
    """A class from a user's file cannot be imported by a worker, so its code travels with it."""
    import cloudpickle

    module = sys.modules[type(environment).__module__]
    if not module.__name__.startswith("hybridworld.") and module.__spec__ is not None:
        cloudpickle.register_pickle_by_value(module)
