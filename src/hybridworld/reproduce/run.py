"""The runner: measure what is not in the cache, draw, judge, write results.md, claims.md and the figures."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from shutil import copyfile

from hybridworld.data.atomic import make_folder
from hybridworld.figures.forecasts import draw_forecasts
from hybridworld.reproduce.entries import Entry
from hybridworld.reproduce.experiment import Experiment, Untrained, digest
from hybridworld.reproduce.figures import draw_entry
from hybridworld.reproduce.map_agreement import PICTURED, SWEPT, forecast_rows
from hybridworld.reproduce.report import claims_page, results_page
from hybridworld.reproduce.rows import Row
from hybridworld.reproduce.verdicts import Network, Verdict, all_verdicts

Results = dict[str, list[Row]]
"""Entry -> rows of all systems."""
Tell = Callable[[int, int, str], None]
"""Jobs that are done, of how many, and what is being done."""
PICTURES: dict[str, dict[bool, tuple[int, ...]]] = {"visual-proof": PICTURED, "horizon-sweep": SWEPT}


def run(entries: Sequence[Entry], experiments: Mapping[str, Experiment], out: Path, tell: Tell) -> list[Verdict]:
    """Everything from the experiments to the pages below `out`."""
    figures = out / "results"
    make_folder(figures)
    with ExitStack() as stack:
        for experiment in experiments.values():
            stack.enter_context(experiment.held)
        results, left_out = measure_all(entries, experiments, figures, tell)
        how = [describe(experiment) for experiment in experiments.values()]
        how += [f"Left out: {what}: {why}." for what, why in left_out.items()]
    verdicts = all_verdicts(results, {name: network_of(experiment) for name, experiment in experiments.items()})
    sections = [(entry, results[entry.id], pictures_of(entry, results[entry.id], figures)) for entry in entries]
    (out / "results.md").write_text(results_page(sections, verdicts, how, figures.name))
    (out / "claims.md").write_text(claims_page(verdicts, how))
    return verdicts


def measure_all(
    entries: Sequence[Entry], experiments: Mapping[str, Experiment], figures: Path, tell: Tell
) -> tuple[Results, dict[str, str]]:
    """Entry -> rows; and what was left out, with the reason."""
    jobs = [
        (entry, experiment) for experiment in experiments.values() for entry in entries if experiment.system in entry.systems
    ]
    results: Results = {entry.id: [] for entry in entries}
    left_out = {}
    for number, (entry, experiment) in enumerate(jobs):
        experiment.tell = partial(_told, tell, number, len(jobs), f"{experiment.system}, {entry.id}")
        experiment.tell("")
        try:
            results[entry.id] += entry.measure(experiment)
        except Untrained as why:
            left_out[f"{entry.id}, {experiment.system}"] = str(why)
            continue
        if entry.id in PICTURES:
            draw_visual(entry, experiment, figures / f"{entry.id}-{experiment.system}.png")
    tell(len(jobs), len(jobs), "")
    return results, left_out


def _told(tell: Tell, done: int, total: int, what: str, text: str) -> None:
    tell(done, total, f"{what}: {text}")


def pictures_of(entry: Entry, rows: Sequence[Row], figures: Path) -> list[str]:
    """The names of an entry's pictures; those made of rows are drawn here."""
    if entry.id in PICTURES:
        return [f"{entry.id}-{system}.png" for system in dict.fromkeys(row.system for row in rows)]
    if entry.figure is None or not rows:
        return []
    draw_entry(entry, rows, figures / entry.id)
    return [f"{entry.id}.png"]


def draw_visual(entry: Entry, experiment: Experiment, path: Path) -> None:
    """Write the picture of an entry that shows error maps, from the cache if it was drawn before."""
    spec, known = (
        experiment.environment.spec,
        experiment.cache / "pictures" / f"{experiment.system}-{digest(experiment.key, entry.id)}.png",
    )
    if not known.is_file():
        make_folder(known.parent)
        title = f"{spec.title}\n{entry.where} of the paper; scale {experiment.setting.scale}"
        draw_forecasts(spec, forecast_rows(experiment, PICTURES[entry.id][spec.is_field]), title, known)
    copyfile(known, path)


def network_of(experiment: Experiment) -> Network:
    """The network that the results of an experiment are about."""
    bundle, scale = experiment.model(), experiment.setting.scale
    origin = "given" if experiment.given else f"trained at scale {scale}"
    name = f"the {bundle.surrogate.config.backbone} of {experiment.system} ({origin})"
    return Network(name, scale, float(bundle.validation["mse"]), scale == "paper" and experiment.like_given)


def describe(experiment: Experiment) -> str:
    """One line for the page: what was trained, and on how much it was judged."""
    bundle, chosen = experiment.model(), experiment.setting
    training, known = bundle.config.training, bundle.provenance
    took = f", after {known['seconds'] / 60:.0f} minutes by the clock" if "seconds" in known else ""
    short = experiment.config("all horizons", 0).training
    alike = "main runs" if len(experiment.seeds) > 1 else "runs of the ablations"
    network = "state and parameters" if experiment.surrogate().config.params else "the state alone"
    versions = f"; measured by {', '.join(sorted(experiment.versions))}" if experiment.versions else ""
    return (
        f"**{experiment.system}**: scale {chosen.scale}; {bundle.surrogate.config.backbone} that sees {network}, "
        f"{'given' if experiment.given else 'trained here'}, validation MSE {float(bundle.validation['mse']):.3g}: epoch "
        f"{known.get('epoch', '?')} of at most {training.epochs} with {training.samples:,} pairs each was the best{took}; "
        f"{chosen.pairs} pairs per cell, each from a trajectory of its own; times on {experiment.threads[0]} threads"
        f"{versions}. "
        f"Ablations: {short.epochs} epochs with {short.samples:,} pairs each, seeds {', '.join(map(str, chosen.ablated))}; "
        f"networks that differ by their seed: {alike}, seeds {', '.join(str(seed) for _, seed in experiment.alike)}."
    )
