"""The rules behind the verdicts: each takes the rows of an entry, by system, and says whether a claim holds, and what we found.

What a rule stands for is the claim of the same name in `claims.py`; `verdicts.py` has the list.
"""

from collections.abc import Callable, Mapping
from itertools import pairwise

import numpy as np
from scipy.stats import spearmanr

from hybridworld.evaluate.reproduce import paper
from hybridworld.evaluate.reproduce.measures import LONGEST, OURS, RIVALS, Row
from hybridworld.evaluate.reproduce.study import STEP
from hybridworld.evaluate.reproduce.visual import MAP, STEEPNESS

Found = Mapping[str, list[Row]]
"""System -> rows of an entry."""
Judgement = tuple[bool | None, str]
"""Does it hold (None: that cannot be told from these rows), and what was found."""
PAPER_ERROR = 0.05
"""The standard error of an AUROC with the paper's 80 to 100 pairs."""
UNTRAINED = (STEP, "random augmentation", "gradient magnitude")
"""Those of the paper's signals that are fitted to nothing."""


# Rows by name.


def values(found: Found, method: str, split: str | None = None, x: float | None = None) -> list[float]:
    """Of one method, over systems and whatever is not fixed."""
    return [
        row.value
        for rows in found.values()
        for row in rows
        if row.method == method and split in (None, row.split) and x in (None, row.x) and np.isfinite(row.value)
    ]


def each(found: Found, judged: Callable[[str, list[Row]], Judgement]) -> Judgement:
    """All systems must hold; the sentences are joined."""
    outcomes = [judged(system, rows) for system, rows in found.items()]
    return all(bool(holds) for holds, _ in outcomes), "; ".join(text for _, text in outcomes) + "."


def mean_of(rows: list[Row], method: str) -> float:
    """Over all of its cells; nan where there is none."""
    return float(np.mean([row.value for row in rows if row.method == method] or [np.nan]))


# The rules.


def trains(found: Found) -> Judgement:
    def judged(system: str, rows: list[Row]) -> Judgement:
        mse = [row.value for row in rows if row.method.startswith("validation MSE")]
        published = paper.DATASETS[system].val_mse
        return float(np.mean(mse)) <= published, f"{system}: {', '.join(f'{value:.3g}' for value in mse)} (paper {published:g})"

    return each(found, judged)


def above_chance(found: Found) -> Judgement:
    cells = [row for rows in found.values() for row in rows if row.method == STEP]
    above, sure = sum(row.value > 0.5 for row in cells), sum(row.low > 0.5 for row in cells)
    text = f"{above} of {len(cells)} cells are above 0.5, {sure} of them with their whole 95 % interval."
    return above >= 53 / 54 * len(cells) - 1e-9, text


def median_auroc(found: Found) -> Judgement:
    ours = float(np.median(values(found, STEP)))
    theirs = float(np.median([v for s in found for by in paper.AUROC[s].values() for v in by.values()]))
    agree = [
        row.low - PAPER_ERROR <= paper.AUROC[system][row.split][int(row.x)] <= row.high + PAPER_ERROR
        for system, rows in found.items()
        for row in rows
        if row.method == STEP
    ]
    text = f"our median is {ours:.2f}, the paper's over the same cells {theirs:.2f}; {sum(agree)} of {len(agree)} cells agree."
    return ours >= theirs - 0.03, text


def above_065(found: Found) -> Judgement:
    got = values(found, STEP)
    above = sum(round(value, 2) >= 0.65 for value in got)  # as the paper counts: two of its 50 cells are equal to 0.65
    return above >= 50 / 54 * len(got) - 1e-9, f"{above} of {len(got)} cells reach 0.65."


def between(low: float, high: float, slack: float = 0.05) -> Callable[[Found], Judgement]:
    def judged(found: Found) -> Judgement:
        got = values(found, STEP)
        return min(got) >= low - slack and max(got) <= high + slack, f"ours are {min(got):.2f} to {max(got):.2f}."

    return judged


