"""The rules behind the verdicts: each takes rows (of one system, unless it compares systems) and judges the parts of a claim.

`claims.py` says what each rule stands for. A rule never decides by a value alone: see `decisions.py`.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import numpy as np

from hybridworld.bench.intervals import Interval
from hybridworld.reproduce import paper
from hybridworld.reproduce.decisions import Part, Status, counted, in_words, lies, part, span
from hybridworld.reproduce.intervals import difference, mean_of, median_of, over_runs, ratio, sum_of, widened
from hybridworld.reproduce.rows import Missing, Quantity, Row, chosen, need, one
from hybridworld.trust.step_doubling import StepDoubling

STEP = StepDoubling.name
LONGEST = max(paper.HORIZONS)
RIVALS = tuple(name for name in paper.BASELINES if name != STEP)
UNTRAINED = ("random augmentation", "gradient magnitude")
"""The rivals of the paper that are fitted to nothing."""
TWIN: Quantity = "speed-up over the NumPy twin"
COMPILED: Quantity = "speed-up over the compiled solver"
MATCHED, FROZEN, RANDOM, ORACLE, ORACLE_AT_Q = "matched q", "frozen threshold", "random", "oracle", "oracle at q"
MODE_1, MODE_2 = "mode 1", "mode 2"
SINGLE, ALL_HORIZONS = "single horizon", "all horizons"
MAP, STEEPNESS = "error map", "steepness"
FAILED = "error map of failed chains"
SWEPT = (2, 8, 32, 64)
ROUNDING = 0.005
"""Half a unit of the last digit that the paper prints."""
NEAR, CHANCE = 0.10, 0.55
"""A cut within 10 points of blind deferral is near it; an AUROC below 0.55 is at chance."""

Rule = Callable[[Sequence[Row]], list[Part]]
Finding = tuple[Status, str]


def by_system(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """System -> its rows."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row.system, []).append(row)
    return found


def simply(find: Callable[[Sequence[Row]], Finding]) -> Rule:
    """A rule that finds one thing about a claim as a whole."""
    return lambda rows: [part("", partial(find, rows))]


def aurocs(
    rows: Sequence[Row], splits: Sequence[str] = paper.SPLITS, horizons: Sequence[int] = paper.HORIZONS
) -> list[Interval]:
    """The AUROC of step-doubling in these cells."""
    return need(rows, "auroc", STEP, splits, horizons)


# Trainings.


@simply
def trains(rows: Sequence[Row]) -> Finding:
    runs = [row.value for row in chosen(rows, "mse", "main")]
    if not runs:
        raise Missing("no validation MSE was measured")
    published, found = paper.DATASETS[rows[0].system].val_mse, over_runs(runs)
    return lies(found, high=published + ROUNDING / 10), f"{in_words(found, '.3g')} over {len(runs)} seeds (paper {published:g})"


def collapses(rows: Sequence[Row]) -> list[Part]:
    def falls() -> Finding:
        found = one(rows, "fall of the loss", "self-consistency", "val", 0)
        return lies(found, low=1e5), f"the loss falls {in_words(found, '.2g')}-fold"

    def stays() -> Finding:
        found = one(rows, "mse over no change", "self-consistency", "val", 0)
        return lies(found, low=0.8), f"the MSE ends at {in_words(found)} of no change"

    return [part("the loss falls by six orders", falls), part("the MSE does not fall", stays)]


def single_worse(rows: Sequence[Row]) -> list[Part]:
    published = paper.SINGLE_HORIZON[rows[0].system].ratio

    def finding(bound: float) -> Finding:
        found = one(rows, "mse ratio", SINGLE, "val", LONGEST)
        return lies(found, low=bound), f"{in_words(found)} times (paper {published:g})"

    return [
        part("worse", partial(finding, 1.0)),
        part("by half of the paper's factor or more", partial(finding, (1 + published) / 2)),
    ]


@simply
def single_horizon_map(rows: Sequence[Row]) -> Finding:
    found, own = (one(rows, "auroc", name, "val", LONGEST) for name in (SINGLE, ALL_HORIZONS))
    return lies(found, high=CHANCE), f"AUROC {in_words(found)}, trained at all horizons {in_words(own)}"


@simply
def dagger_alone(rows: Sequence[Row]) -> Finding:
    found = one(rows, "mse ratio", "DAgger", "val", 1.0)
    return lies(found, low=paper.DAGGER.alone.low), f"{in_words(found)} times (paper 3 to 9)"


