"""Closed-loop rollouts: chains of predictions at the longest horizon, as `HybridModel.rollout` gives them.

A chain is lost where the rollout cannot go on from its own answer, or ends in something that is not finite. Beside the deployed
modes stand chains that defer as many links as mode 2 does, at random or the worst of them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from hybridworld.bench.intervals import LOG, mean_interval, ratio_interval
from hybridworld.bench.worth.contenders import Starts
from hybridworld.deploy.forecast import Forecast
from hybridworld.deploy.hybrid import HybridModel
from hybridworld.errors import HybridWorldError
from hybridworld.reproduce import paper
from hybridworld.reproduce.experiment import Experiment, rmse_of
from hybridworld.reproduce.intervals import auroc_of_labels, share_of
from hybridworld.reproduce.rows import Row
from hybridworld.reproduce.rules import FAILED, LONGEST, MODE_1, MODE_2, ORACLE, RANDOM

LINKS = paper.ROLLOUT_LENGTHS
CHAINS = {True: 32, False: 256}
"""The number of chains, of fields and of state vectors."""
FAR = 3.0
"""A chain that ends at so many times the median RMSE has failed."""
NEVER = np.inf
"""The threshold with which nothing is deferred."""

Answer = tuple[np.ndarray, float, bool]
"""The state after a link, its score, and whether the solver gave it."""


@dataclass(frozen=True)
class Chains:
    """What became of each chain, link by link; nan from where it is lost on."""

    rmse: np.ndarray  # (chains, links)
    scores: np.ndarray  # (chains, links); 0 where nobody asked
    deferred: np.ndarray  # (chains, links): 1 where the solver answered

    def to_lists(self) -> dict[str, Any]:
        """All values as plain data."""
        return {"rmse": self.rmse.tolist(), "scores": self.scores.tolist(), "deferred": self.deferred.tolist()}


def rollout(experiment: Experiment) -> list[Row]:
    """RMSE after k links of those chains that are not lost, the shares that are lost and deferred, and who fails."""
    count = min(CHAINS[experiment.environment.spec.is_field], experiment.setting.pairs)
    found = experiment.remember(("chains", LINKS, count), partial(all_chains, experiment, count))
    rows = []
    for name, parts in found.items():
        chains = Chains(*(np.array(parts[each], float) for each in ("rmse", "scores", "deferred")))
        for link in LINKS:
            place, now = (experiment.system, "test", link), chains.rmse[:, link - 1]
            whole = np.isfinite(now)
            rows.append(Row("lost", name, *place, share_of(int((~whole).sum()), count)))
            if whole.any():
                rows.append(Row("rmse", name, *place, mean_interval(now[whole])))
            if name == MODE_2:
                known = chains.deferred[:, :link][np.isfinite(chains.deferred[:, :link])]
                rows.append(Row("deferral", name, *place, mean_interval(known)))
        if name == MODE_1:
            rows += failures(experiment.system, chains)
    return rows


def failures(system: str, chains: Chains) -> list[Row]:
    """Growth of the RMSE, the share of chains that fail, and whether the error map told which."""
    place, first, last = (system, "test", max(LINKS)), chains.rmse[:, 0], chains.rmse[:, -1]
    whole = np.isfinite(last)
    failed = ~whole
    rows = []
    if whole.any():
        rows.append(Row("growth", MODE_1, *place, ratio_interval(last[whole], first[whole], scale=LOG)))
        failed = ~whole | (last >= FAR * np.median(last[whole]))
    rows.append(Row("failed", MODE_1, *place, share_of(int(failed.sum()), len(failed))))
    scores = np.nan_to_num(np.nanmean(chains.scores, axis=1), nan=np.inf)
    return [*rows, Row("auroc", FAILED, *place, auroc_of_labels(scores, failed))]


def all_chains(experiment: Experiment, count: int) -> dict[str, dict[str, Any]]:
    """Mode 1 and mode 2 as deployed, and deferring as many links as mode 2 at random, or the worst of them."""
    starts = Starts(*experiment.environment.initials("test", experiment.numbers("test")[:count]))
    model, truth = experiment.hybrid(), [starts.states]
    for link in range(max(LINKS)):
        experiment.tell(f"the truth, link {link + 1}")
        truth.append(experiment.environment.solve(truth[-1], LONGEST, starts.params))
    rng = np.random.default_rng(0)
    found = {}
    for name, threshold in ((MODE_1, NEVER), (MODE_2, None)):  # with its error map, mode 1 is mode 2 that never defers
        experiment.tell(name)
        found[name] = deployed(model, starts, truth[1:], threshold)
    spent = np.nan_to_num(found[MODE_2].deferred).sum(axis=0).astype(int)
    experiment.tell("deferring at random, and the worst")
    found[RANDOM] = chosen(model, starts, truth[1:], lambda link, errors: rng.permutation(count) < spent[link])
    found[ORACLE] = chosen(model, starts, truth[1:], lambda link, errors: np.argsort(np.argsort(-errors)) < spent[link])
    return {name: chains.to_lists() for name, chains in found.items()}


def deployed(model: HybridModel, starts: Starts, truth: list[np.ndarray], threshold: float | None) -> Chains:
    """All chains in one rollout; where one of them is lost, each by itself, so that it does not take others with it."""
    roll = partial(model.rollout, horizon=LONGEST, links=len(truth), mode=2, q=paper.Q, threshold=threshold)
    try:
        links = [answers_of(forecast) for forecast in roll(starts.states, params=starts.params)]
        chains = [list(chain) for chain in zip(*links, strict=True)]
    except HybridWorldError:
        each = zip(starts.states, starts.params, strict=True)
        chains = [[answers_of(link)[0] for link in until_lost(roll(state[None], params=params))] for state, params in each]
    return noted(model, chains, truth)


def answers_of(forecast: Forecast) -> list[Answer]:
    """The answers of a forecast in mode 2, one per state."""
    assert forecast.score is not None
    return list(zip(forecast.state, forecast.score.tolist(), forecast.used_solver.tolist(), strict=True))


def until_lost(forecasts: Iterator[Forecast]) -> Iterator[Forecast]:
    """The links of a rollout up to the one that fails."""
    try:
        yield from forecasts
    except HybridWorldError:
        return


def chosen(
    model: HybridModel, starts: Starts, truth: list[np.ndarray], choose: Callable[[int, np.ndarray], np.ndarray]
) -> Chains:
    """Link by link: `choose` sees the errors of the surrogate's answers (inf: lost), and says which chains are deferred."""
    now: list[np.ndarray | None] = list(starts.states)
    answers: list[list[Answer]] = [[] for _ in now]
    for link in range(len(truth)):
        both = [both_answers(model, *each) for each in zip(now, starts.params, strict=True)]
        errors = np.array([error_of(model, *each) for each in both])
        for row, defer in enumerate(choose(link, errors)):
            said, solved = both[row]
            deferred = bool(defer) and solved is not None
            now[row] = answer = solved if deferred else said
            if answer is not None:
                answers[row].append((answer, 0.0, deferred))
    return noted(model, answers, truth)


