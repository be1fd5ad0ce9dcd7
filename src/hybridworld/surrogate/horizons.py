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
    proportional to 1/h, which is uniform in log h. `long`: likewise, but proportional to 1/sqrt(h).
    """
    values = np.array(sorted(set(horizons)))
    if draw == "listed":
        return values, np.full(len(values), 1 / len(values))
    values = np.arange(values[0], values[-1] + 1)
    weights = values ** (-0.5 if draw == "long" else -1.0)
    return values, weights / weights.sum()


def halves(horizons: Tensor) -> tuple[Tensor, Tensor]:
    """Two horizons whose sum is the given one: floor(h/2) and ceil(h/2) frames, since training knows whole frames.

    One frame and fractions of frames are cut in the middle: there the halves are horizons that no training has seen alone.
    """
    return split(horizons, 0.5)


def split(horizons: Tensor, share: float) -> tuple[Tensor, Tensor]:
    """Two horizons whose sum is the given one; the first is that share of it, in whole frames, but at least one."""
    first = share * horizons
    whole = (horizons >= 2) & (horizons == horizons.floor())
    first = torch.where(whole, first.floor().clamp(min=1), first)
    return first, horizons - first


def parts_of(horizon: float, answered: Sequence[int]) -> tuple[int, int] | None:
    """Two answered horizons whose sum is the given one, as equal as possible, the shorter first; None where no two are."""
    found = [first for first in sorted(answered) if 2 * first <= horizon and horizon - first in answered]
    return (found[-1], int(horizon) - found[-1]) if found else None


def composed(answered: Sequence[int]) -> tuple[int, ...]:
    """The answered horizons that are the sum of two answered ones: there step-doubling has something to compare."""
    return tuple(horizon for horizon in sorted(answered) if parts_of(horizon, answered))


def halves_among(horizons: Tensor, answered: Sequence[int]) -> tuple[Tensor, Tensor]:
    """`halves` for a model that answers some horizons alone."""
    first = torch.empty_like(horizons)
    for horizon in torch.unique(horizons).tolist():
        parts = parts_of(horizon, answered)
        if parts is None:
            raise InvalidInput(
                f"Step-doubling cannot judge a horizon of {listed([horizon])}: the model answers {listed(answered)}, and no "
                "two of these make it. Use mode 1 there, or another signal."
            )
        first[horizons == horizon] = parts[0]
    return first, horizons - first


def listed(horizons: Sequence[float]) -> str:
    """Horizons in words: `1, 2, 4 frames`, or `1 to 64 frames` for every whole horizon of a range."""
    known = sorted(horizons)
    if len(known) > 2 and known == list(range(int(known[0]), int(known[-1]) + 1)):
        return f"{known[0]:g} to {known[-1]:g} frames"
    return f"{', '.join(f'{each:g}' for each in known)} frame{'' if known == [1] else 's'}"


def calibrated_horizons(horizons: Sequence[int]) -> tuple[int, ...]:
    """Whole horizons that cover the range of those trained on, about four per octave, the given ones among them."""
    low, high = min(horizons), max(horizons)
    steps = np.arange(0, np.log2(high / low) + 1e-9, 1 / PER_OCTAVE)
    return tuple(sorted({*horizons, *np.round(low * 2**steps).astype(int).tolist()}))


def calibrated_among(answered: Sequence[int]) -> tuple[int, ...]:
    """Calibrated horizons of a model that answers some alone: all of them, or if they are many, about four per octave."""
    dense = calibrated_horizons((min(answered), max(answered)))
    return dense if set(dense) <= set(answered) else tuple(sorted(answered))


def chain_of(horizon: float, longest: float, answered: Sequence[int] | None = None) -> tuple[float, ...]:
    """The horizons of a chain that answers `horizon`: one link up to the longest trained one, else as few as possible, alike.

    Whole horizons have whole links, the longer ones first. Where some horizons alone are `answered`, links are among these.
    """
    if horizon > LINKS * longest:
        raise InvalidInput(
            f"The horizon is {horizon:g} frames: at most {LINKS * longest:g} are answered, in {LINKS} links of {longest:g}."
        )
    if answered is not None:
        return _chain_among(horizon, answered)
    count = max(1, int(np.ceil(horizon / longest - 1e-9)))
    if horizon != int(horizon):
        return (horizon / count,) * count
    short, more = divmod(int(horizon), count)
    return (float(short + 1),) * more + (float(short),) * (count - more)


def _chain_among(horizon: float, answered: Sequence[int]) -> tuple[float, ...]:
    """As few answered horizons as possible whose sum is the given one, the longer ones first."""
    chains: list[tuple[int, ...] | None] = [()]  # the shortest chain of 0, 1, 2 ... frames
    for length in range(1, int(horizon) + 1):
        before = [(link, chains[length - link]) for link in answered if link <= length]
        longer = [(link, *chain) for link, chain in before if chain is not None]
        chains.append(min(longer, key=lambda chain: (len(chain), -max(chain)), default=None))
    found = chains[-1]
    if horizon != int(horizon) or found is None:
        raise InvalidInput(f"The horizon is {listed([horizon])}: the model answers {listed(answered)}, and sums of these.")
    return tuple(float(link) for link in sorted(found, reverse=True))
