"""The list: every table, figure and ablation of the paper, as data. `hybridworld reproduce --list` prints it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from hybridworld.errors import InvalidInput, nearest
from hybridworld.evaluate.reproduce import ablations, measures, paper, rules
from hybridworld.evaluate.reproduce.chains import rollout
from hybridworld.evaluate.reproduce.measures import Row
from hybridworld.evaluate.reproduce.study import STEP, Study
from hybridworld.evaluate.reproduce.visual import horizon_sweep, visual_proof

SYSTEMS = paper.SYSTEMS
SPLITS = paper.SPLITS
LADDER = paper.HORIZONS


@dataclass(frozen=True)
class Figure:
    """How the rows of an entry become a picture: a panel per system, or per system and split."""

    y: str
    methods: tuple[str, ...] = ()
    """Which of them are drawn (all, if none is named); of several, each is a line. Of one, each split is a line."""
    x: str = "horizon (frames)"
    symbol: str = "h"
    """What x is called in a table."""
    log_x: bool = True
    log_y: bool = False
    level: float | None = None
    """A line across: what means nothing."""


@dataclass(frozen=True)
class Entry:
    """One table, figure or ablation: what is measured, on what, and what the paper says."""

    id: str
    kind: Literal["table", "figure", "ablation"]
    title: str
    where: str
    systems: tuple[str, ...]
    splits: tuple[str, ...]
    horizons: tuple[int, ...]
    methods: tuple[str, ...]
    metric: str
    agreement: str
    """What counts as agreement, as `rules.py` tests it."""
    measure: Callable[[Study], list[Row]]
    paper: Callable[[str, Row], float | None] = lambda system, row: None
    """The paper's number for a row."""
    claims: tuple[str, ...] = ()
    figure: Figure | None = None
    seeds: int = 1
    retrains: bool = False
    """Does it take trainings beyond the main ones?"""


def _cells(table: paper.Cells, method: str) -> Callable[[str, Row], float | None]:
    """Numbers by system, split and horizon, for one method."""

    def find(system: str, row: Row) -> float | None:
        return table[system][row.split].get(int(row.x)) if row.method == method else None

    return find


def _baseline(system: str, row: Row) -> float | None:
    return paper.BASELINES.get(row.method, {}).get(system, {}).get(int(row.x))


def _seeds(system: str, row: Row) -> float | None:
    return paper.CROSS_SEED[system][row.split][int(row.x)][0] if row.method == STEP else None


def _energy(system: str, row: Row) -> float | None:
    return paper.ENERGY_MOMENTUM.get(row.method, {}).get(int(row.x))


def _data(system: str, row: Row) -> float | None:
    known = paper.DATASETS[system]
    return known.parameters if row.method.startswith("parameters") else known.val_mse


def _speed(system: str, row: Row) -> float | None:
    return paper.SPEEDUP[system].cpu if row.method == "against the NumPy twin" and row.x == 64 else None


def _single(system: str, row: Row) -> float | None:
    known = paper.SINGLE_HORIZON.get(system)
    return None if known is None else {"MSE, ladder": known.ladder, "MSE, single horizon": known.single}.get(row.method)


def _rollout(system: str, row: Row) -> float | None:
    return paper.ROLLOUT[system].rmse.get(int(row.x)) if row.method == "RMSE, mode 1" else None


def _richardson(system: str, row: Row) -> float | None:
    if row.x != 2:
        return None
    return {"Richardson, fixed-order": paper.RICHARDSON.auroc_at_2, STEP: paper.RICHARDSON.step_doubling_at_2}.get(row.method)


def _cut(system: str, row: Row) -> float | None:
    return _cells(paper.CUTS, "cut, matched q")(system, row)


WITHIN = f"a cell agrees if the paper's value lies in our 95 % interval, widened by {rules.PAPER_ERROR:g} for the paper's own"

