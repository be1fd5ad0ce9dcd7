"""Which horizons a surrogate is trained, composed and calibrated at. A horizon is a time span in frames."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from hybridworld.errors import InvalidInput

LINKS = 1000
"""The longest chain that is answered."""

PER_OCTAVE = 4
"""Calibrated horizons between one and its double, once these are so many whole frames apart."""


def drawn_horizons(horizons: Sequence[int], draw: str) -> tuple[np.ndarray, np.ndarray]:
    """The horizons that training draws, and the probability of each.

    `listed`: those given, equally often. `range`: every whole horizon from the shortest to the longest, with a probability
    proportional to 1/h, which is uniform in log h.
    """
    values = np.array(sorted(set(horizons)))
    if draw == "listed":
        return values, np.full(len(values), 1 / len(values))
    values = np.arange(values[0], values[-1] + 1)
    return values, 1 / values / (1 / values).sum()


def halves(horizons: Tensor) -> tuple[Tensor, Tensor]:
    """Two horizons whose sum is the given one: floor(h/2) and ceil(h/2) frames, since training knows whole frames.

    One frame and fractions of frames are cut in the middle: there the halves are horizons that no training has seen alone.
    """
    return split(horizons, 0.5)


def split(horizons: Tensor, share: float) -> tuple[Tensor, Tensor]:
    """The same with a first part that is that share of the horizon, rounded down to whole frames, but at least one."""
    first = share * horizons
    whole = (horizons >= 2) & (horizons == horizons.floor())
    first = torch.where(whole, first.floor().clamp(min=1), first)
    return first, horizons - first


def calibrated_horizons(horizons: Sequence[int]) -> tuple[int, ...]:
    """Whole horizons that cover the range of those trained on, about four per octave, the given ones among them."""
    low, high = min(horizons), max(horizons)
    steps = np.arange(0, np.log2(high / low) + 1e-9, 1 / PER_OCTAVE)
    return tuple(sorted({*horizons, *np.round(low * 2**steps).astype(int).tolist()}))


def chain_of(horizon: float, longest: float) -> tuple[float, ...]:
    """The horizons of a chain that answers `horizon`: one link up to the longest trained one, else as few as possible, alike.

    Whole horizons have whole links, the longer ones first.
    """
    if horizon > LINKS * longest:
        raise InvalidInput(
            f"The horizon is {horizon:g} frames: at most {LINKS * longest:g} are answered, in {LINKS} links of {longest:g}."
        )
    count = max(1, int(np.ceil(horizon / longest - 1e-9)))
    if horizon != int(horizon):
        return (horizon / count,) * count
    short, more = divmod(int(horizon), count)
    return (float(short + 1),) * more + (float(short),) * (count - more)
