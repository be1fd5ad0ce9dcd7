"""`systems`, `check`, `simulate` and `demo`: physical systems."""

from pathlib import Path
from typing import Annotated

import typer

from hybridworld.app.options import (
    JsonOption,
    ObjectsOption,
    ParamOption,
    ResolvedOption,
    SeedOption,
    SplitOption,
    SystemArgument,
    SystemOption,
    chosen_system,
    parse_params,
)

commands = typer.Typer()


@commands.command()
def systems(system: SystemOption = None, json: JsonOption = False) -> None:
    """List the physical systems: state, parameters, splits."""
    from hybridworld.app.systems import show
    from hybridworld.physics.registry import find_system, known_systems

    show([find_system(name) for name in ([system] if system else known_systems())], as_json=json)


@commands.command()
def check(system: SystemArgument = None, resolved: ResolvedOption = 1, system_option: SystemOption = None) -> None:
    """Tell what a system gets wrong, in sentences."""
    from hybridworld.physics.check import check_environment

    environment = chosen_system(system, system_option, resolved)
    findings = check_environment(environment)
    for finding in findings:
        print(f"- {finding}")
    if findings:
        raise typer.Exit(1)
    print(f"{environment.spec.name}: nothing to mend.")


@commands.command()
def simulate(
    system: SystemArgument = None,
    split: SplitOption = "test",
    seed: SeedOption = 0,
    frames: Annotated[int | None, typer.Option(help="Frames to simulate (default: a whole trajectory).")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the files.")] = Path("out"),
    gif: Annotated[bool, typer.Option("--gif", help="Write an animation as well.")] = False,
    param: ParamOption = None,
    resolved: ResolvedOption = 1,
    objects: ObjectsOption = None,
    system_option: SystemOption = None,
) -> None:
    """Run the reference solver on one trajectory; write it as HDF5 and as a picture."""
    from hybridworld.app.simulate import simulate_to_files

    environment = chosen_system(system, system_option, resolved, objects)
    simulate_to_files(environment, split, seed, frames, out, gif=gif, params=parse_params(param))


@commands.command()
def demo(out: Annotated[Path, typer.Option(help="Folder for the files.")] = Path("out/demo")) -> None:
    """Simulate every built-in system, forecast with the models that ship, and put it on one page."""
    from hybridworld.app.demo import run_demo

    run_demo(out)
