"""Where is it wrong? How well signals rank answers by their error: against rivals, over seeds, beyond the trained horizons."""

import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch

from hybridworld.bench.intervals import Interval, mean_interval
from hybridworld.bench.metrics import aurc, auroc_at_tolerance, auroc_interval, excess_aurc
from hybridworld.data.pairs import Batch, Pairs
from hybridworld.errors import HybridWorldError
from hybridworld.reproduce import paper
from hybridworld.reproduce.experiment import Cell, Experiment, rmse_of
from hybridworld.reproduce.intervals import bare, deviation_of, geometric_mean, mean_auroc_lead, over_runs
from hybridworld.reproduce.rows import Row
from hybridworld.reproduce.rules import BEYOND, LONGEST, RIVALS, STEP
from hybridworld.surrogate.surrogate import Surrogate
from hybridworld.surrogate.validation import to_tensors
from hybridworld.trust.registry import signals_for
from hybridworld.trust.signal import Ingredients, TrustSignal

TOLERANCE = 0.1
"""An absolute error, in deviations, above which an answer counts as wrong."""
ENSEMBLE = "ensemble"
BESIDE = ("symmetries", "input amplitude", "density guard")
"""Signals beyond the paper's, as far as they apply."""
OF_VECTORS = (f"{STEP} + symmetries", "many splits", "many splits + symmetries")
"""Up to eleven passes, so they are measured where these are cheap."""


def auroc_of(scores: np.ndarray, cell: Cell, kinds: np.ndarray | None = None) -> Interval:
    """How well scores pick out the worst quarter of a cell, or of the trajectories of each kind, mean over kinds."""
    return auroc_interval(scores, cell.rmse, kinds=kinds)


def auroc(experiment: Experiment) -> list[Row]:
    """Step-doubling over horizons and splits: at the worst quarter as in the paper, at a fixed tolerance, and by AURC."""
    rows = []
    for split in paper.SPLITS:
        for h in experiment.horizons:
            cell = experiment.cell(split, h)
            own, place = cell.scores[STEP], (experiment.system, split, h)
            rows.append(Row("auroc", STEP, *place, auroc_of(own, cell)))
            if experiment.environment.spec.kinds:
                rows.append(Row("auroc within kinds", STEP, *place, auroc_of(own, cell, experiment.kinds(split))))
            rows.append(Row("auroc at a tolerance", STEP, *place, bare(auroc_at_tolerance(own, cell.rmse, TOLERANCE))))
            rows.append(Row("aurc", STEP, *place, bare(aurc(own, cell.rmse))))
            rows.append(Row("excess aurc", STEP, *place, bare(excess_aurc(own, cell.rmse))))
    return rows


def baselines(experiment: Experiment) -> list[Row]:
    """Every rival on test data at long horizons, and our own label-free signals beside them; nan: it does not apply here."""
    horizons, makers = [h for h in experiment.horizons if h >= 16], makers_of(experiment)
    beside = BESIDE if experiment.environment.spec.is_field else (*BESIDE, *OF_VECTORS)
    names = [STEP, *RIVALS, *(name for name in beside if name in makers)]
    rows = compared(experiment, names, horizons)
    absent = [name for name in RIVALS if name not in makers]
    rows += [Row("auroc", name, experiment.system, "test", h, bare(float("nan"))) for name in absent for h in horizons]
    if experiment.environment.spec.kinds:
        own = {name: makers[name] for name in names if name in makers}
        rows += [
            Row("auroc within kinds", name, experiment.system, "test", h, auroc_of(scores, cell, experiment.kinds("test")))
            for h, cell in ((h, experiment.cell("test", h, own)) for h in horizons)
            for name, scores in cell.scores.items()
        ]
    return rows


def energy_momentum(experiment: Experiment) -> list[Row]:
    """What the dynamics conserve, against step-doubling."""
    return compared(experiment, [STEP, "energy residual", "momentum residual"], experiment.horizons)


def richardson(experiment: Experiment) -> list[Row]:
    """The solver against itself, with what it costs per answer."""
    classical = "Richardson, fixed-order"
    rows = compared(experiment, [STEP, classical, "Richardson, geometric-mean"], experiment.horizons)
    makers = makers_of(experiment)
    for h in experiment.horizons:
        cell = experiment.cell("test", h, {classical: makers[classical]})
        lead = mean_auroc_lead([cell.scores[STEP]], [cell.scores[classical]], [cell.rmse])
        rows.append(Row("lead", classical, experiment.system, "test", h, lead))
        for name in (classical, STEP):
            took = experiment.remember(("cost", name, h, experiment.threads), partial(cost_of, experiment, makers[name], h))
            rows.append(Row("milliseconds", name, experiment.system, "test", h, geometric_mean(took)))
    return rows