ENTRIES = (
    Entry(
        "datasets", "table", "Datasets, networks, validation error", "Table 1", SYSTEMS, ("val",), (), (), "validation MSE",
        "our MSE is at most that of the paper", ablations.datasets, _data,
        ("trains-oregonator", "trains-euler2d", "trains-ball3d"),
    ),
    Entry(
        "auroc", "table", "AUROC of step-doubling", "Table 2", SYSTEMS, SPLITS, LADDER, (STEP,), "AUROC", WITHIN,
        measures.auroc, _cells(paper.AUROC, STEP),
        ("auroc-above-chance", "auroc-median", "auroc-above-065", "auroc-oregonator-ceiling", "auroc-euler-shift",
         "auroc-ball-failure"),
        Figure("AUROC", (STEP,), level=0.5),
    ),
    Entry(
        "baselines", "table", "Step-doubling against its rivals", "Table 3", SYSTEMS, ("test",), (16, 32, 64),
        (*measures.RIVALS, *measures.OURS), "AUROC", "step-doubling has the best mean of the paper's six signals",
        measures.baselines, _baseline,
        ("baselines-best-mean", "baselines-runner-up", "baselines-only-universal", "baselines-augmentation-inverted"),
        Figure("AUROC", level=0.5), seeds=3,
    ),
    Entry(
        "mode1-speed", "figure", "Mode 1 speed-up over the horizon", "Figures 1 and 5", SYSTEMS, ("test",), paper.LADDER,
        ("against the NumPy twin", "against the compiled solver"), "speed-up at batch 1, same cores",
        "at least half of the paper's against the NumPy twin (one ball: against the compiled solver); flat if below 2-fold",
        measures.speedup, _speed,
        ("mode1-oregonator", "mode1-euler2d", "mode1-ball3d", "mode1-cost-flat"),
        Figure("speed-up of mode 1", ("against the NumPy twin", "against the compiled solver"), log_y=True, level=1.0),
    ),
    Entry(
        "mode2", "figure", "Mode 2 at h = 64, q = 0.75", "Figure 6", SYSTEMS, ("test",), (64,), (), "cut of the RMSE",
        "a cut of at least 42 % with the paper's protocol; a speed-up of at least 2, against the twin (one ball: compiled)",
        measures.mode2, _cut,
        ("mode2-cut", "mode2-speedup"),
    ),
    Entry(
        "mode1-vs-mode2", "table", "Mode 2 against mode 1 in all cells", "Table 6, Figure 10", SYSTEMS, SPLITS, LADDER,
        ("cut, frozen threshold", "cut, matched q", "cut, random", "cut, oracle"), "cut of the RMSE",
        "the cut exceeds that of blind deferral in every cell", measures.cuts, _cut,
        ("mode2-above-random", "mode2-median-gaps", "mode2-largest"),
        Figure("cut of the RMSE", ("cut, matched q",), level=0.25),
    ),
    Entry(
        "pareto", "figure", "RMSE against speed-up over q", "Figure 1", SYSTEMS, ("test",), (64,), (), "RMSE, speed-up",
        "no number is printed in the paper", measures.pareto,
        figure=Figure("RMSE", x="speed-up", log_y=False),
    ),
    Entry(
        "q-sweep", "figure", "The cut over the keep fraction q", "Figure 11", SYSTEMS, SPLITS, (64,),
        ("matched q", "frozen threshold", "random floor", "oracle"), "cut of the RMSE",
        "with frozen thresholds the cut falls with q; with matched ones it exceeds 1 - q and the paper's less 3 points",
        measures.q_sweep,
        claims=("q-monotone", "q-above-random", "q-ranges"),
        figure=Figure(
            "cut of the RMSE", ("matched q", "frozen threshold", "random floor", "oracle"), "keep fraction q", "q", False
        ),
    ),
    Entry(
        "self-consistency", "ablation", "Training by self-consistency alone", "Figure 7", SYSTEMS, ("val",), (), (),
        "loss, validation MSE, distance to the identity",
        "the loss falls a hundredfold or more while the MSE stays above 80 % of that of no change",
        ablations.self_consistency, claims=("self-consistency-collapse",),
        figure=Figure("", ("self-consistency loss", "validation MSE", "MSE of no change"), "epoch", "epoch", False, True),
        retrains=True,
    ),
    Entry(
        "single-horizon", "ablation", "Training at a single horizon", "Table 4", SYSTEMS, ("val",), (64,), (),
        "MSE and AUROC at h = 64",
        "the single-horizon network is worse by more than 10 % at h = 64, and its AUROC is not above 0.55 for sure",
        ablations.single_horizon, _single,
        ("single-horizon-worse", "single-horizon-probe"), retrains=True,
    ),
    Entry(
        "dagger", "ablation", "The weight of the DAgger part", "Figure 8", SYSTEMS, ("val",), (), (), "validation MSE",
        "the weight 1 is at least 1.5 times as bad as 0.1, which is within 5 % of the best", ablations.dagger,
        claims=("dagger-alone", "dagger-sweet-spot"),
        figure=Figure("validation MSE", x="weight of the DAgger part", symbol="weight", log_x=False, log_y=True), retrains=True,
    ),
    Entry(
        "cross-seed", "table", "AUROC over three seeds", "Table 5, Figure 9", SYSTEMS, SPLITS, LADDER, (STEP,),
        "mean and deviation of the AUROC", "rounded, a median deviation of at most 0.02, and none above 0.05",
        measures.cross_seed, _seeds,
        ("cross-seed-spread", "cross-seed-agreement"), Figure("AUROC", (STEP,), level=0.5), seeds=3,
    ),
    Entry(
        "beyond", "figure", "Beyond the trained horizons", "Figure 12", ("oregonator", "euler2d"), SPLITS,
        (64, 80, 96, 128, 160), (STEP,), "AUROC", "our AUROC is at least the lower end of the paper's range, less 0.05",
        measures.beyond, claims=("beyond-oregonator", "beyond-euler2d"),
        figure=Figure("AUROC", (STEP,), log_x=False, level=0.5),
    ),
    Entry(
        "rollout", "figure", "Closed-loop rollout", "Figure 13", SYSTEMS, ("test",), (64,), ("RMSE, mode 1", "RMSE, mode 2"),
        "RMSE after k links of 64 frames",
        "no chain is lost, the RMSE grows at most 1.5 times as much as the paper's and stays below 1 (a constant answer's)",
        rollout, _rollout, ("rollout-bounded", "rollout-euler-bimodal"),
        Figure("RMSE", ("RMSE, mode 1", "RMSE, mode 2", "RMSE, random", "RMSE, oracle"), "links of 64 frames", "k", log_y=True),
    ),
    Entry(
        "energy-momentum", "table", "Conserved quantities as signals", "Table 7", ("ball3d",), ("test",), LADDER,
        ("energy residual", "momentum residual", STEP), "AUROC",
        "step-doubling has the better mean; momentum's is within 0.07 of chance",
        measures.energy_momentum, _energy, ("energy-below-step-doubling", "momentum-at-chance"), Figure("AUROC", level=0.5),
    ),
    Entry(
        "richardson", "figure", "Richardson extrapolation of the solver", "Figure 14", ("euler2d",), ("test",), LADDER,
        ("Richardson, fixed-order", "Richardson, geometric-mean", STEP), "AUROC, milliseconds per answer",
        "within 0.1 of step-doubling at h = 2, below 0.6 from h = 4 on, where step-doubling is above; it is dearer",
        measures.richardson, _richardson,
        ("richardson-auroc", "richardson-cost"),
        Figure("AUROC", ("Richardson, fixed-order", "Richardson, geometric-mean", STEP), level=0.5),
    ),
    Entry(
        "visual-proof", "figure", "The error map beside the true error", "Figures 2, 3, 4", SYSTEMS, ("test",), (64,), (),
        "correlation of the two maps over cells", "a rank correlation of at least 0.5 over the cells of test fields",
        visual_proof, claims=("spatial-alignment",),
    ),
    Entry(
        "horizon-sweep", "figure", "The same at four horizons", "Figures 15, 16, 17", SYSTEMS, ("test",), (2, 8, 32, 64), (),
        "correlation of the two maps over cells", "as for the visual proof", horizon_sweep,
        claims=("spatial-alignment", "spatial-selectivity"),
    ),
)  # fmt: skip


def find_entries(wanted: str) -> list[Entry]:
    """All of them, or the one of that id."""
    known = {entry.id: entry for entry in ENTRIES}
    if wanted == "all":
        return list(ENTRIES)
    if wanted not in known:
        raise InvalidInput(f"There is no entry '{wanted}': `hybridworld reproduce --list` shows them.{nearest(wanted, known)}")
    return [known[wanted]]
