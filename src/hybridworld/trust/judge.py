"""The judging of a map against truth: scores and true errors of the same answers, in deviations of the training data."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from hybridworld.data.pairs import Batch
from hybridworld.surrogate.surrogate import Surrogate
from hybridworld.surrogate.validation import in_pieces
from hybridworld.trust.signal import Estimate, TrustSignal, distance


@dataclass(frozen=True)
class Judged:
    """Answers to pairs with known futures: one row per pair."""

    horizons: np.ndarray  # (pairs,)
    scores: np.ndarray  # (pairs,)
    errors: np.ndarray  # (pairs,): the mean over cells of what the map estimates
    mse: np.ndarray  # (pairs,): over cells and channels
    no_change: np.ndarray  # (pairs,): the same of answering with the state as it was
    cells: np.ndarray  # (n, 3): horizon, map and true error at random cells of the pairs

    def at(self, horizon: float) -> "Judged":
        """The rows of one horizon."""
        return replace(self.of(self.horizons == horizon), cells=self.cells[self.cells[:, 0] == horizon])

    def of(self, rows: np.ndarray) -> "Judged":
        """The rows of some of the pairs, without cells."""
        chosen = {name: getattr(self, name)[rows] for name in ("horizons", "scores", "errors", "mse", "no_change")}
        return Judged(**chosen, cells=self.cells[:0])


Look = Callable[[Tensor, Estimate, Tensor, Tensor], None]
"""(states, estimate, futures, true error map) of some pairs, for callers that need more than the numbers of `Judged`."""


def judge(
    surrogate: Surrogate,
    signal: TrustSignal,
    batches: Batch | Iterable[Batch],
    cells: float = 0.0,
    seed: int = 0,
    look: Look = lambda states, estimate, futures, error: None,
) -> Judged:
    """Scores and true errors of the signal's answers to all pairs. A share `cells` of all cells is kept, chosen by `seed`."""
    found: list[tuple[np.ndarray, ...]] = []
    rng = np.random.default_rng(seed)
    with torch.inference_mode():
        for batch in (batches,) if isinstance(batches, Batch) else batches:
            for states, horizons, params, futures in in_pieces(surrogate, batch):
                estimate = signal(states, horizons, params)
                truth = Estimate(estimate.prediction, distance(estimate.prediction, futures, surrogate.std))
                unchanged = distance(states, futures, surrogate.std)
                mse, no_change = (
                    Estimate(estimate.prediction, each.square()).score / states.shape[1]
                    for each in (truth.error_map, unchanged)
                )
                some = rng.random(tuple(truth.error_map.shape)) < cells
                h = horizons.cpu().numpy()
                everywhere = np.broadcast_to(h.reshape(-1, *[1] * (some.ndim - 1)), some.shape)
                kept = [everywhere, estimate.error_map.cpu().numpy(), truth.error_map.cpu().numpy()]
                per_pair = (each.cpu().numpy() for each in (estimate.score, truth.score, mse, no_change))
                if cells and estimate.error_map.shape == truth.error_map.shape:
                    sampled = np.stack([each[some] for each in kept], axis=1)
                else:
                    sampled = np.empty((0, 3), np.float32)
                found.append((h, *per_pair, sampled))
                look(states, estimate, futures, truth.error_map)
    return Judged(*(np.concatenate(parts) for parts in zip(*found, strict=True)))
