"""What the paper claims, in our words: each claim with its place, the entry that measures it, and the rule that judges it."""

from dataclasses import dataclass

from hybridworld.reproduce import paper, rules
from hybridworld.reproduce.rules import Rule

PDES = ("oregonator", "euler2d")
EULER, BALL = ("euler2d",), ("ball3d",)
SLOWER = "How fast a NumPy solver is depends on how it is written, which the paper does not say."


@dataclass(frozen=True)
class Claim:
    """One claim of the paper. Every part that its rule finds must hold."""

    id: str
    where: str
    text: str
    entry: str = ""
    """What measures it; empty where nothing here can."""
    rule: Rule | None = None
    holds_if: str = ""
    """What the rule tests; always by whole intervals."""
    systems: tuple[str, ...] = paper.SYSTEMS
    note: str = ""
    """What to know beside the verdict; without a rule, why there is none."""
    joint: bool = False
    """Does the rule compare systems, so that it needs all of them? Else each system is judged for itself."""
    recipe: bool = False
    """Is it about what the paper's training reaches, so that the size of the error is the claim and no reason to wait?"""


CLAIMS = (
    *(
        Claim(
            f"trains-{system}", "Table 1", f"The recipe reaches a validation MSE of {data.val_mse:g} on {name}.",
            "datasets", rules.trains, "the mean over seeds is at most the paper's value", (system,), recipe=True,
        )
        for (system, data), name in zip(paper.DATASETS.items(), ("Oregonator", "Euler 2D", "Ball 3D"), strict=True)
    ),
    Claim(
        "auroc-above-chance", "Table 2, Section 5.2", "Step-doubling ranks better than chance in 53 of 54 cells.",
        "auroc", rules.cells_above(0.5), "on each system as many cells as in the paper's table are above 0.5",
    ),
    Claim(
        "auroc-median", "Table 2, Section 5.2", "The median AUROC of step-doubling over the 54 cells is 0.76.",
        "auroc", rules.median_auroc, "on each system the median is at least the paper's over the same cells",
    ),
    Claim(
        "auroc-above-065", "Table 2, Section 5.2", "In 50 of 54 cells the AUROC of step-doubling exceeds 0.65.",
        "auroc", rules.cells_above(0.65), "on each system as many cells as in the paper's table are above 0.65",
    ),
    Claim(
        "auroc-oregonator-ceiling", "Table 2, Section 5.2",
        "On Oregonator the AUROC stays between 0.65 and 0.77, because nearly all forecasts are about equally good.",
        "auroc", rules.ceiling, "every cell lies between the two", ("oregonator",),
    ),
    Claim(
        "auroc-euler-shift", "Table 2, Section 5.2", "On Euler 2D the AUROC rises towards 1 under distribution shift.",
        "auroc", rules.rises_under_shift, "the mean on ood-far exceeds that on test, and 0.9", EULER,
    ),
    Claim(
        "auroc-ball-failure", "Table 2, Sections 5.2 and 6",
        "On Ball 3D, OOD-far, the signal fails at h = 16: its AUROC of 0.44 is the only one below chance.",
        "auroc", rules.ball_failure, "that cell is below 0.5, and all others are above", BALL,
        "The paper's own Table 5 has the failure at h = 32.",
    ),
    Claim(
        "baselines-best-mean", "Table 3, Section 5.3",
        "Over nine test cells step-doubling has the best mean AUROC of all signals, 0.82.",
        "baselines", rules.best_mean, "its lead over each of the paper's five rivals is positive, on the same trajectories",
        joint=True,
    ),
    Claim(
        "baselines-runner-up", "Table 3, Section 5.3",
        "The runner-up is an ensemble of three networks with a mean AUROC of 0.77.",
        "baselines", rules.runner_up, "the ensemble's lead over each other rival is positive, on the same trajectories",
        note="By the paper's own Table 3 it is the learned error head.", joint=True,
    ),
    Claim(
        "baselines-augmentation-inverted", "Table 3, Section 5.3",
        "Random augmentation ranks Euler 2D the wrong way round, with an AUROC below 0.4.",
        "baselines", rules.inverted, "all three cells are below 0.4", EULER,
    ),
    Claim(
        "baselines-only-universal", "Section 5.3",
        "Only step-doubling applies to all three systems with neither training nor calibration per system.",
        "baselines", rules.only_universal, "no other signal without training has a value on every system", joint=True,
    ),
    Claim(
        "spatial-alignment", "Figures 2 to 4 and 15 to 17, Section 5.2",
        "Seen by eye, the error map lies where the true error lies: on fronts, on contact discontinuities, on the worst balls.",
        "visual-proof", rules.aligned, "the rank correlation of the two is at least 0.5",
    ),
    Claim(
        "spatial-selectivity", "Figures 3 and 16, Section 5.2",
        "Seen by eye, the error map is dark inside the smooth quadrants of Euler 2D, so it is no mere edge detector.",
        "horizon-sweep", rules.selective,
        "at each horizon it correlates with the true error better than the steepness of the prediction does", EULER,
    ),
    Claim(
        "mode1-oregonator", "Figure 5, Section 5.4", "On one CPU and over 64 frames, mode 1 is 72 times faster on Oregonator.",
        "mode1-speed", rules.speed_like, "at least half of that against the NumPy twin", ("oregonator",), SLOWER,
    ),
    Claim(
        "mode1-euler2d", "Figure 5, Section 5.4", "On one CPU and over 64 frames, mode 1 is 26 times faster on Euler 2D.",
        "mode1-speed", rules.speed_like, "at least half of that against the NumPy twin", EULER, SLOWER,
    ),
    Claim(
        "mode1-ball3d", "Figure 5, Section 5.4",
        "On Ball 3D one trajectory is not faster by surrogate; 128 on a GPU are 31 times faster than the solver one by one.",
        "mode1-speed", rules.no_gain, "mode 1 is slower than the NumPy twin, as the paper's solver is a NumPy program", BALL,
        "Our NumPy twin is written for batches, and slow for one ball.",
    ),
    Claim(
        "mode1-gpu", "Figure 5, Section 5.4",
        "On a GPU, mode 1 is 734 times (Oregonator) and 186 times (Euler 2D) faster than the solver on a CPU.",
        systems=PDES, note="There is no GPU here.",
    ),
    Claim(
        "mode1-cost-flat", "Figure 5, Section 5.4",
        "The time of the surrogate does not depend on the horizon, while that of the solver is proportional to it.",
        "mode1-speed", rules.flat_cost,
        "from h = 1 to 64 mode 1 takes less than twice as long, and the NumPy twin at least 32 times",
    ),
    Claim(
        "mode2-cut", "Figure 6, Section 5.5",
        "On test at h = 64 and q = 0.75, mode 2 cuts the trajectory-mean RMSE by 43 to 52 % on each system.",
        "mode2", rules.mode2_cut, "with the paper's protocol (matched q) the cut is at least 43 %",
        note="The more even the errors, the less there is to cut: compare with the oracle.",
    ),
    Claim(
        "mode2-speedup", "Figure 6, Section 5.5",
        "With a quarter of the trajectories deferred, mode 2 is still about 3 times faster.",
        "mode2", rules.mode2_speed, "as deployed it is at least 2 times faster than the NumPy twin",
        note="A quarter of the work on the solver bounds any speed-up by 4.",
    ),
    Claim(
        "mode2-above-random", "Table 6, Appendix A.6", "Mode 2 cuts more than blind deferral in all 54 cells.",
        "mode1-vs-mode2", rules.above_random(paper.HORIZONS, lambda h: paper.CUT_TEXT.floor),
        "in every cell the cut by the paper's protocol exceeds 25 %",
    ),
    Claim(
        "mode2-median-gaps", "Table 6, Appendix A.6",
        "The median cut exceeds that of blind deferral by 30 points on Oregonator, 37 on Euler 2D and 20 on Ball 3D.",
        "mode1-vs-mode2", rules.median_gaps, "by at least as many points",
    ),
    Claim(
        "mode2-largest", "Table 6, Section 5.5", "The largest cut, 89 %, is on Euler 2D, OOD-far, at h = 8.",
        "mode1-vs-mode2", rules.largest_cut, "the cut of that cell exceeds those of all others", joint=True,
    ),
    Claim(
        "mode2-follows-auroc", "Table 6, Appendix A.6",
        "The cut is near that of blind deferral just where the AUROC is at chance: in five cells of Ball 3D under shift.",
        "mode1-vs-mode2", rules.follows_auroc,
        "cells within ten points of 25 % are those with an AUROC below 0.55, some on Ball 3D under shift, none elsewhere",
        note="By the paper's own tables it does not hold (see below).",
    ),
    Claim(
        "q-monotone", "Figure 11, Appendix A.7",
        "The smaller q, the larger the cut, without jumps, on both PDEs and all splits.",
        systems=PDES,
        note="It cannot be false: what is kept at a smaller q is part of what is kept at a larger one, whatever the signal.",
    ),
    Claim(
        "q-above-random", "Figure 11, Appendix A.7", "At every q the cut exceeds that of blind deferral, 1 - q.",
        "q-sweep", rules.above_random(paper.Q_VALUES, lambda q: 1 - q), "at each of five q, on every split", PDES,
    ),
    Claim(
        "q-ranges", "Figure 11, Appendix A.7",
        "At h = 64 the cut is 75-87 % and 73-86 % at q = 0.5, 20-26 % and 33-40 % at q = 0.9 (Oregonator, Euler 2D).",
        "q-sweep", rules.q_ranges, "on every split it is at least the lower end", PDES,
    ),
    Claim(
        "self-consistency-collapse", "Figure 7, Appendix A.1",
        "Trained by self-consistency alone, the network becomes the identity: the loss falls by six orders, the MSE does not.",
        "self-consistency", rules.collapses,
        "over seeds the loss falls at least 100,000-fold, and the MSE ends above 80 % of that of no change", PDES,
    ),
    Claim(
        "single-horizon-worse", "Table 4, Appendix A.2",
        "Trained on h = 64 alone, the network is worse at h = 64: 1.7 times on Euler 2D and 6.0 times on Ball 3D.",
        "single-horizon", rules.single_worse, "over seeds the ratio of the MSE exceeds 1, and half of the paper's excess",
        ("euler2d", "ball3d"), "The paper's factors compare the mean over horizons (its final MSE) with h = 64 alone.",
    ),
    Claim(
        "single-horizon-probe", "Section 3.2, Appendix A.2",
        "A network that was trained at a single horizon has no useful step-doubling signal.",
        "single-horizon", rules.single_horizon_map, "its AUROC at h = 64 is below 0.55",
        note="The DAgger part trains the half horizon as well.",
    ),
    Claim(
        "dagger-alone", "Figure 8, Appendix A.4",
        "DAgger without supervision is 3 to 9 times worse than the mixture on each system.",
        "dagger", rules.dagger_alone, "over seeds the MSE is at least 3 times as large",
    ),
    Claim(
        "dagger-sweet-spot", "Figure 8, Appendix A.4",
        "A DAgger weight of 0.1 is best or level on each system; without it Oregonator's MSE is 26 % higher.",
        "dagger", rules.sweet_spot,
        "over seeds no other weight is better, and 0.1 is at most 5 % worse than either; Oregonator: at least 13 % higher",
    ),
    Claim(
        "cross-seed-spread", "Table 5, Appendix A.5",
        "Over three seeds the AUROC has a median standard deviation of 0.02, and of at most 0.05 in any cell.",
        "cross-seed", rules.seed_spread, "so are the deviations, with the interval that three seeds allow",
    ),
    Claim(
        "cross-seed-failure", "Figure 9, Appendix A.5",
        "On Ball 3D, OOD-far, the AUROC is below chance at h = 16 and 32 at every seed.",
        "cross-seed", rules.failure_of_seeds, "every seed is below 0.5", BALL,
        "By the paper's own Table 5 it does not hold at h = 16.",
    ),
    Claim(
        "cross-seed-agreement", "Table 5, Appendix A.5",
        "One seed agrees with the mean over seeds within one sigma in every cell.",
        note="One of three seeds lies within one deviation of their mean in two cells of three, whatever the network, so the "
        "count says nothing. By the paper's own tables it does not hold (see below).",
    ),
    Claim(
        "beyond-oregonator", "Figure 12, Appendix A.8",
        "On Oregonator the AUROC is 0.81 to 0.97 up to twice the trained horizon, and falls to 0.71 to 0.86 at h = 160.",
        "beyond", rules.beyond, "on every split it is at least the lower end", ("oregonator",),
    ),
    Claim(
        "beyond-euler2d", "Figure 12, Appendix A.8",
        "On Euler 2D the AUROC rises beyond the trained horizons, to 0.96 to 1.00.",
        "beyond", rules.beyond, "on every split it is at least the lower end", EULER,
    ),
    Claim(
        "rollout-bounded", "Figure 13, Appendix A.9",
        "Over eight chained forecasts of 64 frames RMSE grows 2.5 times (Oregonator), 1.7 times (Ball 3D) or hardly (Euler).",
        "rollout", rules.bounded, "no chain is lost, and the RMSE grows at most 1.5 times as much as the paper's",
    ),
    Claim(
        "rollout-euler-bimodal", "Figure 13, Appendix A.9",
        "On Euler 2D a few chained trajectories fail while most do not, and the error map is large on those that do.",
        "rollout", rules.bimodal,
        "2 to 50 % of the chains are lost or end at 3 times the median RMSE, and their mean score is larger (AUROC above 0.5)",
        EULER,
    ),
    Claim(
        "energy-below-step-doubling", "Table 7, Appendix A.10",
        "On Ball 3D the energy residual ranks less well than step-doubling: a mean AUROC of 0.80 against 0.86.",
        "energy-momentum", rules.energy_below, "the mean lead of step-doubling is positive, on the same trajectories", BALL,
    ),
    Claim(
        "momentum-at-chance", "Table 7, Appendix A.10",
        "On Ball 3D the momentum residual is at chance, with a mean AUROC of 0.50.",
        "energy-momentum", rules.momentum_chance, "the mean lies between 0.43 and 0.57", BALL,
        "A change of momentum means a bounce, and bounces are what is hard.",
    ),
    Claim(
        "richardson-auroc", "Figure 14, Appendix A.11",
        "On Euler 2D Richardson ranks as step-doubling does at h = 2 (0.88, 0.86), and by chance from h = 4 on (0.38-0.53).",
        "richardson", rules.richardson_auroc,
        "within 0.1 of each other at h = 2; from h = 4 on Richardson is below 0.6 and step-doubling above", EULER,
    ),
    Claim(
        "richardson-cost", "Figure 14, Appendix A.11",
        "Richardson takes 78 s (h = 2) to 1864 s (h = 64) for 50 trajectories, step-doubling less than a second.",
        "richardson", rules.richardson_cost, "at h = 64 Richardson takes longer", EULER,
        "The paper compares a NumPy solver on a CPU with a network on a GPU.",
    ),
    Claim(
        "smooth-bound", "Section 3.2, Appendix A.3",
        "Where forecasts are off by at most eps and the flow over T/2 is L-Lipschitz, the error map is at most eps (2 + L).",
        note="The constants of a trained network are not known; for flows whose constants are, the inequality is tested as a "
        "property (tests/trust/test_step_doubling.py).",
    ),
)  # fmt: skip


def claims_of(entry: str) -> list[Claim]:
    """The claims that the rows of an entry are about."""
    return [claim for claim in CLAIMS if claim.entry == entry]
