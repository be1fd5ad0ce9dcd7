"""The paper's numbers: complete, in range, and where text and tables part, we say so."""

import dataclasses
from itertools import pairwise
from statistics import mean, median

import pytest

from hybridworld.reproduce import claims, paper
from hybridworld.reproduce.inconsistencies import INCONSISTENCIES
from hybridworld.reproduce.paper import AUROC, BASELINES, CROSS_SEED, CUTS, HORIZONS, SPLITS, SYSTEMS

CELLS = [(system, split, horizon) for system in SYSTEMS for split in SPLITS for horizon in HORIZONS]


def at(table, cell):
    system, split, horizon = cell
    return table[system][split][horizon]


def of(table, system=None):
    return [at(table, cell) for cell in CELLS if system in (None, cell[0])]


def hundredths(value):
    """Printed decimals as whole numbers, so that comparisons are exact."""
    return round(100 * value)


def said(*parts):
    """Exactly one inconsistency has all of these parts."""
    return sum(all(part in each for part in parts) for each in INCONSISTENCIES) == 1


# Complete and in range.


@pytest.mark.parametrize("table", [AUROC, CUTS, CROSS_SEED])
def test_tables_of_54_cells_are_complete(table):
    assert len(CELLS) == 54
    assert list(table) == list(SYSTEMS)
    for rows in table.values():
        assert list(rows) == list(SPLITS)
        assert all(list(row) == list(HORIZONS) for row in rows.values())


def test_values_are_shares_with_two_digits():
    means, spreads = zip(*of(CROSS_SEED), strict=True)
    baselines = [value for rows in BASELINES.values() for row in rows.values() for value in row.values()]
    residuals = [value for row in paper.ENERGY_MOMENTUM.values() for value in row.values()]
    for values in (of(AUROC), of(CUTS), means, spreads, baselines, residuals):
        assert all(0 < value <= 1 and value == hundredths(value) / 100 for value in values)
    assert max(spreads) < 0.1


def test_baselines_miss_only_the_gradient_of_a_ball():
    for name, rows in BASELINES.items():
        assert list(rows) == list(SYSTEMS[:2] if name == "gradient magnitude" else SYSTEMS)
        assert all(list(row) == [16, 32, 64] for row in rows.values())
    assert len(BASELINES) == 6
    assert all(list(row) == list(HORIZONS) for row in paper.ENERGY_MOMENTUM.values())


def ranges_in(value):
    if isinstance(value, paper.Range):
        yield value
    elif dataclasses.is_dataclass(value):
        yield from ranges_in([getattr(value, field.name) for field in dataclasses.fields(value)])
    elif isinstance(value, dict):
        yield from ranges_in(list(value.values()))
    elif isinstance(value, list | tuple):
        for each in value:
            yield from ranges_in(each)


def test_ranges_ascend():
    found = list(ranges_in([value for name, value in vars(paper).items() if name.isupper()]))
    assert len(found) > 40
    assert all(each.low < each.high for each in found)


def test_systems_are_spelled_alike():
    for table in (paper.DATASETS, paper.PARAMETERS, paper.SOLVERS, paper.SPEEDUP, paper.ROLLOUT):
        assert list(table) == list(SYSTEMS)
    for table in (paper.DAGGER.without, paper.CUT_TEXT.median_gap, paper.PICTURES_BY_HORIZON):
        assert list(table) == list(SYSTEMS)
    for table in (paper.BEYOND, paper.SINGLE_HORIZON, paper.PICTURES, *paper.Q_SWEEP.values()):
        assert set(table) < set(SYSTEMS)


def test_datasets_have_all_splits_and_trajectories_that_reach_64_frames():
    for system, data in paper.DATASETS.items():
        assert list(data.counts) == ["train", "val", *SPLITS]
        assert data.frames > max(HORIZONS)
        assert system not in paper.BEYOND or data.frames > max(paper.BEYOND[system])