def rises_under_shift(found: Found) -> Judgement:
    test, near, far = (float(np.mean(values(found, STEP, split))) for split in paper.SPLITS)
    return far > test and far >= 0.9, f"the mean is {test:.2f} on test, {near:.2f} on ood-near and {far:.2f} on ood-far."


def ball_failure(found: Found) -> Judgement:
    row = next(row for row in found["ball3d"] if (row.method, row.split, row.x) == (STEP, "ood-far", 16))
    below = [f"h = {r.x:g}" for r in found["ball3d"] if r.method == STEP and r.split == "ood-far" and r.low < 0.5]
    return (
        row.low < 0.5,
        f"ours is {row.value:.2f} ({row.low:.2f}-{row.high:.2f}) at h = 16; at chance: {', '.join(below) or 'none'}.",
    )


def against(found: Found, rival: str) -> tuple[float, float, list[str]]:
    """Mean AUROC of a rival, and of step-doubling, on those systems that have both; and which these are."""
    both = {system: rows for system, rows in found.items() if values({system: rows}, rival)}
    theirs, own = (float(np.mean(values(both, name) or [np.nan])) for name in (rival, STEP))
    return theirs, own, list(both)


def best_mean(found: Found) -> Judgement:
    holds, parts = True, [f"step-doubling {np.mean(values(found, STEP)):.2f}"]
    for rival in RIVALS:
        theirs, own, where = against(found, rival)
        if rival == STEP or not where:
            continue
        holds &= own >= theirs - 1e-9
        beside = "" if len(where) == len(found) else f" (on {', '.join(where)}, where step-doubling has {own:.2f})"
        parts.append(f"{rival} {theirs:.2f}{beside}")
    ours = [f"{name} {mean:.2f}" for name in OURS[:1] if np.isfinite(mean := against(found, name)[0])]
    return holds, f"means: {', '.join(parts)}; beyond the paper: {', '.join(ours) or 'none'}."


def runner_up(found: Found) -> Judgement:
    means = {rival: against(found, rival) for rival in RIVALS if rival != STEP}
    everywhere = {rival: theirs for rival, (theirs, _, where) in means.items() if len(where) == len(found)}
    best = max(everywhere, key=lambda rival: everywhere[rival])
    text = f"of those measured on all of {', '.join(found)}, the best rival is the {best} with {everywhere[best]:.2f}"
    if "ensemble" not in everywhere:
        return None, f"{text}; an ensemble takes several seeds, which not all of them have."
    return best == "ensemble", f"{text}."


def only_universal(found: Found) -> Judgement:
    named = [name for name in UNTRAINED if all(values({system: rows}, name) for system, rows in found.items())]
    return named == [STEP], f"without training or labels, and on all that was measured: {', '.join(named)}."


def inverted(found: Found) -> Judgement:
    got = values(found, "random augmentation")
    return max(got) < 0.4, f"ours is {min(got):.2f} to {max(got):.2f}."


def speed_like(system: str) -> Callable[[Found], Judgement]:
    def judged(found: Found) -> Judgement:
        twin, compiled = (values(found, f"against the {name}", x=LONGEST) for name in ("NumPy twin", "compiled solver"))
        published = paper.SPEEDUP[system].cpu
        text = f"{twin[0]:.3g} times against the NumPy twin, {compiled[0]:.2g} times against the same scheme compiled."
        return (compiled[0] < 1) if published is None else published / 2 <= twin[0], text

    return judged


def flat_cost(found: Found) -> Judgement:
    def judged(system: str, rows: list[Row]) -> Judgement:
        alone, twin, compiled = (
            {row.x: row.value for row in rows if row.method == f"ms, {who}"}
            for who in ("mode 1", "NumPy twin", "compiled solver")
        )
        first, last = min(alone), max(alone)
        ours, theirs, fast = (took[last] / took[first] for took in (alone, twin or compiled, compiled))
        text = f"mode 1 takes {ours:.2g} times as long, the NumPy twin {theirs:.2g}, the compiled solver {fast:.2g} times"
        return ours < 2 and theirs > last / first / 2, f"{system}, h = {first:g} to {last:g}: {text}"

    return each(found, judged)


