"""`hybridworld demo`: every built-in system simulated, and forecast where a trained model ships, on one page."""

from html import escape
from pathlib import Path
from typing import Any

from rich.console import Console

from hybridworld.app.loading import load_hybrid
from hybridworld.app.predict import predict_to_files, show
from hybridworld.app.simulate import Simulation, simulate_to_files
from hybridworld.deploy.answer import Request
from hybridworld.deploy.load import shipped
from hybridworld.deploy.question import from_split
from hybridworld.physics.registry import built_in

SPLIT, SEEDS = "test", {"oregonator": 25, "euler2d": 7}  # trajectories worth looking at; seed 0 elsewhere

HORIZON, FIELDS, VECTORS = 64, 6, 16
"""Frames ahead, and how many forecasts: the reference of a field takes seconds."""

STYLE = """
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 1100px; margin: 2rem auto; padding: 0 1rem; color: #1c2430; }
  section { margin: 2.5rem 0; } h2 { margin-bottom: 0; } p { margin: 0.2rem 0 0.8rem; color: #5a6472; }
  img { max-width: 100%; } img.moving { height: 380px; display: block; margin: 0.5rem auto; }
"""


def run_demo(out: Path) -> None:
    """Simulate the built-in systems into `out`, ask the models that ship, and write `index.html` beside the files."""
    sections = []
    systems = built_in()
    for environment in systems:
        result = simulate_to_files(environment, SPLIT, SEEDS.get(environment.spec.name, 0), None, out, gif=True)
        sections.append(section(environment.spec.title, result))
    sections = [hybrid_section(each.spec.name, out) for each in systems if each.spec.name in shipped()] + sections
    page = out / "index.html"
    page.write_text(
        '<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>hybridworld</title>'
        f"<style>{STYLE}</style>\n<h1>hybridworld</h1>\n{''.join(sections)}</html>\n"
    )
    Console(highlight=False).print(f"\nOpen [bold]{page}[/bold] in a browser to see all of them move.", soft_wrap=True)


def section(title: str, result: Simulation) -> str:
    """The section of the page about one simulated system, as HTML."""
    moving = f'<img class="moving" src="{result.animation.name}" alt="animation">' if result.animation else ""
    return (
        f"<section><h2>{escape(title)}</h2><p>{escape(result.title)}; solved in {result.seconds:.2f} s. "
        f'<a href="{result.data.name}">HDF5</a></p>{moving}<img src="{result.picture.name}" alt="frames"></section>\n'
    )


def hybrid_section(name: str, out: Path) -> str:
    """The section of the page about mode 2 on a system whose trained model ships, as HTML."""
    model = load_hybrid(name, engine=None)
    count = FIELDS if model.spec.is_field else VECTORS
    question = from_split(model, SPLIT, 0, count, 0)
    told = predict_to_files(name, model, question, Request(HORIZON, 2, 0.75, 0.9, check=True), out)
    show(told)
    rows = told["trajectories"]
    alone, answer = (sum(row[key] for row in rows) / len(rows) for key in ("surrogate_error", "error"))
    return (
        f"<section><h2>A surrogate of {escape(name)} that knows when to ask</h2>"
        f"<p>{count} forecasts, {HORIZON} frames ahead in one pass each. The error map is read from the network alone; by "
        f"its threshold, from validation data, {told['deferred']} of them went to the solver. Mean error "
        f"{answer:.2f} deviations, {alone:.2f} without asking. {escape(times_in_words(told))} The first of them:</p>"
        f'<img src="{Path(told["files"]["picture"]).name}" alt="input, truth, surrogate, error map, true error"></section>\n'
    )


def times_in_words(told: dict[str, Any]) -> str:
    """What the surrogate and the solver took per forecast in this run."""
    deferred, seconds = told["deferred"], dict(told["seconds"])
    solver = seconds.pop("solver", 0.0)
    network = 1e3 * sum(seconds.values()) / len(told["trajectories"])
    if not deferred:
        return f"The surrogate took {network:.3g} ms per forecast, its error map included."
    solved = 1e3 * solver / deferred
    faster = "" if solved > network else " Here the solver is nearly free, so that a surrogate cannot pay on a CPU."
    return f"Per forecast the surrogate took {network:.3g} ms, its error map included, and the solver {solved:.3g} ms.{faster}"
