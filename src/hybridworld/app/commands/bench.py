"""The commands below `bench`, which measure and publish tables."""

from pathlib import Path
from typing import Annotated

import typer

from hybridworld.app import completion
from hybridworld.app.options import (
    BackboneOption,
    CoverageOption,
    EngineOption,
    JsonOption,
    KeepOption,
    MarkdownOption,
    ModelArgument,
    ResolvedOption,
    SignalOption,
    SolverOption,
    SplitOption,
    SystemArgument,
    SystemOption,
    chosen_system,
    own_system,
)

commands = typer.Typer()
bench = typer.Typer(help="Measure: solvers, data, training, trust, and whether a surrogate is worth it.", no_args_is_help=True)
commands.add_typer(bench, name="bench")


@bench.command("solvers")
def bench_solvers(
    system: SystemOption = None,
    frames: Annotated[int, typer.Option(min=1, help="Frames per call.")] = 64,
    repeats: Annotated[int, typer.Option(min=1, help="Each time is the best of so many.")] = 3,
    json: JsonOption = False,
    out: MarkdownOption = None,
) -> None:
    """Compiled solver against its NumPy twin, in one run, warm-up apart."""
    from hybridworld.app.bench_solvers import report_solvers
    from hybridworld.bench.worth.contenders import has_twin
    from hybridworld.physics.registry import built_in, find_system

    systems = [find_system(system)] if system else [each for each in built_in() if has_twin(each)]
    report_solvers(systems, frames, repeats, as_json=json, out=out)


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
    from hybridworld.app.bench_data import report_data
    from hybridworld.physics.registry import built_in, find_system

    report_data([find_system(system)] if system else built_in(), count, dtype, workers, as_json=json, out=out)


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
    from hybridworld.app.bench_train import report_training
    from hybridworld.physics.registry import built_in, find_system

    report_training([find_system(system)] if system else built_in(), seconds, steps, compile, as_json=json, out=out)


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
    rivals: Annotated[
        bool, typer.Option(help="Ask the rivals of the error map as well: on large grids that takes hours.")
    ] = True,
    engine: EngineOption = "auto",
    backbone: BackboneOption = None,
    system_option: SolverOption = None,
    json: JsonOption = False,
    out: MarkdownOption = None,
) -> None:
    """What the error map is worth: against its rivals, as a gate, as a bound, as an alarm, and what it costs."""
    from hybridworld.app.bench_trust import report_trust

    environment = own_system(system_option)
    report_trust(model, member or [], environment, data, count, q, coverage, json, out, signal, backbone, engine, rivals)


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
    from hybridworld.app.bench_promises import report_promises

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
    from hybridworld.app.bench_tolerance import report_tolerances

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
    grids: Annotated[
        str | None, typer.Option(help="Cells along an axis, as 64,128,256: a model is trained and compared for each.")
    ] = None,
    minutes: Annotated[float, typer.Option(min=0.1, help="With --grids: for each model, its data included.")] = 30.0,
    system_option: SystemOption = None,
    json: JsonOption = False,
    out: Annotated[Path | None, typer.Option(help="Write the tables as Markdown, and the picture beside it.")] = None,
) -> None:
    """Is a surrogate worth it? Time and error of solvers, coarse solvers, modes 1 and 2, in one run, and who wins."""
    from hybridworld.app.bench_worth import report_worth
    from hybridworld.app.bench_worth_grids import report_grids
    from hybridworld.deploy.load import shipped
    from hybridworld.errors import InvalidInput

    environment, name = chosen_system(system, system_option, resolved), system or system_option
    if grids is not None:
        if model is not None:
            raise InvalidInput("--grids trains a model for each grid: leave out --model.")
        report_grids(environment, grids, minutes, horizon or [64], count, split, json, out)
        return
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
    from hybridworld.app.bench_engines import report_engines

    environment = own_system(system_option)
    report_engines(model, environment, horizon, rounds, quick, signal, backbone, as_json=json, out=out)


@bench.command("refine")
def bench_refine(
    model: ModelArgument,
    split: Annotated[str, typer.Option(help="The shift: ood-near or ood-far.", autocompletion=completion.splits)] = "ood-far",
    count: Annotated[int, typer.Option(min=1, help="Trajectories of the shift that are asked about.")] = 500,
    minutes: Annotated[float, typer.Option(metavar="N", min=0.05, help="Budget of the refinement.")] = 10,
    judges: Annotated[int, typer.Option(min=20, help="Fresh trajectories of each split that judge.")] = 1000,
    refined: Annotated[
        str | None, typer.Option(metavar="FILE", help="Compare with this model instead of refining one now.")
    ] = None,
    save: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the refined model as well.")] = None,
    json: JsonOption = False,
    out: MarkdownOption = None,
    backbone: BackboneOption = None,
    system_option: SolverOption = None,
) -> None:
    """Let a model meet a shift and learn from what it defers: deferral before and after, at equal error."""
    from hybridworld.app.bench_refine import report_refinement

    environment = own_system(system_option)
    report_refinement(model, refined, environment, split, count, minutes, judges, json, out, backbone, save)
