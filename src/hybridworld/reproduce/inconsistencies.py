"""Where the paper contradicts itself, or its text its tables."""

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
"""Each is one sentence; rounding alone may explain the smallest of them."""
