"""`predict`, `serve`, `export`, `models`, `card` and `evaluate`: models used, listed and measured."""

from json import dumps
from pathlib import Path
from typing import Annotated

import typer

from hybridworld.app import completion
from hybridworld.app.options import (
    BackboneOption,
    DeviceOption,
    EngineOption,
    JsonOption,
    LogOption,
    MarkdownOption,
    ModelArgument,
    ObjectsOption,
    ParamOption,
    SignalOption,
    SolverOption,
    chosen_system,
    own_system,
    parse_params,
    with_objects,
)
from hybridworld.errors import InvalidInput

commands = typer.Typer()


@commands.command(epilog="For example: hybridworld predict ball3d --horizon 64 --count 16 --check")
def predict(
    model: ModelArgument,
    horizon: Annotated[float, typer.Option(help="Frames ahead; in mode 1 any positive number.")] = 64,
    mode: Annotated[int, typer.Option(help="1: the surrogate alone. 2: the solver answers what the error map flags.")] = 2,
    q: Annotated[
        float | None, typer.Option(help="Share of the validation data that mode 2 would keep on the surrogate (default: 0.75).")
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(help="Instead of q: the largest error, in deviations; what no bound promises is solved."),
    ] = None,
    input: Annotated[
        Path | None, typer.Option(metavar="FILE", help="States: The Well's HDF5, or datasets `state` and `params`.")
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(
            help="Without --input: train, val, test, ood-near or ood-far (default: test).", autocompletion=completion.splits
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Without --input: the first trajectory of the split (default: 0).")] = None,
    count: Annotated[int | None, typer.Option(min=1, help="Without --input: how many trajectories (default: 16).")] = None,
    frame: Annotated[
        int | None, typer.Option(help="Frame of the trajectories to start from (default: 0; of a forecast, its last one).")
    ] = None,
    param: ParamOption = None,
    objects: ObjectsOption = None,
    coverage: Annotated[
        float | None, typer.Option(help="Share of the answers whose error shall stay below its bound (default: 0.9).")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Ask the solver about all of them, and show the true errors.")] = False,
    error_map: Annotated[bool, typer.Option("--map", help="The error map in mode 1 as well; it needs no solver.")] = False,
    signal: SignalOption = None,
    dask: Annotated[str | None, typer.Option(help="Solve on a dask cluster: address of its scheduler, or `local`.")] = None,
    keep: LogOption = None,
    json: JsonOption = False,
    out: Annotated[Path, typer.Option(help="Folder for the files.")] = Path("out"),
    device: DeviceOption = None,
    engine: EngineOption = "auto",
    backbone: BackboneOption = None,
    system_option: SolverOption = None,
) -> None:
    """Answer with a trained model: a table, an HDF5 file and a picture of what comes, and of what to believe."""
    from hybridworld.app.loading import load_hybrid
    from hybridworld.app.predict import predict_to_files, show
    from hybridworld.deploy.answer import Request
    from hybridworld.deploy.question import from_file, from_split

    drawn = {"--split": split, "--seed": seed, "--count": count}
    needless = [name for name, value in drawn.items() if value is not None]
    if input is not None and needless:
        raise InvalidInput(
            f"{needless[0]} chooses trajectories of the solver, and --input gives states: leave out one of them."
        )
    if keep is not None and mode == 1:
        raise InvalidInput("--keep keeps what the solver answers, and in mode 1 that is nothing: leave it out, or use mode 2.")
    changes = parse_params(param)
    hybrid = with_objects(load_hybrid(model, own_system(system_option), backbone, dask, signal, device, engine), objects)
    if input is None:
        question = from_split(hybrid, "test" if split is None else split, seed or 0, count or 16, frame or 0, changes)
    else:
        question = from_file(input, hybrid.spec, frame, changes)
    request = Request(horizon, mode, q, coverage, check, tolerance, error_map)
    told = predict_to_files(model, hybrid, question, request, out, keep)
    if json:
        print(dumps(told, indent=2))
    else:
        show(told)


@commands.command(epilog="For example: hybridworld serve mine=runs/mine/model.safetensors --system mine.py:Mine --port 9000")
def serve(
    models: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MODEL...]",
            help="Names that ship, files, or NAME=FILE (default: all that ship).",
            autocompletion=completion.models,
        ),
    ] = None,
    runs: Annotated[Path, typer.Option(metavar="DIR", help="Bundles that appear there are served as well.")] = Path("runs"),
    host: Annotated[str, typer.Option(help="Where to listen; beyond this machine a token is required.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any free one.")] = 8000,
    token: Annotated[
        str | None, typer.Option(envvar="HYBRIDWORLD_TOKEN", help="Clients must send `Authorization: Bearer TOKEN`.")
    ] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Do not open the page.")] = False,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes that solve (default: one per core).")] = None,
    dask: Annotated[str | None, typer.Option(help="Solve on a dask cluster: address of its scheduler, or `local`.")] = None,
    queue: Annotated[int, typer.Option(min=1, help="Requests that may wait; more are refused with 503.")] = 128,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds until a request is given up with 504.")] = 60,
    solver_seconds: Annotated[float, typer.Option(min=0, help="Solver time per request.")] = 30,
    client_seconds: Annotated[float, typer.Option(min=1, help="Solver time per client and minute.")] = 60,
    keep: LogOption = None,
    keep_most: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Answers kept per model, the newest (default: a gigabyte of them).")
    ] = None,
    engine: EngineOption = "auto",
    backbone: BackboneOption = None,
    system_option: Annotated[
        list[str] | None, typer.Option("--system", help="A system of your own: file.py:Class (may be given several times).")
    ] = None,
) -> None:
    """A page to play with, and the Open Inference Protocol for programs."""
    from hybridworld.app.serve import serve_models
    from hybridworld.serve.limits import Limits

    limits = Limits(queue=queue, seconds=timeout, solver_seconds=solver_seconds, client_seconds=client_seconds)
    own, browser = system_option or [], not no_browser
    where, kept = (host, port, token), (keep, keep_most)
    if serve_models(models, runs, own, backbone, *where, limits, workers, dask, browser, engine, *kept):
        raise typer.Exit(130)


