"""The scales of the data, measured once before training; they travel with the model.

    z = (state - mean) / std              per channel
    change(h) = rms of z(t + h) - z(t)    per channel and horizon: the unit in which a network predicts

In that unit the answer is of order one at every horizon. Without it a network that is right to one part in a hundred at 64
frames is worse than "no change" at one frame.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hybridworld.data.pairs import TrajectorySource, evaluation_pairs

CELLS = 2**25
"""Values of one channel that enter the statistics, about; never fewer than 64 states, never more than 16,384."""


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
    ladder = sorted(set(horizons))
    changes = []
    for horizon in ladder:
        pairs = evaluation_pairs(source, horizon, max(count // len(ladder), 32), seed)
        changes.append(np.sqrt(((pairs.futures - pairs.states).astype(np.float64) ** 2).mean(axis=axes)) / std)
    params = source.params(trajectories)
    param_mean = params.mean(axis=0)
    return Normalisation(
        *(
            np.asarray(values, np.float32)
            for values in (mean, std, param_mean, varying(params.std(axis=0), param_mean), ladder, np.stack(changes))
        )
    )


def varying(std: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Deviations to divide by: 1 where there is none but rounding."""
    return np.where(std > 1e-6 * np.abs(mean), std, 1.0)
