"""What a table of costs and errors says: is the surrogate worth it, and when has it paid for itself?"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from hybridworld.bench.worth.measure import Row
from hybridworld.data.provenance import was_streamed
from hybridworld.physics.spec import StateSpec

SAME, NEAR, IDLE = 1.05, 2.0, 0.8
"""A ratio of times below the first is noise; a ratio of errors below the second is worth a mention; an error above the third
times that of no change at all is no answer."""

Time = Literal["ms", "ms_batched"]
HOW: dict[Time, str] = {"ms": "one state at a time", "ms_batched": "in batches"}


def rival_of(row: Row, rows: Sequence[Row], by: Time) -> Row | None:
    """The fastest solver at the same horizon that is at least as accurate; None if there is none."""
    found = [each for each in rows if each.solver and each.horizon == row.horizon and each.rmse <= row.rmse]
    return min(found, key=lambda each: getattr(each, by), default=None)


def gain_of(row: Row, rows: Sequence[Row], by: Time) -> float | None:
    """How many times faster a surrogate is than that solver: below 1 it is slower."""
    rival = rival_of(row, rows, by) if row.learned else None
    return None if rival is None else getattr(rival, by) / getattr(row, by)


def verdicts(rows: Sequence[Row]) -> list[str]:
    """Sentences about the rows of one horizon: against all solvers, and against those of the system's own scheme alone."""
    own = [row for row in rows if not row.scheme]
    found = [verdict(rows, by) for by in HOW]
    if len(own) < len(rows):
        found += [verdict(own, by, ", against the system's own scheme alone") for by in HOW]
    return found


def verdict(rows: Sequence[Row], by: Time = "ms", against: str = "") -> str:
    """One sentence about the rows of one horizon: does the surrogate beat every solver that is as accurate as it is?

    `against` says which solvers these are, where they are not all.
    """
    head = f"h = {rows[0].horizon}, {HOW[by]}{against}:"
    row = next((each for each in rows if each.kind == "mode 1"), None)
    solvers = [each for each in rows if each.solver]
    if row is None:
        return f"{head} there is no surrogate to judge; one would have to beat {_to_beat(solvers, idle_error(rows), by)}."
    rival, error = rival_of(row, rows, by), f"{row.rmse:.2g} deviations"
    idle = idle_error(rows)
    if idle is not None and row.rmse > IDLE * idle:
        return f"{head} the surrogate's error ({error}) is no better than no change ({idle:.2g} deviations)."
    if rival is None:
        best = _in_short(min(solvers, key=lambda each: each.rmse), by)
        return f"{head} no solver here is as accurate as the surrogate ({error}, {_ms(row, by)}); the nearest is {best}."
    peer = f"the best solver that is at least as accurate ({_in_short(rival, by)})"
    stands = f"at its error ({error}) the surrogate ({_ms(row, by)}) is {standing(row, rival, by)} {peer}"
    return f"{head} {stands}{_nearly(row, solvers, by) if getattr(row, by) < getattr(rival, by) else ''}."


def idle_error(rows: Sequence[Row]) -> float | None:
    """The error of no change at all, if it was measured."""
    return next((each.rmse for each in rows if each.kind == "no change"), None)


def standing(row: Row, rival: Row, by: Time) -> str:
    """The comparison of two times in words, for example `3.4 times slower than`."""
    ratio = getattr(rival, by) / getattr(row, by)
    if 1 / SAME < ratio < SAME:
        return "about as fast as"
    times = max(ratio, 1 / ratio)
    return f"{times:.{int(times < 10)}f} times {'faster' if ratio > 1 else 'slower'} than"


def _nearly(row: Row, solvers: Sequence[Row], by: Time) -> str:
    """A solver that just misses the surrogate's error may be much cheaper than the one that does not."""
    found = [each for each in solvers if row.rmse < each.rmse < NEAR * row.rmse]
    if not found:
        return ""
    near = min(found, key=lambda each: each.rmse)
    return f"; {_quick(near, by)} has {near.rmse / row.rmse:.2g} times its error"


def _to_beat(solvers: Sequence[Row], idle: float | None, by: Time) -> str:
    useful = [each for each in solvers if idle is None or each.rmse <= IDLE * idle] or solvers
    exact, fastest = (min(useful, key=lambda each: (getattr(each, key), getattr(each, by))) for key in ("rmse", by))
    more = "" if fastest is exact else f", or where an error of {fastest.rmse:.2g} deviations will do, {_quick(fastest, by)}"
    return f"{_quick(exact, by)}{more}"


def _quick(row: Row, by: Time) -> str:
    return f"the {row.method} ({_ms(row, by)})"


def _in_short(row: Row, by: Time) -> str:
    return f"{row.method}: {row.rmse:.2g} deviations, {_ms(row, by)}"


def _ms(row: Row, by: Time) -> str:
    return f"{digits(getattr(row, by))} ms"


def digits(value: float) -> str:
    """A number as text with three digits, or all in front of the point."""
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def break_even(invested_s: float | None, solver_ms: float, surrogate_ms: float) -> float | None:
    """Queries after which the seconds invested have come back; None if never, or if it is unknown what was invested."""
    saved = (solver_ms - surrogate_ms) / 1e3
    return None if invested_s is None or saved <= 0 else invested_s / saved


def generation_seconds(spec: StateSpec, reference: Row) -> float:
    """About what a training set of full size takes, at the rate of the solver that was measured in batches."""
    frames = spec.counts["train"] * (spec.frames - 1)
    return frames * reference.ms_batched / 1e3 / reference.horizon


def price(spec: StateSpec, origin: Mapping[str, Any], rows: Sequence[Row]) -> dict[str, Any]:
    """What a surrogate with that provenance cost before its first answer, and after how many answers it has come back.

    `compiled`: because the reference need not run; `equal_error`: because the fastest solver that is as accurate need not.
    """
    references = {row.horizon: row for row in rows if row.kind == "reference"}
    streamed = was_streamed(origin)  # then the solver ran while the network was trained
    made = origin.get("data seconds")  # as long as it took
    if made is None:
        generation = 0.0 if streamed else generation_seconds(spec, references[max(references)])
    else:
        generation = made
    training = origin.get("seconds")
    invested, queries = None if training is None else generation + training, []
    for row in (each for each in rows if each.kind == "mode 1"):
        for by, how in HOW.items():
            reference, rival = references[row.horizon], rival_of(row, rows, by)
            compiled, equal = (
                None if each is None else break_even(invested, getattr(each, by), getattr(row, by))
                for each in (reference, rival)
            )
            queries.append({"horizon": row.horizon, "how": how, "compiled": compiled, "equal_error": equal})
    return {
        "generation_seconds": generation,
        "generation_measured": made is not None,
        "training_seconds": training,
        "queries": queries,
    }
