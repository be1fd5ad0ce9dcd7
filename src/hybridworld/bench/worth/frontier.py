"""The picture of a table of costs and errors: a panel per horizon for single states, and one for batches."""

from collections.abc import Sequence
from pathlib import Path

from hybridworld.bench.worth.measure import Row
from hybridworld.bench.worth.verdict import HOW, IDLE, Time, idle_error, rival_of, standing
from hybridworld.figures.frontiers import Panel, Point, draw_frontiers

WIDE = 24
"""Letters of a solver's name from which on the sentence above a panel takes two lines."""


def draw_frontier(rows: Sequence[Row], path: Path, title: str) -> None:
    """Write the picture of these rows. Lines of the title after the first are its subtitle."""
    horizons = dict.fromkeys(row.horizon for row in rows)
    draw_frontiers([[panel_of([r for r in rows if r.horizon == h], by) for by in HOW] for h in horizons], path, title)


def panel_of(rows: Sequence[Row], by: Time) -> Panel:
    """The panel of the rows of one horizon."""
    drawn = [row for row in rows if row.kind != "no change"]
    first, count = drawn[0], f" of {drawn[0].states}" if by == "ms_batched" else ""
    return Panel(
        title=f"h = {first.horizon}, {HOW[by]}{count}",
        headline=headline(rows, by),
        points=[Point(row.mark, row.kind, getattr(row, by), row.rmse) for row in drawn],
        levels={"the reference's own error": first.rmse_refined, "no change": idle_error(rows)},
    )


def headline(rows: Sequence[Row], by: Time) -> str:
    """The sentence about who wins."""
    row = next((each for each in rows if each.kind == "mode 1"), None)
    if row is None:
        return "no surrogate to judge: solvers are what one would have to beat"
    idle, rival = idle_error(rows), rival_of(row, rows, by)
    if idle is not None and row.rmse > IDLE * idle:
        return "mode 1 is no better than no change"
    if rival is None:
        return "no solver is as accurate as mode 1"
    ahead = f"mode 1 is {standing(row, rival, by)}"
    rest = f"{rival.mark}, the best solver as accurate"
    return f"{ahead} {rest}" if len(rival.mark) < WIDE else f"{ahead}\n{rest}"