def mode2_cut(found: Found) -> Judgement:
    def judged(system: str, rows: list[Row]) -> Judgement:
        cut = {row.method: row.value for row in rows}
        matched, oracle, frozen = (cut[f"cut, {name}"] for name in ("matched q", "oracle at q", "frozen threshold"))
        text = f"{system}: {matched:.0%} by the paper's protocol (oracle {oracle:.0%}), {frozen:.0%} with a frozen threshold"
        return matched >= paper.MODE2.cut.low - 0.01, text

    return each(found, judged)


def mode2_speed(found: Found) -> Judgement:
    def judged(system: str, rows: list[Row]) -> Judgement:
        speed = {row.method: row.value for row in rows}
        twin, compiled = (speed.get(f"speed-up over the {name}", np.nan) for name in ("NumPy twin", "compiled solver"))
        text = f"{system}: {twin:.2g} times against the NumPy twin, {compiled:.2g} against the compiled solver"
        return (compiled if paper.SPEEDUP[system].cpu is None else twin) >= 2, text

    return each(found, judged)


def above_random(method: str, floor: Callable[[Row], float]) -> Callable[[Found], Judgement]:
    def judged(found: Found) -> Judgement:
        cells = [row for rows in found.values() for row in rows if row.method == method]
        above, sure = (sum(end(row) > floor(row) for row in cells) for end in (lambda row: row.value, lambda row: row.low))
        text = f"{above} of {len(cells)} cells exceed the floor ({method}), {sure} of them with their whole 95 % interval."
        return above == len(cells), text

    return judged


def largest_cut(found: Found) -> Judgement:
    cut, system, split, h = max(
        (row.value, system, row.split, row.x)
        for system, rows in found.items()
        for row in rows
        if row.method == "cut, matched q"
    )
    return (system, split) == paper.CUT_TEXT.largest[:2], f"our largest is {cut:.0%}, on {system}, {split}, at h = {h:g}."


def follows_auroc(found: Found) -> Judgement:
    by: dict[str, list[Row]] = {"AUROC": [], "cut, matched q": []}
    for rows in found.values():
        for row in rows:
            if row.method in by:
                by[row.method].append(row)
    cells = list(zip(*by.values(), strict=True))
    near = [auroc for auroc, cut in cells if cut.value < 0.35]
    chance = [auroc for auroc, _ in cells if auroc.low < 0.5]
    rank = spearmanr(*([row.value for row in rows] for rows in by.values())).statistic
    known = f" (AUROC {min(row.value for row in near):.2f} to {max(row.value for row in near):.2f})" if near else ""
    text = f"{len(near)} of {len(cells)} cells are within ten points of blind deferral{known}, {len(chance)} at chance; "
    same = {id(row) for row in near} == {id(row) for row in chance}
    return same, f"{text}over all cells the rank correlation of AUROC and cut is {rank:.2f}."


def median_gaps(found: Found) -> Judgement:
    def judged(system: str, rows: list[Row]) -> Judgement:
        gap = float(np.median([row.value - 0.25 for row in rows if row.method == "cut, matched q"]))
        published = paper.CUT_TEXT.median_gap[system]
        return gap >= published - 0.03, f"{system}: {100 * gap:.0f} points (paper {100 * published:.0f})"

    return each(found, judged)


def monotone(found: Found) -> Judgement:
    falls = []
    for rows in found.values():
        for split in {row.split for row in rows}:
            line = [
                row.value
                for row in sorted(rows, key=lambda row: row.x)
                if row.method == "frozen threshold" and row.split == split
            ]
            falls.append(all(a >= b - 1e-9 for a, b in pairwise(line)))
    return all(falls), f"{sum(falls)} of {len(falls)} curves fall with q throughout, with frozen thresholds."


