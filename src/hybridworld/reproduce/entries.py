"""The list: every table, figure and ablation of the paper, as data. `hybridworld reproduce --list` prints it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from hybridworld.errors import InvalidInput, nearest
from hybridworld.reproduce import ablations, gating, map_agreement, paper, ranking, rules
from hybridworld.reproduce.chains import rollout
from hybridworld.reproduce.experiment import Experiment
from hybridworld.reproduce.rows import Quantity, Row
from hybridworld.reproduce.rules import COMPILED, MATCHED, MODE_1, MODE_2, STEP, TWIN

SYSTEMS = paper.SYSTEMS


@dataclass(frozen=True)
class Figure:
    """How the rows of an entry become a picture: a panel per system, or per system and split."""

    y: str
    quantities: tuple[Quantity, ...]
    """The quantities that are drawn; if there are several, each is a line."""
    signals: tuple[str, ...] = ()
    """The signals that are drawn (all, if none is named); if there are several, each is a line, else each split is."""
    x: str = "horizon (frames)"
    log_x: bool = True
    log_y: bool = False
    level: float | None = None
    """The level that means nothing, drawn as a line across."""


@dataclass(frozen=True)
class Entry:
    """One table, figure or ablation: what is measured, on what, and what the paper says. `claims.py` says what it judges."""

    id: str
    kind: Literal["table", "figure", "ablation"]
    title: str
    where: str
    metric: str
    measure: Callable[[Experiment], list[Row]]
    paper: Callable[[Row], float | None] = lambda row: None
    """The paper's number for a row."""
    systems: tuple[str, ...] = SYSTEMS
    symbol: str = "h"
    """What x is called in a table."""
    figure: Figure | None = None


def _auroc(row: Row) -> float | None:
    return paper.AUROC[row.system][row.split].get(int(row.x)) if (row.quantity, row.signal) == ("auroc", STEP) else None


def _baseline(row: Row) -> float | None:
    return paper.BASELINES.get(row.signal, {}).get(row.system, {}).get(int(row.x)) if row.quantity == "auroc" else None


def _seeds(row: Row) -> float | None:
    if row.signal != STEP:
        return None
    mean, deviation = paper.CROSS_SEED[row.system][row.split][int(row.x)]
    return mean if row.quantity == "auroc" else deviation


def _energy(row: Row) -> float | None:
    return paper.ENERGY_MOMENTUM.get(row.signal, {}).get(int(row.x)) if row.quantity == "auroc" else None


def _data(row: Row) -> float | None:
    known = paper.DATASETS[row.system]
    return known.val_mse if row.quantity == "mse" else known.parameters


def _speed(row: Row) -> float | None:
    return paper.SPEEDUP[row.system].cpu if row.quantity == TWIN and row.x == rules.LONGEST else None


def _single(row: Row) -> float | None:
    known = paper.SINGLE_HORIZON.get(row.system)
    if known is None or row.quantity not in ("mse", "mse ratio"):
        return None
    return (
        known.ratio
        if row.quantity == "mse ratio"
        else {rules.ALL_HORIZONS: known.all_horizons, rules.SINGLE: known.single}[row.signal]
    )


def _rollout(row: Row) -> float | None:
    if row.signal != MODE_1 or row.quantity not in ("rmse", "growth"):
        return None
    known = paper.ROLLOUT[row.system]
    return known.growth if row.quantity == "growth" else known.rmse.get(int(row.x))


def _richardson(row: Row) -> float | None:
    if row.quantity != "auroc" or row.x != 2:
        return None
    return {"Richardson, fixed-order": paper.RICHARDSON.auroc_at_2, STEP: paper.RICHARDSON.step_doubling_at_2}.get(row.signal)


def _cut(row: Row) -> float | None:
    return paper.CUTS[row.system][row.split].get(int(row.x)) if (row.quantity, row.signal) == ("cut", MATCHED) else None


