"""One look for every table of numbers, on the screen and in the docs."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from hybridworld.data.provenance import footnote

Rows = Sequence[Sequence[str]]
"""Of a table; the first is the header."""


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
    """The same for several tables, each below its heading: what a heading says after a line break is its explanation."""
    if as_json:
        print(json.dumps(content, indent=2))
    else:
        console = Console(highlight=False)
        console.print(f"[bold]{title}[/bold]")
        for heading, rows in sections.items():
            if heading:
                console.print(f"\n{heading}", soft_wrap=True, markup=False)
            table = Table(*rows[0], box=None, header_style="dim", padding=(0, 0, 0, 1))
            for row in rows[1:]:
                table.add_row(*row)
            console.print(table)
        console.print(f"[dim]{how}\n{footnote()}[/dim]", soft_wrap=True)
    if out:
        body = "\n\n".join(in_markdown(heading, rows) for heading, rows in sections.items())
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(f"# {title}\n\nMade by `{command}`. {how}\n\n{body}\n\n{footnote()}\n")


def in_markdown(heading: str, rows: Rows) -> str:
    """One table below its heading."""
    head, _, text = heading.partition("\n")
    lines = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    parts = [f"## {head}" if head else "", text, "\n".join(f"| {' | '.join(row)} |" for row in lines)]
    return "\n\n".join(part for part in parts if part)