def noted(model: HybridModel, answers: list[list[Answer]], truth: list[np.ndarray]) -> Chains:
    """The errors, scores and deferrals of chains that may end early."""
    found = Chains(*(np.full((len(answers), len(truth)), np.nan) for _ in range(3)))
    for row, links in enumerate(answers):
        for link, (state, score, deferred) in enumerate(links):
            found.rmse[row, link] = one_rmse(model, state, truth[link][row])
            found.scores[row, link] = score
            found.deferred[row, link] = deferred
    return found


def both_answers(
    model: HybridModel, state: np.ndarray | None, params: np.ndarray
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The answers of surrogate and solver; None for a chain that is lost, and where the solver refuses the state."""
    if state is None:
        return None, None
    try:
        said = model.onward(state, LONGEST, params, mode=1).state
    except HybridWorldError:
        return None, None
    try:
        return said, model.solve(state[None].astype(float), LONGEST, params)[0]
    except HybridWorldError:
        return said, None


def error_of(model: HybridModel, said: np.ndarray | None, solved: np.ndarray | None) -> float:
    """The surrogate's error in one link; inf where it is lost."""
    error = np.inf if said is None or solved is None else one_rmse(model, said, solved)
    return error if np.isfinite(error) else np.inf


def one_rmse(model: HybridModel, state: np.ndarray, truth: np.ndarray) -> float:
    """The root mean square error of one normalised state."""
    return float(rmse_of(state[None], truth[None], model.surrogate.std.numpy())[0])
