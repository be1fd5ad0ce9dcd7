"""The scales of the data, measured once before training; they travel with the model.

    z = (state - mean) / std                                  per channel
    change(h) = typical rms of (z(t + h) - z(t)) / amplitude(z(t))        per channel and horizon; where the spec tells
                                                                          rates of change, beyond free motion

change(h) * amplitude is the unit in which a network predicts: in it the answer is of order one at every horizon. Without it a
network that is right to one part in a hundred at 64 frames is worse than "no change" at one frame. A fresh blast changes a
thousand times more than anything else and must not set the unit for everything else: hence the median instead of the mean, and
the amplitude, which is that of the field itself where it exceeds the usual.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Self

import numpy as np
import torch
from torch import Tensor

from hybridworld.data.evidence import pairs_of
from hybridworld.data.pairs import Batch, Block, Evidence
from hybridworld.physics.spec import StateSpec

FEWEST, MOST = 64, 1024
"""Trajectories from which units are measured, if there are so many."""
STABLE = 0.03
"""The relative standard error, over trajectories, at which a deviation is known well enough to be a unit."""
EACH = 2**20
"""Values of one channel of a trajectory that enter its moments, about: of long trajectories every second frame, third ..."""
CHANGING = 2**21
"""Values of one channel whose changes are measured at each horizon, about; never fewer than those of 64 trajectories."""
STARTS = 16
"""Pairs per trajectory and horizon of state vectors: each has few values."""
BLOCK = 1_000
"""Values of one channel that say how large a change is: a field alone has more, of state vectors it takes many."""


@dataclass(frozen=True)
class Normalisation:
    """Arrays are float32; a channel or parameter that never varies has the deviation 1."""

    mean: np.ndarray  # (channels,)
    std: np.ndarray  # (channels,)
    param_mean: np.ndarray  # (params,)
    param_std: np.ndarray  # (params,)
    horizons: np.ndarray  # (horizons,) increasing, in frames
    changes: np.ndarray  # (horizons, channels)

    @classmethod
    def among(cls, weights: Mapping[str, Tensor]) -> Self:
        """The scales that a surrogate keeps beside its weights."""
        return cls(*(weights[each.name].cpu().numpy() for each in fields(cls)))


@dataclass(frozen=True)
class Measured:
    """Scales, and how well they are known."""

    scales: Normalisation
    trajectories: int
    error: float
    """The largest relative standard error of a channel's deviation, estimated from the spread over trajectories."""


