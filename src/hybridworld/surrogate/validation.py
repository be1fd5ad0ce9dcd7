"""How good is a surrogate on pairs it was not trained on? Per horizon, beside the prediction that nothing changes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from hybridworld.data.pairs import Batch, TrajectorySource, evaluation_pairs
from hybridworld.surrogate.surrogate import Surrogate

CELLS = 2**17
"""Values per channel in one forward pass, about: enough to be efficient, little enough for any machine."""


@dataclass(frozen=True)
class Score:
    """Mean square error of normalised states, and nRMSE: rms error over rms of the truth, averaged over channels."""

    mse: float
    nrmse: float


def validation_pairs(source: TrajectorySource, horizons: Sequence[int], count: int, seed: int) -> dict[int, Batch]:
    """Horizon -> the same pairs at each call."""
    return {horizon: evaluation_pairs(source, horizon, count, seed) for horizon in horizons}


def scores(surrogate: Surrogate, pairs: Mapping[int, Batch]) -> dict[int, Score]:
    """Of the surrogate at each horizon."""
    return {horizon: score(surrogate, batch, lambda *inputs: surrogate(*inputs)) for horizon, batch in pairs.items()}


def scores_of_no_change(surrogate: Surrogate, pairs: Mapping[int, Batch]) -> dict[int, Score]:
    """Of the answer "as it was", in the same units."""
    return {horizon: score(surrogate, batch, lambda states, *_: states) for horizon, batch in pairs.items()}


def score(surrogate: Surrogate, batch: Batch, predict: Callable[..., Tensor]) -> Score:
    """Compare predict(states, horizons, params) with the futures."""
    channels = len(surrogate.spec.channels)
    errors, truth, values = np.zeros(channels), np.zeros(channels), 0
    with torch.no_grad():
        for states, horizons, params, futures in in_pieces(batch, surrogate.mean.device):
            axes = (0, *range(2, states.dim()))
            errors += (predict(states, horizons, params) - futures).double().square().sum(dim=axes).cpu().numpy()
            truth += futures.double().square().sum(dim=axes).cpu().numpy()
            values += futures.numel() // channels
    std = surrogate.std.double().cpu().numpy()
    present = truth > 0  # a channel that is zero throughout has no relative error
    return Score(
        mse=float((errors / values / std**2).mean()),
        nrmse=float(np.sqrt(errors[present] / truth[present]).mean()) if present.any() else 0.0,
    )


def in_pieces(batch: Batch, device: torch.device) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
    """The batch as tensors, few enough rows at a time."""
    cells = batch.states[0, 0].size
    for rows in np.array_split(np.arange(len(batch.states)), -(-len(batch.states) * cells // CELLS)):
        yield to_tensors(Batch(batch.states[rows], batch.horizons[rows], batch.params[rows], batch.futures[rows]), device)


def to_tensors(batch: Batch, device: torch.device) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """States, horizons, params, futures, as a surrogate takes them."""
    states, horizons, params, futures = (
        torch.from_numpy(np.ascontiguousarray(values, np.float32)).to(device)
        for values in (batch.states, batch.horizons, batch.params, batch.futures)
    )
    return states, horizons, params, futures