ENTRIES = (
    Entry(
        "datasets", "table", "Datasets, networks, validation error", "Table 1", "validation MSE",
        ablations.datasets, _data, symbol="seed",
    ),
    Entry(
        "auroc", "table", "AUROC of step-doubling", "Table 2", "AUROC",
        ranking.auroc, _auroc, figure=Figure("AUROC", ("auroc",), (STEP,), level=0.5),
    ),
    Entry(
        "baselines", "table", "Step-doubling against its rivals", "Table 3", "AUROC, and leads on the same trajectories",
        ranking.baselines, _baseline, figure=Figure("AUROC", ("auroc",), level=0.5),
    ),
    Entry(
        "mode1-speed", "figure", "Mode 1 speed-up over the horizon", "Figures 1 and 5", "speed-up at batch 1, same cores",
        gating.speedup, _speed, figure=Figure("speed-up of mode 1", (TWIN, COMPILED), log_y=True, level=1.0),
    ),
    Entry("mode2", "figure", "Mode 2 at h = 64, q = 0.75", "Figure 6", "cut of the RMSE, speed-up", gating.mode2, _cut),
    Entry(
        "mode1-vs-mode2", "table", "Mode 2 against mode 1 in all cells", "Table 6, Figure 10", "cut of the RMSE",
        gating.cuts, _cut, figure=Figure("cut of the RMSE, matched q", ("cut",), (MATCHED,), level=0.25),
    ),
    Entry(
        "pareto", "figure", "RMSE against speed-up over q", "Figure 1", "RMSE, speed-up",
        gating.pareto, symbol="q", figure=Figure("RMSE", ("rmse", COMPILED, TWIN), x="speed-up"),
    ),
    Entry(
        "q-sweep", "figure", "The cut over the keep fraction q", "Figure 11", "cut of the RMSE", gating.q_sweep, symbol="q",
        figure=Figure(
            "cut of the RMSE", ("cut",), (MATCHED, rules.FROZEN, rules.RANDOM, rules.ORACLE_AT_Q), "keep fraction q", False
        ),
    ),
    Entry(
        "self-consistency", "ablation", "Training by self-consistency alone", "Figure 7",
        "loss, validation MSE, distance to the identity", ablations.self_consistency, symbol="epoch",
        figure=Figure("", ("loss", "mse", "mse of no change"), (), "epoch", False, True),
    ),
    Entry(
        "single-horizon", "ablation", "Training at a single horizon", "Table 4", "MSE and AUROC at h = 64",
        ablations.single_horizon, _single,
    ),
    Entry(
        "dagger", "ablation", "The weight of the DAgger part", "Figure 8", "validation MSE", ablations.dagger, symbol="weight",
        figure=Figure("validation MSE", ("mse",), (), "weight of the DAgger part", False, True),
    ),
    Entry(
        "networks", "ablation", "Other networks, trained for as long", "Table 1", "validation MSE, AUROC on test data",
        ablations.networks, systems=("oregonator", "euler2d"),
    ),
    Entry(
        "cross-seed", "table", "AUROC over three seeds", "Table 5, Figure 9", "mean and deviation of the AUROC",
        ranking.cross_seed, _seeds, figure=Figure("AUROC", ("auroc",), (STEP,), level=0.5),
    ),
    Entry(
        "beyond", "figure", "Beyond the trained horizons", "Figure 12", "AUROC of one pass, RMSE of one pass and of a chain",
        ranking.beyond, systems=tuple(paper.BEYOND), figure=Figure("AUROC", ("auroc",), (STEP,), log_x=False, level=0.5),
    ),
    Entry(
        "rollout", "figure", "Closed-loop rollout", "Figure 13", "RMSE after k links of 64 frames",
        rollout, _rollout, symbol="k",
        figure=Figure("RMSE", ("rmse",), (MODE_1, MODE_2, rules.RANDOM, rules.ORACLE), "links of 64 frames", log_y=True),
    ),
    Entry(
        "energy-momentum", "table", "Conserved quantities as signals", "Table 7", "AUROC, and leads on the same trajectories",
        ranking.energy_momentum, _energy, ("ball3d",), figure=Figure("AUROC", ("auroc",), level=0.5),
    ),
    Entry(
        "richardson", "figure", "Richardson extrapolation of the solver", "Figure 14", "AUROC, milliseconds per answer",
        ranking.richardson, _richardson, ("euler2d",), figure=Figure("AUROC", ("auroc",), level=0.5),
    ),
    Entry(
        "visual-proof", "figure", "The error map beside the true error", "Figures 2, 3, 4",
        "rank correlation of the two maps over cells", map_agreement.pictured_agreement,
    ),
    Entry(
        "horizon-sweep", "figure", "The same at four horizons", "Figures 15, 16, 17",
        "rank correlation of the two maps over cells", map_agreement.horizon_sweep,
    ),
)  # fmt: skip


def find_entries(wanted: str) -> list[Entry]:
    """All entries, or the one of that id."""
    known = {entry.id: entry for entry in ENTRIES}
    if wanted == "all":
        return list(ENTRIES)
    if wanted not in known:
        raise InvalidInput(f"There is no entry '{wanted}': `hybridworld reproduce --list` shows them.{nearest(wanted, known)}")
    return [known[wanted]]
