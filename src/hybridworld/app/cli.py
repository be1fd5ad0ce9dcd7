"""The `hybridworld` command. Each command imports what it needs, so that `--help` answers at once."""

import os
import sys
import warnings
from json import dumps
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from hybridworld import __version__
from hybridworld.app import completion
from hybridworld.errors import HybridWorldError, InvalidInput

if TYPE_CHECKING:
    from hybridworld.physics.environment import Environment


class Interruptible(TyperGroup):
    """Commands that end with a word and exit code 130 when they are interrupted."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stopped:
            print(str(stopped) or "Interrupted.", file=sys.stderr)
            raise typer.Exit(130) from None


app = typer.Typer(
    cls=Interruptible,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
data = typer.Typer(help="Look at a dataset: what is in it, and whether it is whole.", no_args_is_help=True)
app.add_typer(data, name="data")
bench = typer.Typer(help="Measure: solvers, data, training, trust, and whether a surrogate is worth it.", no_args_is_help=True)
app.add_typer(bench, name="bench")

SystemArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="SYSTEM",
        help="A name from `hybridworld systems`, or path/to/file.py:Class.",
        autocompletion=completion.systems,
    ),
]
SystemOption = Annotated[
    str | None,
    typer.Option("--system", help="The same, for a system of your own: file.py:Class.", autocompletion=completion.systems),
]
ModelArgument = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A model that ships (ball3d), or path/to/model.safetensors.",
        autocompletion=completion.models,
    ),
]
BackboneOption = Annotated[
    str | None,
    typer.Option(metavar="FILE.py:NAME", help="The code of a model with a network of yours, or that you wrapped."),
]
SignalOption = Annotated[
    str | None, typer.Option(metavar="NAME", help='What draws the error map, for example "step-doubling + symmetries".')
]
SolverOption = Annotated[str | None, typer.Option("--system", help="The solver of a system of your own: file.py:Class.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")]
KeepOption = Annotated[float, typer.Option(help="Share of the validation data that mode 2 would keep on the surrogate.")]
CoverageOption = Annotated[float, typer.Option(help="Share of the answers whose error shall stay below its bound.")]
MarkdownOption = Annotated[Path | None, typer.Option("--out", help="Write what is printed as Markdown, with provenance.")]
ResolvedOption = Annotated[
    int,
    typer.Option("--resolved", metavar="K", min=1, help="Reference on a grid K times finer, averaged to the cells."),
]
DeviceOption = Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1 ... (default: a GPU where there is one).")]
EngineOption = Annotated[
    str,
    typer.Option(
        envvar="HYBRIDWORLD_ENGINE",
        help="Who runs the network on a CPU: eager, openvino ... (auto: the fastest that agrees here, looked for once).",
        autocompletion=completion.engines,
    ),
]
ParamOption = Annotated[
    list[str] | None, typer.Option("--param", metavar="NAME=VALUE", help="Set a parameter (may be given several times).")
]
SplitOption = Annotated[str, typer.Option(help="train, val, test, ood-near or ood-far.", autocompletion=completion.splits)]
SeedOption = Annotated[int, typer.Option(help="Number of the trajectory within its split.")]


def show_version(wanted: bool) -> None:
    """Print the version and stop there."""
    if wanted:
        print(__version__)
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=show_version)
    ] = False,
) -> None:
    """Hybrid neural world models: fast surrogates of physical dynamics that know when to ask the solver."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command; what a user can mend ends with one sentence and exit code 1, an interruption with 130."""
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # torch's threads sleep while they wait: others may need the core
    warnings.formatwarning = warning_in_words
    try:
        app(arguments)
    except HybridWorldError as error:
        sentence = str(error)
    except OSError as error:  # no room, no permission: it names its path
        sentence = f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}."
    except MemoryError:
        sentence = "This takes more memory than there is: ask for less."
    print(f"Error: {sentence}", file=sys.stderr)
    sys.exit(1)


