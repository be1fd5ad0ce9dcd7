"""`hybridworld track`: a model follows true worlds, and how often it has to look."""

import json as json_text
from collections.abc import Sequence

import numpy as np
from rich.console import Console
from rich.table import Table

from hybridworld.app.loading import load_hybrid
from hybridworld.app.progress import stderr
from hybridworld.deploy.track import Look, Tracking, doubting, evenly, track
from hybridworld.physics.arguments import number
from hybridworld.physics.environment import Environment


def track_worlds(
    environment: Environment, model: str | None, limits: Sequence[float], count: int, links: int, horizon: int, split: str,
    as_json: bool,
) -> None:  # fmt: skip
    """Looks per minute and the error of the belief, for each limit of doubt and for as many looks at even intervals.

    All of them follow the same worlds.
    """
    for limit in limits:
        number("The limit of doubt", limit, 0)
    hybrid = load_hybrid(model or environment.spec.name, environment, engine=None)
    samples = [environment.initial(split, k) for k in range(count)]

    def followed(looks: Sequence[Look]) -> list[Tracking]:
        return [
            track(environment, hybrid, samples[k], np.random.default_rng(k), looks[k], links, horizon) for k in range(count)
        ]

    rows = []
    with stderr.status("") as status:
        for limit in limits:
            status.update(f"limit {limit:g}")
            found = followed([doubting(limit)] * count)
            even = followed([evenly(int(each.looks.sum()), links) for each in found])
            row: dict[str, float] = {"limit": limit, "looks_per_minute": float(np.mean([each.per_minute for each in found]))}
            for ending, worlds in (("", found), ("_evenly", even)):
                errors = np.concatenate([each.errors for each in worlds])
                row |= {f"error{ending}": float(errors.mean()), f"p95{ending}": float(np.percentile(errors, 95))}
            rows.append(row)
    if as_json:
        asked = {"system": environment.spec.name, "worlds": count, "links": links, "horizon": horizon}
        print(json_text.dumps({**asked, "rows": rows}))
        return
    table = Table("limit", "looks per minute", "mean error", "p95", "looking evenly: mean error", "p95", box=None)
    for row in rows:
        table.add_row(*(f"{value:.3g}" for value in row.values()))
    Console(highlight=False).print(table)