def q_ranges(found: Found) -> Judgement:
    def judged(system: str, rows: list[Row]) -> Judgement:
        holds, parts = True, []
        for q in (0.5, 0.9):
            got = [row.value for row in rows if row.method == "matched q" and row.x == q]
            holds &= min(got) >= paper.Q_SWEEP[q][system].low - 0.03
            parts.append(f"{min(got):.0%} to {max(got):.0%} at q = {q:g}")
        return holds, f"{system}: {', '.join(parts)}"

    return each(found, judged)


def collapses(found: Found) -> Judgement:
    def judged(system: str, rows: list[Row]) -> Judgement:
        losses = [row.value for row in rows if row.method == "self-consistency loss"]
        mse, still = ([row.value for row in rows if row.method == name][-1] for name in ("validation MSE", "MSE of no change"))
        drop = losses[0] / max(losses[-1], 1e-30)
        return (
            drop > 100 and mse > 0.8 * still,
            f"{system}: the loss falls {drop:.2g}-fold, the MSE ends at {mse / still:.2f} of no change",
        )

    return each(found, judged)


def single_worse(found: Found) -> Judgement:
    def judged(system: str, rows: list[Row]) -> Judgement:
        ladder, single = (mean_of(rows, f"MSE, {name}") for name in ("ladder", "single horizon"))
        known = paper.SINGLE_HORIZON.get(system)
        return (
            single > 1.1 * ladder,
            f"{system}: {single / ladder:.2f} times (paper {f'{known.ratio:g}' if known else 'not run'})",
        )

    return each(found, judged)


def single_probe(found: Found) -> Judgement:
    def judged(system: str, rows: list[Row]) -> Judgement:
        by = {row.method: row for row in rows}
        own, single = by["AUROC, ladder"], by["AUROC, single horizon"]
        return (
            single.low < 0.55,
            f"{system}: AUROC {single.value:.2f} ({single.low:.2f}-{single.high:.2f}), on the ladder {own.value:.2f}",
        )

    return each(found, judged)


def dagger_alone(found: Found) -> Judgement:
    def judged(system: str, rows: list[Row]) -> Judgement:
        mse = {row.x: row.value for row in rows}
        return mse[1.0] > 1.5 * mse[0.1], f"{system}: {mse[1.0] / mse[0.1]:.2f} times (paper 3 to 9)"

    return each(found, judged)


def sweet_spot(found: Found) -> Judgement:
    def judged(system: str, rows: list[Row]) -> Judgement:
        mse = {row.x: row.value for row in rows}
        text = ", ".join(f"{weight:g}: {value:.3g}" for weight, value in sorted(mse.items()))
        return mse[0.1] <= 1.05 * min(mse.values()), f"{system}: {text}"

    return each(found, judged)


def seed_spread(found: Found) -> Judgement:
    spread = [row.high - row.value for rows in found.values() for row in rows if np.isfinite(row.high)]
    if not spread:
        return False, "there is one seed only."
    text = f"median deviation {np.median(spread):.3f}, largest {max(spread):.3f}."
    return round(float(np.median(spread)), 2) <= 0.02 and round(max(spread), 2) <= 0.05, text


def seed_agreement(found: Found) -> Judgement:
    inside = [
        row.low <= first.value <= row.high
        for rows in found.values()
        for row, first in pairwise(rows)
        if row.method == STEP and np.isfinite(row.high)
    ]
    return bool(inside) and all(inside), f"{sum(inside)} of {len(inside)} cells of the first seed lie within one deviation."


