"""`hybridworld generate`: a dataset, with its price before and a bar meanwhile."""

from pathlib import Path

from hybridworld.app.durations import time_in_words
from hybridworld.app.progress import progress_bar, stderr
from hybridworld.data.dataset import Dataset
from hybridworld.data.generate import check_room, estimate_seconds, generate
from hybridworld.data.plan import Plan
from hybridworld.data.room import size_in_words
from hybridworld.physics.threads import thread_count


def generate_dataset(plan: Plan, root: Path, workers: int | None, dask: str | None) -> Dataset:
    """Say what it will cost, then make it; the same call goes on after an interruption."""
    workers = workers or thread_count()
    check_room(plan, root)
    shown = ", ".join(f"{split} {n}" for split, n in plan.counts.items())
    name = plan.environment.spec.name
    stderr.print(f"{name}: {shown}; {len(plan.shards)} shards below {root}", highlight=False, soft_wrap=True)
    seconds = estimate_seconds(plan, workers)
    team = "1 worker" if workers == 1 else f"{workers} workers"
    stderr.print(f"{size_in_words(plan.nbytes)}, about {time_in_words(seconds)} on {team}", highlight=False)
    with progress_bar() as bar:
        task = bar.add_task("trajectories", total=sum(plan.counts.values()))
        try:
            generate(plan, root, workers, dask, lambda shard: bar.advance(task, shard.count))
        except KeyboardInterrupt:
            raise KeyboardInterrupt("Interrupted: run the same command again, it goes on from there.") from None
    return Dataset(root)
