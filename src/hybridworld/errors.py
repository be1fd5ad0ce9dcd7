"""The two ways in which a request can fail. Each message is one sentence that names the value and what is allowed."""

from collections.abc import Iterable
from difflib import get_close_matches


class HybridWorldError(Exception):
    """What the command line prints as one sentence instead of a traceback."""


class InvalidInput(HybridWorldError, ValueError):
    """The caller asked for something that cannot be: a wrong shape, an unphysical value, an unknown name."""


class SolverFailure(HybridWorldError, RuntimeError):
    """The solver left the realm of finite numbers, though its input was valid."""


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: which known one it resembles, if any."""
    close = get_close_matches(name, list(known), n=1)
    return f" Did you mean '{close[0]}'?" if close else ""
