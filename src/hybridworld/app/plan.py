"""`hybridworld plan`: tasks in, what an agent made of them out."""

import json as json_text
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from hybridworld.app.loading import load_hybrid
from hybridworld.app.progress import stderr
from hybridworld.bench.intervals import share_interval
from hybridworld.data.atomic import make_folder
from hybridworld.deploy.plan import Episode, Planner, act
from hybridworld.errors import InvalidInput
from hybridworld.physics.environment import Environment
from hybridworld.trust.calibration import check_keep_fraction


def plan_tasks(
    environment: Environment, backend: str, model: str | None, count: int, seed: int, seconds: float | None, decisions: int,
    horizon: int, split: str, q: float, out: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Plan, act and tell; the film of the first task goes below `out`."""
    check_keep_fraction(q)
    spec = environment.spec
    hybrid = None if backend == "solver" else load_hybrid(model or spec.name, environment, engine=None)
    rows: list[dict[str, Any]] = []
    film = None
    with stderr.status("") as status:
        for number in range(seed, seed + count):
            status.update(f"task {number}")
            sample = environment.initial(split, number)
            task = environment.task(np.random.default_rng([1, number]), sample.state)
            if task is None:
                raise InvalidInput(f"{spec.name} has no task to give to an agent: its class may define `task`.")
            rng = np.random.default_rng([2, number])
            planner = Planner(environment, task, backend, hybrid, horizon, seconds=seconds, q=q, rng=rng)
            episode = act(planner, sample.state, sample.params, decisions)
            rows.append(told(number, episode))
            if film is None and out is not None:
                status.update("drawing")
                film = draw_film(environment, episode, make_folder(out) / f"{spec.name}-plan-{backend}-{number}.gif")
    reached = sum(row["success"] for row in rows)
    _, low, high = share_interval(np.array([row["success"] for row in rows]))
    content = {
        "system": spec.name, "backend": backend, "seconds_per_decision": seconds, "tasks": rows, "success": reached / len(rows),
        "interval": [low, high], "film": None if film is None else str(film),
    }  # fmt: skip
    if as_json:
        print(json_text.dumps(content))
        return
    table = Table("task", "", "goal", "missed by", "decisions", "ms each", "candidates", "checked", box=None)
    for row in rows:
        table.add_row(
            str(row["task"]), row["text"], "reached" if row["success"] else "missed", f"{row['missed']:.3f}",
            str(row["decisions"]), f"{1e3 * row['seconds']:.0f}", f"{row['candidates']:.0f}", f"{row['checked']:.1f}",
        )  # fmt: skip
    console = Console(highlight=False)
    console.print(table)
    console.print(f"  {backend}: {reached} of {len(rows)} reached ({low:.0%} to {high:.0%} at 95 % confidence)")
    if film:
        console.print(f"  {film}", soft_wrap=True, markup=False)


def told(number: int, episode: Episode) -> dict[str, Any]:
    """One task, as plain values; seconds, candidates and checks are means over its decisions."""
    plans = episode.plans
    names = ("seconds", "candidates", "checked")
    means = {name: float(np.mean([getattr(each, name) for each in plans] or [0])) for name in names}
    return {
        "task": number, "text": episode.task.text, "success": episode.success, "missed": float(episode.missed[-1]),
        "decisions": len(plans), **means,
    }  # fmt: skip


def draw_film(environment: Environment, episode: Episode, path: Path) -> Path:
    """The true world, all frames of it."""
    from hybridworld.figures.trajectories import animate_trajectory

    animate_trajectory(environment.spec, episode.states, episode.task.text, path, mark=episode.task.mark)
    return path
