"""`hybridworld systems`: what there is to simulate."""

import json

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from hybridworld.physics.environment import Environment
from hybridworld.physics.spec import SPLITS, Interval, StateSpec


def show(environments: list[Environment], as_json: bool) -> None:
    """Print the systems as tables, or as one JSON object: name -> description."""
    if as_json:
        print(json.dumps({environment.spec.name: describe(environment.spec) for environment in environments}, indent=2))
        return
    console = Console(highlight=False)
    for environment in environments:
        spec = environment.spec
        console.print(f"\n[bold]{spec.name}[/bold]  {spec.title}")
        console.print(f"  state    {state_in_words(spec)}", soft_wrap=True)
        console.print(f"  frames   {spec.frames}, {with_unit(spec.frame_step, spec.time_unit)} apart")
        console.print(f"  horizons {', '.join(map(str, spec.horizons))} frames")
        console.print(parameter_table(spec))
        for parameter in spec.parameters:
            role = "shapes the initial state only" if parameter.role == "start" else "enters the dynamics"
            console.print(f"  [dim]{parameter.name}: {parameter.meaning}; {role}[/dim]", soft_wrap=True)
    console.print("\nNext: hybridworld simulate SYSTEM --split test --seed 0 --gif")


def state_in_words(spec: StateSpec) -> str:
    """The state in words, as `density, momentum_x, momentum_y, energy on 128 x 128 (x open, y open)`."""
    grid = f" on {' x '.join(map(str, spec.grid))}" if spec.grid else ""
    ends = ", ".join(f"{axis.name} {axis.boundary}" for axis in spec.axes)
    return f"{', '.join(spec.channels)}{grid} ({ends})"


def parameter_table(spec: StateSpec) -> Table:
    """The table of parameters: a row per parameter and per kind of initial state, a column per regime."""
    table = Table(box=None, padding=(0, 0, 0, 2), header_style="dim")
    for header in ("", "train, val, test", "ood-near", "ood-far"):
        table.add_column(header, overflow="fold")
    regimes = ("id", "ood-near", "ood-far")
    for parameter in spec.parameters:
        unit = "" if parameter.unit == "1" else f" [{parameter.unit}]"
        ranges = [in_words(parameter.ranges.get(regime, ())) for regime in regimes]
        table.add_row(escape(parameter.name + unit), *ranges)
    for kind in dict.fromkeys(kind for regime in regimes for kind in spec.kinds.get(regime, {})):
        shares = [spec.kinds.get(regime, {}).get(kind, 0.0) for regime in regimes]
        table.add_row(f"start: {kind}", *(f"{share:.0%}" if share else "-" for share in shares))
    return table


def with_unit(value: float, unit: str) -> str:
    """A number with its unit, for example `0.01 s`; numbers without dimension stand alone."""
    return f"{value:g}" if unit == "1" else f"{value:g} {unit}"


def in_words(intervals: tuple[Interval, ...]) -> str:
    """Intervals in words, for example `0.3..0.5, 2..2.5`."""
    return ", ".join(f"{low:g}..{high:g}" for low, high in intervals) or "-"


def describe(spec: StateSpec) -> dict[str, object]:
    """The spec as plain data."""
    return {
        "title": spec.title,
        "channels": list(spec.channels),
        "grid": list(spec.grid),
        "axes": [{"name": axis.name, "low": axis.low, "high": axis.high, "boundary": axis.boundary} for axis in spec.axes],
        "frames": spec.frames,
        "frame_step": spec.frame_step,
        "time_unit": spec.time_unit,
        "horizons": list(spec.horizons),
        "parameters": {
            parameter.name: {
                "unit": parameter.unit,
                "meaning": parameter.meaning,
                "role": parameter.role,
                "ranges": {regime: [list(each) for each in intervals] for regime, intervals in parameter.ranges.items()},
            }
            for parameter in spec.parameters
        },
        "kinds": {regime: dict(shares) for regime, shares in spec.kinds.items()},
        "splits": list(SPLITS),
    }
