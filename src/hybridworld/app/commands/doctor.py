"""The command `doctor`, which checks this machine."""

import typer

from hybridworld.app.options import JsonOption

commands = typer.Typer()


@commands.command()
def doctor(json: JsonOption = False) -> None:
    """Does everything work on this machine? Versions, threads, engines, disk, solvers, models that ship."""
    from hybridworld.app.doctor import examine

    if not examine(json):
        raise typer.Exit(1)