def measure(
    spec: StateSpec,
    evidence: Evidence,
    horizons: Sequence[int],
    seed: int = 0,
    most: int = MOST,
    tell: Callable[[str, str], None] = lambda subject, news: None,
) -> Measured:
    """The scales of as many trajectories as it takes for stable deviations, but at most so many, all frames of each."""
    rng, measured = np.random.default_rng([seed, 1]), sorted(set(horizons))
    moments: list[np.ndarray] = []  # per trajectory (2, channels): means of x and of x^2
    params: list[np.ndarray] = []
    pairs: list[Batch] = []
    error = np.inf
    tell("measuring units", f"at most {most} trajectories")
    for block in evidence.blocks(most):
        moments += list(trajectory_moments(block))
        params.append(block.params)
        if len(moments) <= max(FEWEST, CHANGING // block.states[0, 0, 0].size):
            pairs += pairs_of([block] * (1 if spec.is_field else STARTS), measured, rng)
        error = deviation_error(np.array(moments))
        tell("measuring units", f"{len(moments)} trajectories, known to {error:.1%}")
        if len(moments) >= FEWEST and error <= STABLE:
            break
    mean, square = np.mean(moments, axis=0)
    std = varying(shared(spec, np.sqrt(np.maximum(square - mean**2, 0))), mean)
    drawn = np.concatenate(params)
    param_mean = drawn.mean(axis=0)
    values = (
        mean,
        std,
        param_mean,
        varying(drawn.std(axis=0), param_mean),
        measured,
        changes_of(spec, pairs, measured, mean, std),
    )
    return Measured(Normalisation(*(np.asarray(each, np.float32) for each in values)), len(moments), error)


def trajectory_moments(block: Block) -> np.ndarray:
    """Means of x and x^2 over frames and cells: (rows, 2, channels)."""
    every = max(1, block.states[0, 0].size // EACH)
    values = block.states[:, :, ::every].reshape(*block.states.shape[:2], -1).astype(np.float64)
    return np.stack([values.mean(axis=2), (values**2).mean(axis=2)], axis=1)


def deviation_error(moments: np.ndarray) -> float:
    """The relative standard error of the deviation, the largest over channels, from moments (trajectories, 2, channels).

    By the delta method: var = E[x^2] - E[x]^2, whose error is that of the mean over trajectories of x^2 - 2 E[x] x.
    """
    if len(moments) < 2:
        return float("inf")
    mean, square = moments.mean(axis=0)
    variance = square - mean**2
    spread = (moments[:, 1] - 2 * mean * moments[:, 0]).std(axis=0, ddof=1) / np.sqrt(len(moments))
    present = np.sqrt(np.maximum(variance, 0)) > 1e-6 * np.abs(mean)
    return float((spread[present] / (2 * variance[present])).max(initial=0.0))


def changes_of(
    spec: StateSpec, batches: Sequence[Batch], horizons: Sequence[int], mean: np.ndarray, std: np.ndarray
) -> np.ndarray:
    """change(h) per horizon and channel, from pairs of all horizons: (horizons, channels)."""
    shape = (-1, *[1] * len(spec.grid))
    relative: dict[int, list[Tensor]] = {h: [] for h in horizons}
    for batch in batches:
        both = ((each - mean.reshape(shape)) / std.reshape(shape) for each in (batch.states, batch.futures))
        z, later = map(torch.from_numpy, both)
        units = (torch.from_numpy(mean), torch.from_numpy(std))
        seen = driven(spec, z, torch.from_numpy(batch.params), *units)
        way = free_motion(spec, seen, torch.from_numpy(batch.horizons).float(), *units) - seen
        squares = (later - z - way).square().reshape(*z.shape[:2], -1).mean(dim=2)  # (pairs, channels)
        if spec.is_field:
            squares = squares / amplitude(z)[:, None] ** 2
        for h in horizons:
            relative[h].append(squares[torch.from_numpy(batch.horizons == h)])
    block = -(-BLOCK // int(np.prod(spec.grid, dtype=int)))
    return shared(spec, np.stack([typical(torch.cat(found), block).numpy() for found in relative.values()]))


def driven(spec: StateSpec, z: Tensor, params: Tensor, mean: Tensor, std: Tensor) -> Tensor:
    """z (batch, channels, objects) in which driven objects have what the actions in params (batch, n) stand for."""
    if spec.driven is None:
        return z
    (marker, value), channels, seen = spec.driven, spec.channels, z.clone()
    place = channels.index(marker)
    here = (z[:, place] * std[place] + mean[place] - value).abs() < 0.5  # (batch, objects)
    for column, each in enumerate(spec.params):
        if each.sets:
            place = channels.index(each.sets)
            told = ((params[:, column] - mean[place]) / std[place]).to(z.dtype)
            seen[:, place] = torch.where(here, told[:, None], z[:, place])
    return seen


def free_motion(spec: StateSpec, z: Tensor, horizons: Tensor, mean: Tensor, std: Tensor) -> Tensor:
    """z (batch, channels, *grid) after its horizons (batch,) if all rates of change stay as they are; z where there is none."""
    if not spec.rates:
        return z
    later, paths = list(z.unbind(1)), free_paths(spec, z, horizons, 1, mean, std)
    for (place, _), there in zip(spec.rates, paths[:, 0].unbind(1), strict=True):
        later[place] = there
    return torch.stack(later, dim=1)


def free_paths(spec: StateSpec, z: Tensor, horizons: Tensor, parts: int, mean: Tensor, std: Tensor) -> Tensor:
    """The channels of z whose rates the spec tells, after 1, 2 ... of so many parts: (batch, parts, places, *grid).

    Walls stop a place: at the smallest extent of the body where it has one.
    """
    channels, grid = spec.channels, [1] * (z.dim() - 2)
    physical = z * std.reshape(-1, *grid) + mean.reshape(-1, *grid)
    extent = next((each for each in spec.fields if each.kind == "extent"), None)
    sizes = [channels.index(name) for name in spec.components(extent)] if extent else []
    room = physical[:, sizes].amin(dim=1, keepdim=True) if sizes else torch.zeros_like(physical[:, :1])
    walls = dict(zip(spec.components(spec.position), spec.axes, strict=True)) if spec.position else {}
    places, speeds = (list(each) for each in zip(*spec.rates, strict=True))
    ends = [walls.get(channels[each]) for each in places]
    low, high = (
        z.new_tensor([getattr(end, name) if end and end.boundary == "wall" else open_end for end in ends]).reshape(-1, *grid)
        for name, open_end in (("low", -torch.inf), ("high", torch.inf))
    )
    after = torch.arange(1, parts + 1, device=z.device) * (spec.frame_step / parts) * horizons[:, None]
    there = physical[:, None, places] + after.reshape(*after.shape, 1, *grid) * physical[:, None, speeds]
    there = torch.minimum(torch.maximum(there, (low + room)[:, None]), (high - room)[:, None])
    return ((there - mean[places].reshape(-1, *grid)) / std[places].reshape(-1, *grid)).to(z.dtype)


def shared(spec: StateSpec, units: np.ndarray) -> np.ndarray:
    """Units (..., channels) of objects: the components of a vector have one, the root of their mean square.

    What moves on a table hardly moves up and down: in a unit of its own, that noise would count as much as the motion.
    """
    if not spec.objects:
        return units
    channels, found = spec.channels, np.array(units)
    for each in spec.fields:
        places = [channels.index(name) for name in spec.components(each)]
        found[..., places] = np.sqrt((found[..., places] ** 2).mean(axis=-1, keepdims=True))
    return found


def typical(squares: Tensor, size: int) -> Tensor:
    """Root of the median of means over blocks of `size` rows (rows, channels), a tenth of the rms at least: (channels,)."""
    whole = len(squares) // size * size
    blocks = squares[:whole].reshape(-1, size, squares.shape[1]).mean(dim=1) if whole else squares.mean(dim=0, keepdim=True)
    return torch.maximum(blocks.median(dim=0).values, squares.mean(dim=0) / 100).sqrt()


def amplitude(z: Tensor) -> Tensor:
    """How much fields (batch, channels, *grid) vary over their grid, in deviations, but 1 at least: (batch,)."""
    if z.dim() == 2 or z.shape[0] == 0:  # state vectors, or nothing
        return z.new_ones(z.shape[0])
    return z.flatten(2).var(dim=2, correction=0).mean(dim=1).sqrt().clamp(min=1)


def varying(std: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Deviations to divide by: 1 where there is none but rounding."""
    return np.where(std > 1e-6 * np.abs(mean), std, 1.0)
