"""What the paper claims, in our words, and where it contradicts itself."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Claim:
    """One claim of the paper, in our words."""

    id: str
    where: str
    text: str


CLAIMS = (
    Claim("trains-oregonator", "Table 1", "The recipe reaches a validation MSE of 0.104 on Oregonator."),
    Claim("trains-euler2d", "Table 1", "The recipe reaches a validation MSE of 0.016 on Euler 2D."),
    Claim("trains-ball3d", "Table 1", "The recipe reaches a validation MSE of 0.024 on Ball 3D."),
    Claim("auroc-above-chance", "Table 2, Section 5.2", "Step-doubling ranks better than chance in 53 of 54 cells."),
    Claim("auroc-median", "Table 2, Section 5.2", "The median AUROC of step-doubling over the 54 cells is 0.76."),
    Claim("auroc-above-065", "Table 2, Section 5.2", "In 50 of 54 cells the AUROC of step-doubling exceeds 0.65."),
    Claim(
        "auroc-oregonator-ceiling",
        "Table 2, Section 5.2",
        "On Oregonator the AUROC stays between 0.65 and 0.77, because nearly all forecasts are about equally good.",
    ),
    Claim("auroc-euler-shift", "Table 2, Section 5.2", "On Euler 2D the AUROC rises towards 1 under distribution shift."),
    Claim(
        "auroc-ball-failure",
        "Table 2, Sections 5.2 and 6",
        "On Ball 3D, OOD-far, the signal fails at h = 16: its AUROC of 0.44 is the only one below chance, at every seed.",
    ),
    Claim(
        "baselines-best-mean",
        "Table 3, Section 5.3",
        "Over nine test cells step-doubling has the best mean AUROC of all signals, 0.82.",
    ),
    Claim(
        "baselines-runner-up",
        "Table 3, Section 5.3",
        "The runner-up is an ensemble of three networks with a mean AUROC of 0.77.",
    ),
    Claim(
        "baselines-augmentation-inverted",
        "Table 3, Section 5.3",
        "Random augmentation ranks Euler 2D the wrong way round, with an AUROC below 0.4.",
    ),
    Claim(
        "baselines-only-universal",
        "Section 5.3",
        "Only step-doubling applies to all three systems with neither training nor calibration per system.",
    ),
    Claim(
        "spatial-alignment",
        "Figures 2 to 4 and 15 to 17, Section 5.2",
        "Seen by eye, the error map lies where the true error lies: on fronts, on contact discontinuities, on the worst balls.",
    ),
    Claim(
        "spatial-selectivity",
        "Figures 3 and 16, Section 5.2",
        "Seen by eye, the error map is dark inside the smooth quadrants of Euler 2D, so it is no mere edge detector.",
    ),
    Claim(
        "mode1-oregonator", "Figure 5, Section 5.4", "On one CPU and over 64 frames, mode 1 is 72 times faster on Oregonator."
    ),
    Claim("mode1-euler2d", "Figure 5, Section 5.4", "On one CPU and over 64 frames, mode 1 is 26 times faster on Euler 2D."),
    Claim(
        "mode1-ball3d",
        "Figure 5, Section 5.4",
        "On Ball 3D one trajectory is not faster by surrogate; 128 on a GPU are 31 times faster than the solver one by one.",
    ),
    Claim(
        "mode1-gpu",
        "Figure 5, Section 5.4",
        "On a GPU, mode 1 is 734 times (Oregonator) and 186 times (Euler 2D) faster than the solver on a CPU.",
    ),
    Claim(
        "mode1-cost-flat",
        "Figure 5, Section 5.4",
        "The time of the surrogate does not depend on the horizon, while that of the solver is proportional to it.",
    ),
    Claim(
        "mode2-cut",
        "Figure 6, Section 5.5",
        "On test at h = 64 and q = 0.75, mode 2 cuts the trajectory-mean RMSE by 43 to 52 % on each system.",
    ),
    Claim(
        "mode2-speedup",
        "Figure 6, Section 5.5",
        "With a quarter of the trajectories deferred, mode 2 is still about 3 times faster.",
    ),
    Claim("mode2-above-random", "Table 6, Appendix A.6", "Mode 2 cuts more than blind deferral in all 54 cells."),
    Claim(
        "mode2-median-gaps",
        "Table 6, Appendix A.6",
        "The median cut exceeds that of blind deferral by 30 points on Oregonator, 37 on Euler 2D and 20 on Ball 3D.",
    ),
    Claim("mode2-largest", "Table 6, Section 5.5", "The largest cut, 89 %, is on Euler 2D, OOD-far, at h = 8."),
    Claim(
        "mode2-follows-auroc",
        "Table 6, Appendix A.6",
        "The cut is near that of blind deferral just where the AUROC is at chance: in five cells of Ball 3D under shift.",
    ),
    Claim(
        "q-monotone",
        "Figure 11, Appendix A.7",
        "The smaller q, the larger the cut, without jumps, on both PDEs and all splits.",
    ),
    Claim("q-above-random", "Figure 11, Appendix A.7", "At every q the cut exceeds that of blind deferral, 1 - q."),
    Claim(
        "q-ranges",
        "Figure 11, Appendix A.7",
        "At h = 64 the cut is 75-87 % and 73-86 % at q = 0.5, 20-26 % and 33-40 % at q = 0.9 (Oregonator, Euler 2D).",
    ),
    Claim(
        "self-consistency-collapse",
        "Figure 7, Appendix A.1",
        "Trained by self-consistency alone, the network becomes the identity: the loss falls by six orders, the MSE does not.",
    ),
    Claim(
        "single-horizon-worse",
        "Table 4, Appendix A.2",
        "Trained on h = 64 alone, the network is worse at h = 64: 1.7 times on Euler 2D and 6.0 times on Ball 3D.",
    ),
    Claim(
        "single-horizon-probe",
        "Section 3.2, Appendix A.2",
        "A network that was trained at a single horizon has no useful step-doubling signal.",
    ),
    Claim(
        "dagger-alone",
        "Figure 8, Appendix A.4",
        "DAgger without supervision is 3 to 9 times worse than the mixture on each system.",
    ),
    Claim(
        "dagger-sweet-spot",
        "Figure 8, Appendix A.4",
        "A DAgger weight of 0.1 is best or level on each system; without it Oregonator's MSE is 26 % higher.",
    ),
    Claim(
        "cross-seed-spread",
        "Table 5, Appendix A.5",
        "Over three seeds the AUROC has a median standard deviation of 0.02, and of at most 0.05 in any cell.",
    ),
    Claim(
        "cross-seed-agreement",
        "Table 5, Appendix A.5",
        "One seed agrees with the mean over seeds within one sigma in every cell.",
    ),
    Claim(
        "beyond-oregonator",
        "Figure 12, Appendix A.8",
        "On Oregonator the AUROC is 0.81 to 0.97 up to twice the trained horizon, and falls to 0.71 to 0.86 at h = 160.",
    ),
    Claim(
        "beyond-euler2d", "Figure 12, Appendix A.8", "On Euler 2D the AUROC rises beyond the trained horizons, to 0.96 to 1.00."
    ),
    Claim(
        "rollout-bounded",
        "Figure 13, Appendix A.9",
        "Over eight chained forecasts of 64 frames RMSE grows 2.5 times (Oregonator), 1.7 times (Ball 3D) or hardly (Euler).",
    ),
    Claim(
        "rollout-euler-bimodal",
        "Figure 13, Appendix A.9",
        "On Euler 2D a few chained trajectories fail while most do not, and the error map is large on those that do.",
    ),
    Claim(
        "energy-below-step-doubling",
        "Table 7, Appendix A.10",
        "On Ball 3D the energy residual ranks less well than step-doubling: a mean AUROC of 0.80 against 0.86.",
    ),
    Claim(
        "momentum-at-chance",
        "Table 7, Appendix A.10",
        "On Ball 3D the momentum residual is at chance, with a mean AUROC of 0.50.",
    ),
    Claim(
        "richardson-auroc",
        "Figure 14, Appendix A.11",
        "On Euler 2D Richardson ranks as step-doubling does at h = 2 (0.88, 0.86), and by chance from h = 4 on (0.38-0.53).",
    ),
    Claim(
        "richardson-cost",
        "Figure 14, Appendix A.11",
        "Richardson takes 78 s (h = 2) to 1864 s (h = 64) for 50 trajectories, step-doubling less than a second.",
    ),
    Claim(
        "smooth-bound",
        "Section 3.2, Appendix A.3",
        "Where forecasts are off by at most eps and the flow over T/2 is L-Lipschitz, the error map is at most eps (2 + L).",
    ),
)


INCONSISTENCIES = (
    # AUROC
    "Table 5 says that every cell of Table 2 lies within one standard deviation of the mean over seeds; by the printed "
    "numbers 12 of 54 do (Oregonator 10 of 18, Euler 2D 0, Ball 3D 2), and Euler 2D differs by up to 0.28, or 14 standard "
    "deviations.",
    "Table 2 has Euler 2D rise under shift to 0.95-1.00 (OOD-far), while in Table 5 OOD-far is at 0.70-0.78 and below test "
    "at each horizon; in Table 2 itself OOD-near is below test at five of six horizons.",
    "Section 5.2 confirms the failure of Ball 3D, OOD-far, at h = 16 by 0.43 +- 0.02 over seeds; in Table 5 that is the "
    "value at h = 32, and at h = 16 it is 0.59 +- 0.05, above chance. In Table 2 it is h = 32 that has 0.59.",
    "Appendix A.5 and Figure 9 have the failure of Ball 3D at h = 16 and 32 at every seed, Sections 5.2 and 6 at h = 16 "
    "alone; each table has a single cell below chance, and not the same one.",
    "The spread over seeds is at most 0.04 at the median and 0.06 at worst in the text of Appendix A.5, but 0.02 and 0.05 in "
    "the caption and the cells of Table 5; the largest is shared by Ball 3D, OOD-far, h = 16 and Euler 2D, test, h = 32.",
    "Appendix A.5 calls the spread uniformly tightest on Oregonator; in Table 5 its median, 0.02, is also that of Euler 2D, "
    "and on test its cells reach 0.04 where those of Ball 3D have 0.01.",
    "Section 5.2 counts 50 cells above 0.65; of the printed values 48 are above, and 2 more are equal.",
    "Section 5.2 puts Oregonator at 0.65-0.77; its lowest cell in Table 2 is 0.64.",
    "Step-doubling on test of Ball 3D has three versions: 0.90, 0.78, 0.76, 0.76, 0.75, 0.76 (Table 2), 0.95, 0.91, 0.81, "
    "0.81, 0.83, 0.86 (Table 7) and means over seeds of 0.90, 0.92, 0.84, 0.82, 0.83, 0.82 (Table 5).",
    "Step-doubling on test of Euler 2D has three versions: 0.86 at h = 2 and 0.81-0.97 from h = 4 on (Appendix A.11, Section "
    "5.2), 0.97 and 0.92-0.98 (Table 2), 0.87 and 0.72-0.84 (Table 5).",
    "Appendix A.8 has Oregonator stay at 0.81-0.97 beyond h = 64, and 0.71-0.86 counts as degraded there; within the trained "
    "horizons Table 2 has at most 0.77, which Section 5.2 explains as a ceiling.",
    "Section 5.2 calls Oregonator's surrogate nearly uniformly accurate (an RMSE of 0.06, its unit not given); its "
    "normalised validation MSE of 0.104 is the largest of the three (Table 1).",
    # Baselines
    "Section 5.3 names the ensemble (mean 0.77) as the closest competitor; by Table 3 the learned error head is closer, with "
    "0.78.",
    "Section 5.3 calls step-doubling the only signal for all three systems without training or calibration per system; in "
    "Table 3 random augmentation, which needs neither, has all nine cells.",
    "The learned error head and conformal prediction are listed as label-free, though both are fitted to true errors, and "
    "Section 2 sets conformal prediction apart for its calibration set.",
    "The signal outperforms the baselines in Sections 1 and 5.3, is competitive with or better than them in the abstract, "
    "and competitive in Section 7; in Table 3 it is the best in 3 of 9 columns.",
    "In the column Euler 2D, h = 16 of Table 3 two signals have 0.93, and only one of them is bold.",
    "By Appendix A.10 the energy residual beats step-doubling by more than 0.04 at h = 8 and h = 16; by Table 7 it is 0.03 "
    "and 0.04.",
    "By Appendix A.10 the momentum residual is at chance for every horizon; Table 7 has 0.67 at h = 64.",
    "Appendix A.10 has linear momentum conserved between collisions, where gravity acts, and calls energy and momentum "
    "undefined on Euler 2D, whose equations conserve both (Section 4.2).",
    "The error map is two forward passes in Appendix A.11, and one that is reused in Section 5.3; its definition (Section "
    "3.2) has three.",
    "By Appendix A.11 a cell of 50 at h = 64 takes Richardson 1864 s, so one solution takes about 12 s if the half step "
    "costs twice as much; at 186 times that speed (Section 5.4) the three passes of 50 trajectories take about 10 s, not "
    "under a second.",
    # Speed and mode 2
    "Mode 1 is 26 and 72 times faster in the abstract and Section 5.4, 25 and 70 times in Figure 1.",
    "Section 5.5 has mode 2 about 3 times faster on all three systems; on Ball 3D mode 1 is not faster at all for one "
    "trajectory on a CPU.",
    "Section 5.5 has mode 2 cut 43-52 % on test at h = 64; Table 6 has 40 % (Oregonator), 57 % (Euler 2D) and 43 % (Ball 3D).",
    "At h = 64 and q = 0.75 Appendix A.7 has cuts of 46-53 % (Oregonator) and 52-63 % (Euler 2D) over the splits; Table 6 "
    "has 40-51 % and 56-74 %.",
    "Section 5.2 has mode 2 recover 40-68 % on Oregonator; Table 6 has 37 % on OOD-far at h = 32.",
    "The median gap above blind deferral on Euler 2D is 37 points in Appendix A.6; by Table 6 it is 41.5.",
    "Appendix A.6 counts five cells within 10 points of blind deferral, all at h of 16 to 64; Table 6 has six, one of them "
    "at h = 4.",
    "Appendix A.6 says that these are exactly the cells with an AUROC at or below chance; in Table 2 they have 0.55 to 0.82, "
    "and the one cell below chance (0.44) is not among them, with a cut of 36 %.",
    "The caption of Table 6 lists 89, 77 and 86 % as the largest cuts; 85, 79 and 78 % are larger than 77 %.",
    "By Section 3.3 thresholds come from validation data and never from test; yet Appendix A.6 holds every cell, also under "
    "shift, against 25 % of blind deferral, which is right only if each cell defers exactly a quarter.",
    "By the abstract the error map needs no calibration set; mode 2 needs one for its threshold (Section 3.3, and Section 6 "
    "by that name).",
    # Training
    "Section 3.1 trains on six horizons from 2 to 64, all other sections on seven from 1; the half of 2 is in the set only "
    "with the 1, and 2 to 64 is a factor of 32, not two orders of magnitude.",
    "Table 4 gives 0.016 and 0.024 as the validation MSE at h = 64; Table 1 gives the same numbers as the final one, without "
    "a horizon.",
    "Table 4 prints 1.7 times worse for 0.016 to 0.028, which is 1.75.",
    "Section 5.2 gives the single-horizon network a comparable prediction error; by Table 4 its MSE is 1.7 and 6.0 times as "
    "large.",
    "Without its training at T/2 the probe degenerates to noise in Section 3.2, and is structurally undefined in Table 4; no "
    "AUROC of it is shown.",
    "Appendix A.2 retrains on each system; by Table 4 Oregonator was not run.",
    "Appendix A.4 calls training without DAgger competitive on Euler 2D, within 31 %, and a loss on Oregonator, of 26 %.",
    "Appendix A.4 calls 0.1 the smallest weight that helps; the others that were tried are 0 and 1.",
    "Appendix B.2 uses the same hyperparameters for all systems; Table 11 has other learning rates, warm-ups, batches and "
    "epochs.",
    "Section 5.1 solves Oregonator with eps = 0.05 and f = 2.0; Table 8 draws both anew for each trajectory.",
    "Appendix A.9 has the RMSE of Ball 3D grow 1.7 times from 0.18 to 0.32, which is 1.8.",
    "Table 12 gives the processor 16 cores and 24 threads; with two threads per core it would be 32.",
)
"""Where the paper contradicts itself, or its text its tables; rounding alone may explain the smallest of them."""
