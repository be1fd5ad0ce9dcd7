"""`hybridworld predict`: the main job. States in, forecasts out, with what is known about each of them."""

from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from hybridworld.app.progress import stderr
from hybridworld.data.atomic import make_place
from hybridworld.deploy.answer import Request, ask, describe, warm_up, write_forecasts
from hybridworld.deploy.forecast import forecast_page
from hybridworld.deploy.hybrid import HybridModel
from hybridworld.deploy.question import Question
from hybridworld.errors import InvalidInput
from hybridworld.surrogate.horizons import listed


def predict_to_files(
    name: str, model: HybridModel, question: Question, request: Request, out: Path, keep: Path | None = None
) -> dict[str, Any]:
    """Answer, write it as HDF5 and as a picture, and return what there is to tell; what is deferred goes to the log `keep`."""
    stem = f"{model.spec.name}-h{request.horizon:g}-mode{request.mode}"
    files = {"data": make_place(out / f"{stem}.hdf5"), "picture": make_place(out / f"{stem}.png")}
    if question.file is not None and question.file.resolve() == files["data"].resolve():
        raise InvalidInput(f"The answer would be written over its input {question.file}: name another folder with --out.")
    with stderr.status("warming up") as status:
        warm_up(model, question, request)
        status.update(f"{len(question.names)} forecasts")
        asked = model if keep is None else model.keeping(keep)
        answer = ask(asked, question, request)
        if asked.log is not None:
            asked.log.flush()
        status.update("writing")
        told = describe(name, model, question, answer, request)
        write_forecasts(files["data"], model, question, answer, told)
        forecast, title = answer.forecast, f"{model.spec.name}, {listed([request.horizon])} ahead"
        shown = (answer.surrogate, forecast.used_solver, forecast.error_map, answer.truth)
        forecast_page(model, question.names, question.states, *shown, title).savefig(files["picture"])
    return told | {"files": {kind: str(path) for kind, path in files.items()}}


def show(told: dict[str, Any]) -> None:
    """Print a table with a row per trajectory, and a few lines about all of them."""
    rows = told["trajectories"]
    titles = {
        "score": "score",
        "error_bound": f"bound {told.get('coverage', 0):.0%}",
        "surrogate_error": "surrogate's error",
        "error": "error",
    }
    shown = {key: title for key, title in titles.items() if key in rows[0]}
    table = Table("", "by", *shown.values(), "ms", box=None, header_style="dim", padding=(0, 0, 0, 2))
    for row in rows:
        numbers = (f"{row[key]:.3g}" for key in shown)
        who = "solver" if row["used_solver"] else "surrogate"
        table.add_row(row["name"], who, *numbers, f"{1e3 * row['seconds']:.3g}")
    console = Console(highlight=False)
    console.print(f"[bold]{told['system']}[/bold]  {listed([told['horizon']])} ahead, mode {told['mode']}", soft_wrap=True)
    console.print(table)
    if told["mode"] == 2:
        console.print(f"  {told['deferred']} of {len(rows)} went to the solver: {why_deferred(told)}", soft_wrap=True)
        if "tolerance" in told:
            console.print(f"  {promise_in_words(told)}", soft_wrap=True)
        rest = f"thresholds and bounds rest on {told['calibrated_by']:,} validation trajectories"
        console.print(f"  {rest}, judged by {told['signal']}", soft_wrap=True)
    parts = ", ".join(f"{part} {1e3 * seconds:.3g} ms" for part, seconds in told["seconds"].items())
    console.print(f"  {parts}, after a warm-up; engine: {told['engine']}", soft_wrap=True)
    if "error" in rows[0]:
        before, after = (np.sqrt(np.mean([row[key] ** 2 for row in rows])) for key in ("surrogate_error", "error"))
        console.print(f"  rms error {after:.3g}, of the surrogate alone {before:.3g}", soft_wrap=True)
    for note in told["notes"]:
        console.print(f"  [yellow]note:[/yellow] {note}", soft_wrap=True)
    if shown:
        console.print("  [dim]scores and errors in deviations of the training data[/dim]")
    for path in told["files"].values():
        console.print(f"  {path}", soft_wrap=True, markup=False)


def why_deferred(told: dict[str, Any]) -> str:
    """Why answers went to the solver or did not, in words: the threshold, or that of each link of a chain."""
    some = told["deferred"] > 0
    if "tolerance" in told:
        return f"no bound promises {told['tolerance']:g} for them" if some else f"all bounds promise {told['tolerance']:g}"
    if told["links"]:
        parts = (
            f"{link['deferred']} at h = {link['horizon']:g}"
            + ("" if link["threshold"] is None else f" (above {link['threshold']:.3g})")
            for link in told["links"]
        )
        return f"{', then '.join(parts)}, q = {told['q']:g}"
    if told["threshold"] is None:
        return "no score is too high"
    which = "their scores exceed" if some else "no score exceeds"
    return f"{which} {told['threshold']:.3g} (q = {told['q']:g} of the validation data)"


def promise_in_words(told: dict[str, Any]) -> str:
    """What a tolerance promises, what the validation data say about the accepted answers, and with a check, what came true."""
    most, tolerance, known = f"{1 - told['coverage']:.3g}", told["tolerance"], told["validation"]
    said = f"promised: of all answers a share of at most {most} exceeds {tolerance:g}"
    if known and known["exceeding_accepted"] is not None:
        said += f"; of the accepted validation answers {known['exceeding_accepted']:.1%} do, of all {known['exceeding']:.1%}"
    errors = [row["error"] for row in told["trajectories"] if not row["used_solver"] and "error" in row]
    if errors:
        said += f"; here {sum(error > tolerance for error in errors)} of {len(errors)} accepted ones"
    return said
