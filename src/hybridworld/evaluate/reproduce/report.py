"""Results as people read them: tables with the paper beside us, figures, verdicts. Markdown, PNG and SVG."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullLocator

from hybridworld.data.provenance import footnote
from hybridworld.evaluate.panels import COMPONENTS, INK, MUTED, page, place, style
from hybridworld.evaluate.reproduce import paper
from hybridworld.evaluate.reproduce.claims import CLAIMS, INCONSISTENCIES
from hybridworld.evaluate.reproduce.entries import Entry, Figure
from hybridworld.evaluate.reproduce.measures import Row
from hybridworld.evaluate.reproduce.rules import Found
from hybridworld.evaluate.reproduce.verdicts import Verdict

PANEL, HEIGHT, LEFT, GAP = 2.5, 2.2, 0.7, 0.6  # inches
COLOURS = (*COMPONENTS, INK, "#4e9a8a", "#b56576", "#8d99ae", "#e29578")
MOST_BANDS = 4
STATUSES = ("confirmed", "not confirmed", "not comparable")


# Tables.


def table_of(entry: Entry, found: Found) -> list[list[str]]:
    """A row per system, split and method, a column per x; the paper's numbers stand below ours."""
    places = sorted({row.x for rows in found.values() for row in rows})
    lone = len(places) == 1 and not places[0]
    heads = ["value"] if lone else [f"{entry.figure.symbol if entry.figure else 'h'} = {x:g}" for x in places]
    if entry.id == "pareto":
        return pareto_table(found)
    table = [["system", "split", "", *heads]]
    for system, rows in found.items():
        for split, method in dict.fromkeys((row.split, row.method) for row in rows):
            by = {row.x: row for row in rows if (row.split, row.method) == (split, method)}
            table.append([system, split, method, *(in_words(by[x]) if x in by else "" for x in places)])
            published = {x: entry.paper(system, row) for x, row in by.items()}
            if any(value is not None for value in published.values()):
                cells = (published.get(x) for x in places)
                table.append(["", "", "paper", *("" if value is None else f"{value:.3g}" for value in cells)])
    return table


def pareto_table(found: Found) -> list[list[str]]:
    """Speed-up and RMSE, one below the other."""
    body = [[system, row.method, f"{row.x:.3g}", f"{row.value:.3g}"] for system, rows in found.items() for row in rows]
    return [["system", "", "speed-up", "RMSE"], *body]


def in_words(row: Row) -> str:
    """The value with its interval, if it has one."""
    if not np.isfinite(row.value):
        return "-"
    return f"{row.value:.3g} ({row.low:.3g}-{row.high:.3g})" if np.isfinite(row.low) else f"{row.value:.3g}"


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    """The first row is the header."""
    return "\n".join(f"| {' | '.join(row)} |" for row in [rows[0], ["---"] * len(rows[0]), *rows[1:]])


# Figures.


