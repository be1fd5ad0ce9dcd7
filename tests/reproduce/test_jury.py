"""A jury for the rules: every rule sees worlds whose truth is known, and noise never wins."""

from dataclasses import replace

import pytest

from hybridworld.reproduce import paper
from hybridworld.reproduce.claims import CLAIMS
from hybridworld.reproduce.verdicts import Network, verdict_on

from .worlds import ANY, CASES, OPEN, POOL, YES, Draw

RULED = {claim.id: claim for claim in CLAIMS if claim.rule}
NETWORKS = {system: Network(f"the network of {system}", "paper", data.val_mse, True) for system, data in paper.DATASETS.items()}
SIZES = (24, 4000)
MOST = 0.05


def rows_of(claim, world, draw):
    return [row for system in claim.systems for row in CASES[claim.id].rows(world, draw, system)]


def test_no_rule_is_left_out():
    assert set(CASES) == set(RULED)
    assert all(case.expected and case.false for case in CASES.values())


@pytest.mark.parametrize("name", RULED)
def test_each_world_gets_its_verdict(name):
    claim, wrong = RULED[name], []
    for world, verdicts in CASES[name].expected.items():
        for n, wanted in zip(SIZES, verdicts, strict=True):
            found = verdict_on(claim, rows_of(claim, world, Draw(n, 5)), NETWORKS)
            right = {OPEN: found.status != YES, ANY: True}.get(wanted, found.status == wanted)
            if not right:
                wrong.append((world, n, wanted, found.status, found.found))
    assert not wrong


@pytest.mark.parametrize("name", RULED)
def test_half_of_the_data_confirms_nothing(name):
    claim, case = RULED[name], CASES[name]
    for world in case.expected:
        for n in SIZES:
            rows = rows_of(claim, world, Draw(n))
            for half in (rows[: len(rows) // 2], rows[1::2]):
                assert verdict_on(claim, half, NETWORKS).status != YES
    true = next((world for world, verdicts in case.expected.items() if verdicts[1] == YES), "true")
    rows = rows_of(claim, true, Draw(SIZES[1]))
    assert verdict_on(claim, rows[: len(rows) // 2], NETWORKS).status == case.half


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", RULED)
def test_a_false_claim_is_confirmed_in_at_most_5_percent_of_draws(name, n):
    claim, rates = RULED[name], {}
    if not claim.joint:
        claim = replace(claim, systems=claim.systems[-1:])  # a claim that is false on one system only
    for world in CASES[name].false:
        verdicts = [verdict_on(claim, rows_of(claim, world, Draw(n, number)), NETWORKS).status for number in range(POOL)]
        rates[world] = verdicts.count(YES) / POOL
    assert max(rates.values()) <= MOST, rates
