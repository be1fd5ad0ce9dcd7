"""`hybridworld bench worth --grids 64,128,256`: does the gain of a surrogate grow with the grid?"""

import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from hybridworld.app.bench_worth import times_in_words
from hybridworld.app.loading import load_hybrid
from hybridworld.app.progress import announce, stages
from hybridworld.app.tables import Rows, publish_sections
from hybridworld.app.train import train_surrogate
from hybridworld.bench.worth.comparison import Comparison, compare
from hybridworld.bench.worth.grids import Gain, draw_gains, gains_of
from hybridworld.bench.worth.verdict import digits
from hybridworld.data.atomic import make_folder
from hybridworld.data.provenance import provenance
from hybridworld.errors import InvalidInput
from hybridworld.physics.environment import Environment
from hybridworld.surrogate.horizons import listed
from hybridworld.surrogate.train import MODEL
from hybridworld.training.recipe import Request

HEADERS = ("grid", "mode 1, ms", "error", "against the reference", "at equal error", "the fastest solver as accurate")


def report_grids(
    environment: Environment, grids: str, minutes: float, horizons: Sequence[int], count: int | None, split: str,
    as_json: bool, out: Path | None, runs: Path = Path("runs"),
) -> None:  # fmt: skip
    """Train a model of so many minutes per grid (one that is in `runs` already is used), compare it, draw and publish."""
    name = environment.spec.name
    comparisons: list[Comparison] = []
    for size in sizes_in(grids):
        system = on_grid(environment, size)
        resolved = system.identity.get("resolved", 1)
        folder = runs / f"{name}-{size}-resolved{resolved}-{minutes:g}min"
        announce(f"{name}, {size} cells along an axis: a model of {minutes:g} minutes in {folder}")
        train_surrogate(Request(environment=system, minutes=minutes, out=folder, began=time.monotonic()))
        model = load_hybrid(str(folder / MODEL), system.unresolved)
        with stages() as tell:
            comparisons.append(compare(system, model, horizons, split, count, tell))
    gains = gains_of(comparisons)
    picture = out.with_suffix(".png") if out else Path("out") / f"{name}-grids.png"
    title, machine = f"{name}: how the gain grows with the grid", provenance()
    make_folder(picture.parent)
    draw_gains(gains, picture, f"{title}\nmodels of {minutes:g} minutes; {machine['threads']} threads of {machine['cpu']}")
    content = {"system": name, "minutes": minutes, "gains": [asdict(each) for each in gains], "picture": str(picture)}
    how = (
        f"For each grid a model was trained for {minutes:g} minutes, data, calibration and verdict included, and compared on "
        f"{comparisons[0].count} states of the split {split}, one at a time, with every solver of `hybridworld bench worth`."
    )
    publish_sections(content | {"provenance": machine}, sections_of(gains), title, how, as_json, out, command(name, grids))
    if out:
        out.write_text(f"{out.read_text()}\n![{title}]({picture.name})\n")


def command(name: str, grids: str) -> str:
    """The command that made the page."""
    return f"hybridworld bench worth {name} --grids {grids}"


def sizes_in(grids: str) -> list[int]:
    """`64,128,256` as numbers."""
    try:
        found = sorted({int(part) for part in grids.split(",")})
    except ValueError:
        found = []
    if not found or found[0] < 1:
        raise InvalidInput(f"The grids are '{grids}': give cells along an axis, for example 64,128,256.")
    return found


def on_grid(environment: Environment, size: int) -> Environment:
    """The same system with that many cells along its first axis, and the others in proportion."""
    grid = environment.spec.grid
    if not grid:
        raise InvalidInput(f"{environment.spec.name} has no grid to change.")
    return environment.resized(tuple(cells * size // grid[0] for cells in grid))


def sections_of(gains: Sequence[Gain]) -> dict[str, Rows]:
    """Heading -> table, one per horizon."""
    return {
        f"Horizon: {listed([horizon])}": [HEADERS, *(cells_of(each) for each in gains if each.horizon == horizon)]
        for horizon in sorted({each.horizon for each in gains})
    }


def cells_of(gain: Gain) -> list[str]:
    """One row of a table."""
    equal = "-" if gain.equal_error is None else times_in_words(gain.equal_error)
    rival = gain.rival or "none is as accurate"
    return [gain.name, digits(gain.ms), f"{gain.error:.2g}", times_in_words(gain.reference), equal, rival]
