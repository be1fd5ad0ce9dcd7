"""`generate` and `data`: datasets made, shown and verified."""

from pathlib import Path
from typing import Annotated

import typer

from hybridworld.app.options import JsonOption, ObjectsOption, ResolvedOption, SystemArgument, SystemOption, chosen_system

commands = typer.Typer()
data = typer.Typer(help="Look at a dataset: what is in it, and whether it is whole.", no_args_is_help=True)
commands.add_typer(data, name="data")


@commands.command()
def generate(
    out: Annotated[str, typer.Option(metavar="DIR", help="Folder of the dataset; an interrupted run goes on there.")],
    system: SystemArgument = None,
    scale: Annotated[str | None, typer.Option(help="smoke (tiny grids), laptop (a tenth), or paper.")] = None,
    count: Annotated[str | None, typer.Option(help="Trajectories per split, for example train=400,val=50.")] = None,
    split: Annotated[list[str] | None, typer.Option(help="Only this split (may be given several times).")] = None,
    dtype: Annotated[str, typer.Option(help="float32, or float16 for half the bytes.")] = "float32",
    workers: Annotated[int | None, typer.Option(min=1, help="Trajectories solved at once (default: one per core).")] = None,
    dask: Annotated[str | None, typer.Option(help="Address of a dask scheduler, or `local`.")] = None,
    resolved: ResolvedOption = 1,
    objects: ObjectsOption = None,
    system_option: SystemOption = None,
) -> None:
    """Make a dataset of trajectories in The Well's layout."""
    from hybridworld.app.generate import generate_dataset
    from hybridworld.data.plan import parse_counts, plan_for
    from hybridworld.physics.arguments import checked_path

    folder, environment = checked_path("--out", out), chosen_system(system, system_option, resolved, objects)
    plan = plan_for(environment, scale, parse_counts(count) if count else None, split, dtype)
    generate_dataset(plan, folder, workers, dask)
    print(f"{sum(plan.counts.values())} trajectories in {out}. Next: hybridworld data info {out}")


@data.command("info")
def data_info(
    root: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the dataset.")],
    json: JsonOption = False,
    pictures: Annotated[Path | None, typer.Option(help="Folder for a picture per split (default: DIR/pictures).")] = None,
) -> None:
    """Show what a dataset holds, with a picture per split; The Well's own datasets work too."""
    from hybridworld.app.data import show_dataset

    show_dataset(root, as_json=json, pictures=pictures)


@data.command("verify")
def data_verify(root: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the dataset.")]) -> None:
    """Check every byte against the manifest, and every file against The Well's layout."""
    from hybridworld.app.data import verify_dataset

    if verify_dataset(root) > 0:
        raise typer.Exit(1)