@commands.command(epilog="For example: hybridworld export ball3d --onnx ball3d.onnx")
def export(
    model: ModelArgument,
    onnx: Annotated[Path | None, typer.Option(metavar="FILE", help="Write an ONNX file, with all that mode 2 takes.")] = None,
    backbone: BackboneOption = None,
    system_option: SolverOption = None,
) -> None:
    """Write a model for programs without torch, and check that it answers like the model."""
    from hybridworld.app.export import export_model

    export_model(model, onnx, own_system(system_option), backbone)


@commands.command()
def models(
    model: Annotated[str | None, typer.Argument(metavar="MODEL", help="Show the card of this one.")] = None,
    json: JsonOption = False,
) -> None:
    """List the models that ship; with a name, print its card: data, recipe, price, accuracy, known failures."""
    from hybridworld.app.models import show_card, show_models

    if model is not None:
        show_card(model, as_json=json)
    else:
        show_models(as_json=json)


@commands.command(epilog="For example: hybridworld card runs/mine/model.safetensors --system mine.py:Mine")
def card(
    model: ModelArgument,
    out: Annotated[
        Path, typer.Option(help="Folder for the page; the same as data goes beside the model, or here if that ships.")
    ] = Path("out/models"),
    count: Annotated[
        int | None, typer.Option(min=2, help="Trajectories per split (default: what a minute of the solver gives, 16 to 200).")
    ] = None,
    notes: Annotated[Path | None, typer.Option(metavar="FILE", help="Further known failures, one sentence per line.")] = None,
    release: Annotated[
        bool, typer.Option("--release", help="For maintainers: write the data of a model that ships into the package.")
    ] = False,
    backbone: BackboneOption = None,
    system_option: SolverOption = None,
) -> None:
    """Measure a model on test, ood-near and ood-far, and write its card."""
    from hybridworld.app.card import make_card

    environment = chosen_system(None, system_option) if system_option else None
    make_card(model, backbone, environment, count, notes, out, release)


@commands.command()
def evaluate(
    models: Annotated[list[str], typer.Argument(metavar="MODEL...", help="Trained models (several: seeds of one).")],
    data: Annotated[Path, typer.Option(help="Folder of the dataset.")],
    split: Annotated[list[str] | None, typer.Option(help="Only this split (default: all but train and val).")] = None,
    horizon: Annotated[
        list[int] | None, typer.Option(min=1, help="Frames ahead (may be given several times; default: as the training lists).")
    ] = None,
    count: Annotated[int, typer.Option(min=1, help="Pairs per horizon.")] = 1000,
    device: DeviceOption = None,
    backbone: BackboneOption = None,
    system_option: SolverOption = None,
    json: JsonOption = False,
    out: MarkdownOption = None,
) -> None:
    """The error of trained models on trajectories they have not seen, per split and horizon."""
    from hybridworld.app.evaluate import evaluate_models

    environment = chosen_system(None, system_option) if system_option else None
    evaluate_models(models, backbone, environment, data, split, horizon, count, as_json=json, out=out, device=device)
