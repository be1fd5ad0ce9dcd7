"""From intervals to a verdict: a statement is confirmed, or refuted, only if the whole interval is on one side of its bound."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hybridworld.bench.intervals import Interval
from hybridworld.reproduce.intervals import widened
from hybridworld.reproduce.rows import Missing

Status = Literal["confirmed", "not confirmed", "cannot tell", "not comparable"]
DECISIVE: tuple[Status, ...] = ("not confirmed", "not comparable", "cannot tell")


@dataclass(frozen=True)
class Part:
    """One statement of a claim, and what became of it."""

    name: str
    status: Status
    found: str


def lies(found: Interval, low: float = -np.inf, high: float = np.inf) -> Status:
    """Is the value between low and high? It cannot be told where an end that matters is no number."""
    _, least, most = found
    if (np.isinf(low) or least > low) and (np.isinf(high) or most < high):
        return "confirmed"
    return "not confirmed" if most <= low or least >= high else "cannot tell"


def counted(found: Sequence[Interval], low: float = -np.inf, high: float = np.inf, least: int | None = None) -> Status:
    """Do at least `least` of the values (all, unless said otherwise) lie between low and high?

    If that is false, then confirming it takes an error among the values that are outside, of which there are at least
    count - least + 1; if it is true, then refuting it takes an error among `least` values. Intervals are widened for so many
    looks, so that either error has a chance of at most 5 %, however the values depend on each other.
    """
    count = len(found)
    enough = count if least is None else least
    inside = sum(lies(widened(each, count - enough + 1), low, high) == "confirmed" for each in found)
    outside = sum(lies(widened(each, enough), low, high) == "not confirmed" for each in found)
    if inside >= enough:
        return "confirmed"
    return "not confirmed" if outside > count - enough else "cannot tell"


def together(statuses: Iterable[Status]) -> Status:
    """All statements of a claim must hold: one that is refuted refutes it, one that is not measured leaves it open."""
    found = list(statuses)
    return next((status for status in DECISIVE if status in found), "confirmed" if found else "not comparable")


def part(name: str, find: Callable[[], tuple[Status, str]]) -> Part:
    """A part whose status is found by `find`; rows that are missing make it not comparable."""
    try:
        return Part(name, *find())
    except Missing as missing:
        return Part(name, "not comparable", str(missing))


def in_words(found: Interval, form: str = ".2f") -> str:
    """An interval in words, for example `0.62 (0.60 to 0.64)`."""
    value, low, high = (format(each, form) for each in found)
    return f"{value} ({low} to {high})" if np.isfinite(found.low) else value


def span(found: Sequence[Interval], form: str = ".2f") -> str:
    """The lowest and the highest of several values."""
    values = [each.value for each in found]
    return f"{min(values):{form}} to {max(values):{form}}"
