"""`hybridworld reproduce`: every table and figure of the paper from one command."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from shutil import copyfile

from rich.console import Console
from rich.progress import Progress, TaskID
from rich.table import Table

from hybridworld.app.progress import progress_bar
from hybridworld.app.words import time_in_words
from hybridworld.data.plan import SCALES
from hybridworld.errors import InvalidInput
from hybridworld.evaluate.proofs import draw_proofs
from hybridworld.evaluate.reproduce.entries import ENTRIES, SYSTEMS, Entry, find_entries
from hybridworld.evaluate.reproduce.measures import Row
from hybridworld.evaluate.reproduce.report import claims_page, draw_entry, results_page
from hybridworld.evaluate.reproduce.rules import Found
from hybridworld.evaluate.reproduce.scales import setting
from hybridworld.evaluate.reproduce.study import Study, digest
from hybridworld.evaluate.reproduce.verdicts import Verdict, all_verdicts
from hybridworld.evaluate.reproduce.visual import PROVEN, SWEPT, proofs_of
from hybridworld.physics.registry import find_system

Results = dict[str, dict[str, list[Row]]]
"""Entry -> system -> rows."""
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
    entries, scale_of, given = find_entries(wanted), parse_scales(scales), parse_models(models)
    chosen = [name for name in SYSTEMS if not systems or name in systems]
    figures = out / "results"
    figures.mkdir(parents=True, exist_ok=True)
    studies = {name: Study(setting(find_system(name), scale_of[name]), cache, given.get(name, ())) for name in chosen}
    with ExitStack() as stack:
        for study in studies.values():
            stack.enter_context(study.held)
        results, left_out = measure_all(entries, studies, figures)
        how = [describe(study) for study in studies.values()] + [f"Left out: {what}: {why}." for what, why in left_out.items()]
    verdicts = all_verdicts(results, scale_of)
    sections = [(entry, results[entry.id], pictures_of(entry, results[entry.id], figures)) for entry in entries]
    (out / "results.md").write_text(results_page(sections, verdicts, how, figures.name))
    (out / "claims.md").write_text(claims_page(verdicts, how))
    show(verdicts, {claim for entry in entries for claim in entry.claims}, out)
    return verdicts


def measure_all(entries: Sequence[Entry], studies: Mapping[str, Study], figures: Path) -> tuple[Results, dict[str, str]]:
    """Entry -> system -> rows; and what was left out, with the reason."""
    jobs = [(entry, study) for study in studies.values() for entry in entries if study.system in entry.systems]
    results: Results = {entry.id: {} for entry in entries}
    left_out = {}
    with progress_bar() as bar:
        task = bar.add_task("reproducing", total=len(jobs))
        for entry, study in jobs:
            study.tell = partial(tell, bar, task, f"{study.system}, {entry.id}")
            study.tell("")
            if why := reason_to_skip(entry, study):
                left_out[f"{entry.id}, {study.system}"] = why
            else:
                results[entry.id][study.system] = entry.measure(study)
                if entry.id in PICTURES:
                    draw_visual(entry, study, figures / f"{entry.id}-{study.system}.png")
            bar.advance(task)
    return results, left_out


def tell(bar: Progress, task: TaskID, what: str, text: str) -> None:
    """What is being done, beside the bar."""
    bar.update(task, description=f"{what}: {text}")


def pictures_of(entry: Entry, found: Found, figures: Path) -> list[str]:
    """The names of an entry's pictures; those made of rows are drawn here."""
    if entry.id in PICTURES:
        return [f"{entry.id}-{system}.png" for system in found]
    if entry.figure is None or not found:
        return []
    draw_entry(entry, found, figures / entry.id)
    return [f"{entry.id}.png"]


def reason_to_skip(entry: Entry, study: Study) -> str:
    """Why an entry is not measured for a system at its scale; empty: it is."""
    if entry.retrains and study.setting.why_not:
        return study.setting.why_not
    if entry.retrains and not study.like_given:
        return "the model that was given was trained otherwise than those of the ablation would be"
    if entry.id == "cross-seed" and len(study.seeds) < 2:
        return "it takes several seeds, and there is one"
    return ""


def describe(study: Study) -> str:
    """One line for the page: what was trained, and on how much it was judged."""
    bundle, chosen = study.model(), study.setting
    training, known = bundle.config.training, bundle.provenance
    took = f", after {time_in_words(known['seconds'])} by the clock" if "seconds" in known else ""
    network = "state and parameters" if study.surrogate().config.params else "the state alone"
    versions = f"; measured by {', '.join(sorted(study.versions))}" if study.versions else ""
    return (
        f"**{study.system}**: scale {chosen.scale}; {bundle.surrogate.config.backbone} that sees {network}, "
        f"{'given' if study.given else 'trained here'}: epoch {known.get('epoch', '?')} of at most {training.epochs} with "
        f"{training.samples:,} pairs each was the best{took}; "
        f"seeds {', '.join(map(str, study.seeds))}; {chosen.pairs} pairs per cell{versions}."
    )


def draw_visual(entry: Entry, study: Study, path: Path) -> None:
    """The panels of a visual proof, from the cache if they were drawn before."""
    spec, known = study.environment.spec, study.cache / "pictures" / f"{study.system}-{digest(study.key, entry.id)}.png"
    if not known.is_file():
        known.parent.mkdir(parents=True, exist_ok=True)
        title = f"{spec.title}\n{entry.where} of the paper; scale {study.setting.scale}"
        draw_proofs(spec, proofs_of(study, PICTURES[entry.id][bool(spec.grid)]), title, known)
    copyfile(known, path)


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
            table.add_row(verdict.claim, f"[{STYLES[verdict.status]}]{verdict.in_words}[/]", verdict.found)
    console.print(table)
    console.print(f"  {out / 'results.md'}\n  {out / 'claims.md'}", soft_wrap=True)
