"""What the paper "Hybrid Neural World Models" (Lakshmanan and Chopra, May 2026) publishes, as plain data to compare with.

Tables are as printed, with the digits they have. Cuts and gaps are shares (a cut of "-57%" is 0.57), as in `metrics.Cut`.
Of figures we only have what captions and text say about them. Where the paper contradicts itself, both versions are kept, and
`INCONSISTENCIES` says so. Table 11, the hyperparameters, is the preset `paper` of `surrogate.config`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

SYSTEMS = ("oregonator", "euler2d", "ball3d")
SPLITS = ("test", "ood-near", "ood-far")
TRAINED = (1, 2, 4, 8, 16, 32, 64)
"""Horizons of training, in frames; by Section 3.1 without the 1."""
HORIZONS = TRAINED[1:]
"""Horizons of evaluation: those whose half was trained."""
Q = 0.75
"""The share of answers that mode 2 keeps, unless said otherwise; thresholds of AUROC are at the same quantile of the errors."""

Cells = Mapping[str, Mapping[str, Mapping[int, float]]]
"""System -> split -> horizon -> value."""


class Range(NamedTuple):
    """The lowest and the highest of several values."""

    low: float
    high: float


# What was simulated.


@dataclass(frozen=True)
class Data:
    """A column of the table of datasets and networks."""

    shape: tuple[int, ...]  # as printed: channels last
    frames: int
    frame_step: float
    counts: Mapping[str, int]  # trajectories per split
    backbone: str
    parameters: float  # millions
    val_mse: float  # normalised, at the end of training


DATASETS: Mapping[str, Data] = {
    "oregonator": Data(
        shape=(256, 256, 2),
        frames=201,
        frame_step=0.05,
        counts={"train": 1200, "val": 150, "test": 150, "ood-near": 250, "ood-far": 250},
        backbone="U-Net",
        parameters=3.56,
        val_mse=0.104,
    ),
    "euler2d": Data(
        shape=(128, 128, 4),
        frames=100,
        frame_step=0.002,
        counts={"train": 500, "val": 100, "test": 100, "ood-near": 150, "ood-far": 150},
        backbone="U-Net",
        parameters=3.56,
        val_mse=0.016,
    ),
    "ball3d": Data(
        shape=(9,),
        frames=101,
        frame_step=0.01,
        counts={"train": 1000, "val": 200, "test": 200, "ood-near": 200, "ood-far": 200},
        backbone="MLP + FiLM",
        parameters=0.69,
        val_mse=0.024,
    ),
}
"""Table 1 (tab:dataset_spec): dataset and network of each system."""

PARAMETERS: Mapping[str, Mapping[str, Mapping[str, tuple[Range, ...]]]] = {
    "oregonator": {
        "eps": {
            "id": (Range(0.02, 0.08),),
            "ood-near": (Range(0.015, 0.02), Range(0.08, 0.10)),
            "ood-far": (Range(0.010, 0.015), Range(0.10, 0.15)),
        },
        "f": {
            "id": (Range(0.5, 2.0),),
            "ood-near": (Range(0.4, 0.5), Range(2.0, 2.2)),
            "ood-far": (Range(0.3, 0.4), Range(2.2, 2.5)),
        },
    },
    "euler2d": {
        "blast_energy": {
            "id": (Range(0.5, 2.0),),
            "ood-near": (Range(0.3, 0.5), Range(2.0, 2.5)),
            "ood-far": (Range(0.1, 0.3), Range(2.5, 5.0)),
        },
        "background_density": {
            "id": (Range(0.8, 1.2),),
            "ood-near": (Range(0.6, 0.8), Range(1.2, 1.5)),
            "ood-far": (Range(0.4, 0.6), Range(1.5, 2.0)),
        },
        "wall_shift": {"ood-far": (Range(-0.05, 0.05),)},
    },
    "ball3d": {
        "restitution": {
            "id": (Range(0.70, 0.95),),
            "ood-near": (Range(0.50, 0.70), Range(0.95, 0.99)),
            "ood-far": (Range(0.30, 0.50),),
        },
        "gravity": {
            "id": (Range(-10.5, -9.0),),
            "ood-near": (Range(-12.0, -10.5), Range(-9.0, -7.5)),
            "ood-far": (Range(-15.0, -12.0), Range(-7.5, -5.0)),
        },
        "speed": {"id": (Range(1.0, 3.0),), "ood-near": (Range(1.0, 3.0),), "ood-far": (Range(1.0, 3.0),)},
        "spin": {"id": (Range(-5.0, 5.0),), "ood-near": (Range(-5.0, 5.0),), "ood-far": (Range(-5.0, 5.0),)},
    },
}
"""Tables 8 to 10 (tab:oreg_params, tab:euler_params, tab:ball3d_params): where parameters and initial states are drawn from;
`id` is train, val and test. `speed` is of the start, `spin` is each component of it."""

INITIAL_STATES: Mapping[str, float] = {"spiral": 0.5, "target": 0.3, "random": 0.2}
"""Table 8, caption: the mix of Oregonator's initial states, on all splits. Of Euler we only learn that there are four quadrant
configurations in equal shares, and Sedov blasts; how many of which is not said."""

SOLVERS: Mapping[str, Mapping[str, float]] = {
    "oregonator": {"eps": 0.05, "q": 0.002, "f": 2.0, "D": 1.0},
    "euler2d": {"cfl": 0.4, "gamma": 1.4},
    "ball3d": {"substeps": 50},
}
"""Section 5.1: constants of the reference solvers."""


# How well the signal ranks.

AUROC: Cells = {
    "oregonator": {
        "test": {2: 0.70, 4: 0.70, 8: 0.72, 16: 0.77, 32: 0.72, 64: 0.75},
        "ood-near": {2: 0.68, 4: 0.71, 8: 0.72, 16: 0.74, 32: 0.73, 64: 0.65},
        "ood-far": {2: 0.65, 4: 0.69, 8: 0.72, 16: 0.72, 32: 0.67, 64: 0.64},
    },
    "euler2d": {
        "test": {2: 0.97, 4: 0.97, 8: 0.95, 16: 0.92, 32: 0.98, 64: 0.95},
        "ood-near": {2: 0.90, 4: 0.94, 8: 0.93, 16: 0.82, 32: 0.92, 64: 0.98},
        "ood-far": {2: 1.00, 4: 1.00, 8: 0.99, 16: 0.95, 32: 0.99, 64: 0.98},
    },
    "ball3d": {
        "test": {2: 0.90, 4: 0.78, 8: 0.76, 16: 0.76, 32: 0.75, 64: 0.76},
        "ood-near": {2: 0.95, 4: 0.96, 8: 0.83, 16: 0.82, 32: 0.68, 64: 0.71},
        "ood-far": {2: 0.88, 4: 0.68, 8: 0.76, 16: 0.44, 32: 0.59, 64: 0.55},
    },
}
"""Table 2 (tab:auroc_sd_coverage): AUROC of step-doubling for the worst quarter of the trajectories, one seed."""


@dataclass(frozen=True)
class AurocText:
    """What the text says about the table of AUROC."""

    median: float
    above_chance: int  # cells of 54
    above_065: int  # cells of 54
    pairs: Range  # per cell
    oregonator: Range  # over its cells
    oregonator_rmse: float  # of the surrogate at h = 64
    failure: float  # Ball 3D, OOD-far, h = 16: the one cell below chance
    failure_over_seeds: tuple[float, float]  # mean and standard deviation, as the text has them


AUROC_TEXT = AurocText(
    median=0.76,
    above_chance=53,
    above_065=50,
    pairs=Range(80, 100),
    oregonator=Range(0.65, 0.77),
    oregonator_rmse=0.06,
    failure=0.44,
    failure_over_seeds=(0.43, 0.02),
)
"""Section 5.2, and the caption of Table 2."""

BASELINES: Mapping[str, Mapping[str, Mapping[int, float]]] = {
    "random augmentation": {
        "oregonator": {16: 0.60, 32: 0.63, 64: 0.61},
        "euler2d": {16: 0.12, 32: 0.09, 64: 0.38},
        "ball3d": {16: 0.66, 32: 0.72, 64: 0.63},
    },
    "gradient magnitude": {
        "oregonator": {16: 0.53, 32: 0.32, 64: 0.49},
        "euler2d": {16: 0.93, 32: 0.85, 64: 0.96},
    },
    "learned error head": {
        "oregonator": {16: 0.79, 32: 0.72, 64: 0.73},
        "euler2d": {16: 0.86, 32: 0.89, 64: 0.85},
        "ball3d": {16: 0.65, 32: 0.77, 64: 0.77},
    },
    "locally adaptive conformal": {
        "oregonator": {16: 0.56, 32: 0.72, 64: 0.63},
        "euler2d": {16: 0.93, 32: 0.89, 64: 0.91},
        "ball3d": {16: 0.47, 32: 0.59, 64: 0.47},
    },
    "ensemble": {
        "oregonator": {16: 0.75, 32: 0.73, 64: 0.71},
        "euler2d": {16: 0.81, 32: 0.82, 64: 0.83},
        "ball3d": {16: 0.74, 32: 0.81, 64: 0.70},
    },
    "step-doubling": {
        "oregonator": {16: 0.77, 32: 0.72, 64: 0.75},
        "euler2d": {16: 0.92, 32: 0.98, 64: 0.95},
        "ball3d": {16: 0.76, 32: 0.75, 64: 0.76},
    },
}
"""Table 3 (tab:auroc_baselines): signal -> system -> horizon -> AUROC on test; the ensemble has three members."""

BASELINE_MEANS: Mapping[str, float] = {"step-doubling": 0.82, "ensemble": 0.77}
"""Section 5.3: means over the nine cells, as far as the text has them."""

CROSS_SEED: Mapping[str, Mapping[str, Mapping[int, tuple[float, float]]]] = {
    "oregonator": {
        "test": {2: (0.75, 0.04), 4: (0.75, 0.03), 8: (0.75, 0.04), 16: (0.75, 0.04), 32: (0.72, 0.01), 64: (0.72, 0.02)},
        "ood-near": {2: (0.71, 0.02), 4: (0.73, 0.02), 8: (0.73, 0.01), 16: (0.72, 0.02), 32: (0.71, 0.01), 64: (0.66, 0.03)},
        "ood-far": {2: (0.69, 0.03), 4: (0.72, 0.01), 8: (0.73, 0.01), 16: (0.69, 0.02), 32: (0.68, 0.01), 64: (0.63, 0.02)},
    },
    "euler2d": {
        "test": {2: (0.87, 0.03), 4: (0.84, 0.02), 8: (0.80, 0.02), 16: (0.78, 0.04), 32: (0.74, 0.05), 64: (0.72, 0.04)},
        "ood-near": {2: (0.86, 0.01), 4: (0.79, 0.02), 8: (0.81, 0.04), 16: (0.85, 0.02), 32: (0.83, 0.02), 64: (0.76, 0.04)},
        "ood-far": {2: (0.78, 0.02), 4: (0.74, 0.02), 8: (0.74, 0.03), 16: (0.76, 0.03), 32: (0.73, 0.02), 64: (0.70, 0.02)},
    },
    "ball3d": {
        "test": {2: (0.90, 0.04), 4: (0.92, 0.01), 8: (0.84, 0.02), 16: (0.82, 0.01), 32: (0.83, 0.01), 64: (0.82, 0.03)},
        "ood-near": {2: (0.90, 0.03), 4: (0.90, 0.03), 8: (0.90, 0.01), 16: (0.74, 0.02), 32: (0.58, 0.02), 64: (0.61, 0.02)},
        "ood-far": {2: (0.77, 0.03), 4: (0.77, 0.04), 8: (0.74, 0.03), 16: (0.59, 0.05), 32: (0.43, 0.02), 64: (0.64, 0.03)},
    },
}
"""Table 5 (tab:cross_seed_auroc): mean and standard deviation of the AUROC of step-doubling over three seeds."""


@dataclass(frozen=True)
class CrossSeedText:
    """How far seeds spread: the caption of the table and the text around it do not agree."""

    seeds: tuple[int, ...]
    median_sd: float  # caption
    median_sd_in_text: float  # at most
    largest_sd: float  # caption
    largest_sd_in_text: float
    largest_at: tuple[str, str, int]
    within_one_sd: int  # cells of 54 in which Table 2 agrees
    failure_horizons: tuple[int, ...]  # of Ball 3D, OOD-far, at every seed


CROSS_SEED_TEXT = CrossSeedText(
    seeds=(0, 1, 2),
    median_sd=0.02,
    median_sd_in_text=0.04,
    largest_sd=0.05,
    largest_sd_in_text=0.06,
    largest_at=("ball3d", "ood-far", 16),
    within_one_sd=54,
    failure_horizons=(16, 32),
)
"""Appendix A.5, Table 5 and Figure 9."""

BEYOND: Mapping[str, Mapping[int, Range]] = {
    "oregonator": {128: Range(0.81, 0.97), 160: Range(0.71, 0.86)},
    "euler2d": {96: Range(0.96, 1.00)},
}
"""Figure 12 (fig:beyond_tmax): system -> horizon up to which -> AUROC over all splits, beyond the trained 64 frames;
Oregonator's 160 is that horizon alone, Euler's range is over six cells."""


# Speed and mode 2.


@dataclass(frozen=True)
class Speedup:
    """Mode 1 against the reference solver over 64 frames."""

    cpu: float | None  # one trajectory, both on the same CPU; None: no number, the surrogate does not win
    cpu_in_figure_1: float | None  # the same, rounded otherwise
    gpu: Mapping[int, float]  # batch -> surrogate on the GPU, solver on the CPU one trajectory at a time
    said: str


SPEEDUP: Mapping[str, Speedup] = {
    "oregonator": Speedup(cpu=72, cpu_in_figure_1=70, gpu={1: 734}, said="The GPU is saturated by about one trajectory."),
    "euler2d": Speedup(cpu=26, cpu_in_figure_1=25, gpu={1: 186}, said="The GPU is saturated by about one trajectory."),
    "ball3d": Speedup(
        cpu=None,
        cpu_in_figure_1=None,
        gpu={128: 31},
        said="The solver takes less than a millisecond per step, so one trajectory is slower by surrogate, also on the GPU.",
    ),
}
"""Figure 5 (fig:mode1) and Section 5.4; Figure 1 (fig:speedup)."""


@dataclass(frozen=True)
class Mode2:
    """What mode 2 is said to do at the default q; numbers of single systems are only in the figure."""

    split: str
    horizon: int
    cut: Range  # of the trajectory-mean RMSE, over the three systems
    speedup: float  # about


MODE2 = Mode2(split="test", horizon=64, cut=Range(0.43, 0.52), speedup=3.0)
"""Figure 6 (fig:mode2) and Section 5.5."""

CUTS: Cells = {
    "oregonator": {
        "test": {2: 0.57, 4: 0.55, 8: 0.58, 16: 0.66, 32: 0.63, 64: 0.40},
        "ood-near": {2: 0.54, 4: 0.55, 8: 0.62, 16: 0.47, 32: 0.57, 64: 0.51},
        "ood-far": {2: 0.68, 4: 0.62, 8: 0.54, 16: 0.47, 32: 0.37, 64: 0.48},
    },
    "euler2d": {
        "test": {2: 0.72, 4: 0.77, 8: 0.51, 16: 0.62, 32: 0.63, 64: 0.57},
        "ood-near": {2: 0.45, 4: 0.78, 8: 0.70, 16: 0.59, 32: 0.40, 64: 0.56},
        "ood-far": {2: 0.79, 4: 0.86, 8: 0.89, 16: 0.85, 32: 0.58, 64: 0.74},
    },
    "ball3d": {
        "test": {2: 0.76, 4: 0.44, 8: 0.54, 16: 0.54, 32: 0.54, 64: 0.43},
        "ood-near": {2: 0.73, 4: 0.77, 8: 0.45, 16: 0.34, 32: 0.30, 64: 0.28},
        "ood-far": {2: 0.47, 4: 0.28, 8: 0.45, 16: 0.36, 32: 0.27, 64: 0.34},
    },
}
"""Table 6 (tab:m1_m2_horizons): the share of the trajectory-mean RMSE that mode 2 takes away at q = 0.75."""


@dataclass(frozen=True)
class CutText:
    """What the text says about the table of cuts; gaps are cuts beyond that of blind deferral."""

    floor: float  # of blind deferral
    above_floor: int  # cells of 54
    median_gap: Mapping[str, float]
    largest: tuple[str, str, int]
    largest_gap: float
    largest_rmse: tuple[float, float]  # modes 1 and 2 there
    within_ten_points: int  # cells that close to the floor
    oregonator: Range  # over its cells


CUT_TEXT = CutText(
    floor=0.25,
    above_floor=54,
    median_gap={"oregonator": 0.30, "euler2d": 0.37, "ball3d": 0.20},
    largest=("euler2d", "ood-far", 8),
    largest_gap=0.64,
    largest_rmse=(1.12, 0.13),
    within_ten_points=5,
    oregonator=Range(0.40, 0.68),
)
"""Appendix A.6; the range of Oregonator is in Section 5.2."""

Q_VALUES = (0.5, 0.6, 0.75, 0.85, 0.9)
Q_SWEEP: Mapping[float, Mapping[str, Range]] = {
    0.5: {"oregonator": Range(0.75, 0.87), "euler2d": Range(0.73, 0.86)},
    0.75: {"oregonator": Range(0.46, 0.53), "euler2d": Range(0.52, 0.63)},
    0.9: {"oregonator": Range(0.20, 0.26), "euler2d": Range(0.33, 0.40)},
}
"""Figure 11 (fig:qsweep) and Appendix A.7: q -> system -> cut at h = 64, over the splits; all that was swept is `Q_VALUES`."""

Q_SWEEP_GAP = Range(0.21, 0.38)
"""Appendix A.7: the cut beyond that of blind deferral at q = 0.75, over both systems and all splits."""


# Ablations and checks.


@dataclass(frozen=True)
class SelfConsistency:
    """Training by self-consistency alone."""

    systems: tuple[str, ...]
    epochs: int
    orders_of_magnitude: float  # by which the loss falls, about
    saturated_at: int  # epoch
    saturated_near: float


SELF_CONSISTENCY = SelfConsistency(
    systems=("oregonator", "euler2d"), epochs=20, orders_of_magnitude=6, saturated_at=5, saturated_near=1e-6
)
"""Figure 7 (fig:self_consistency) and Appendix A.1: the loss vanishes, the validation MSE stays flat."""


@dataclass(frozen=True)
class SingleHorizon:
    """Validation MSE at h = 64 after training at all horizons, and on h = 64 alone."""

    all_horizons: float
    single: float
    ratio: float  # as printed


SINGLE_HORIZON: Mapping[str, SingleHorizon] = {
    "euler2d": SingleHorizon(all_horizons=0.016, single=0.028, ratio=1.7),
    "ball3d": SingleHorizon(all_horizons=0.024, single=0.143, ratio=6.0),
}
"""Table 4 (tab:single_horizon); Oregonator was not run. There is no AUROC: the probe of a single-horizon network counts
as undefined."""


@dataclass(frozen=True)
class Dagger:
    """Final validation MSE by the weight of DAgger, relative to that of the weight 0.1."""

    weights: tuple[float, ...]
    alone: Range  # how many times worse DAgger alone is, over the systems
    without: Mapping[str, float]  # the share by which no DAgger is worse, "within" it for Ball 3D and Euler 2D


DAGGER = Dagger(weights=(0.0, 0.1, 1.0), alone=Range(3, 9), without={"oregonator": 0.26, "euler2d": 0.31, "ball3d": 0.05})
"""Figure 8 (fig:dagger) and Appendix A.4."""


@dataclass(frozen=True)
class Rollout:
    """RMSE by the number of chained forecasts of 64 frames."""

    rmse: Mapping[int, float]  # the first and the last; others are only in the figure
    growth: float  # as printed; 1: about flat


ROLLOUT_LENGTHS, ROLLOUT_TRAJECTORIES = (1, 2, 4, 8), 32
ROLLOUT: Mapping[str, Rollout] = {
    "oregonator": Rollout(rmse={1: 0.06, 8: 0.15}, growth=2.5),
    "euler2d": Rollout(rmse={}, growth=1.0),
    "ball3d": Rollout(rmse={1: 0.18, 8: 0.32}, growth=1.7),
}
"""Figure 13 (fig:rollout) and Appendix A.9: the RMSE of Euler is about flat, with a wide spread between trajectories."""

ENERGY_MOMENTUM: Mapping[str, Mapping[int, float]] = {
    "energy residual": {2: 0.78, 4: 0.85, 8: 0.84, 16: 0.85, 32: 0.70, 64: 0.77},
    "momentum residual": {2: 0.45, 4: 0.51, 8: 0.46, 16: 0.46, 32: 0.45, 64: 0.67},
    "step-doubling": {2: 0.95, 4: 0.91, 8: 0.81, 16: 0.81, 32: 0.83, 64: 0.86},
}
"""Table 7 (tab:energy_momentum): AUROC of residuals of conserved quantities, on test of Ball 3D."""

ENERGY_MOMENTUM_MEANS: Mapping[str, float] = {"energy residual": 0.80, "momentum residual": 0.50, "step-doubling": 0.86}
"""Table 7, last column."""


@dataclass(frozen=True)
class Richardson:
    """Classical Richardson extrapolation against step-doubling, on test of Euler 2D."""

    auroc_at_2: float
    step_doubling_at_2: float
    auroc: Range  # from h = 4 to 64
    step_doubling: Range  # from h = 4 to 64; by the figure's caption from h = 2
    seconds: Mapping[int, float]  # horizon -> of one cell
    total_minutes: float  # of all six horizons
    step_doubling_seconds: float  # of one cell, at most
    trajectories: int  # per cell
    draws: int  # of the bootstrap, for 95 % intervals


RICHARDSON = Richardson(
    auroc_at_2=0.88,
    step_doubling_at_2=0.86,
    auroc=Range(0.38, 0.53),
    step_doubling=Range(0.81, 0.97),
    seconds={2: 78, 64: 1864},
    total_minutes=61,
    step_doubling_seconds=1,
    trajectories=50,
    draws=1000,
)
"""Figure 14 (fig:richardson) and Appendix A.11."""

PICTURES: Mapping[str, int] = {"oregonator": 64, "ball3d": 32}
"""Figures 2 and 4 (fig:emap_oreg, fig:emap_ball3d): the horizon of the five panels; Figure 3 (fig:emap_euler) names
none."""

PICTURES_BY_HORIZON: Mapping[str, tuple[int, ...]] = {
    "oregonator": (2, 8, 32, 64),
    "euler2d": (2, 8, 32, 64),
    "ball3d": (8, 16, 32, 64),
}
"""Figures 15 to 17 (fig:oreg_horizons, fig:euler_horizons, fig:ball3d_horizons): the same panels, a row per horizon."""


# How it was made.


@dataclass(frozen=True)
class Hardware:
    """The machine of all training and timing."""

    gpu: str
    gpu_memory: int  # GB
    cpu: str
    cores: int
    threads: int
    memory: int  # GB
    pytorch: str
    cuda: str
    cudnn: str
    system: str
    threads_in_benchmarks: int


HARDWARE = Hardware(
    gpu="NVIDIA GeForce RTX 5050 Laptop GPU",
    gpu_memory=8,
    cpu="AMD Ryzen 9 8940HX",
    cores=16,
    threads=24,
    memory=16,
    pytorch="2.9.0",
    cuda="12.8",
    cudnn="9.10",
    system="Ubuntu 22.04",
    threads_in_benchmarks=8,
)
"""Table 12 (tab:hardware): one laptop; threads in benchmarks are from the text below it."""
