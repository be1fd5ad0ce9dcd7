"""One look for every table of numbers, on the screen and in the docs."""

import json
import re
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from hybridworld.data.atomic import make_folder
from hybridworld.data.provenance import footnote

NAN, INTERVAL = re.compile(r"\bnan\b"), re.compile(r" \([^()]*\bnan\b[^()]*\)")

Rows = Sequence[Sequence[str]]
"""The rows of a table, of which the first is the header."""


def publish(
    content: dict,
    rows: Rows,
    title: str,
    how: str,
    as_json: bool,
    out: Path | None,
    command: str = "make bench",
) -> None:
    """Print one table or the content as JSON; write the table as Markdown, with its provenance."""
    publish_sections(content, {"": rows}, title, how, as_json, out, command)


def publish_sections(
    content: dict, sections: Mapping[str, Rows], title: str, how: str, as_json: bool, out: Path | None, command: str
) -> None:
    """Print several tables or the content as JSON, and write the tables as Markdown, with their provenance.

    Each table stands below its heading; what a heading says after a line break is its explanation.

    What could not be measured is `-` in a table, and null in JSON.
    """
    if as_json:
        print(json.dumps(in_json(content), indent=2, allow_nan=False))
    else:
        console = Console(highlight=False)
        console.print(f"[bold]{title}[/bold]")
        for heading, rows in sections.items():
            if heading:
                console.print(f"\n{heading}", soft_wrap=True, markup=False)
            table = Table(*rows[0], box=None, header_style="dim", padding=(0, 0, 0, 1))
            for row in rows[1:]:
                table.add_row(*map(without_nan, row))
            console.print(table)
        console.print(f"[dim]{how}\n{footnote()}[/dim]", soft_wrap=True)
    if out:
        write_sections(sections, title, how, out, command)


def write_sections(sections: Mapping[str, Rows], title: str, how: str, out: Path, command: str, end: str = "") -> None:
    """Write several tables as Markdown, with their provenance; `end` comes last."""
    body = "\n\n".join(in_markdown(heading, rows) for heading, rows in sections.items())
    make_folder(out.parent)
    out.write_text(f"# {title}\n\nMade by `{command}`. {how}\n\n{body}\n\n{footnote()}\n{end}")


def without_nan(cell: str) -> str:
    """The text of a cell, without an interval that is no number; what is no number itself becomes `-`."""
    kept = INTERVAL.sub("", cell)
    return "-" if NAN.search(kept) else kept


def in_json(content: Any) -> Any:
    """Plain data as JSON has it: no nan, no infinity, names as text."""
    if isinstance(content, Mapping):
        return {str(name): in_json(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [in_json(value) for value in content]
    return None if isinstance(content, float) and not isfinite(content) else content


def in_markdown(heading: str, rows: Rows) -> str:
    """One table below its heading, as Markdown."""
    head, _, text = heading.partition("\n")
    lines = [rows[0], ["---"] * len(rows[0]), *([without_nan(cell) for cell in row] for row in rows[1:])]
    parts = [f"## {head}" if head else "", text, "\n".join(f"| {' | '.join(row)} |" for row in lines)]
    return "\n\n".join(part for part in parts if part)
