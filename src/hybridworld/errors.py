"""The ways in which a request can fail. Each message is one sentence that names the value and what is allowed."""

import sysconfig
import traceback
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from textwrap import shorten

LIBRARIES = (str(Path(__file__).parent), sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), "<")
INSTALLED = {"site-packages", "dist-packages"}
"""How the files of code begin that is not the user's own, and the folders in which the rest of it is."""


class HybridWorldError(Exception):
    """What the command line prints as one sentence instead of a traceback."""


class InvalidInput(HybridWorldError, ValueError):
    """The caller asked for something that cannot be: a wrong shape, an unphysical value, an unknown name."""


class SolverFailure(HybridWorldError, RuntimeError):
    """The solver left the realm of finite numbers, though its input was valid."""


class CodeFailure(HybridWorldError, RuntimeError):
    """Code that a user brought along, a system or a network, raised an error or returned what it must not."""


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: which known one it resembles, if any."""
    close = get_close_matches(name, list(known), n=1)
    return f" Did you mean '{close[0]}'?" if close else ""


def raised(error: BaseException) -> str:
    """What was raised, and the line of the user's own code that raised it, if any: frames of libraries are passed over."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [each for each in frames if not (each.filename.startswith(LIBRARIES) or INSTALLED & {*Path(each.filename).parts})]
    where = f" ({own[-1].filename}, line {own[-1].lineno}: {own[-1].line})" if own else ""
    said = shorten(str(error).rstrip("."), 300)
    return f"{type(error).__name__}{': ' if said else ''}{said}{where}"
