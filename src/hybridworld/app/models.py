"""`hybridworld models`: what ships, and the card of one model."""

import json
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from hybridworld.app.card import page_of
from hybridworld.bench.card import card_at
from hybridworld.data.room import size_in_words
from hybridworld.deploy.load import find_model, shipped
from hybridworld.errors import InvalidInput


def show_models(as_json: bool) -> None:
    """Print a line about each model that ships."""
    cards = {name: card_at(path) or {"name": name, "bytes": path.stat().st_size} for name, path in shipped().items()}
    if as_json:
        print(json.dumps(cards, indent=2))
        return
    table = Table("model", "system", "network", "size", "core-hours", "error on test", box=None, header_style="dim")
    for name, card in cards.items():
        table.add_row(*(escape(word) for word in (name, *line_of(card))))
    console = Console(highlight=False)
    console.print(table)
    console.print("\nNext: hybridworld models NAME for its card, hybridworld predict NAME")


def line_of(card: dict[str, Any]) -> list[str]:
    """System, network, size, price and error of a model, in a few words."""
    if "cells" not in card:
        return ["-", "-", size_in_words(card["bytes"]), "-", "has no card yet: run `hybridworld card`"]
    test = [cell for cell in card["cells"] if cell["split"] == "test"]
    errors = [f"{test[row]['error']:.2g} at h = {test[row]['horizon']}" for row in (0, -1)] if test else []
    resolved = f", reference {card['resolved']}x finer" if card["resolved"] > 1 else ""
    hours = "-" if card["core_hours"] is None else f"{card['core_hours']:.2g}"
    network = "guided" if card["guided"] else card["network"]
    return [f"{card['system']}{resolved}", network, size_in_words(card["bytes"]), hours, ", ".join(errors)]


def show_card(model: str, as_json: bool) -> None:
    """Print the card of one model."""
    path = find_model(model)
    card = card_at(path)
    if card is None:
        raise InvalidInput(f"{path.name} has no card yet: make one with `hybridworld card {model}`.")
    print(json.dumps(card, indent=2) if as_json else page_of(card))