def test_shifted_parameters_lie_outside_of_those_in_training():
    for parameters in paper.PARAMETERS.values():
        for name in set(parameters) - {"wall_shift", "speed", "spin"}:
            bands = [band for split in ("id", "ood-near", "ood-far") for band in parameters[name][split]]
            assert all(a.high <= b.low or b.high <= a.low for a in bands for b in bands if a is not b)


def test_claims_are_numbered_by_distinct_words_and_are_sentences():
    assert len({claim.id for claim in claims.CLAIMS}) == len(claims.CLAIMS) > 30
    assert all(claim.where and claim.text.endswith(".") for claim in claims.CLAIMS)
    assert len(set(INCONSISTENCIES)) == len(INCONSISTENCIES)
    assert all(each.endswith(".") and "  " not in each for each in INCONSISTENCIES)


# What the text says and the tables confirm.


def test_auroc_has_the_median_and_the_one_failure_of_the_text():
    text, values = paper.AUROC_TEXT, of(AUROC)
    assert median(values) == text.median
    assert sum(value > 0.5 for value in values) == text.above_chance
    assert min(values) == AUROC["ball3d"]["ood-far"][16] == text.failure
    assert max(of(AUROC, "oregonator")) == text.oregonator.high


def test_baselines_repeat_the_table_of_auroc_and_step_doubling_has_the_best_mean():
    means = {name: mean(value for row in rows.values() for value in row.values()) for name, rows in BASELINES.items()}
    for system, row in BASELINES["step-doubling"].items():
        assert row == {horizon: AUROC[system]["test"][horizon] for horizon in row}
    assert max(means, key=means.__getitem__) == "step-doubling"
    for name, value in paper.BASELINE_MEANS.items():
        assert round(means[name], 2) == value
    assert max(BASELINES["random augmentation"]["euler2d"].values()) < 0.4


def test_every_cut_is_above_the_floor_and_the_largest_is_where_it_is_said():
    text = paper.CUT_TEXT
    assert sum(value > text.floor for value in of(CUTS)) == text.above_floor == 54
    assert max(CELLS, key=lambda cell: at(CUTS, cell)) == text.largest
    assert at(CUTS, text.largest) - text.floor == pytest.approx(text.largest_gap)
    assert 1 - text.largest_rmse[1] / text.largest_rmse[0] == pytest.approx(at(CUTS, text.largest), abs=0.01)


def test_cuts_of_the_sweep_fall_with_q_and_exceed_blind_deferral():
    for system in ("oregonator", "euler2d"):
        sweep = [paper.Q_SWEEP[q][system] for q in sorted(paper.Q_SWEEP)]
        assert all(low.low > high.high for low, high in pairwise(sweep))
    assert all(each.low > 1 - q for q, row in paper.Q_SWEEP.items() for each in row.values())
    default = paper.Q_SWEEP[paper.Q].values()
    gaps = min(each.low for each in default) - 0.25, max(each.high for each in default) - 0.25
    assert gaps == pytest.approx(paper.Q_SWEEP_GAP)
    assert set(paper.Q_SWEEP) <= set(paper.Q_VALUES)


def test_printed_ratios_and_means_follow_from_printed_values_up_to_rounding():
    for each in paper.SINGLE_HORIZON.values():
        assert each.single / each.all_horizons == pytest.approx(each.ratio, abs=0.05 + 1e-9)
    for rollout in paper.ROLLOUT.values():
        if rollout.rmse:
            assert (rollout.rmse[8] - 0.005) / (rollout.rmse[1] + 0.005) < rollout.growth + 0.05
            assert (rollout.rmse[8] + 0.005) / (rollout.rmse[1] - 0.005) > rollout.growth - 0.05
    for name, row in paper.ENERGY_MOMENTUM.items():
        assert round(mean(row.values()), 2) == paper.ENERGY_MOMENTUM_MEANS[name]


def test_the_caption_about_seeds_has_the_spread_of_its_table():
    text, spreads = paper.CROSS_SEED_TEXT, [spread for _, spread in of(CROSS_SEED)]
    assert median(spreads) == text.median_sd
    assert max(spreads) == at(CROSS_SEED, text.largest_at)[1] == text.largest_sd


