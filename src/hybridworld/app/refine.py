"""`hybridworld refine`: a model learns from what it deferred, and is replaced only where held-out evidence says so."""

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from hybridworld.app.calibrate import checked_target
from hybridworld.app.loading import load_model
from hybridworld.app.progress import stderr
from hybridworld.app.tables import in_json
from hybridworld.bench.intervals import Interval
from hybridworld.bench.refine import MARGIN, Compared, Gated, Refinement, refine
from hybridworld.deploy.deferral import KEEP
from hybridworld.deploy.load import find_model, shipped
from hybridworld.errors import InvalidInput
from hybridworld.physics.environment import Environment
from hybridworld.surrogate.bundle import save_bundle


def refine_model(
    model: str, log: Path, minutes: float, began: float, data: Path | None = None, out: Path | None = None,
    replaced: bool = False, environment: Environment | None = None, backbone: str | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Refine, write the outcome if it is better, and return what there is to tell; `accepted` says which."""
    target = target_of(model, out, replaced)
    bundle = load_model(model, backbone, environment)
    with stderr.status("refining") as status:

        def tell(what: str) -> None:
            status.update(what)
            if not stderr.is_terminal:
                stderr.print(what, highlight=False, markup=False, soft_wrap=True)

        found = refine(bundle, log, minutes, began, data, environment, tell)
    if found.accepted:
        save_bundle(target, found.bundle)
    return in_json(described(found) | {"model": model, "file": str(target) if found.accepted else None})


def target_of(model: str, out: Path | None, replaced: bool) -> Path:
    """Where a better model goes: beside the old one, unless a file is named or the old one shall be replaced."""
    if out is not None and replaced:
        raise InvalidInput("--replace writes over MODEL, and --out names another file: give one of the two.")
    if replaced and model in shipped():
        raise InvalidInput(f"{model} ships with the package and is never replaced: name a file with --out.")
    path = find_model(model)
    beside = Path(f"{model}-refined.safetensors") if model in shipped() else path.with_stem(f"{path.stem}-refined")
    return checked_target(path if replaced else out or beside)


def described(found: Refinement) -> dict[str, Any]:
    """All numbers as plain data."""
    told = found.bundle.provenance["refined"][-1]
    return {
        "accepted": found.accepted,
        "learned": found.learned,
        "deferred": errors_of(found.deferred),
        "in_distribution": errors_of(found.known) | gates_of(found.gates),
        "steps": told["steps"],
        "blend": told["blend"],
    }


def errors_of(found: Compared) -> dict[str, Any]:
    """The ratio of errors with its interval, and the number of trajectories behind it."""
    return {"error_ratio": list(found.ratio()), "trajectories": found.count}


def gates_of(found: Gated) -> dict[str, Any]:
    """Both gates at the same keep fraction, and at equal error."""
    return {
        "deferral": list(found.deferral), "kept_error": list(found.kept_error),
        "deferral_at_equal_error": list(found.equal_error), "fall": list(found.fall),
    }  # fmt: skip


def in_words(interval: list[float] | Interval, form: str = ".3g") -> str:
    """An interval in words, for example `0.49 (0.44 to 0.56)`."""
    value, low, high = (format(each, form) for each in interval)
    return f"{value} ({low} to {high})"


def show(told: dict[str, Any]) -> None:
    """A table of the evidence, and the verdict."""
    console = Console(highlight=False)
    table = Table("errors, after / before", "ratio (95 %)", "trajectories", "needed", box=None, header_style="dim")
    needed = {"deferred": "below 1", "in_distribution": f"at most {1 + MARGIN:g}"}
    for part, limit in needed.items():
        row = told[part]
        table.add_row(part.replace("_", " "), in_words(row["error_ratio"]), f"{row['trajectories']:,}", limit)
    known = told["in_distribution"]
    console.print(f"[bold]{told['model']}[/bold]  {told['learned']:,} answers of the solver were learned from", soft_wrap=True)
    console.print(table)
    errors, shares = known["kept_error"], known["deferral"]
    console.print(
        f"  in distribution, at q = {KEEP:g}: error of kept answers {errors[0]:.3g} -> {errors[1]:.3g}, "
        f"deferred {shares[0]:.1%} -> {shares[1]:.1%}",
        soft_wrap=True,
    )
    if told["accepted"]:
        console.print(f"Better on what was deferred, no worse in distribution: {told['file']}", soft_wrap=True, markup=False)
    else:
        console.print(f"Refused: {why_refused(told)}. The model stays as it is.", soft_wrap=True, markup=False)


def why_refused(told: dict[str, Any]) -> str:
    """What the evidence does not show."""
    reasons = []
    if not told["deferred"]["error_ratio"][2] < 1:
        reasons.append("the evidence does not show that it is better on what was deferred")
    if not told["in_distribution"]["error_ratio"][2] <= 1 + MARGIN:
        reasons.append(f"the evidence does not show that errors in distribution grow by less than {MARGIN:.0%}")
    return " and ".join(reasons)
