"""`hybridworld reproduce`: every table and figure of the paper from one command."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from hybridworld.app.progress import progress_bar
from hybridworld.app.words import time_in_words
from hybridworld.data.plan import SCALES
from hybridworld.errors import InvalidInput
from hybridworld.evaluate.proofs import draw_proofs
from hybridworld.evaluate.reproduce.entries import ENTRIES, SYSTEMS, Entry, find_entries
from hybridworld.evaluate.reproduce.measures import Row
from hybridworld.evaluate.reproduce.report import claims_page, draw_entry, results_page
from hybridworld.evaluate.reproduce.scales import setting
from hybridworld.evaluate.reproduce.study import Study
from hybridworld.evaluate.reproduce.verdicts import Verdict, all_verdicts
from hybridworld.evaluate.reproduce.visual import PROVEN, SWEPT, proofs_of
from hybridworld.physics.registry import find_system

STYLES = {"confirmed": "green", "not confirmed": "red", "not comparable": "dim"}
PICTURES: dict[str, dict[bool, tuple[int, ...]]] = {"visual-proof": PROVEN, "horizon-sweep": SWEPT}


def list_entries() -> None:
    """What there is to reproduce."""
    table = Table(box=None, header_style="dim", padding=(0, 1, 0, 0))
    table.add_column("id", no_wrap=True)
    for header in ("kind", "what", "where", "systems", "metric"):
        table.add_column(header)
    for entry in ENTRIES:
        table.add_row(entry.id, entry.kind, entry.title, entry.where, ", ".join(entry.systems), entry.metric)
    Console(highlight=False).print(table)


def reproduce(
    wanted: str, scales: Sequence[str], systems: Sequence[str], models: Sequence[str], cache: Path, out: Path
) -> list[Verdict]:
    """Measure what is not in the cache, then write results.md, claims.md and the figures below `out`."""
    entries, scale_of = find_entries(wanted), parse_scales(scales)
    chosen = [name for name in SYSTEMS if not systems or name in systems]
    given = parse_models(models)
    figures = out / "results"
    figures.mkdir(parents=True, exist_ok=True)
    jobs = [(entry, system) for system in chosen for entry in entries if system in entry.systems]
    results: dict[str, dict[str, list[Row]]] = {entry.id: {} for entry in entries}
    left_out: dict[str, str] = {}
    with progress_bar() as bar:
        task = bar.add_task("reproducing", total=len(jobs))
        studies = {name: Study(setting(find_system(name), scale_of[name]), cache, given.get(name, ())) for name in chosen}
        for entry, system in jobs:
            study = studies[system]
            study.tell = lambda text, entry=entry, system=system: bar.update(task, description=f"{system}, {entry.id}: {text}")  # type: ignore[misc]
            study.tell("")
            if why := reason_to_skip(entry, study):
                left_out[f"{entry.id}, {system}"] = why
            else:
                results[entry.id][system] = entry.measure(study)
                if entry.id in PICTURES:
                    draw_visual(entry, study, figures / f"{entry.id}-{system}.png")
            bar.advance(task)
    verdicts = all_verdicts(results, scale_of)
    sections = []
    for entry in entries:
        found = results[entry.id]
        if entry.figure and found:
            draw_entry(entry, found, figures / entry.id)
        pictures = (
            [f"{entry.id}-{system}.png" for system in found]
            if entry.id in PICTURES
            else [f"{entry.id}.png"] * bool(entry.figure and found)
        )
        sections.append((entry, found, pictures))
    how = [describe(study) for study in studies.values()] + [f"Left out: {what}: {why}." for what, why in left_out.items()]
    (out / "results.md").write_text(results_page(sections, verdicts, how, figures.name))
    (out / "claims.md").write_text(claims_page(verdicts))
    show(verdicts, {claim for entry in entries for claim in entry.claims}, out)
    return verdicts


def reason_to_skip(entry: Entry, study: Study) -> str:
    """Why an entry is not measured for a system at its scale; empty: it is."""
    if entry.retrains and study.setting.why_not:
        return study.setting.why_not
    if entry.id == "cross-seed" and len(study.seeds) < 2:
        return "it takes several seeds, and there is one"
    return ""


def describe(study: Study) -> str:
    """One line for the page: what was trained, and on how much it was judged."""
    known = study.model().provenance
    trained = (
        f"preset {known.get('preset', study.setting.preset)}, best in epoch {known['epoch']}, {time_in_words(known['seconds'])}"
    )
    network = "state and parameters" if study.surrogate().config.params else "the state alone"
    return (
        f"**{study.system}**: scale {study.setting.scale}; the network sees {network}; {trained} of training; "
        f"seeds {', '.join(map(str, study.seeds))}; {study.setting.pairs} pairs per cell."
    )


def draw_visual(entry: Entry, study: Study, path: Path) -> None:
    """The panels of a visual proof, drawn once."""
    horizons = PICTURES[entry.id][bool(study.environment.spec.grid)]
    title = f"{study.environment.spec.title}\n{entry.where} of the paper; scale {study.setting.scale}"
    draw_proofs(study.environment.spec, proofs_of(study, horizons), title, path)


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
        if system not in SYSTEMS or not Path(path).is_file():
            raise InvalidInput(f"--model has '{wish}': write for example ball3d=runs/ball3d-paper/model.safetensors.")
        found[system] = (*found.get(system, ()), Path(path))
    return found


def show(verdicts: Sequence[Verdict], claims: set[str], out: Path) -> None:
    """The verdicts about the claims of the entries that were asked for."""
    console = Console(highlight=False)
    table = Table("claim", "verdict", "what we found", box=None, header_style="dim", padding=(0, 2, 0, 0))
    for verdict in verdicts:
        if verdict.claim in claims:
            table.add_row(verdict.claim, f"[{STYLES[verdict.status]}]{verdict.status}[/]", verdict.found)
    console.print(table)
    console.print(f"  {out / 'results.md'}\n  {out / 'claims.md'}", soft_wrap=True)
