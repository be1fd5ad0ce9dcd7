"""`hybridworld bench train`: our training loop beside a plain one."""

from functools import partial
from pathlib import Path

from hybridworld.app.durations import time_in_words
from hybridworld.app.progress import stderr
from hybridworld.app.tables import publish
from hybridworld.bench.training import TrainTiming, time_training
from hybridworld.physics.environment import Environment


def report_training(
    environments: list[Environment], seconds: float, steps: int | None, compiled: bool, as_json: bool, out: Path | None
) -> None:
    """Measure, then print a table, or one JSON object: system -> rates of training."""
    timings: dict[str, TrainTiming] = {}
    with stderr.status("") as status:
        for environment in environments:
            name = environment.spec.name
            tell = partial(lambda name, what: status.update(f"{name}: {what}"), name)
            timings[name] = time_training(environment, seconds, steps, compiled, tell)
    columns = [train_cells(timing) for timing in timings.values()]
    headers = list(dict.fromkeys(header for column in columns for header in column))
    publish(
        {name: timing.as_dict() for name, timing in timings.items()},
        [["", *timings], *([header, *(column.get(header, "-") for column in columns)] for header in headers)],
        "Training: our loop beside a plain one",
        "The paper's networks, batches and objective (preset `paper`), on the same cores in one run. The plain loop is what "
        "one writes by hand: batches wait in memory, `torch.optim.AdamW` as it comes, the second (DAgger) term on the whole "
        "batch, nothing else; the same loop is also shown with our objective and without the term. Our loop is the one of "
        "`hybridworld train`: fresh trajectories from a solver in the background, callbacks, and a checkpoint in each round. "
        "Loops take turns in rounds; rates are medians over rounds, in samples per second, after a warm-up. Validation was "
        "timed on one forward pass of pairs per horizon and scaled to the paper's number. The paper's training is its number "
        "of samples at our rate, plus its validations. The network alone makes supervised steps with fused AdamW in the "
        "default memory format; each line below changes one thing.",
        as_json,
        out,
    )


def train_cells(timing: TrainTiming) -> dict[str, str]:
    """What is said about one system: header -> text."""
    return {
        "batch": f"{timing.batch} on {timing.threads} thread{'s' * (timing.threads > 1)}",
        "plain loop": f"{timing.plain_whole:.3g} /s",
        "plain loop, our objective": f"{timing.plain_share:.3g} /s",
        "plain loop, no second term": f"{timing.plain_none:.3g} /s",
        "our loop": f"{timing.ours:.3g} /s",
        "our loop over the plain one": f"{timing.ratio:.3g}x",
        "the same, with our objective in both": f"{timing.ratio_same_objective:.3g}x",
        "validation": f"{timing.validation_s:.2g} s, {timing.validation_share:.1%} of an epoch",
        "the paper's training": f"{timing.epochs} x {timing.samples} samples, {time_in_words(3600 * timing.paper_hours)}",
        "one state forward": f"{timing.forward_ms:.3g} ms",
        "network alone": f"{timing.net_rate:.3g} /s in batches of {timing.net_batch}",
    } | {f"... {name}": "not available" if gain is None else f"{gain:.2f}x" for name, gain in timing.variants.items()}
