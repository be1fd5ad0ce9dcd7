"""One look for every table of numbers, on the screen and in the docs."""

import json
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from hybridworld.data.provenance import footnote


def publish(
    content: dict,
    rows: list[Sequence[str]],
    title: str,
    how: str,
    as_json: bool,
    out: Path | None,
    command: str = "make bench",
) -> None:
    """Print rows (the first is the header) or the content as JSON; write the rows as Markdown, with their provenance."""
    if as_json:
        print(json.dumps(content, indent=2))
    else:
        table = Table(*rows[0], box=None, header_style="dim", padding=(0, 0, 0, 1))
        for row in rows[1:]:
            table.add_row(*row)
        console = Console(highlight=False)
        console.print(f"[bold]{title}[/bold]")
        console.print(table)
        console.print(f"[dim]{how}\n{footnote()}[/dim]", soft_wrap=True)
    if out:
        lines = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
        body = "\n".join(f"| {' | '.join(row)} |" for row in lines)
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(f"# {title}\n\nMade by `{command}`. {how}\n\n{body}\n\n{footnote()}\n")
