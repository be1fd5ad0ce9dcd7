"""Does the paper's claim hold here? Each claim has a rule; a verdict needs data, at a scale at which the claim can be judged.

confirmed        the rule holds on all systems that were measured at such a scale
not confirmed    it does not
not comparable   nothing was measured, or at too small a scale: never `confirmed` without data
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from hybridworld.evaluate.reproduce import paper, rules
from hybridworld.evaluate.reproduce.claims import CLAIMS
from hybridworld.evaluate.reproduce.rules import Found, Judgement

Status = Literal["confirmed", "not confirmed", "not comparable"]
ORDER = ("smoke", "laptop", "paper")
PDES = ("oregonator", "euler2d")


@dataclass(frozen=True)
class Rule:
    """How a claim is judged from the rows of an entry."""

    claim: str
    entry: str
    judge: Callable[[Found], Judgement]
    systems: tuple[str, ...] = paper.SYSTEMS
    needs: Literal["laptop", "paper"] = "laptop"
    """The smallest scale that counts: trainings far shorter than the paper's say nothing about its numbers."""
    together: bool = False
    """Does it compare systems, so that all of them are needed?"""


@dataclass(frozen=True)
class Verdict:
    """What became of a claim."""

    claim: str
    status: Status
    found: str
    only: tuple[str, ...] = ()
    """Those of several systems on which it was judged, if not all."""

    @property
    def in_words(self) -> str:
        """For example `confirmed (ball3d only)`."""
        return f"{self.status} ({', '.join(self.only)} only)" if self.only else self.status


def judge(rule: Rule, results: Found, scales: Mapping[str, str]) -> Verdict:
    """On those of the rule's systems that were measured at a scale that counts."""
    enough = {
        system: rows
        for system, rows in results.items()
        if system in rule.systems and rows and ORDER.index(scales[system]) >= ORDER.index(rule.needs)
    }
    missing = [system for system in rule.systems if system not in enough]
    if not enough or (rule.together and missing):
        measured = {system: results[system] for system in rule.systems if results.get(system)}
        if not measured:
            return Verdict(rule.claim, "not comparable", "nothing was measured.")
        where = ", ".join(f"{system} at scale {scales[system]}" for system in measured)
        needed = f"{', '.join(missing)} at scale {rule.needs}"
        return Verdict(rule.claim, "not comparable", f"measured: {where}; it needs {needed}; {rule.judge(measured)[1]}")
    holds, text = rule.judge(enough)
    note = f" {NOTES[rule.claim]}" if rule.claim in NOTES else ""
    status: Status = "not comparable" if holds is None else "confirmed" if holds else "not confirmed"
    return Verdict(rule.claim, status, f"{text}{note}", tuple(enough) if missing else ())