def sweet_spot(rows: Sequence[Row]) -> list[Part]:
    def level() -> Finding:
        found = need(rows, "mse ratio", "DAgger", ("val",), (0.0, 1.0))
        text = " and ".join(f"{in_words(each)} at weight {weight}" for each, weight in zip(found, (0, 1), strict=True))
        better = any(lies(widened(each, len(found)), high=1.0) == "confirmed" for each in found)
        return "not confirmed" if better else counted(found, low=1 / 1.05), f"MSE over that at 0.1: {text}"

    def without() -> Finding:
        found = one(rows, "mse ratio", "DAgger", "val", 0.0)
        return lies(found, low=1 + paper.DAGGER.without["oregonator"] / 2), f"{in_words(found)} times"

    parts = [part("0.1 is best or level", level)]
    return [*parts, part("26 % higher without", without)] if rows[0].system == "oregonator" else parts


# AUROC.


def paper_cells(system: str) -> list[float]:
    """The paper's AUROC in the cells of a system."""
    return [value for row in paper.AUROC[system].values() for value in row.values()]


def cells_above(bound: float) -> Rule:
    """As many cells above the bound as the paper's table has."""

    def finding(rows: Sequence[Row]) -> Finding:
        cells, least = aurocs(rows), sum(value >= bound for value in paper_cells(rows[0].system))
        above, sure = sum(each.value > bound for each in cells), sum(each.low > bound for each in cells)
        text = f"{above} of {len(cells)} cells are above {bound:g}, {sure} with their whole interval (paper {least})"
        return counted(cells, low=bound, least=least), text

    return simply(finding)


@simply
def median_auroc(rows: Sequence[Row]) -> Finding:
    found, theirs = median_of(aurocs(rows)), float(np.median(paper_cells(rows[0].system)))
    return lies(found, low=theirs - ROUNDING), f"{in_words(found)} (paper {theirs:.2f} over the same cells)"


@simply
def ceiling(rows: Sequence[Row]) -> Finding:
    cells, theirs = aurocs(rows), paper.AUROC_TEXT.oregonator
    return counted(cells, theirs.low - ROUNDING, theirs.high + ROUNDING), f"ours are {span(cells)}"


def rises_under_shift(rows: Sequence[Row]) -> list[Part]:
    def rises() -> Finding:
        test, far = (mean_of(aurocs(rows, (split,))) for split in ("test", "ood-far"))
        return lies(difference(far, test), low=0.0), f"the mean is {in_words(test)} on test, {in_words(far)} on ood-far"

    def high() -> Finding:
        found = mean_of(aurocs(rows, ("ood-far",)))
        return lies(found, low=0.9), f"the mean is {in_words(found)} on ood-far"

    return [part("it rises", rises), part("to 0.9 or more", high)]


def ball_failure(rows: Sequence[Row]) -> list[Part]:
    def fails() -> Finding:
        found = one(rows, "auroc", STEP, "ood-far", 16)
        return lies(found, high=0.5), f"ours is {in_words(found)}"

    def alone() -> Finding:
        cells = {(split, h): one(rows, "auroc", STEP, split, h) for split in paper.SPLITS for h in paper.HORIZONS}
        others = [found for cell, found in cells.items() if cell != ("ood-far", 16)]
        return counted(others, low=0.5), f"the others are {span(others)}"

    return [part("below chance at h = 16", fails), part("all other cells above", alone)]


def failure_of_seeds(rows: Sequence[Row]) -> list[Part]:
    def finding(horizon: int) -> Finding:
        found = [row.interval for row in chosen(rows, "auroc", split="ood-far") if row.x == horizon and row.signal != STEP]
        if len(found) < len(paper.CROSS_SEED_TEXT.seeds):
            raise Missing(f"{len(found)} of {len(paper.CROSS_SEED_TEXT.seeds)} seeds were measured")
        return counted(found, high=0.5), f"the seeds have {span(found)}"

    return [part(f"h = {h}", partial(finding, h)) for h in paper.CROSS_SEED_TEXT.failure_horizons]


def seed_spread(rows: Sequence[Row]) -> list[Part]:
    def cells() -> list[Interval]:
        return need(rows, "deviation of the auroc", STEP, paper.SPLITS, paper.HORIZONS)

    def median() -> Finding:
        found = median_of(cells())
        return lies(found, high=paper.CROSS_SEED_TEXT.median_sd + ROUNDING), f"median {in_words(found, '.3f')}"

    def largest() -> Finding:
        return counted(cells(), high=paper.CROSS_SEED_TEXT.largest_sd + ROUNDING), f"they are {span(cells(), '.3f')}"

    return [part("the median is 0.02", median), part("none is above 0.05", largest)]


