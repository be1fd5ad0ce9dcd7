"""The scales of the data, measured once before training; they travel with the model.

    z = (state - mean) / std                                  per channel
    change(h) = typical rms of (z(t + h) - z(t)) / amplitude(z(t))        per channel and horizon

change(h) * amplitude is the unit in which a network predicts: in it the answer is of order one at every horizon. Without it a
network that is right to one part in a hundred at 64 frames is worse than "no change" at one frame. A fresh blast changes a
thousand times more than anything else and must not set the unit for everything else: hence the median instead of the mean, and
the amplitude, which is that of the field itself where it exceeds the usual.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from hybridworld.data.pairs import TrajectorySource, evaluation_pairs

CELLS = 2**25
"""Values of one channel that enter the statistics, about; never fewer than 64 states, never more than 16,384."""

BLOCK = 1_000
"""Values of one channel that say how large a change is: a field alone has more, of state vectors it takes many."""


@dataclass(frozen=True)
class Normalisation:
    """Arrays are float32; a channel or parameter that never varies has the deviation 1."""

    mean: np.ndarray  # (channels,)
    std: np.ndarray  # (channels,)
    param_mean: np.ndarray  # (params,)
    param_std: np.ndarray  # (params,)
    horizons: np.ndarray  # (rungs,) increasing, in frames
    changes: np.ndarray  # (rungs, channels)


def measure(source: TrajectorySource, horizons: Sequence[int], seed: int = 0) -> Normalisation:
    """From random states of the trajectories at hand, all of which serve equally often."""
    spec, rng = source.spec, np.random.default_rng([seed, 1])
    window = source.window(0)
    cells = int(np.prod(spec.grid, dtype=int))
    count = int(np.clip(CELLS // cells, 64, 16_384))
    trajectories = window.start + np.arange(count) % len(window)
    frames = rng.integers(0, source.frames, count)
    axes = (0, *range(2, 2 + len(spec.grid)))
    total, squares = np.zeros(len(spec.channels)), np.zeros(len(spec.channels))
    for rows in np.array_split(np.arange(count), -(-count * cells // 2**22)):  # so that memory stays small
        states = source.read(trajectories[rows], frames[rows]).astype(np.float64)
        total += states.sum(axis=axes)
        squares += (states**2).sum(axis=axes)
    mean = total / (count * cells)
    std = varying(np.sqrt(np.maximum(squares / (count * cells) - mean**2, 0)), mean)

    def column(values: np.ndarray) -> np.ndarray:
        return values.reshape(-1, *[1] * len(spec.grid))

    ladder = sorted(set(horizons))
    changes = []
    for horizon in ladder:
        pairs = evaluation_pairs(source, horizon, max(count // len(ladder), 32), seed)
        z, later = (torch.from_numpy((each - column(mean)) / column(std)) for each in (pairs.states, pairs.futures))
        relative = (later - z).square().reshape(*z.shape[:2], -1).mean(dim=2) / amplitude(z)[:, None] ** 2  # (pairs, channels)
        changes.append(typical(relative, -(-BLOCK // cells)).numpy())
    params = source.params(trajectories)
    param_mean = params.mean(axis=0)
    return Normalisation(
        *(
            np.asarray(values, np.float32)
            for values in (mean, std, param_mean, varying(params.std(axis=0), param_mean), ladder, np.stack(changes))
        )
    )


def typical(squares: Tensor, size: int) -> Tensor:
    """Root of the median of means over blocks of `size` rows (rows, channels), a tenth of the rms at least: (channels,)."""
    whole = len(squares) // size * size
    blocks = squares[:whole].reshape(-1, size, squares.shape[1]).mean(dim=1) if whole else squares.mean(dim=0, keepdim=True)
    return torch.maximum(blocks.median(dim=0).values, squares.mean(dim=0) / 100).sqrt()


def amplitude(z: Tensor) -> Tensor:
    """How much fields (batch, channels, *grid) vary over their grid, in deviations, but 1 at least: (batch,)."""
    if z.dim() == 2 or not len(z):  # state vectors, or nothing
        return z.new_ones(len(z))
    return z.flatten(2).var(dim=2, correction=0).mean(dim=1).sqrt().clamp(min=1)


def varying(std: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Deviations to divide by: 1 where there is none but rounding."""
    return np.where(std > 1e-6 * np.abs(mean), std, 1.0)
