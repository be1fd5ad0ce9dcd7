"""Options and arguments that several commands share, and the systems and parameters that they name."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from hybridworld.app import completion
from hybridworld.errors import InvalidInput

if TYPE_CHECKING:
    from hybridworld.deploy.hybrid import HybridModel
    from hybridworld.physics.environment import Environment

Sized = TypeVar("Sized", "Environment", "HybridModel")

SystemArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="SYSTEM",
        help="A name from `hybridworld systems`, path/to/file.py:Class, or a scene for MuJoCo, path/to/scene.xml.",
        autocompletion=completion.systems,
    ),
]
SystemOption = Annotated[
    str | None,
    typer.Option(
        "--system", help="The same, for a system of your own: file.py:Class or scene.xml.", autocompletion=completion.systems
    ),
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
SolverOption = Annotated[
    str | None, typer.Option("--system", help="The solver of a system of your own: file.py:Class or scene.xml.")
]
ObjectsOption = Annotated[
    int | None, typer.Option("--objects", metavar="N", min=1, help="So many objects, where states are sets of objects.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")]
KeepOption = Annotated[float, typer.Option(help="Share of the validation data that mode 2 would keep on the surrogate.")]
CoverageOption = Annotated[float, typer.Option(help="Share of the answers whose error shall stay below its bound.")]
MarkdownOption = Annotated[Path | None, typer.Option("--out", help="Write what is printed as Markdown, with provenance.")]
ResolvedOption = Annotated[
    int,
    typer.Option("--resolved", metavar="K", min=1, help="Reference on a grid K times finer, averaged to the cells."),
]
LogOption = Annotated[
    Path | None,
    typer.Option("--keep", metavar="DIR", help="Keep what the solver answers in mode 2, for `hybridworld refine`."),
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


def parse_params(wishes: list[str] | None) -> dict[str, float]:
    """Name -> value, from texts like `gravity=-3`."""
    found: dict[str, float] = {}
    for wish in wishes or []:
        name, _, value = (part.strip() for part in wish.partition("="))
        if name in found:
            raise InvalidInput(f"--param has '{name}' twice: give it one value.")
        try:
            found[name] = float(value)
        except ValueError:
            raise InvalidInput(f"--param has '{wish}': write for example gravity=-3.") from None
    return found


def with_objects(given: Sized, count: int | None) -> Sized:
    """The system or model for so many objects; as it is where no number was given."""
    if count is None:
        return given
    if not given.spec.objects:
        raise InvalidInput(f"--objects is {count}: a state of {given.spec.name} is not a set of objects.")
    return given.resized((count,))


def chosen_system(argument: str | None, option: str | None, resolved: int = 1, objects: int | None = None) -> "Environment":
    """The system named by the argument or by --system, with its reference on a grid `resolved` times finer."""
    from hybridworld.physics.registry import find_system, known_systems

    if (argument is None) == (option is None):
        names = ", ".join(known_systems())
        raise InvalidInput(f"Name one system, as the argument or with --system: {names}, or path/to/file.py:Class.")
    return with_objects(find_system(argument or option or ""), objects).resolved(resolved)


def own_system(option: str | None) -> "Environment | None":
    """The system that --system names, where a model may do without."""
    return None if option is None else chosen_system(None, option)
