"""Does the paper's claim hold here?

confirmed        every part holds, by its whole interval
not confirmed    a part does not hold, by its whole interval
cannot tell      an interval straddles its bound
not comparable   other data, a part that was not measured, or a network that is not as good as the paper's
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hybridworld.reproduce import paper
from hybridworld.reproduce.claims import CLAIMS, Claim
from hybridworld.reproduce.decisions import Part, Status, together
from hybridworld.reproduce.rows import Row

WORST = 1.5
"""A network counts if its validation MSE is at most so many times the paper's."""


@dataclass(frozen=True)
class Network:
    """The network with which a system was measured."""

    name: str
    scale: str
    mse: float
    recipe: bool
    """Was it trained with the paper's settings on the paper's data?"""


@dataclass(frozen=True)
class Verdict:
    """What became of a claim, part by part."""

    claim: Claim
    status: Status
    parts: tuple[Part, ...]

    @property
    def found(self) -> str:
        """All parts in words, alike ones together, with the claim's note."""
        alike: dict[tuple[str, str], list[str]] = {}
        for each in self.parts:
            alike.setdefault((each.status, each.found), []).append(each.name)
        several = len(self.parts) > 1
        told = [
            f"{', '.join(filter(None, names))}: {f'*{status}*, ' if several else ''}{found}"
            for (status, found), names in alike.items()
            if found
        ]
        text = "; ".join(each.removeprefix(": ") for each in told)
        return " ".join(filter(None, (f"{text}." if text else "", self.claim.note)))


def obstacle(claim: Claim, system: str, network: Network | None) -> str:
    """Why a system cannot judge the claim; empty: it can."""
    if network is None:
        return "not measured"
    if network.scale == "smoke":
        return "measured at scale smoke, which is other data"
    if claim.recipe:
        return "" if network.recipe else f"{network.name} was not trained by the paper's recipe"
    published = paper.DATASETS[system].val_mse
    if not network.mse <= WORST * published:
        return f"{network.name} has a validation MSE of {network.mse:.3g}, more than {WORST:g} times the paper's {published:g}"
    return ""


def verdict_on(claim: Claim, rows: Sequence[Row], networks: Mapping[str, Network]) -> Verdict:
    """The rule on those systems that can judge the claim; the others are parts that are not comparable."""
    if claim.rule is None:
        return Verdict(claim, "not comparable", (Part("", "not comparable", ""),))
    own = {system: [row for row in rows if row.system == system] for system in claim.systems}
    reasons = {
        system: obstacle(claim, system, networks.get(system)) or ("" if own[system] else "not measured")
        for system in claim.systems
    }
    usable = [system for system in claim.systems if not reasons[system]]
    parts = [Part(system, "not comparable", why) for system, why in reasons.items() if why]
    if claim.joint:
        if usable:
            seen = claim.rule([row for system in usable for row in own[system]])
            parts += seen if not parts else [replace(each, name="the rest", status="not comparable") for each in seen]
    else:
        parts += [_named(each, system) for system in usable for each in claim.rule(own[system])]
    return Verdict(claim, together(each.status for each in parts), tuple(parts))


def all_verdicts(results: Mapping[str, Sequence[Row]], networks: Mapping[str, Network]) -> list[Verdict]:
    """One per claim of the paper, in its order. `results`: entry -> rows, of the entries that were asked for."""
    return [
        verdict_on(claim, results.get(claim.entry, ()), networks)
        if claim.entry in results or claim.rule is None
        else Verdict(claim, "not comparable", (Part("", "not comparable", "not part of this run"),))
        for claim in CLAIMS
    ]


def _named(part: Part, system: str) -> Part:
    return replace(part, name=f"{system}, {part.name}" if part.name else system)