# Where they part, `INCONSISTENCIES` has the numbers that we find here.


def test_seeds_do_not_agree_with_the_table_of_auroc():
    def within(cell):
        value, spread = at(CROSS_SEED, cell)
        return abs(hundredths(at(AUROC, cell)) - hundredths(value)) <= hundredths(spread)

    counts = [sum(within(cell) for cell in CELLS if cell[0] == system) for system in SYSTEMS]
    assert counts == [10, 0, 2] and sum(counts) < paper.CROSS_SEED_TEXT.within_one_sd
    assert said("12 of 54 do (Oregonator 10 of 18, Euler 2D 0, Ball 3D 2)")
    far = [abs(hundredths(at(AUROC, cell)) - hundredths(at(CROSS_SEED, cell)[0])) for cell in CELLS if cell[0] == "euler2d"]
    assert max(far) == 28


def test_euler_rises_under_shift_in_one_table_and_falls_in_the_other():
    euler, seeds = AUROC["euler2d"], CROSS_SEED["euler2d"]
    assert all(euler["ood-far"][h] > euler["test"][h] for h in HORIZONS)
    assert all(seeds["ood-far"][h][0] < seeds["test"][h][0] for h in HORIZONS)
    assert sum(euler["ood-near"][h] < euler["test"][h] for h in HORIZONS) == 5
    assert said("OOD-far is at 0.70-0.78", "OOD-near is below test at five of six")


def test_seeds_have_the_failure_of_ball_at_another_horizon():
    row = CROSS_SEED["ball3d"]["ood-far"]
    assert row[32] == paper.AUROC_TEXT.failure_over_seeds and row[16] == (0.59, 0.05)
    assert [cell for cell in CELLS if at(CROSS_SEED, cell)[0] < 0.5] == [("ball3d", "ood-far", 32)]
    assert said("0.43 +- 0.02", "0.59 +- 0.05")
    assert [cell for cell in CELLS if at(CROSS_SEED, cell)[1] == 0.05] == [("euler2d", "test", 32), ("ball3d", "ood-far", 16)]


def test_counts_and_ends_of_auroc_differ_from_the_text():
    values = of(AUROC)
    assert sum(value > 0.65 for value in values) == 48 and sum(value >= 0.65 for value in values) == paper.AUROC_TEXT.above_065
    assert said("48 are above, and 2 more are equal")
    assert min(of(AUROC, "oregonator")) == 0.64 < paper.AUROC_TEXT.oregonator.low
    assert said("its lowest cell in Table 2 is 0.64")
    assert min(each.low for h, each in paper.BEYOND["oregonator"].items() if h <= 128) > max(of(AUROC, "oregonator"))
    assert said("beyond h = 64")


def test_step_doubling_has_several_versions():
    ball, euler = (AUROC[system]["test"] for system in ("ball3d", "euler2d"))
    assert all(paper.ENERGY_MOMENTUM["step-doubling"][h] > ball[h] for h in HORIZONS)
    assert said("Ball 3D has three versions", ", ".join(f"{value:.2f}" for value in ball.values()))
    assert (min(euler[h] for h in HORIZONS[1:]), max(euler[h] for h in HORIZONS[1:])) == (0.92, 0.98)
    seeds = [CROSS_SEED["euler2d"]["test"][h][0] for h in HORIZONS[1:]]
    assert (min(seeds), max(seeds)) == (0.72, 0.84)
    assert euler[2] == 0.97 and CROSS_SEED["euler2d"]["test"][2][0] == 0.87 and paper.RICHARDSON.step_doubling_at_2 == 0.86
    assert said("Euler 2D has three versions", "0.92-0.98", "0.72-0.84")


