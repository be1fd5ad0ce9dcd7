"""The `hybridworld` command: its groups of commands, and how it ends."""

import os
import sys
import warnings
from itertools import pairwise
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from hybridworld import __version__
from hybridworld.app.commands import agents, bench, data, doctor, models, reproduce, systems, training
from hybridworld.errors import HybridWorldError, InvalidInput

GROUPS = (systems, data, training, models, agents, bench, reproduce, doctor)
"""The modules whose commands there are, in the order of `--help`."""


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
for group in GROUPS:
    app.add_typer(group.commands)


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


SPIN = "5000"
"""How often a thread of torch looks for work before it sleeps: some microseconds, the gap between two layers of a network.

Without it two threads train a network on fields at 0.6 of the speed; much more, and they slow down on a busy machine.
"""


def main(arguments: list[str] | None = None) -> None:
    """Run the command; what a user can mend ends with one sentence and exit code 1, an interruption with 130."""
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # torch's threads sleep while they wait: others may need the core
    os.environ.setdefault("GOMP_SPINCOUNT", SPIN)
    warnings.formatwarning = warning_in_words
    try:
        refuse_empty(sys.argv[1:] if arguments is None else arguments)
        app(arguments)
    except HybridWorldError as error:
        sentence = str(error)
    except OSError as error:  # no room, no permission: it names its path
        sentence = f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}."
    except MemoryError:
        sentence = "This takes more memory than there is: ask for less."
    print(f"Error: {sentence}", file=sys.stderr)
    sys.exit(1)


def refuse_empty(arguments: list[str]) -> None:
    """Raise where an option has an empty value: mostly a shell variable that is not set, and no wish for a default."""
    for option, value in pairwise(["", *arguments]):
        name = option if option.startswith("-") and not value else value.removesuffix("=")
        if name.startswith("-") and (not value or value.endswith("=")) and name.strip("-"):
            raise InvalidInput(f"{name} is '': give it a value, or leave it out.")


def warning_in_words(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    """Our own warnings are sentences; others keep the place they come from."""
    ours = category.__module__.startswith("hybridworld.")
    return f"Warning: {message}\n" if ours else f"{filename}:{lineno}: {category.__name__}: {message}\n"


if __name__ == "__main__":
    main()
