"""Closed-loop rollouts: chains of predictions at the longest horizon, alone and with links that a gate hands to the solver."""

from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import Tensor

from hybridworld.data.pairs import Batch
from hybridworld.errors import HybridWorldError
from hybridworld.evaluate.metrics import mean_interval
from hybridworld.evaluate.reproduce.measures import LONGEST, Q, Row, of_interval
from hybridworld.evaluate.reproduce.study import Study
from hybridworld.evaluate.worth.contenders import Starts
from hybridworld.physics.environment import Environment
from hybridworld.surrogate.surrogate import Surrogate
from hybridworld.surrogate.validation import in_pieces
from hybridworld.trust.step_doubling import StepDoubling

LINKS = (1, 2, 4, 8)
CHAINS = {True: 12, False: 256}
"""How many, of fields and of state vectors."""

Link = tuple[str, int, list[float], float, float]
"""Who, after how many links, RMSE of each chain, and the shares of links that were deferred, and refused by the solver."""


def rollout(study: Study) -> list[Row]:
    """RMSE after k links of those chains that are not lost, with the shares that tell how it came about (none: zero)."""
    count = min(CHAINS[bool(study.environment.spec.grid)], study.setting.pairs // 2)
    rows = []
    for name, link, values, deferred, refused in study.remember(("chains", LINKS, count), partial(all_chains, study, count)):
        rmse = np.array(values, float)
        whole = rmse[np.isfinite(rmse)]
        if len(whole):
            rows.append(of_interval(f"RMSE, {name}", link, mean_interval(whole)))
        if len(whole) and name == "mode 1":  # the solver's links have no error, and may be more than half
            rows.append(Row(f"worst over median, {name}", link, float(whole.max() / np.median(whole))))
        shares = {"deferred": deferred, "refused by the solver": refused, "lost": 1 - len(whole) / len(rmse)}
        rows += [Row(f"{what}, {name}", link, share) for what, share in shares.items() if share]
    return rows


def all_chains(study: Study, count: int) -> list[Link]:
    """Mode 1, mode 2, and deferring as many links as mode 2 at random, or the worst of them."""
    samples = [study.environment.initial("test", seed) for seed in range(count)]
    starts = Starts(*(np.stack([getattr(sample, part) for sample in samples]) for part in ("state", "params")))
    rng, spent = np.random.default_rng(0), list[int]()
    threshold = study.calibration().threshold(LONGEST, Q)

    def gate(link: int, scores: np.ndarray, errors: np.ndarray) -> np.ndarray:
        flagged = ~(scores <= threshold)
        spent.append(int(flagged.sum()))
        return flagged

    return [
        *chain(study, "mode 1", starts, lambda link, scores, errors: np.zeros(count, bool)),
        *chain(study, "mode 2", starts, gate),
        *chain(study, "random", starts, lambda link, scores, errors: rng.permutation(count) < spent[link]),
        *chain(study, "oracle", starts, lambda link, scores, errors: np.argsort(np.argsort(-errors)) < spent[link]),
    ]


def chain(study: Study, name: str, starts: Starts, choose: Callable[[int, np.ndarray, np.ndarray], np.ndarray]) -> list[Link]:
    """What remains after 1, 2, 4 ... links. A chosen link whose state the solver refuses stays with the surrogate."""
    env, surrogate = study.environment, study.surrogate()
    signal = StepDoubling(surrogate, surrogate.std) if name == "mode 2" else None
    now, truth, params = starts.states, starts.states, starts.params
    std = surrogate.std.numpy().reshape(-1, *[1] * (now.ndim - 2))
    deferred, refused, found = [], [], list[Link]()
    for link in range(max(LINKS)):
        study.tell(f"{name}, link {link + 1}")
        truth = env.solve(truth, LONGEST, params)
        batch = Batch(now, np.full(len(now), LONGEST), params, now)
        answers = [answer(surrogate, signal, *piece[:3]) for piece in in_pieces(batch, surrogate.mean.device)]
        said, scores = (np.concatenate(parts) for parts in zip(*answers, strict=True))
        solved = np.stack([solved_or_nan(env, *each) for each in zip(now, params, strict=True)])
        possible = np.isfinite(solved).reshape(len(now), -1).all(axis=1)
        errors = np.nan_to_num(rms_of((said - solved) / std), nan=np.inf)
        chosen = choose(link, scores, errors)
        now = np.where((chosen & possible).reshape(-1, *[1] * (now.ndim - 1)), solved, said)
        deferred.append(float((chosen & possible).mean()))
        refused.append(float((chosen & ~possible).mean()))
        if link + 1 in LINKS:
            values = rms_of((now - truth) / std).tolist()
            found.append((name, link + 1, values, float(np.mean(deferred)), float(np.mean(refused))))
    return found


@torch.inference_mode()
def answer(
    surrogate: Surrogate, signal: StepDoubling | None, states: Tensor, horizons: Tensor, params: Tensor
) -> tuple[np.ndarray, np.ndarray]:
    """Predictions with their scores, which are 0 without a signal."""
    if signal is None:
        return surrogate(states, horizons, params).cpu().numpy().astype(float), np.zeros(len(states))
    estimate = signal(states, horizons, params)
    return estimate.prediction.cpu().numpy().astype(float), estimate.score.cpu().numpy()


def solved_or_nan(environment: Environment, state: np.ndarray, params: np.ndarray) -> np.ndarray:
    """One state by the solver; nan where it cannot go on from there."""
    try:
        return environment.solve(state, LONGEST, params)
    except HybridWorldError:
        return np.full_like(state, np.nan)


def rms_of(states: np.ndarray) -> np.ndarray:
    """Of each state."""
    return np.sqrt((states**2).mean(axis=tuple(range(1, states.ndim))))