def beyond(rows: Sequence[Row]) -> list[Part]:
    def finding(horizons: Sequence[int], published: paper.Range) -> Finding:
        cells = aurocs(rows, horizons=horizons)
        return counted(
            cells, low=published.low - ROUNDING
        ), f"{span(cells)} (paper {published.low:.2f} to {published.high:.2f})"

    parts, last = [], LONGEST
    for end, published in paper.BEYOND[rows[0].system].items():
        horizons = [h for h in BEYOND[rows[0].system] if last < h <= end]
        parts.append(part(f"h = {', '.join(map(str, horizons))}", partial(finding, horizons, published)))
        last = end
    return parts


BEYOND = {"oregonator": (96, 128, 160), "euler2d": (80, 96)}
"""Horizons that no training has seen."""


# Rivals.


def mean_lead(rows: Sequence[Row], quantity: Quantity, rival: str) -> Interval:
    """A lead over a rival, mean over those of the systems on which the paper has that rival."""
    found = [
        one(own, quantity, rival, "test", 0) for system, own in by_system(rows).items() if system in paper.BASELINES[rival]
    ]
    if not found:
        raise Missing(f"{rival} was not measured")
    return sum_of(found, [1 / len(found)] * len(found))


def leads_of(rows: Sequence[Row], quantity: Quantity, rivals: Sequence[str]) -> Finding:
    """Is the lead over each of the rivals positive?"""
    applicable = [rival for rival in rivals if any(system in paper.BASELINES[rival] for system in by_system(rows))]
    found = {rival: mean_lead(rows, quantity, rival) for rival in applicable}
    text = ", ".join(f"{in_words(lead, '+.2f')} over {rival}" for rival, lead in found.items())
    return counted(list(found.values()), low=0.0), f"on {', '.join(by_system(rows))} it leads by {text}"


@simply
def best_mean(rows: Sequence[Row]) -> Finding:
    return leads_of(rows, "lead", RIVALS)


@simply
def runner_up(rows: Sequence[Row]) -> Finding:
    return leads_of(rows, "lead of the ensemble", [rival for rival in RIVALS if rival != "ensemble"])


@simply
def only_universal(rows: Sequence[Row]) -> Finding:
    looked = {name: {row.system: row.value for row in chosen(rows, "auroc", name)} for name in (STEP, *UNTRAINED)}
    systems = set(by_system(rows))
    if any(set(found) != systems for found in looked.values()):
        raise Missing("not every signal without training was tried on every system")
    named = [name for name, found in looked.items() if np.isfinite(list(found.values())).all()]
    text = f"without training or labels, on {', '.join(sorted(systems))}: {', '.join(named)}"
    return "confirmed" if named == [STEP] else "not confirmed", text


@simply
def inverted(rows: Sequence[Row]) -> Finding:
    cells = need(rows, "auroc", "random augmentation", ("test",), (16, 32, 64))
    return counted(cells, high=0.4), f"ours is {span(cells)}"


@simply
def energy_below(rows: Sequence[Row]) -> Finding:
    found = one(rows, "lead", "energy residual", "test", 0)
    return lies(found, low=0.0), f"step-doubling leads by {in_words(found, '+.2f')} in the mean"


@simply
def momentum_chance(rows: Sequence[Row]) -> Finding:
    cells = need(rows, "auroc", "momentum residual", ("test",), paper.HORIZONS)
    return lies(mean_of(cells), 0.43, 0.57), f"our mean is {in_words(mean_of(cells))}, cells {span(cells)}"


def richardson_auroc(rows: Sequence[Row]) -> list[Part]:
    def short() -> Finding:
        found = one(rows, "lead", "Richardson, fixed-order", "test", 2)
        return lies(found, -0.1, 0.1), f"step-doubling leads by {in_words(found, '+.2f')}"

    def late(name: str, low: float, high: float) -> Finding:
        cells = need(rows, "auroc", name, ("test",), paper.HORIZONS[1:])
        return counted(cells, low, high), f"{name}: {span(cells)}"

    return [
        part("level at h = 2", short),
        part("below 0.6 from h = 4 on", partial(late, "Richardson, fixed-order", -np.inf, 0.6)),
        part("where step-doubling is above 0.6", partial(late, STEP, 0.6, np.inf)),
    ]


