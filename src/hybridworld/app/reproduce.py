"""`hybridworld reproduce`: every table and figure of the paper from one command."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from hybridworld.app.progress import progress_bar
from hybridworld.data.plan import SCALES
from hybridworld.errors import InvalidInput, nearest
from hybridworld.physics.registry import find_system
from hybridworld.reproduce.entries import ENTRIES, SYSTEMS, find_entries
from hybridworld.reproduce.experiment import Experiment
from hybridworld.reproduce.run import run
from hybridworld.reproduce.scales import setting
from hybridworld.reproduce.verdicts import Verdict

STYLES = {"confirmed": "green", "not confirmed": "red", "cannot tell": "yellow", "not comparable": "dim"}


def list_entries() -> None:
    """Print what there is to reproduce."""
    table = Table(box=None, header_style="dim", padding=(0, 1, 0, 0))
    table.add_column("id", no_wrap=True)
    for header in ("kind", "what", "where", "systems", "metric"):
        table.add_column(header)
    for entry in ENTRIES:
        table.add_row(entry.id, entry.kind, entry.title, entry.where, ", ".join(entry.systems), entry.metric)
    Console(highlight=False).print(table)


def reproduce(
    wanted: str, scales: Sequence[str], systems: Sequence[str], models: Sequence[str], wishes: Sequence[str], cache: Path,
    out: Path, trains: bool = True,
) -> list[Verdict]:  # fmt: skip
    """Measure what is not in the cache, then write results.md, claims.md and the figures below `out`."""
    entries, scale_of, given = find_entries(wanted), parse_scales(scales), parse_models(models)
    for name in systems:
        if name not in SYSTEMS:
            raise InvalidInput(f"--system has '{name}': the paper has {', '.join(SYSTEMS)}.{nearest(name, SYSTEMS)}")
    chosen = [name for name in SYSTEMS if not systems or name in systems]
    experiments = {
        name: Experiment(setting(find_system(name), scale_of[name], wishes), cache, given.get(name, ()), trains)
        for name in chosen
    }
    for name, experiment in experiments.items():
        if not experiment.available([("main", 0)]):
            raise InvalidInput(
                f"--no-train, and there is no model of {name} yet: give one with --model {name}=FILE, choose others with "
                "--system, or leave out --no-train."
            )
    with progress_bar() as bar:
        task = bar.add_task("reproducing")

        def tell(done: int, total: int, what: str) -> None:
            bar.update(task, completed=done, total=total, description=what)

        verdicts = run(entries, experiments, out, tell)
    show([verdict for verdict in verdicts if verdict.claim.entry in {entry.id for entry in entries}], out)
    return verdicts


def parse_scales(wishes: Sequence[str]) -> dict[str, str]:
    """`laptop`, or with a system of its own scale `laptop ball3d=paper`: system -> scale."""
    found = dict.fromkeys(SYSTEMS, "smoke")
    for wish in sorted(wishes, key=lambda text: "=" in text):
        system, _, scale = wish.rpartition("=")
        if scale not in SCALES or (system and system not in SYSTEMS):
            raise InvalidInput(f"--scale has '{wish}': write {', '.join(SCALES)}, or for one system ball3d=paper.")
        found.update({system: scale} if system else dict.fromkeys(SYSTEMS, scale))
    return found


def parse_models(wishes: Sequence[str]) -> dict[str, tuple[Path, ...]]:
    """`ball3d=FILE`, once per seed: system -> files."""
    found: dict[str, tuple[Path, ...]] = {}
    for wish in wishes:
        system, _, path = wish.partition("=")
        if system not in SYSTEMS or not path:
            raise InvalidInput(f"--model has '{wish}': write for example ball3d=runs/ball3d-paper/model.safetensors.")
        if not Path(path).is_file():
            raise InvalidInput(f"--model has '{wish}', and there is no file {path}.")
        found[system] = (*found.get(system, ()), Path(path))
    return found


def show(verdicts: Sequence[Verdict], out: Path) -> None:
    """Print the verdicts about the claims of the entries that were asked for."""
    console = Console(highlight=False)
    table = Table("claim", "verdict", "what we found", box=None, header_style="dim", padding=(0, 2, 0, 0))
    for verdict in verdicts:
        table.add_row(verdict.claim.id, f"[{STYLES[verdict.status]}]{verdict.status}[/]", verdict.found)
    console.print(table)
    console.print(f"  {out / 'results.md'}\n  {out / 'claims.md'}", soft_wrap=True)