def test_the_error_head_is_closer_than_the_ensemble():
    head = mean(value for row in BASELINES["learned error head"].values() for value in row.values())
    assert round(head, 2) == 0.78 > paper.BASELINE_MEANS["ensemble"]
    assert said("closest competitor", "0.78")
    columns = [(system, horizon) for system in SYSTEMS for horizon in (16, 32, 64)]
    best = [max(BASELINES, key=lambda name: BASELINES[name].get(system, {}).get(horizon, 0)) for system, horizon in columns]
    assert best.count("step-doubling") == 3
    assert said("the best in 3 of 9 columns")


def test_the_energy_residual_leads_by_no_more_than_004():
    energy, doubling = paper.ENERGY_MOMENTUM["energy residual"], paper.ENERGY_MOMENTUM["step-doubling"]
    assert {h: hundredths(energy[h]) - hundredths(doubling[h]) for h in HORIZONS if energy[h] > doubling[h]} == {8: 3, 16: 4}
    assert said("0.03 and 0.04")


def test_cuts_differ_from_the_text():
    at_64 = {system: [CUTS[system][split][64] for split in SPLITS] for system in SYSTEMS}
    assert [row[0] for row in at_64.values()] == [0.40, 0.57, 0.43]
    assert said("43-52 % on test", "40 % (Oregonator), 57 % (Euler 2D) and 43 % (Ball 3D)")
    ends = [(min(at_64[system]), max(at_64[system])) for system in ("oregonator", "euler2d")]
    assert ends == [(0.40, 0.51), (0.56, 0.74)] and said("46-53 %", "40-51 % and 56-74 %")
    assert min(of(CUTS, "oregonator")) == 0.37 < paper.CUT_TEXT.oregonator.low and said("37 % on OOD-far at h = 32")
    assert sorted(of(CUTS))[-4:] == [0.79, 0.85, 0.86, 0.89] and said("larger than 77 %")


def test_median_gaps_are_those_of_the_text_but_for_euler():
    gaps = {system: median(hundredths(value) - 25 for value in of(CUTS, system)) for system in SYSTEMS}
    assert gaps == {"oregonator": 30, "euler2d": 41.5, "ball3d": 19.5}
    assert [name for name, gap in gaps.items() if abs(gap - 100 * paper.CUT_TEXT.median_gap[name]) > 0.51] == ["euler2d"]
    assert said("it is 41.5")


def test_cells_near_the_floor_are_six_and_not_those_at_chance():
    near = [cell for cell in CELLS if hundredths(at(CUTS, cell)) - 25 <= 10]
    assert len(near) == 6 == paper.CUT_TEXT.within_ten_points + 1
    assert all(cell[0] == "ball3d" and cell[1] != "test" for cell in near)
    assert ("ball3d", "ood-far", 4) in near and ("ball3d", "ood-far", 16) not in near
    assert (min(at(AUROC, cell) for cell in near), max(at(AUROC, cell) for cell in near)) == (0.55, 0.82)
    assert said("Table 6 has six, one of them at h = 4") and said("0.55 to 0.82", "0.44", "36 %")


def test_the_costs_of_richardson_and_the_speed_on_a_gpu_do_not_fit():
    one = paper.RICHARDSON.seconds[64] / paper.RICHARDSON.trajectories / 3  # a full step and two half steps
    assert one == pytest.approx(12, abs=0.5)
    passes = 3 * paper.RICHARDSON.trajectories * one / paper.SPEEDUP["euler2d"].gpu[1]
    assert passes == pytest.approx(10, abs=0.5) and passes > paper.RICHARDSON.step_doubling_seconds
    assert said("about 10 s, not under a second")


def test_single_horizon_repeats_the_final_mse_at_all_horizons():
    for system, each in paper.SINGLE_HORIZON.items():
        assert each.all_horizons == paper.DATASETS[system].val_mse
    assert said("0.016 and 0.024 as the validation MSE at h = 64")


def test_no_dagger_costs_euler_more_than_oregonator():
    assert paper.DAGGER.without["euler2d"] > paper.DAGGER.without["oregonator"]
    assert said("within 31 %", "of 26 %")
