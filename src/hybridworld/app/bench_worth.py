"""`hybridworld bench worth`: is a surrogate worth it against this solver, and by how much?"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hybridworld.app.durations import time_in_words
from hybridworld.app.loading import load_hybrid
from hybridworld.app.progress import stages
from hybridworld.app.tables import Rows, publish_sections, write_sections
from hybridworld.bench.worth.comparison import Comparison, compare
from hybridworld.bench.worth.measure import REPEATS, SHORT, Row
from hybridworld.bench.worth.verdict import HOW, digits, gain_of, verdicts
from hybridworld.data.atomic import make_folder
from hybridworld.physics.environment import Environment
from hybridworld.physics.spec import StateSpec
from hybridworld.surrogate.engines.registry import EAGER
from hybridworld.surrogate.horizons import listed

COMMAND = "hybridworld bench worth"
HEADERS = ("method", "ms", "batched", "error", "95 %", "p95", "to finer", "gain", "at equal error", "batched", "deferred")


def report_worth(
    environment: Environment, model: str | None, backbone: str | None, horizons: Sequence[int], count: int | None, split: str,
    as_json: bool, out: Path | None, signal: str | None = None, engine: str = EAGER,
) -> None:  # fmt: skip
    """Compare a model with all solvers, draw the picture and publish the tables; `out` is written after each horizon.

    Without a model the tables show what a surrogate would have to beat.
    """
    from hybridworld.bench.worth.frontier import draw_frontier  # the plotting library

    hybrid = load_hybrid(model, environment, backbone, signal=signal, engine=engine) if model else None

    def keep(found: Comparison) -> tuple[dict[str, Any], dict[str, Rows], str]:
        """Draw and write what is known; returns content, tables and title."""
        spec, content = found.environment.spec, found.content
        picture = out.with_suffix(".png") if out else Path("out") / f"{spec.name}-worth.png"
        title, sections = f"{spec.name}: is a surrogate worth it?", sections_of(content, found.by_horizon)
        make_folder(picture.parent)
        draw_frontier(found.rows, picture, f"{title}\n{subtitle(spec, content)}")
        if out:
            write_sections(sections, title, in_words(content), out, COMMAND, f"\n![{title}]({picture.name})\n")
        return content | {"model": model, "picture": str(picture)}, sections, title

    with stages() as tell:
        found = compare(environment, hybrid, horizons, split, count, tell, keep)
    content, sections, title = keep(found)
    publish_sections(content, sections, title, in_words(content), as_json, None, COMMAND)


def subtitle(spec: StateSpec, content: dict[str, Any]) -> str:
    """The subtitle of the picture: system, grid, states and machine."""
    grid, machine = f", {' x '.join(map(str, spec.grid))}" if spec.grid else "", content["provenance"]
    return (
        f"{spec.title}{grid}; {content['count']} states of {content['split']}; {machine['threads']} threads of {machine['cpu']}"
    )


def sections_of(content: dict[str, Any], by_horizon: Mapping[int, Sequence[Row]]) -> dict[str, Rows]:
    """The tables by their headings."""
    rows = [row for found in by_horizon.values() for row in found]
    sections: dict[str, Rows] = {}
    for horizon, found in by_horizon.items():
        said = "\n".join(f"- {each}" for each in verdicts(found))
        sections[f"Horizon: {listed([horizon])}\n{said}"] = [HEADERS, *(cells_of(row, rows) for row in found)]
        kinds = sorted({kind for row in found for kind in row.by_kind})
        if len(kinds) > 1:
            sections[f"Error by kind of initial state, h = {horizon}"] = [
                ["method", *kinds],
                *(
                    [row.title, *(f"{row.by_kind[kind]:.2g}" if kind in row.by_kind else "-" for kind in kinds)]
                    for row in found
                ),
            ]
    paid = content["break_even"]
    if paid:
        known = paid["training_seconds"] is not None
        training = time_in_words(paid["training_seconds"]) if known else "which the model does not tell"
        seconds = paid["generation_seconds"]
        if paid["generation_measured"]:
            generation = time_in_words(seconds)
        elif seconds:
            generation = f"about {time_in_words(seconds)}, from the solver's rate in batches and a training set of full size"
        else:
            generation = "part of the training, which was fed by the solver"
        sections[
            f"Break-even\nQueries after which data generation ({generation}) and training ({training}) have paid for "
            "themselves, in mode 1."
        ] = [
            ["horizon", "", "against the reference solver", "against the best solver as accurate"],
            *(
                [str(each["horizon"]), each["how"], *(queries_in_words(each[of], known) for of in ("compiled", "equal_error"))]
                for each in paid["queries"]
            ),
        ]
    return sections


def cells_of(row: Row, rows: Sequence[Row]) -> list[str]:
    """The numbers of one row, as text."""
    gains = [gain_of(row, rows, by) for by in HOW]
    return [
        row.title,
        digits(row.ms),
        digits(row.ms_batched),
        f"{row.rmse:.2g}",
        "-" if row.interval is None else "{:.2g} to {:.2g}".format(*row.interval),
        "-" if row.p95 is None else f"{row.p95:.2g}",
        "-" if row.rmse_refined is None else f"{row.rmse_refined:.2g}",
        times_in_words(row.speedup_vs_compiled),
        *("-" if gain is None else times_in_words(gain) for gain in gains),
        "-" if row.deferred is None else f"{row.deferred:.0%}",
    ]


def times_in_words(ratio: float) -> str:
    """A ratio of times in words, for example `0.07x`."""
    return f"{ratio:.2g}x" if ratio < 10 else f"{ratio:.0f}x"


def queries_in_words(count: float | None, known: bool) -> str:
    """The number of queries after which the surrogate has paid for itself, in words."""
    return f"{count:,.0f}" if count is not None else "never" if known else "unknown"


def in_words(content: dict[str, Any]) -> str:
    """How the numbers came about, in sentences for the foot of the tables."""
    few = {f"{row['method']} on {row['states']}" for row in content["rows"] if row["states"] < content["count"]}
    own_errors = [
        f"At h = {row['horizon']} the reference itself is {row['rmse_refined']:.2g} deviations from that, so smaller errors "
        "say little about physics."
        for row in content["rows"]
        if row["kind"] == "reference" and row["rmse_refined"] is not None
    ]
    unit = ", ".join(f"{name} {value:.3g}" for name, value in content["unit"].items())
    resolved = content["identity"].get("resolved")
    truth = (
        f"a recorded trajectory on a grid {resolved} times finer, averaged to the cells of the states"
        if resolved
        else "the reference, which is the first row"
    )
    return " ".join(
        [
            f"{content['count']} states of the split {content['split']}, each at a random frame of its trajectory.",
            "ms: milliseconds per state, alone and in one batch. All methods run on the same cores and take turns; medians of "
            f"at most {REPEATS} rounds, mean over states; first calls are apart, and of calls below {1e3 * SHORT:.0f} ms the "
            "second in a row counts. Alone, and in short batches, a solver runs on one core and on all of them, and the faster "
            "way counts.",
            f"Error: RMSE of normalised states against {truth}; mean over states, its 95 % interval (bootstrap over states) "
            f"and the 95th percentile, in standard deviations of these states ({unit}). Solvers that name a grid, a step or an "
            "order run in single precision where there is a choice.",
            "To finer: the same against the exact solution where one is known, else against half the step on a grid twice as "
            "fine (the start interpolated, the answer averaged).",
            "Gain: time of the reference over that of the method, one state at a time. At equal error: time of the fastest "
            "solver that is at least as accurate over that of the surrogate.",
            *([f"The engine of the surrogate is {content['engine']}."] if content["engine"] else []),
            *own_errors,
            *([f"Measured on fewer states, being slow: {', '.join(sorted(few))}."] if few else []),
            *content["left_out"],
        ]
    )
