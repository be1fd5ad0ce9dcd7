"""How good is a surrogate on pairs it was not trained on? Per horizon, beside the prediction that nothing changes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from hybridworld.data.pairs import Batch, TrajectorySource, evaluation_pairs
from hybridworld.surrogate.pieces import row_slices
from hybridworld.surrogate.surrogate import Surrogate


@dataclass(frozen=True)
class Errors:
    """Mean square error of normalised states, and nRMSE: rms error over rms of the truth, averaged over channels."""

    mse: float
    nrmse: float


def validation_pairs(source: TrajectorySource, horizons: Sequence[int], count: int, seed: int) -> dict[int, Batch]:
    """Horizon -> `count` pairs of the source, the same at each call."""
    return {horizon: evaluation_pairs(source, horizon, count, seed) for horizon in horizons}


def validation_errors(surrogate: Surrogate, pairs: Mapping[int, Batch]) -> dict[int, Errors]:
    """Horizon -> the errors of the surrogate on these pairs."""
    return {horizon: errors_of(surrogate, batch, lambda *inputs: surrogate(*inputs)) for horizon, batch in pairs.items()}


def errors_of_no_change(surrogate: Surrogate, pairs: Mapping[int, Batch]) -> dict[int, Errors]:
    """Horizon -> the errors of answering with the state as it was, in the same units."""
    return {horizon: errors_of(surrogate, batch, lambda states, *_: states) for horizon, batch in pairs.items()}


def errors_of(surrogate: Surrogate, batch: Batch, predict: Callable[..., Tensor]) -> Errors:
    """The errors of predict(states, horizons, params) against the futures of a batch."""
    channels = len(surrogate.spec.channels)
    errors, truth, values = np.zeros(channels), np.zeros(channels), 0
    with torch.no_grad():
        for states, horizons, params, futures in in_pieces(surrogate, batch):
            axes = (0, *range(2, states.dim()))
            errors += (predict(states, horizons, params) - futures).double().square().sum(dim=axes).cpu().numpy()
            truth += futures.double().square().sum(dim=axes).cpu().numpy()
            values += futures.numel() // channels
    std = surrogate.std.double().cpu().numpy()
    present = truth > 0  # a channel that is zero throughout has no relative error
    return Errors(
        mse=float((errors / values / std**2).mean()),
        nrmse=float(np.sqrt(errors[present] / truth[present]).mean()) if present.any() else 0.0,
    )


def in_pieces(surrogate: Surrogate, batch: Batch) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
    """States, horizons, params and futures of the batch as tensors on the surrogate's device, a few rows at a time."""
    for rows in row_slices(surrogate.spec, len(batch.states)):
        few = Batch(batch.states[rows], batch.horizons[rows], batch.params[rows], batch.futures[rows])
        yield to_tensors(few, surrogate.mean.device)


def to_tensors(batch: Batch, device: torch.device) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """States, horizons, params, futures, as a surrogate takes them."""
    states, horizons, params, futures = (
        torch.from_numpy(np.ascontiguousarray(values, np.float32)).to(device)
        for values in (batch.states, batch.horizons, batch.params, batch.futures)
    )
    return states, horizons, params, futures