def at_least(ranges: Mapping[int, paper.Range]) -> Callable[[Found], Judgement]:
    def judged(found: Found) -> Judgement:
        parts, holds, low = [], True, LONGEST
        for end, published in ranges.items():
            got = [row.value for rows in found.values() for row in rows if low < row.x <= end]
            holds &= min(got) >= published.low - 0.05
            parts.append(
                f"{min(got):.2f} to {max(got):.2f} up to h = {end} (paper {published.low:.2f} to {published.high:.2f})"
            )
            low = end
        return holds, "; ".join(parts) + "."

    return judged


def bounded(found: Found) -> Judgement:
    def judged(system: str, rows: list[Row]) -> Judgement:
        rmse = {row.x: row.value for row in rows if row.method == "RMSE, mode 1"}
        lost = max((row.value for row in rows if row.method == "lost, mode 1"), default=0.0)
        first, last = min(rmse, default=0), max(rmse, default=0)
        if lost or not rmse:
            return False, f"{system}: {lost:.0%} of the chains are lost"
        growth, theirs = rmse[last] / rmse[first], paper.ROLLOUT[system].growth
        text = f"{system}: {growth:.2f}-fold from {rmse[first]:.3g} to {rmse[last]:.3g} (paper {theirs:g}-fold)"
        return growth <= 1.5 * theirs and rmse[last] < 1, text

    return each(found, judged)


def bimodal(found: Found) -> Judgement:
    worst = values(found, "worst over median, mode 1", x=8)
    lost = max(values(found, "lost, mode 1"), default=0.0)
    if not worst:
        return True, "all chains are lost."
    return (
        lost > 0 or worst[0] >= 3,
        f"after eight links the worst chain is {worst[0]:.1f} times as far off as the median, and {lost:.0%} are lost; what "
        "the error map says of them is not measured.",
    )


def energy_below(found: Found) -> Judgement:
    energy, own = (float(np.mean(values(found, name))) for name in ("energy residual", STEP))
    return own > energy, f"means: step-doubling {own:.2f}, energy {energy:.2f}."


def momentum_chance(found: Found) -> Judgement:
    got = values(found, "momentum residual")
    return abs(float(np.mean(got)) - 0.5) <= 0.07, f"our mean is {np.mean(got):.2f} ({min(got):.2f} to {max(got):.2f})."


def richardson_auroc(found: Found) -> Judgement:
    classical, own = (
        {row.x: row.value for rows in found.values() for row in rows if row.method == name}
        for name in ("Richardson, fixed-order", STEP)
    )
    short = f"at h = 2: Richardson {classical[2]:.2f}, step-doubling {own[2]:.2f}"
    late, later = ([value for x, value in by.items() if x >= 4] for by in (classical, own))
    text = f"{short}; from h = 4 on {min(late):.2f} to {max(late):.2f} and {min(later):.2f} to {max(later):.2f}."
    return abs(classical[2] - own[2]) <= 0.1 and max(late) < 0.6 < min(later), text


def richardson_cost(found: Found) -> Judgement:
    classical, own = (values(found, f"{name}, ms per answer", x=LONGEST)[0] for name in ("Richardson, fixed-order", STEP))
    return (
        classical > own,
        f"at h = 64 {classical:.3g} ms against {own:.3g} ms per answer, on one CPU, with a compiled solver.",
    )


def aligned(found: Found) -> Judgement:
    def judged(system: str, rows: list[Row]) -> Judgement:
        got = [row.value for row in rows if row.method == f"rank correlation, {MAP}"]
        return min(got) >= 0.5, f"{system}: rank correlation {min(got):.2f} to {max(got):.2f}"

    return each(found, judged)


def selective(found: Found) -> Judgement:
    own, edges = (values(found, f"rank correlation, {name}") for name in (MAP, STEEPNESS))
    text = f"rank correlation with the true error over h = 2 to 64: the map {min(own):.2f} to {max(own):.2f}, "
    return min(np.subtract(own, edges)) > 0, f"{text}the steepness of the prediction {min(edges):.2f} to {max(edges):.2f}."
