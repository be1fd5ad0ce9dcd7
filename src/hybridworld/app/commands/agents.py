"""`plan` and `track`: a model in the hands of an agent."""

from pathlib import Path
from typing import Annotated

import typer

from hybridworld.app.options import JsonOption, KeepOption, SplitOption, SystemArgument, SystemOption, chosen_system

commands = typer.Typer()

ModelOption = Annotated[
    str | None, typer.Option(metavar="MODEL", help="Of the surrogate (default: the one that ships under the system's name).")
]
HorizonOption = Annotated[int, typer.Option(min=1, help="Frames over which an action is held.")]


@commands.command()
def plan(
    system: SystemArgument = None,
    backend: Annotated[str, typer.Option(help="What candidates are tried with: solver, surrogate or hybrid.")] = "hybrid",
    model: ModelOption = None,
    count: Annotated[int, typer.Option(min=1, help="Tasks, numbered from --seed on.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Number of the first task.")] = 0,
    seconds: Annotated[
        float | None, typer.Option(min=0.001, help="Wall time of a decision (default: four rounds of 64 candidates).")
    ] = None,
    decisions: Annotated[int, typer.Option(min=1, help="Actions per task, at most.")] = 15,
    horizon: HorizonOption = 8,
    split: SplitOption = "test",
    q: KeepOption = 0.75,
    gif: Annotated[bool, typer.Option("--gif/--no-gif", help="Write a film of the first task.")] = True,
    out: Annotated[Path, typer.Option(help="Folder for the film.")] = Path("out"),
    json: JsonOption = False,
    system_option: SystemOption = None,
) -> None:
    """Let an agent plan: bring about the tasks of a system, with the solver, the surrogate, or both."""
    from hybridworld.app.plan import plan_tasks

    environment = chosen_system(system, system_option)
    plan_tasks(environment, backend, model, count, seed, seconds, decisions, horizon, split, q, out if gif else None, json)


@commands.command()
def track(
    system: SystemArgument = None,
    model: ModelOption = None,
    limit: Annotated[list[float] | None, typer.Option(help="Doubt at which it looks (may be given several times).")] = None,
    count: Annotated[int, typer.Option(min=1, help="Worlds that are followed.")] = 8,
    links: Annotated[int, typer.Option(min=1, help="Forecasts per world.")] = 32,
    horizon: HorizonOption = 8,
    split: SplitOption = "test",
    json: JsonOption = False,
    system_option: SystemOption = None,
) -> None:
    """Follow the true world with a model that looks only when its error map says so: looks per minute against error."""
    from hybridworld.app.track import track_worlds

    track_worlds(
        chosen_system(system, system_option), model, limit or [0.05, 0.1, 0.2, 0.5], count, links, horizon, split, json
    )
