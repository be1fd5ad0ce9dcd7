"""Results as people read them: tables with the paper beside us, and pages of verdicts. Markdown."""

from collections.abc import Sequence

import numpy as np

from hybridworld.bench.intervals import Interval
from hybridworld.data.provenance import footnote
from hybridworld.reproduce import paper
from hybridworld.reproduce.claims import claims_of
from hybridworld.reproduce.entries import Entry
from hybridworld.reproduce.inconsistencies import INCONSISTENCIES
from hybridworld.reproduce.rows import Row
from hybridworld.reproduce.verdicts import Verdict

STATUSES = ("confirmed", "not confirmed", "cannot tell", "not comparable")


def table_of(entry: Entry, rows: Sequence[Row]) -> list[list[str]]:
    """A line per system, split, quantity and signal, a column per x; the paper's numbers stand below ours."""
    places = sorted({row.x for row in rows})
    table = [["system", "split", "quantity", "of", *(heading(entry.symbol, x) for x in places)]]
    for line in dict.fromkeys((row.system, row.split, row.quantity, row.signal) for row in rows):
        by = {row.x: row for row in rows if (row.system, row.split, row.quantity, row.signal) == line}
        table.append([*line, *(in_cell(by[x].interval) if x in by else "" for x in places)])
        published = {x: entry.paper(row) for x, row in by.items()}
        if any(value is not None for value in published.values()):
            cells = (published.get(x) for x in places)
            table.append(["", "", "", "paper", *("" if value is None else f"{value:.3g}" for value in cells)])
    return table


def heading(symbol: str, place: float) -> str:
    """The heading of a column, for example `h = 8`; 0 is no horizon and no epoch, and stands for the whole."""
    return "overall" if place == 0 and symbol in ("h", "epoch") else f"{symbol} = {place:g}"


def in_cell(found: Interval) -> str:
    """The value with its interval, if it has one."""
    if not np.isfinite(found.value):
        return "-"
    return f"{found.value:.3g} ({found.low:.3g} to {found.high:.3g})" if np.isfinite(found.low) else f"{found.value:.3g}"


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    """The rows as a Markdown table, of which the first is the header."""
    return "\n".join(f"| {' | '.join(row)} |" for row in [rows[0], ["---"] * len(rows[0]), *rows[1:]])


def results_page(
    sections: Sequence[tuple[Entry, Sequence[Row], Sequence[str]]], verdicts: Sequence[Verdict], how: Sequence[str], folder: str
) -> str:
    """docs/results.md: every entry with its table, pictures and verdicts. `how`: one line per system."""
    known = {verdict.claim.id: verdict for verdict in verdicts}
    parts = ["# Results", f"Made by `hybridworld reproduce`. {footnote()}", "\n".join(f"- {line}" for line in how), RESULTS]
    for entry, rows, pictures in sections:
        parts.append(f"## {entry.title}")
        metric = f"{entry.metric[0].upper()}{entry.metric[1:]}"
        parts.append(f"`{entry.id}`, {entry.where} of the paper. {metric}.")
        parts += [f"![{entry.title}]({folder}/{name})" for name in pictures]
        if rows:
            parts.append(markdown_table(table_of(entry, rows)))
        parts += [
            f"- **{known[claim.id].status}**: {claim.text} It holds if {claim.holds_if}. {known[claim.id].found}"
            for claim in claims_of(entry.id)
        ]
    return "\n\n".join(parts) + "\n"


def claims_page(verdicts: Sequence[Verdict], how: Sequence[str]) -> str:
    """docs/claims.md: each claim of the paper, what we found, and where the paper contradicts itself."""
    rows = [["claim", "where", "verdict", "what we found"]]
    rows += [[each.claim.text, each.claim.where, marked(each), each.found] for each in verdicts]
    count = {status: sum(each.status == status for each in verdicts) for status in STATUSES}
    parts = [
        "# The paper's claims",
        f"Made by `hybridworld reproduce`. {footnote()}",
        f"{', '.join(f'{number} {status}' for status, number in count.items())}. {VERDICTS}",
        "\n".join(f"- {line}" for line in how),
        markdown_table(rows),
        "## Where the paper contradicts itself",
        "\n".join(f"- {sentence}" for sentence in INCONSISTENCIES),
    ]
    return "\n\n".join(parts) + "\n"


def marked(verdict: Verdict) -> str:
    """The status of a claim as Markdown, in bold where it is not as the paper says."""
    return f"**{verdict.status}**" if verdict.status == "not confirmed" else verdict.status


VERDICTS = """A claim is confirmed, or not, only if whole 95 % intervals lie on one side of its bound, else we cannot tell;
[results](results.md) says what each rule tests. It is not comparable where we have other data, where a part was not measured,
or where the validation MSE of our network is more than 1.5 times the paper's. A claim about several systems, or with several
statements, has a verdict per part: one that does not hold is enough for `not confirmed`, else one that is not comparable for
`not comparable`."""
FEW, MANY = paper.AUROC_TEXT.pairs.low, paper.AUROC_TEXT.pairs.high
RESULTS = f"""Pairs are fresh: one per trajectory and horizon, from trajectories that no training has seen; the validation
MSE of trainings, and the ablations that are judged by it, are those of training. Numbers in parentheses are 95 % intervals: by
the bootstrap over trajectories, over seeds and over timed states by Student's t, of deviations over seeds by chi-square, of
shares by Clopper and Pearson. RMSE is that of normalised states, averaged over trajectories. Mode 2 (`frozen threshold`) is
the deployed model with thresholds from validation data; `matched q` sets them on the data that is judged, as the paper does
({FEW:g} to {MANY:g} pairs per cell there). Blind deferral of a share cuts that share, on average; it runs no error map, and no
network where it defers."""