@simply
def richardson_cost(rows: Sequence[Row]) -> Finding:
    classical, own = (one(rows, "milliseconds", name, "test", LONGEST) for name in ("Richardson, fixed-order", STEP))
    text = f"at h = 64 {classical.value:.3g} ms against {own.value:.3g} ms per answer, on one CPU, with a compiled solver"
    return lies(ratio(classical, own), low=1.0), text


# Error maps.


@simply
def aligned(rows: Sequence[Row]) -> Finding:
    found = chosen(rows, "rank correlation", MAP)
    if not found:
        raise Missing("no error map was measured")
    return counted([row.interval for row in found], low=0.5), f"rank correlation {in_words(found[0].interval)}"


@simply
def selective(rows: Sequence[Row]) -> Finding:
    cells = need(rows, "rank correlation lead", STEEPNESS, ("test",), SWEPT)
    return counted(cells, low=0.0), f"the map's rank correlation less that of the steepness is {span(cells, '+.2f')}"


# Speed. The paper's solvers are NumPy programs, so the NumPy twin decides; the compiled solver stands beside it.


def speeds(rows: Sequence[Row], who: str) -> tuple[Interval, str]:
    """The speed-up over the NumPy twin at the longest horizon, and both in words."""
    twin, compiled = (one(rows, quantity, who, "test", LONGEST) for quantity in (TWIN, COMPILED))
    text = f"{in_words(twin, '.3g')} times against the NumPy twin, {in_words(compiled, '.2g')} against the compiled solver"
    return twin, text


@simply
def speed_like(rows: Sequence[Row]) -> Finding:
    published = paper.SPEEDUP[rows[0].system].cpu
    assert published is not None
    found, text = speeds(rows, MODE_1)
    return lies(found, low=published / 2), text


def no_gain(rows: Sequence[Row]) -> list[Part]:
    def single() -> Finding:
        found, text = speeds(rows, MODE_1)
        return lies(found, high=1.0), text

    return [part("one trajectory", single), Part("128 on a GPU", "not comparable", "there is no GPU here")]


def flat_cost(rows: Sequence[Row]) -> list[Part]:
    first, last = min(paper.TRAINED), max(paper.TRAINED)

    def growth(who: str) -> Interval:
        return ratio(*(one(rows, "milliseconds", who, "test", h) for h in (last, first)))

    def flat() -> Finding:
        return lies(growth(MODE_1), high=2.0), f"mode 1 takes {in_words(growth(MODE_1), '.2g')} times as long"

    def proportional() -> Finding:
        twin, compiled = growth("NumPy twin"), growth("compiled solver")
        text = f"the NumPy twin takes {in_words(twin, '.2g')}, the compiled solver {in_words(compiled, '.2g')} times as long"
        return lies(twin, low=last / first / 2), text

    return [part("the surrogate does not depend on h", flat), part("the solver is proportional to h", proportional)]


@simply
def mode2_speed(rows: Sequence[Row]) -> Finding:
    found, text = speeds(rows, MODE_2)
    return lies(found, low=2.0), text


# Mode 2.


@simply
def mode2_cut(rows: Sequence[Row]) -> Finding:
    matched, frozen, oracle = (one(rows, "cut", name, "test", LONGEST) for name in (MATCHED, FROZEN, ORACLE_AT_Q))
    text = f"{in_words(matched, '.0%')} by the paper's protocol (oracle {oracle.value:.0%})"
    text += f", {in_words(frozen, '.0%')} as deployed"
    return lies(matched, low=paper.MODE2.cut.low - ROUNDING), text


def above_random(places: Sequence[float], floor: Callable[[float], float]) -> Rule:
    """In every cell the cut by the paper's protocol exceeds that of blind deferral; `places` are the x of the cells."""

    def finding(rows: Sequence[Row]) -> Finding:
        cells = need(rows, "cut", MATCHED, paper.SPLITS, places)
        floors = [floor(x) for _ in paper.SPLITS for x in places]
        gaps = [sum_of([cell, Interval(-at, -at, -at)]) for cell, at in zip(cells, floors, strict=True)]
        sure = sum(gap.low > 0 for gap in gaps)
        return counted(gaps, low=0.0), f"{sure} of {len(gaps)} cells exceed it with their whole interval; gaps {span(gaps)}"

    return simply(finding)


@simply
def median_gaps(rows: Sequence[Row]) -> Finding:
    cut = median_of(need(rows, "cut", MATCHED, paper.SPLITS, paper.HORIZONS))
    published = paper.CUT_TEXT.median_gap[rows[0].system]
    text = f"{100 * (cut.value - paper.CUT_TEXT.floor):.0f} points (paper {100 * published:.0f})"
    return lies(cut, low=paper.CUT_TEXT.floor + published - ROUNDING), text


