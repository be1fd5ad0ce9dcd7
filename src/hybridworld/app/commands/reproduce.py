"""The command `reproduce`, which measures what the paper publishes."""

from pathlib import Path
from typing import Annotated

import typer

commands = typer.Typer()


@commands.command(epilog="For example: hybridworld reproduce all --scale laptop --scale ball3d=paper")
def reproduce(
    entry: Annotated[str, typer.Argument(metavar="ID|all", help="An entry from --list, or all of them.")] = "all",
    scale: Annotated[
        list[str] | None, typer.Option(help="smoke, laptop or paper; ball3d=paper for one system (may be given several times).")
    ] = None,
    system: Annotated[list[str] | None, typer.Option(help="Only this system (may be given several times).")] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SYSTEM=FILE",
            help="Judge this model instead of a trained one (once per seed); ablations are trained all the same.",
        ),
    ] = None,
    wishes: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Change a setting of all trainings (several times).")
    ] = None,
    cache: Annotated[Path, typer.Option(help="Folder of data, runs and results; what is there is not made again.")] = Path(
        "cache"
    ),
    out: Annotated[Path, typer.Option(help="Folder for results.md, claims.md and the figures.")] = Path("out/reproduce"),
    trains: Annotated[
        bool, typer.Option("--train/--no-train", help="Train what is missing, or leave out what needs it.")
    ] = True,
    show_list: Annotated[bool, typer.Option("--list", help="List what there is to reproduce.")] = False,
) -> None:
    """Every table, figure and ablation of the paper: measured, beside the paper's numbers, with a verdict per claim."""
    from hybridworld.app.reproduce import list_entries
    from hybridworld.app.reproduce import reproduce as reproduce_entries

    if show_list:
        list_entries()
    else:
        reproduce_entries(entry, scale or ["smoke"], system or [], model or [], wishes or [], cache, out, trains)