RULES = (
    *(Rule(f"trains-{name}", "datasets", rules.trains, (name,), "paper") for name in paper.SYSTEMS),
    Rule("auroc-above-chance", "auroc", rules.above_chance),
    Rule("auroc-median", "auroc", rules.median_auroc),
    Rule("auroc-above-065", "auroc", rules.above_065),
    Rule("auroc-oregonator-ceiling", "auroc", rules.between(0.65, 0.77), ("oregonator",), "paper"),
    Rule("auroc-euler-shift", "auroc", rules.rises_under_shift, ("euler2d",)),
    Rule("auroc-ball-failure", "auroc", rules.ball_failure, ("ball3d",)),
    Rule("baselines-best-mean", "baselines", rules.best_mean),
    Rule("baselines-runner-up", "baselines", rules.runner_up),
    Rule("baselines-only-universal", "baselines", rules.only_universal),
    Rule("baselines-augmentation-inverted", "baselines", rules.inverted, ("euler2d",)),
    *(
        Rule(f"mode1-{name}", "mode1-speed", rules.speed_like(name), (name,)) for name in paper.SYSTEMS
    ),
    Rule("mode1-cost-flat", "mode1-speed", rules.flat_cost),
    Rule("mode2-cut", "mode2", rules.mode2_cut),
    Rule("mode2-speedup", "mode2", rules.mode2_speed),
    Rule("mode2-above-random", "mode1-vs-mode2", rules.above_random("cut, matched q", lambda row: 0.25)),
    Rule("mode2-median-gaps", "mode1-vs-mode2", rules.median_gaps),
    Rule("mode2-largest", "mode1-vs-mode2", rules.largest_cut, together=True),
    Rule("mode2-follows-auroc", "mode1-vs-mode2", rules.follows_auroc),
    Rule("q-monotone", "q-sweep", rules.monotone, PDES),
    Rule("q-above-random", "q-sweep", rules.above_random("matched q", lambda row: 1 - row.x), PDES),
    Rule("q-ranges", "q-sweep", rules.q_ranges, PDES),
    Rule("self-consistency-collapse", "self-consistency", rules.collapses),
    Rule("single-horizon-worse", "single-horizon", rules.single_worse),
    Rule("single-horizon-probe", "single-horizon", rules.single_probe),
    Rule("dagger-alone", "dagger", rules.dagger_alone),
    Rule("dagger-sweet-spot", "dagger", rules.sweet_spot),
    Rule("cross-seed-spread", "cross-seed", rules.seed_spread),
    Rule("cross-seed-agreement", "cross-seed", rules.seed_agreement),
    Rule("beyond-oregonator", "beyond", rules.at_least(paper.BEYOND["oregonator"]), ("oregonator",)),
    Rule("beyond-euler2d", "beyond", rules.at_least(paper.BEYOND["euler2d"]), ("euler2d",)),
    Rule("rollout-bounded", "rollout", rules.bounded),
    Rule("rollout-euler-bimodal", "rollout", rules.bimodal, ("euler2d",)),
    Rule("energy-below-step-doubling", "energy-momentum", rules.energy_below, ("ball3d",)),
    Rule("momentum-at-chance", "energy-momentum", rules.momentum_chance, ("ball3d",)),
    Rule("richardson-auroc", "richardson", rules.richardson_auroc, ("euler2d",)),
    Rule("richardson-cost", "richardson", rules.richardson_cost, ("euler2d",)),
    Rule("spatial-alignment", "horizon-sweep", rules.aligned),
    Rule("spatial-selectivity", "horizon-sweep", rules.selective, ("euler2d",)),
)  # fmt: skip
SLOWER = "How fast a NumPy solver is depends on how it is written, which the paper does not say."
NOTES: dict[str, str] = {
    "auroc-ball-failure": "The paper's own Table 5 has the failure at h = 32.",
    "baselines-runner-up": "By the paper's own Table 3 it is the learned error head as well.",
    "cross-seed-agreement": "By the paper's own tables it does not hold either (see below).",
    "mode1-oregonator": SLOWER,
    "mode1-euler2d": SLOWER,
    "mode1-ball3d": "Our NumPy twin is written for batches, and slow for one ball, so the compiled solver decides.",
    "mode2-follows-auroc": "By the paper's own tables it does not hold either (see below).",
    "self-consistency-collapse": "The paper ran it on the two PDEs.",
    "mode2-cut": "The more even the errors, the less there is to cut: compare with the oracle.",
    "mode2-speedup": "A quarter of the work on the solver bounds any speed-up by 4.",
    "single-horizon-worse": "The paper's factors compare the mean over the ladder (its final MSE) with h = 64 alone.",
    "single-horizon-probe": "The DAgger part trains the half horizon as well.",
    "momentum-at-chance": "A change of momentum means a bounce, and bounces are what is hard.",
    "richardson-cost": "The paper compares a NumPy solver on a CPU with a network on a GPU.",
}
"""What to know beside a verdict."""
ELSEWHERE = {
    "mode1-gpu": "there is no GPU here.",
    "smooth-bound": "the constants of a trained network are not known; for flows whose constants are, the inequality is tested "
    "as a property (tests/trust/test_step_doubling.py).",
}
"""Claims without a rule, and why."""


def all_verdicts(results: Mapping[str, Found], scales: Mapping[str, str]) -> list[Verdict]:
    """One per claim of the paper, in its order. `results`: entry -> system -> rows, of the entries that were asked for."""
    known, verdicts = {rule.claim: rule for rule in RULES}, []
    for claim in CLAIMS:
        if claim.id not in known:
            verdicts.append(Verdict(claim.id, "not comparable", ELSEWHERE[claim.id]))
        elif known[claim.id].entry not in results:
            verdicts.append(Verdict(claim.id, "not comparable", "not part of this run."))
        else:
            verdicts.append(judge(known[claim.id], results[known[claim.id].entry], scales))
    return verdicts
