"""The same work on a dask.distributed cluster: a worker that dies costs a retry, not a trajectory."""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from hybridworld.data.plan import Shard
from hybridworld.errors import InvalidInput
from hybridworld.physics.environment import Environment

RETRIES = 3
IN_THE_AIR = 2  # shards per worker, so that memory stays bounded
ANY_PORT: dict[str, Any] = {"scheduler_kwargs": {"dashboard_address": ":0"}}  # or dask warns where there is another cluster


class NoCluster(InvalidInput):
    """No scheduler answers at the given address."""


def on_cluster(
    address: str, workers: int, work: Callable[..., tuple[bytes, dict]], environment: Environment, todo: list[Shard], dtype: str
) -> Iterator[tuple[Shard, bytes, dict[str, Any]]]:
    """(shard, bytes, entry) of each shard as it is done; `address`: of a scheduler, or `local` for processes here."""
    with connected(address, workers) as client:
        from distributed import as_completed

        ship_by_value(environment)
        waiting, shards = iter(todo), {}
        running = as_completed(loop=client.loop, with_results=True)

        def submit_next() -> None:
            if (shard := next(waiting, None)) is not None:
                future = client.submit(work, environment, shard, dtype, pure=False, retries=RETRIES)
                shards[future.key] = shard
                running.add(future)

        for _ in range(IN_THE_AIR * max(len(client.nthreads()), 1)):
            submit_next()
        for future, (content, entry) in running:
            yield shards.pop(future.key), content, entry
            del future, content  # lets the cluster forget the bytes
            submit_next()


@contextmanager
def connected(address: str, workers: int) -> Iterator[Any]:
    """A client of the scheduler at that address, or of so many processes here (`local`), which end with it."""
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise InvalidInput("--dask needs dask.distributed: pip install 'hybrid-world-models[dask]' brings it.") from error
    with ExitStack() as held:
        cluster = None
        if address == "local":
            try:
                cluster = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None, **ANY_PORT)
            except RuntimeError as error:
                why = f"dask cannot start processes ({error})"
                raise InvalidInput(f"{why}: a script that does so needs `if __name__ == '__main__':`.") from error
            held.callback(cluster.close)
        try:
            client = Client(cluster or address, timeout="5s", set_as_default=False)  # the caller may use dask for other things
        except (OSError, TimeoutError, ValueError) as error:
            raise NoCluster(f"No dask scheduler answers at '{address}' ({error}).") from error
        held.callback(client.close)
        yield client


def ship_by_value(environment: Environment) -> None:
    """A class from a user's file cannot be imported by a worker, so its code travels with it."""
    import cloudpickle

    module = sys.modules[type(environment.unresolved).__module__]
    if not module.__name__.startswith("hybridworld.") and module.__spec__ is not None:
        cloudpickle.register_pickle_by_value(module)
