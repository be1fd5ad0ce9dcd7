"""`train` and `calibrate`: models made."""

from json import dumps
from pathlib import Path
from time import monotonic
from typing import Annotated

import typer

from hybridworld.app.options import (
    BackboneOption,
    DeviceOption,
    JsonOption,
    ModelArgument,
    ResolvedOption,
    SignalOption,
    SolverOption,
    SystemArgument,
    SystemOption,
    chosen_system,
    own_system,
)
from hybridworld.errors import InvalidInput

commands = typer.Typer()


@commands.command(epilog="For example: hybridworld train euler2d --resolved 4 --minutes 30")
def train(
    system: SystemArgument = None,
    minutes: Annotated[
        float | None,
        typer.Option(
            metavar="N",
            min=0.05,
            help="A budget for data, training, calibration and a verdict; --data and --stream may be left out.",
        ),
    ] = None,
    data: Annotated[Path | None, typer.Option(metavar="DIR", help="Learn from a dataset; SYSTEM may be left out.")] = None,
    stream: Annotated[bool, typer.Option("--stream", help="Learn from the solver, with no dataset.")] = False,
    start: Annotated[
        str | None, typer.Option("--from", metavar="MODEL", help="Go on from a trained model: its weights, units and network.")
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            help="paper, laptop, guided, pure, or smoke (default: laptop; with --minutes guided where the system can be "
            "coarsened; with --from that of the model)."
        ),
    ] = None,
    wishes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Change a setting (may be given several times); see --settings."),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="The same as --set training.seed=N.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN",
            help="Folder of the run (default: runs/SYSTEM-PRESET or runs/SYSTEM-Nmin); an interrupted one goes on there.",
        ),
    ] = None,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Write RUN/tensorboard as well.")] = False,
    settings: Annotated[
        bool, typer.Option("--settings", help="List every setting with its value and meaning, and train nothing.")
    ] = False,
    device: DeviceOption = None,
    resolved: ResolvedOption = 1,
    system_option: SystemOption = None,
) -> None:
    """Train a surrogate, from a dataset or straight from the solver, for so many epochs or so many minutes."""
    began = monotonic()
    from hybridworld.app.train import show_settings, train_surrogate
    from hybridworld.training.recipe import Request

    environment = None if system is system_option is None else chosen_system(system, system_option, resolved)
    chosen = [*(wishes or []), *([] if seed is None else [f"training.seed={seed}"])]
    asked = Request(environment, data, stream, minutes, start, preset, chosen, out, began, device)
    if settings:
        show_settings(asked)
    else:
        train_surrogate(asked, tensorboard)


@commands.command(epilog="Your own model: hybridworld calibrate --model file.py:load --system ball3d")
def calibrate(
    model: Annotated[
        str | None, typer.Argument(metavar="MODEL", help="A model that ships (ball3d), or path/to/model.safetensors.")
    ] = None,
    own: Annotated[
        str | None,
        typer.Option("--model", metavar="FILE.py:NAME", help="A model of your own: a function, a class, or what returns it."),
    ] = None,
    horizons: Annotated[
        str | None,
        typer.Option(help="With --model: what it answers, as 1,2,4,8 or 1-64 (default: all up to the longest)."),
    ] = None,
    signal: SignalOption = None,
    default: Annotated[
        bool, typer.Option("--default", help="From now on this signal draws the error map where none is named.")
    ] = False,
    data: Annotated[Path | None, typer.Option(metavar="DIR", help="A dataset with `val` (default: ask the solver).")] = None,
    count: Annotated[int | None, typer.Option(min=1, help="Trajectories (default: as the training was set).")] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write there instead of into the model's file.")] = None,
    device: DeviceOption = None,
    backbone: BackboneOption = None,
    system_option: SolverOption = None,
) -> None:
    """Give a model its validation scores: any q then has its threshold, and errors have bounds. `train` ends with this.

    A file holds one calibration per signal: others stay as they are.
    """
    from hybridworld.app.calibrate import calibrate_own, calibrate_to_file, show_calibration

    if (model is None) == (own is None):
        raise InvalidInput("Name the model: one that ships or its file as the argument, or your own code with --model.")
    if own is None and horizons is not None:
        raise InvalidInput("--horizons says what code that --model names answers: a model's file knows its own, leave it out.")
    if own is not None and backbone is not None:
        raise InvalidInput("--backbone is the code of a model's file, and --model is code by itself: leave out one.")
    if own is not None and default:
        raise InvalidInput("--default is for a model's file: code that --model names has one signal, leave it out.")
    environment = own_system(system_option)
    if own is not None:
        found = calibrate_own(own, environment, horizons, data, count, out, signal, device)
    else:
        found = calibrate_to_file(model or "", backbone, data, environment, count, out, signal, device, default)
    show_calibration(*found)


@commands.command(epilog="For example: hybridworld refine ball3d --from log/ball3d --minutes 10")
def refine(
    model: ModelArgument,
    log: Annotated[Path, typer.Option("--from", metavar="LOG", help="What `serve --keep` or `predict --keep` has written.")],
    minutes: Annotated[float, typer.Option(metavar="N", min=0.05, help="A budget for replay, training and evidence.")] = 10,
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="A dataset to replay (default: the solver's trajectories).")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="For a better model (default: NAME-refined.safetensors beside it).")
    ] = None,
    replaced: Annotated[bool, typer.Option("--replace", help="Write a better model over MODEL.")] = False,
    json: JsonOption = False,
    backbone: BackboneOption = None,
    system_option: SolverOption = None,
) -> None:
    """Let a model learn from what it deferred. It is written only if held-out evidence says that it is better."""
    began = monotonic()
    from hybridworld.app.refine import refine_model, show

    told = refine_model(model, log, minutes, began, data, out, replaced, own_system(system_option), backbone)
    if json:
        print(dumps(told, indent=2))
    else:
        show(told)
    if not told["accepted"]:
        raise typer.Exit(1)