def draw_entry(entry: Entry, found: Found, path: Path) -> None:
    """A panel per system, with a line per split; or per system and split, with a line per method. Hollow: the paper."""
    look = entry.figure
    assert look is not None
    drawn = {system: [row for row in rows if row.method in (look.methods or [row.method])] for system, rows in found.items()}
    many = len({row.method for rows in drawn.values() for row in rows}) > 1
    panels = [
        (f"{system}, {split}" if many else system, system, [row for row in rows if not many or row.split == split])
        for system, rows in drawn.items()
        for split in (dict.fromkeys(row.split for row in rows) if many else [""])
    ]
    names = dict.fromkeys(row.method if many else row.split for rows in drawn.values() for row in rows)
    colours = dict(zip(names, COLOURS * (1 + len(names) // len(COLOURS)), strict=False))
    columns = min(3, len(panels))
    lines = -(-len(panels) // columns)
    with style():
        width = LEFT + columns * (PANEL + GAP) + (2.0 if many else 0.7)
        title = f"{entry.title}\n{entry.where} of the paper; hollow: the paper's numbers"
        figure, top = page(width, lines * (HEIGHT + 0.75) + 0.1, title)
        for number, (title, system, rows) in enumerate(panels):
            line, column = divmod(number, columns)
            ax = place(figure, LEFT + column * (PANEL + GAP), top + 0.15 + line * (HEIGHT + 0.75), PANEL, HEIGHT)
            if entry.id == "pareto":
                draw_pareto(ax, rows)
            else:
                draw_lines(ax, entry, system, rows, many, colours)
            finish_panel(ax, look, title)
            if number == columns - 1:
                handles, labels = ax.get_legend_handles_labels() if entry.id == "pareto" else legend_for(colours)
                ax.legend(handles, labels, loc="upper left", bbox_to_anchor=(1.02, 1.0), fontsize=6.5)
        for suffix in (".png", ".svg"):
            figure.savefig(path.with_suffix(suffix), format=suffix[1:])


def draw_lines(ax: Axes, entry: Entry, system: str, rows: Sequence[Row], many: bool, colours: Mapping[str, str]) -> None:
    """One line per method, or per split; bands only where they can be told apart."""
    for name, colour in colours.items():
        own = sorted((row for row in rows if (row.method if many else row.split) == name), key=lambda row: row.x)
        if not own:
            continue
        x, y = [row.x for row in own], [row.value for row in own]
        ax.plot(x, y, "-o", color=colour, markersize=3)
        if len(colours) <= MOST_BANDS and any(np.isfinite(row.low) for row in own):
            ax.fill_between(x, [row.low for row in own], [row.high for row in own], color=colour, alpha=0.15, linewidth=0)
        published = [(row.x, value) for row in own if (value := entry.paper(system, row)) is not None]
        if published:
            ax.plot(*zip(*published, strict=True), "o", markerfacecolor="none", markeredgecolor=colour, markersize=5.5)


def finish_panel(ax: Axes, look: Figure, title: str) -> None:
    """Scales, names, and the level that means nothing."""
    if look.level is not None:
        ax.axhline(look.level, color=MUTED, linewidth=0.7, linestyle=(0, (4, 3)))
    if look.log_x:
        ax.set_xscale("log", base=2)
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.xaxis.set_minor_locator(NullLocator())
    if look.log_y:
        ax.set_yscale("log")
    ax.set_xlabel(look.x)
    ax.set_ylabel(look.y)
    ax.set_title(title, loc="left", size=8.5, pad=5)
    ax.spines[["top", "right"]].set_visible(False)


def legend_for(colours: Mapping[str, str]) -> tuple[list[Line2D], list[str]]:
    """Of all lines of a figure, also of those that the last panel does not have."""
    return [Line2D([], [], color=colour, marker="o", markersize=3) for colour in colours.values()], list(colours)


def draw_pareto(ax: Axes, rows: Sequence[Row]) -> None:
    """RMSE against speed-up: curves over q of mode 2 and of its rivals, and the point of mode 1, per kind of solver."""
    for colour, kind in zip(COMPONENTS, ("compiled", "numpy"), strict=False):
        for name, line in (("mode 2", "-o"), ("random deferral", ":"), ("oracle", "--"), ("mode 1", "D")):
            curve = sorted((row.x, row.value) for row in rows if row.method.startswith(f"{name}, against the {kind}"))
            if curve:
                ax.plot(*zip(*curve, strict=True), line, color=colour, markersize=3, label=f"{name}, {kind} solver")
    ax.axvline(1, color=MUTED, linewidth=0.7, linestyle=(0, (4, 3)))


# Pages.


def results_page(
    sections: Sequence[tuple[Entry, Found, Sequence[str]]], verdicts: Sequence[Verdict], how: Sequence[str], folder: str
) -> str:
    """docs/results.md: every entry with its table, pictures and verdicts. `how`: one line per system."""
    known = {verdict.claim: verdict for verdict in verdicts}
    parts = ["# Results", f"Made by `hybridworld reproduce`. {footnote()}", "\n".join(f"- {line}" for line in how), RESULTS]
    for entry, found, pictures in sections:
        parts.append(f"## {entry.title}")
        metric = f"{entry.metric[0].upper()}{entry.metric[1:]}"
        parts.append(f"`{entry.id}`, {entry.where} of the paper. {metric}. Agreement: {entry.agreement}.")
        parts += [f"![{entry.title}]({folder}/{name})" for name in pictures]
        if any(found.values()):
            parts.append(markdown_table(table_of(entry, found)))
        parts += [
            f"- **{known[claim].in_words}**: {text_of(claim)} *{known[claim].found}*"
            for claim in entry.claims
            if claim in known
        ]
    return "\n\n".join(parts) + "\n"


def claims_page(verdicts: Sequence[Verdict], how: Sequence[str]) -> str:
    """docs/claims.md: each claim of the paper, what we found, and where the paper contradicts itself."""
    rows = [["claim", "where", "verdict", "what we found"]]
    where = {claim.id: claim.where for claim in CLAIMS}
    rows += [[text_of(each.claim), where[each.claim], marked(each), each.found] for each in verdicts]
    count = {status: sum(each.status == status for each in verdicts) for status in STATUSES}
    summary = ", ".join(f"{number} {status}" for status, number in count.items())
    inside = "\n".join(f"- {sentence}" for sentence in INCONSISTENCIES)
    parts = [
        "# The paper's claims",
        f"Made by `hybridworld reproduce`. {footnote()}",
        f"{summary}. A claim is confirmed when it holds by the rule that [results](results.md) states under `Agreement`; "
        "where the paper gives a size, ours stands beside it, and may differ.",
        "\n".join(f"- {line}" for line in how),
        markdown_table(rows),
        "## Where the paper contradicts itself",
        inside,
    ]
    return "\n\n".join(parts) + "\n"


def marked(verdict: Verdict) -> str:
    """In bold what is not as the paper says."""
    return f"**{verdict.in_words}**" if verdict.status == "not confirmed" else verdict.in_words


def text_of(claim: str) -> str:
    """Of the claim with that id."""
    return next(each.text for each in CLAIMS if each.id == claim)


FEW, MANY = paper.AUROC_TEXT.pairs.low, paper.AUROC_TEXT.pairs.high
RESULTS = f"""Pairs are fresh: one per trajectory and horizon, from trajectories that no training has seen; the validation
MSE of trainings, and the ablations that are judged by it, are those of training. Numbers in parentheses are 95 % intervals,
bootstrap over trajectories; for means over seeds one standard deviation to each side, for rank correlations over fields the
smallest and the largest. RMSE is that of normalised states, averaged over trajectories. Thresholds come from validation data
(`frozen`); `matched q` sets them on the data that is judged, as the paper does ({FEW:g} to {MANY:g} pairs per cell there).
Blind deferral of a share cuts that share, on average."""