@simply
def largest_cut(rows: Sequence[Row]) -> Finding:
    cells = {
        (system, split, h): one(own, "cut", MATCHED, split, h)
        for system, own in by_system(rows).items()
        for split in paper.SPLITS
        for h in paper.HORIZONS
    }
    value, place = max((found.value, place) for place, found in cells.items())
    text = f"our largest is {value:.0%}, on {place[0]}, {place[1]}, at h = {place[2]}"
    claimed = cells.pop(paper.CUT_TEXT.largest, None)
    if claimed is None:
        raise Missing(f"the cell of the claim was not measured; {text}")
    gaps = [Interval(claimed.value - each.value, claimed.low - each.high, claimed.high - each.low) for each in cells.values()]
    return counted(gaps, low=0.0), text


def follows_auroc(rows: Sequence[Row]) -> list[Part]:
    far = paper.CUT_TEXT.floor + NEAR

    def cuts(splits: Sequence[str]) -> list[Interval]:
        return need(rows, "cut", MATCHED, splits, paper.HORIZONS)

    def alike() -> Finding:
        cells = list(zip(cuts(paper.SPLITS), aurocs(rows), strict=True))
        looks = 2 * len(cells)
        both = [(lies(cut, high=far), lies(auroc, high=CHANCE)) for cut, auroc in cells]
        sure = [(lies(widened(cut, looks), high=far), lies(widened(auroc, looks), high=CHANCE)) for cut, auroc in cells]
        apart = sum(set(pair) == {"confirmed", "not confirmed"} for pair in sure)
        same = sum(pair in (("confirmed",) * 2, ("not confirmed",) * 2) for pair in both)
        status: Status = "not confirmed" if apart else "confirmed" if same == len(cells) else "cannot tell"
        return status, f"cut and AUROC agree in {same} of {len(cells)} cells, and contradict each other in {apart}"

    def elsewhere() -> Finding:
        found = cuts(("test",) if rows[0].system == "ball3d" else paper.SPLITS)
        return counted(found, low=far), f"cuts of {span(found, '.0%')}"

    def under_shift() -> Finding:
        found = cuts(paper.SPLITS[1:])
        near = sum(lies(widened(each, len(found)), high=far) == "confirmed" for each in found)
        none = counted(found, low=far) == "confirmed"
        return "confirmed" if near else "not confirmed" if none else "cannot tell", f"cuts of {span(found, '.0%')}"

    parts = [part("near just where at chance", alike), part("not near elsewhere", elsewhere)]
    return [*parts, part("near under shift", under_shift)] if rows[0].system == "ball3d" else parts


def q_ranges(rows: Sequence[Row]) -> list[Part]:
    def finding(q: float) -> Finding:
        cells, published = need(rows, "cut", MATCHED, paper.SPLITS, (q,)), paper.Q_SWEEP[q][rows[0].system]
        text = f"{span(cells, '.0%')} (paper {published.low:.0%} to {published.high:.0%})"
        return counted(cells, low=published.low - ROUNDING), text

    return [part(f"q = {q:g}", partial(finding, q)) for q in (0.5, 0.9)]


# Rollouts.


@simply
def bounded(rows: Sequence[Row]) -> Finding:
    lost = one(rows, "lost", MODE_1, "test", max(paper.ROLLOUT_LENGTHS))
    if lost.value > 0:
        return "not confirmed", f"{lost.value:.0%} of the chains are lost"
    found, theirs = one(rows, "growth", MODE_1, "test", max(paper.ROLLOUT_LENGTHS)), paper.ROLLOUT[rows[0].system].growth
    return lies(found, high=1.5 * theirs), f"{in_words(found)}-fold (paper {theirs:g}-fold)"


def bimodal(rows: Sequence[Row]) -> list[Part]:
    last = max(paper.ROLLOUT_LENGTHS)

    def few() -> Finding:
        found = one(rows, "failed", MODE_1, "test", last)
        return lies(found, 0.02, 0.5), f"{in_words(found, '.0%')} of the chains fail"

    def seen() -> Finding:
        found = one(rows, "auroc", FAILED, "test", last)
        return lies(found, low=0.5), f"the error map picks them out with an AUROC of {in_words(found)}"

    return [part("a few fail, most do not", few), part("the error map is large on those", seen)]