def warning_in_words(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    """Our own warnings are sentences; others keep the place they come from."""
    ours = category.__module__.startswith("hybridworld.")
    return f"Warning: {message}\n" if ours else f"{filename}:{lineno}: {category.__name__}: {message}\n"


def parse_params(wishes: list[str] | None) -> dict[str, float]:
    """`gravity=-3` of --param, as a mapping."""
    found = {}
    for wish in wishes or []:
        name, _, value = wish.partition("=")
        try:
            found[name.strip()] = float(value)
        except ValueError:
            raise InvalidInput(f"--param has '{wish}': write for example gravity=-3.") from None
    return found


def chosen_system(argument: str | None, option: str | None, resolved: int = 1) -> "Environment":
    """The system named by the argument or by --system, with its reference on a grid `resolved` times finer."""
    from hybridworld.physics.registry import find_system, known_systems

    if (argument is None) == (option is None):
        names = ", ".join(known_systems())
        raise InvalidInput(f"Name one system, as the argument or with --system: {names}, or path/to/file.py:Class.")
    return find_system(argument or option or "").resolved(resolved)


def own_system(option: str | None) -> "Environment | None":
    """The system that --system names, where a model may do without."""
    return None if option is None else chosen_system(None, option)


@app.command()
def systems(system: SystemOption = None, json: JsonOption = False) -> None:
    """List the physical systems: state, parameters, splits."""
    from hybridworld.app import listing
    from hybridworld.physics.registry import find_system, known_systems

    listing.show([find_system(name) for name in ([system] if system else known_systems())], as_json=json)


@app.command()
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


@app.command()
def simulate(
    system: SystemArgument = None,
    split: SplitOption = "test",
    seed: SeedOption = 0,
    frames: Annotated[int | None, typer.Option(help="Frames to simulate (default: a whole trajectory).")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the files.")] = Path("out"),
    gif: Annotated[bool, typer.Option("--gif", help="Write an animation as well.")] = False,
    param: ParamOption = None,
    resolved: ResolvedOption = 1,
    system_option: SystemOption = None,
) -> None:
    """Run the reference solver on one trajectory; write it as HDF5 and as a picture."""
    from hybridworld.app.simulation import simulate_to_files

    environment = chosen_system(system, system_option, resolved)
    simulate_to_files(environment, split, seed, frames, out, gif=gif, params=parse_params(param))


@app.command()
def demo(out: Annotated[Path, typer.Option(help="Folder for the files.")] = Path("out/demo")) -> None:
    """Simulate every built-in system, forecast with the models that ship, and put it on one page."""
    from hybridworld.app.demo import run_demo

    run_demo(out)


@app.command()
def generate(
    out: Annotated[Path, typer.Option(help="Folder of the dataset; an interrupted run goes on there.")],
    system: SystemArgument = None,
    scale: Annotated[str | None, typer.Option(help="smoke (tiny grids), laptop (a tenth), or paper.")] = None,
    count: Annotated[str | None, typer.Option(help="Trajectories per split, for example train=400,val=50.")] = None,
    split: Annotated[list[str] | None, typer.Option(help="Only this split (may be given several times).")] = None,
    dtype: Annotated[str, typer.Option(help="float32, or float16 for half the bytes.")] = "float32",
    workers: Annotated[int | None, typer.Option(min=1, help="Trajectories solved at once (default: one per core).")] = None,
    dask: Annotated[str | None, typer.Option(help="Address of a dask scheduler, or `local`.")] = None,
    resolved: ResolvedOption = 1,
    system_option: SystemOption = None,
) -> None:
    """Make a dataset of trajectories in The Well's layout."""
    from hybridworld.app.datasets import generate_dataset

    generate_dataset(chosen_system(system, system_option, resolved), out, scale, count, split, dtype, workers, dask)


@app.command(epilog="For example: hybridworld train euler2d --resolved 4 --minutes 30")
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
            help="paper, laptop, guided, or smoke (default: laptop; with --minutes guided where the system can be coarsened; "
            "with --from that of the model)."
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
    from hybridworld.app.training import Request, show_settings, train_surrogate

    environment = None if system is system_option is None else chosen_system(system, system_option, resolved)
    chosen = [*(wishes or []), *([] if seed is None else [f"training.seed={seed}"])]
    asked = Request(environment, data, stream, minutes, start, preset, chosen, out, tensorboard, began, device)
    if settings:
        show_settings(asked)
    elif not train_surrogate(asked):
        raise typer.Exit(130)


@app.command(epilog="For example: hybridworld predict ball3d --horizon 64 --count 16 --check")
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
    split: SplitOption = "test",
    seed: Annotated[int, typer.Option(help="Without --input: the first trajectory of the split.")] = 0,
    count: Annotated[int, typer.Option(min=1, help="Without --input: how many trajectories.")] = 16,
    frame: Annotated[
        int | None, typer.Option(help="Frame of the trajectories to start from (default: 0; of a forecast, its last one).")
    ] = None,
    param: ParamOption = None,
    coverage: Annotated[
        float | None, typer.Option(help="Share of the answers whose error shall stay below its bound (default: 0.9).")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Ask the solver about all of them, and show the true errors.")] = False,
    error_map: Annotated[bool, typer.Option("--map", help="The error map in mode 1 as well; it needs no solver.")] = False,
    signal: SignalOption = None,
    dask: Annotated[str | None, typer.Option(help="Solve on a dask cluster: address of its scheduler, or `local`.")] = None,
    json: JsonOption = False,
    out: Annotated[Path, typer.Option(help="Folder for the files.")] = Path("out"),
    device: DeviceOption = None,
    engine: EngineOption = "auto",
    backbone: BackboneOption = None,
    system_option: SolverOption = None,
) -> None:
    """Answer with a trained model: a table, an HDF5 file and a picture of what comes, and of what to believe."""
    from hybridworld.app.models import load_hybrid
    from hybridworld.app.prediction import Request, from_file, from_split, predict_to_files, show

    hybrid = load_hybrid(model, own_system(system_option), backbone, dask, signal, device, engine)
    changes = parse_params(param)
    if input:
        question = from_file(input, hybrid.spec, frame, changes)
    else:
        question = from_split(hybrid, split, seed, count, frame or 0, changes)
    request = Request(horizon, mode, q, coverage, check, tolerance, error_map)
    told = predict_to_files(model, hybrid, question, request, out)
    if json:
        print(dumps(told, indent=2))
    else:
        show(told)


@app.command(epilog="For example: hybridworld serve mine=runs/mine/model.safetensors --system mine.py:Mine --port 9000")
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
    engine: EngineOption = "auto",
    backbone: BackboneOption = None,
    system_option: Annotated[
        list[str] | None, typer.Option("--system", help="A system of your own: file.py:Class (may be given several times).")
    ] = None,
) -> None:
    """A page to play with, and the Open Inference Protocol for programs."""
    from hybridworld.app.serving import serve_models
    from hybridworld.serve.limits import Limits

    limits = Limits(queue=queue, seconds=timeout, solver_seconds=solver_seconds, client_seconds=client_seconds)
    own, browser = system_option or [], not no_browser
    if serve_models(models, runs, own, backbone, host, port, token, limits, workers, dask, browser, engine):
        raise typer.Exit(130)


@app.command(epilog="Your own model: hybridworld calibrate --model file.py:load --system ball3d")
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
    from hybridworld.app.calibration import calibrate_model, calibrate_own, show_calibration

    if (model is None) == (own is None):
        raise InvalidInput("Name the model: one that ships or its file as the argument, or your own code with --model.")
    environment = own_system(system_option)
    if own is not None:
        path = calibrate_own(own, environment, horizons, data, count, out, signal)
    else:
        path = calibrate_model(model or "", backbone, data, environment, count, out, signal, device=device)
    show_calibration(path, own or backbone)


@app.command()
def models(
    model: Annotated[str | None, typer.Argument(metavar="MODEL", help="Show the card of this one.")] = None,
    json: JsonOption = False,
) -> None:
    """List the models that ship; with a name, print its card: data, recipe, price, accuracy, known failures."""
    from hybridworld.app.cards import show_card, show_models

    if model:
        show_card(model, as_json=json)
    else:
        show_models(as_json=json)


@app.command(epilog="For example: hybridworld card ball3d --out docs/models")
def card(
    model: ModelArgument,
    out: Annotated[Path, typer.Option(help="Folder for the page; the same as data stands beside the model.")] = Path(
        "out/models"
    ),
    count: Annotated[
        int | None, typer.Option(min=2, help="Trajectories per split (default: what a minute of the solver gives, 16 to 200).")
    ] = None,
    notes: Annotated[Path | None, typer.Option(metavar="FILE", help="Further known failures, one sentence per line.")] = None,
    backbone: BackboneOption = None,
    system_option: SolverOption = None,
) -> None:
    """Measure a model on test, ood-near and ood-far, and write its card."""
    from hybridworld.app.cards import make_card

    environment = chosen_system(None, system_option) if system_option else None
    make_card(model, backbone, environment, count, notes, out)


@app.command()
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
    from hybridworld.app.evaluation import evaluate_models

    environment = chosen_system(None, system_option) if system_option else None
    evaluate_models(models, backbone, environment, data, split, horizon, count, as_json=json, out=out, device=device)


@app.command(epilog="For example: hybridworld reproduce all --scale laptop --scale ball3d=paper")
def reproduce(
    entry: Annotated[str, typer.Argument(metavar="ID|all", help="An entry from --list, or all of them.")] = "all",
    scale: Annotated[
        list[str] | None, typer.Option(help="smoke, laptop or paper; ball3d=paper for one system (may be given several times).")
    ] = None,
    system: Annotated[list[str] | None, typer.Option(help="Only this system (may be given several times).")] = None,
    model: Annotated[
        list[str] | None, typer.Option(metavar="SYSTEM=FILE", help="Judge this model instead of training one (once per seed).")
    ] = None,
    cache: Annotated[Path, typer.Option(help="Folder of data, runs and results; what is there is not made again.")] = Path(
        "cache"
    ),
    out: Annotated[Path, typer.Option(help="Folder for results.md, claims.md and the figures.")] = Path("out/reproduce"),
    show_list: Annotated[bool, typer.Option("--list", help="List what there is to reproduce.")] = False,
) -> None:
    """Every table, figure and ablation of the paper: measured, beside the paper's numbers, with a verdict per claim."""
    from hybridworld.app.reproduction import list_entries
    from hybridworld.app.reproduction import reproduce as reproduce_entries

    if show_list:
        list_entries()
    else:
        reproduce_entries(entry, scale or ["smoke"], system or [], model or [], cache, out)


@app.command()
def doctor(json: JsonOption = False) -> None:
    """Does everything work on this machine? Versions, threads, engines, disk, solvers, models that ship."""
    from hybridworld.app.doctor import examine

    if not examine(json):
        raise typer.Exit(1)


@data.command("info")
def data_info(
    root: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the dataset.")],
    json: JsonOption = False,
    pictures: Annotated[Path | None, typer.Option(help="Folder for a picture per split (default: DIR/pictures).")] = None,
) -> None:
    """Show what a dataset holds, with a picture per split; The Well's own datasets work too."""
    from hybridworld.app.datasets import show_dataset

    show_dataset(root, as_json=json, pictures=pictures)


@data.command("verify")
def data_verify(root: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the dataset.")]) -> None:
    """Check every byte against the manifest, and every file against The Well's layout."""
    from hybridworld.app.datasets import verify_dataset

    if verify_dataset(root) > 0:
        raise typer.Exit(1)


@bench.command("solvers")
def bench_solvers(
    system: SystemOption = None,
    frames: Annotated[int, typer.Option(min=1, help="Frames per call.")] = 64,
    repeats: Annotated[int, typer.Option(min=1, help="Each time is the best of so many.")] = 3,
    json: JsonOption = False,
    out: MarkdownOption = None,
) -> None:
    """Compiled solver against its NumPy twin, in one run, warm-up apart."""
    from hybridworld.app import timing
    from hybridworld.physics.registry import BUILT_IN, find_system

    timing.show_solvers(
        [find_system(name) for name in ([system] if system else BUILT_IN)], frames, repeats, as_json=json, out=out
    )


@bench.command("data")
def bench_data(
    system: SystemOption = None,
    count: Annotated[int | None, typer.Option(min=4, help="Trajectories to measure on.")] = None,
    dtype: Annotated[str, typer.Option(help="float32 or float16.")] = "float32",
    workers: Annotated[int | None, typer.Option(min=1, help="Trajectories solved at once (default: one per core).")] = None,
    json: JsonOption = False,
    out: MarkdownOption = None,
) -> None:
    """Trajectories and training pairs per second, and the memory they take."""
    from hybridworld.app import timing
    from hybridworld.physics.registry import BUILT_IN, find_system

    timing.show_data(
        [find_system(name) for name in ([system] if system else BUILT_IN)], count, dtype, workers, as_json=json, out=out
    )


@bench.command("train")
def bench_train(
    system: SystemOption = None,
    seconds: Annotated[float, typer.Option(min=0.1, help="Time for each loop, but for two steps at least.")] = 15.0,
    steps: Annotated[int | None, typer.Option(min=2, help="Steps for each loop, whatever time they take.")] = None,
    compile: Annotated[bool, typer.Option("--compile", help="Try torch.compile as well: minutes more.")] = False,
    json: JsonOption = False,
    out: MarkdownOption = None,
) -> None:
    """Training with data, checkpoints and display against a plain loop, in one run, warm-up apart."""
    from hybridworld.app import timing
    from hybridworld.physics.registry import BUILT_IN, find_system

    timing.show_train(
        [find_system(name) for name in ([system] if system else BUILT_IN)], seconds, steps, compile, as_json=json, out=out
    )


@bench.command("trust")
def bench_trust(
    model: ModelArgument,
    data: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the dataset.")],
    member: Annotated[
        list[str] | None, typer.Option(metavar="MODEL", help="Another seed, for the ensemble (may be given several times).")
    ] = None,
    count: Annotated[int, typer.Option(min=40, help="Pairs per horizon and split.")] = 1000,
    q: KeepOption = 0.75,
    coverage: CoverageOption = 0.9,
    signal: SignalOption = None,
    engine: EngineOption = "auto",
    backbone: BackboneOption = None,
    system_option: SolverOption = None,
    json: JsonOption = False,
    out: MarkdownOption = None,
) -> None:
    """What the error map is worth: against its rivals, as a gate, as a bound, as an alarm, and what it costs."""
    from hybridworld.app.trust_report import report_trust

    environment = own_system(system_option)
    report_trust(model, member or [], environment, data, count, q, coverage, json, out, signal, backbone, engine)


@bench.command("promises")
def bench_promises(
    model: ModelArgument,
    trajectories: Annotated[
        int | None,
        typer.Option(min=20, help="That calibrate, and as many that test (default: those of the model's calibration)."),
    ] = None,
    draws: Annotated[int, typer.Option(min=1, help="How often all of them are drawn anew.")] = 20,
    q: KeepOption = 0.75,
    coverage: CoverageOption = 0.9,
    backbone: BackboneOption = None,
    system_option: SolverOption = None,
    json: JsonOption = False,
    out: MarkdownOption = None,
) -> None:
    """Deferral, coverage and false alarms of one model over fresh draws of the trajectories that calibrate and test it."""
    from hybridworld.app.promises import report_promises

    report_promises(
        model, own_system(system_option), trajectories, draws, q, coverage, as_json=json, out=out, backbone=backbone
    )


@bench.command("tolerance", epilog="For example: hybridworld bench tolerance ball3d --tolerance 0.1 --tolerance 0.2")
def bench_tolerance(
    model: ModelArgument,
    tolerance: Annotated[
        list[float] | None, typer.Option(help="In deviations (may be given several times; default: 0.05, 0.1, 0.2, 0.5).")
    ] = None,
    coverage: CoverageOption = 0.9,
    count: Annotated[int, typer.Option(min=1, help="Trajectories per split.")] = 2000,
    data: Annotated[Path | None, typer.Option(metavar="DIR", help="A dataset (default: ask the solver).")] = None,
    signal: SignalOption = None,
    backbone: BackboneOption = None,
    system_option: SolverOption = None,
    json: JsonOption = False,
    out: MarkdownOption = None,
) -> None:
    """What a tolerance costs and delivers: the share that is solved, and the share of errors above it, on every split."""
    from hybridworld.app.tolerance import report_tolerances

    wanted = tolerance or [0.05, 0.1, 0.2, 0.5]
    report_tolerances(model, own_system(system_option), data, wanted, coverage, count, signal, backbone, as_json=json, out=out)


@bench.command("worth", epilog="For example: hybridworld bench worth ball3d --horizon 16 --horizon 64")
def bench_worth(
    system: SystemArgument = None,
    model: Annotated[
        str | None, typer.Option(help="A model that ships, or its file (default: the one that ships for SYSTEM, if any).")
    ] = None,
    horizon: Annotated[list[int] | None, typer.Option(min=1, help="Frames ahead (may be given several times).")] = None,
    count: Annotated[int | None, typer.Option(min=1, help="States (default: 64 on grids, else 256).")] = None,
    split: SplitOption = "test",
    resolved: ResolvedOption = 1,
    signal: SignalOption = None,
    engine: EngineOption = "auto",
    backbone: BackboneOption = None,
    system_option: SystemOption = None,
    json: JsonOption = False,
    out: Annotated[Path | None, typer.Option(help="Write the tables as Markdown, and the picture beside it.")] = None,
) -> None:
    """Is a surrogate worth it? Time and error of solvers, coarse solvers, modes 1 and 2, in one run, and who wins."""
    from hybridworld.app.worth import report_worth
    from hybridworld.deploy.load import shipped

    environment, name = chosen_system(system, system_option, resolved), system or system_option
    chosen = model or (name if name in shipped() else None)
    report_worth(environment, chosen, backbone, horizon or [64], count, split, json, out, signal, engine)


@bench.command("engines", epilog="For example: hybridworld bench engines euler2d --out docs/benchmarks/engines-euler2d.md")
def bench_engines(
    model: ModelArgument,
    horizon: Annotated[float | None, typer.Option(help="Frames ahead (default: the longest trained horizon).")] = None,
    rounds: Annotated[int, typer.Option(min=3, help="Each time is the least of so many.")] = 20,
    quick: Annotated[bool, typer.Option("--quick", help="Only engines that are ready in seconds, so not `compiled`.")] = False,
    signal: SignalOption = None,
    backbone: BackboneOption = None,
    system_option: SolverOption = None,
    json: JsonOption = False,
    out: MarkdownOption = None,
) -> None:
    """Try every installed engine on a model, in one run; the fastest that agrees with eager torch is remembered."""
    from hybridworld.app.engine_report import report_engines

    environment = own_system(system_option)
    report_engines(model, environment, horizon, rounds, quick, signal, backbone, as_json=json, out=out)


if __name__ == "__main__":
    main()
