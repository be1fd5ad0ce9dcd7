"""`hybridworld card`: what a model is good for, and where it fails."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hybridworld.app.loading import load_model
from hybridworld.app.progress import announce, stages
from hybridworld.app.tables import Rows, in_markdown
from hybridworld.bench.card import Q, card_of, default_count, measure_cells
from hybridworld.data.atomic import make_place, write_atomically
from hybridworld.data.room import size_in_words
from hybridworld.deploy.load import find_model, ships, solver_of
from hybridworld.errors import InvalidInput
from hybridworld.physics.environment import Environment

ANONYMOUS = "model"
"""The name that `train` gives to every model; the card of such a model has the name of its system."""


def make_card(
    model: str, backbone: str | None, environment: Environment | None, count: int | None, notes: Path | None, out: Path,
    release: bool = False,
) -> None:  # fmt: skip
    """Measure a model; write its card as a page into `out`, and as data beside the model.

    The data of a model that ships with the package go into `out` as well, unless it is made for a `release`.
    """
    path, told = find_model(model), notes_in(notes) if notes else []
    if release and not ships(path):
        raise InvalidInput(f"--release is for a model that ships, and {path} does not: leave it out.")
    bundle = load_model(path, backbone, environment)
    solver = solver_of(bundle, environment)
    spec = bundle.surrogate.spec
    if solver is None:
        raise InvalidInput(f"There is no solver for {spec.name}: name its system with --system.")
    name = spec.name if path.stem == ANONYMOUS else path.stem
    page, data = make_place(out / f"{name}.md"), path.with_suffix(".json")
    if ships(path) and not release:
        data = make_place(out / data.name)
    count = count or default_count(solver)
    announce(f"{name}: {count} trajectories per split")
    with stages() as tell:
        cells = measure_cells(bundle, solver, count, tell)
    card = card_of(name, path, bundle, solver, cells, told)
    write_atomically(data, (json.dumps(card, indent=1) + "\n").encode())
    write_atomically(page, page_of(card).encode())
    print(f"{data}\n{page}")


def notes_in(path: Path) -> list[str]:
    """The sentences of a file that has one per line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} is no text: --notes takes a file with one sentence per line.") from None
    return [line.strip("- ").strip() for line in lines if line.strip()]


def page_of(card: dict[str, Any]) -> str:
    """The page of a card, as Markdown."""
    facts = "\n".join(f"- **{name}:** {value}" for name, value in facts_of(card).items())
    failures = "\n".join(f"- {each}" for each in card["failures"]) or "None that the rules of a card know of."
    cells, units = card["cells"], units_of(card) if card["grid"] else "answers"
    counted = ", ".join(f"{count:,}" for count in sorted({cell["trajectories"] for cell in cells}))
    how = (
        f"Error: RMSE of normalised states in deviations of the training data, mean over {counted} trajectories per split, one "
        "pair per trajectory and horizon, at a random frame; beside it that of no change. AUROC: how well "
        f"the error map ({card['signal']}) finds the worst quarter of the {units}. Deferred: what mode 2 hands to the solver "
        f"at q = {Q:g}, with the threshold that travels with the model."
    )
    tables = "\n\n".join(in_markdown(split, table_of(cells, split)) for split in dict.fromkeys(c["split"] for c in cells))
    return (
        f"# {card['name']}\n\nMade by `hybridworld card {card['name']}`.\n\n{facts}\n\n## Known failures\n\n{failures}\n\n"
        f"## Accuracy\n\n{how}\n\n{tables.replace('## ', '### ')}\n\nMeasured with {in_words(card['measured_with'])}.\n"
    )


def units_of(card: dict[str, Any]) -> str:
    """What the grid of a state counts."""
    return "objects" if card.get("objects") else "cells"


def facts_of(card: dict[str, Any]) -> dict[str, str]:
    """What there is to know besides accuracy, in the order of reading."""
    grid = f" on {' x '.join(map(str, card['grid']))} {units_of(card)}" if card["grid"] else ""
    reference = f"; its reference runs on a grid {card['resolved']} times finer" if card["resolved"] > 1 else ""
    sees = "sees the parameters of the dynamics" if card["sees_parameters"] else "sees the state alone"
    hours = "unknown" if card["core_hours"] is None else f"{card['core_hours']:.2g}"
    data, trained = "with" if card["data_counted"] else "without", in_words(card["trained_with"])
    facts = {
        "system": f"`{card['system']}`, {card['title']}{grid}{reference}",
        "network": f"{card['network']}, {card['parameters']:,} weights; {sees}; {size_in_words(card['bytes'])}",
        "data": card["data"],
        "recipe": f"`{card['recipe']}`",
        "price": f"{hours} core-hours {data} its data, {card['samples']:,} samples; {trained}",
        "evidence": f"{card['chosen_by'] or 'unknown'} trajectories chose the epoch, {card['calibrated_by']} calibrated",
    }
    if card["relative_to_guide"] is not None:
        facts["guide"] = f"on validation data its square error is {card['relative_to_guide']:.2g} times that of its guide"
    if card["from"]:
        facts["began with"] = card["from"]
    if card["worth"]:
        facts["worth it?"] = card["worth"]
    return facts | {"file": f"sha256 {card['sha256']}"}


def in_words(versions: Mapping[str, str]) -> str:
    """Names and versions in one line."""
    return ", ".join(f"{name} {value}" for name, value in versions.items())


def table_of(cells: Sequence[dict[str, Any]], split: str) -> Rows:
    """The table of one split: a row per number, a column per horizon."""
    rows = [cell for cell in cells if cell["split"] == split]

    def line(name: str, key: str, form: str) -> list[str]:
        return [name, *("-" if cell[key] is None else format(cell[key], form) for cell in rows)]

    return [
        ["h", *(str(cell["horizon"]) for cell in rows)],
        line("error", "error", ".2g"),
        line("no change", "no_change", ".2g"),
        line("AUROC", "auroc", ".2f"),
        line("deferred", "deferred", ".0%"),
    ]