def cost_of(experiment: Experiment, make: Callable[[], TrustSignal], horizon: int) -> list[float]:
    """Milliseconds of a few answers to test pairs, one at a time."""
    return milliseconds(make(), experiment.pairs("test", experiment.horizons)[horizon])


def milliseconds(signal: TrustSignal, batch: Batch, most: int = 6) -> list[float]:
    """Milliseconds of each of a few answers, after a warm-up."""
    taken = []
    for row in (0, *range(min(most, len(batch.states)))):
        some = slice(row, row + 1)
        single = Batch(batch.states[some], batch.horizons[some], batch.params[some], batch.futures[some])
        states, horizons, params, _ = to_tensors(single, torch.device("cpu"))
        began = time.perf_counter()
        signal(states, horizons, params)
        taken.append(1e3 * (time.perf_counter() - began))
    return taken[1:]


def cross_seed(experiment: Experiment) -> list[Row]:
    """The AUROC of each seed, with their mean and deviation."""
    rows = []
    for split in paper.SPLITS:
        for h in experiment.horizons:
            runs, place = experiment.alike, (experiment.system, split, h)
            cells = [experiment.cell(split, h, variant=variant, seed=seed) for variant, seed in runs]
            found = [auroc_of(cell.scores[STEP], cell) for cell in cells]
            values = [each.value for each in found]
            rows.append(Row("auroc", STEP, *place, over_runs(values)))
            rows.append(Row("deviation of the auroc", STEP, *place, deviation_of(values)))
            rows += [Row("auroc", f"seed {seed}", *place, each) for (_, seed), each in zip(runs, found, strict=True)]
    return rows


def beyond(experiment: Experiment) -> list[Row]:
    """Horizons that no training has seen: AUROC and RMSE of one pass, and the RMSE of a chain of trained horizons."""
    horizons = (LONGEST, *BEYOND[experiment.system])
    rows = []
    for split in paper.SPLITS:
        for h in horizons:
            cell, place = experiment.cell(split, h, horizons=horizons), (experiment.system, split, h)
            rows.append(Row("auroc", STEP, *place, auroc_of(cell.scores[STEP], cell)))
            rows.append(Row("rmse", "one pass", *place, mean_interval(cell.rmse)))
            if chain := experiment.remember(("chain", split, h), partial(errors_of_chain, experiment, split, h, horizons)):
                rows.append(Row("rmse", "chain", *place, mean_interval(np.array(chain))))
    return rows


def errors_of_chain(experiment: Experiment, split: str, horizon: int, horizons: tuple[int, ...]) -> list[float]:
    """RMSE of each pair when trained horizons are chained; none where a chain leaves the states that there can be."""
    model, batch = experiment.hybrid(), experiment.pairs(split, horizons)[horizon]
    try:
        answers = model.predict(batch.states.astype(float), horizon, batch.params.astype(float), mode=1).state
    except HybridWorldError:
        return []
    return rmse_of(answers, batch.futures, model.surrogate.std.numpy()).tolist()


def compared(experiment: Experiment, names: Sequence[str], horizons: Sequence[int]) -> list[Row]:
    """Rows on test data: the AUROC of those signals that apply, and the leads over them, mean over the horizons."""
    makers = {name: make for name, make in makers_of(experiment).items() if name in names}
    cells = [experiment.cell("test", h, makers) for h in horizons]
    present = [name for name in names if name in makers]
    rows = [
        Row("auroc", name, experiment.system, "test", h, auroc_of(cell.scores[name], cell))
        for name in present
        for h, cell in zip(horizons, cells, strict=True)
    ]

    def lead(own: str, rival: str) -> Interval:
        mine, other = ([cell.scores[name] for cell in cells] for name in (own, rival))
        return mean_auroc_lead(mine, other, [cell.rmse for cell in cells])

    rows += [Row("lead", name, experiment.system, "test", 0, lead(STEP, name)) for name in present if name != STEP]
    if ENSEMBLE in present:
        others = [name for name in present if name not in (STEP, ENSEMBLE)]
        rows += [Row("lead of the ensemble", name, experiment.system, "test", 0, lead(ENSEMBLE, name)) for name in others]
    return rows


def makers_of(experiment: Experiment) -> dict[str, Callable[[], TrustSignal]]:
    """All signals of the experiment's first model; the others of an ensemble are runs of other seeds."""
    surrogate = experiment.surrogate()

    def others() -> list[Surrogate]:
        return [experiment.surrogate(variant, seed) for variant, seed in experiment.alike[1:]]

    def head_pairs() -> Pairs:
        return experiment.training_pairs(4 if experiment.environment.spec.is_field else 128)

    return signals_for(
        Ingredients(
            surrogate, experiment.environment, others if experiment.available(experiment.alike) else None, head_pairs,
            lambda: experiment.pairs("val", experiment.horizons), experiment.setting.head_steps,
        )
    )  # fmt: skip
