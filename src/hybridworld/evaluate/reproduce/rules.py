"""The rules behind the verdicts: each takes the rows of an entry, by system, and says whether a claim holds, and what we found.

What a rule stands for is the claim of the same name in `claims.py`; `verdicts.py` has the list.
"""

from collections.abc import Callable, Mapping
from itertools import pairwise

import numpy as np

from hybridworld.evaluate.reproduce import paper
from hybridworld.evaluate.reproduce.measures import LONGEST, RIVALS, Row
from hybridworld.evaluate.reproduce.study import STEP
from hybridworld.evaluate.reproduce.visual import MAP, STEEPNESS

Found = Mapping[str, list[Row]]
"""System -> rows of an entry."""
Judgement = tuple[bool, str]
"""Does it hold, and what was found."""
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
    return all(holds for holds, _ in outcomes), "; ".join(text for _, text in outcomes) + "."


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
    return ours >= theirs - 0.03, f"our median is {ours:.2f}, the paper's over the same cells {theirs:.2f}."


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
    test, far = (float(np.mean(values(found, STEP, split))) for split in ("test", "ood-far"))
    return far > test, f"the mean is {test:.2f} on test and {far:.2f} on ood-far."


def ball_failure(found: Found) -> Judgement:
    row = next(row for row in found["ball3d"] if (row.method, row.split, row.x) == (STEP, "ood-far", 16))
    below = [f"h = {r.x:g}" for r in found["ball3d"] if r.method == STEP and r.split == "ood-far" and r.low < 0.5]
    return (
        row.low < 0.5,
        f"ours is {row.value:.2f} ({row.low:.2f}-{row.high:.2f}) at h = 16; at chance: {', '.join(below) or 'none'}.",
    )


def best_mean(found: Found) -> Judgement:
    means = {name: float(np.mean(values(found, name))) for name in RIVALS if len(values(found, name)) >= 3 * len(found)}
    ours = {name: float(np.mean(values(found, name))) for name in ("symmetries", f"{STEP} + symmetries") if values(found, name)}
    text = ", ".join(f"{name} {value:.2f}" for name, value in sorted(means.items(), key=lambda item: -item[1]))
    extra = ", ".join(f"{name} {value:.2f}" for name, value in ours.items())
    return means[STEP] >= max(means.values()) - 1e-9, f"means: {text} (beyond the paper: {extra})."


def runner_up(found: Found) -> Judgement:
    means = {
        name: float(np.mean(values(found, name)))
        for name in RIVALS
        if name != STEP and len(values(found, name)) >= 3 * len(found)
    }
    best = max(means, key=lambda name: means[name])
    return best == "ensemble", f"the best rival is the {best} with {means[best]:.2f}."


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
        return (twin[0] < 1) if published is None else published / 2 <= twin[0], text

    return judged


def flat_cost(found: Found) -> Judgement:
    def judged(system: str, rows: list[Row]) -> Judgement:
        alone, solver = (
            {row.x: row.value for row in rows if row.method == f"ms, {who}"} for who in ("mode 1", "compiled solver")
        )
        ours, theirs = alone[max(alone)] / alone[min(alone)], solver[max(solver)] / solver[min(solver)]
        span = f"from h = {min(alone):g} to {max(alone):g}"
        return ours < 2 < theirs, f"{system}, {span}: mode 1 takes {ours:.2g} times as long, the solver {theirs:.2g} times"

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
        return twin >= 2, f"{system}: {twin:.2g} times against the NumPy twin, {compiled:.2g} against the compiled solver"

    return each(found, judged)


def above_random(method: str, floor: Callable[[Row], float]) -> Callable[[Found], Judgement]:
    def judged(found: Found) -> Judgement:
        cells = [row for rows in found.values() for row in rows if row.method == method]
        above = sum(row.value > floor(row) for row in cells)
        return above == len(cells), f"{above} of {len(cells)} cells exceed the floor ({method})."

    return judged


def largest_cut(found: Found) -> Judgement:
    cut, system, split, h = max(
        (row.value, system, row.split, row.x)
        for system, rows in found.items()
        for row in rows
        if row.method == "cut, matched q"
    )
    return (system, split) == paper.CUT_TEXT.largest[:2], f"our largest is {cut:.0%}, on {system}, {split}, at h = {h:g}."


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
                row.value for row in sorted(rows, key=lambda row: row.x) if row.method == "matched q" and row.split == split
            ]
            falls.append(all(a >= b - 1e-9 for a, b in pairwise(line)))
    return all(falls), f"{sum(falls)} of {len(falls)} curves fall with q throughout."


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
    return float(np.median(spread)) <= 0.025 and max(spread) <= 0.065, text


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
        growth = rmse[8] / rmse[1]
        return (
            growth <= 3,
            f"{system}: {growth:.2f}-fold from {rmse[1]:.3g} to {rmse[8]:.3g} (paper {paper.ROLLOUT[system].growth:g}-fold)",
        )

    return each(found, judged)


def energy_below(found: Found) -> Judgement:
    energy, own = (float(np.mean(values(found, name))) for name in ("energy residual", STEP))
    return own > energy, f"means: step-doubling {own:.2f}, energy {energy:.2f}."


def momentum_chance(found: Found) -> Judgement:
    got = values(found, "momentum residual")
    return abs(float(np.mean(got)) - 0.5) <= 0.07, f"our mean is {np.mean(got):.2f} ({min(got):.2f} to {max(got):.2f})."


def richardson_auroc(found: Found) -> Judgement:
    classical, own = (
        [row.value for rows in found.values() for row in rows if row.method == name and row.x >= 4]
        for name in ("Richardson, fixed-order", STEP)
    )
    return (
        max(classical) < 0.6 < min(own),
        f"for h >= 4: Richardson {min(classical):.2f} to {max(classical):.2f}, step-doubling {min(own):.2f} to {max(own):.2f}.",
    )


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
