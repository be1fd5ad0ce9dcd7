"""Carry fields between a grid and a coarser one: cell averages down; up by interpolation, or so that averages are kept."""

import numpy as np

from hybridworld.physics.spec import StateSpec


def coarsen(spec: StateSpec, states: np.ndarray, factor: int) -> np.ndarray:
    """Averages over blocks of factor^d cells of states (..., channels, *grid); total mass is kept exactly."""
    for axis in range(states.ndim - len(spec.grid), states.ndim):
        shape = (*states.shape[:axis], states.shape[axis] // factor, factor, *states.shape[axis + 1 :])
        states = _mean(np.moveaxis(states.reshape(shape), axis + 1, 0))
    return states


def _mean(parts: np.ndarray) -> np.ndarray:
    """parts.mean(axis=0), to the last bit; of a few parts in up to a tenth of the time."""
    if not 1 < len(parts) < 8:  # of more, NumPy adds in another order
        return parts.mean(axis=0)
    total = parts[0] + parts[1]
    for part in parts[2:]:
        total += part
    return total / total.dtype.type(len(parts))


def refine(spec: StateSpec, states: np.ndarray, factor: int) -> np.ndarray:
    """Linear interpolation between cell centres, on a grid `factor` times finer; beyond open ends the value is constant."""
    for axis, boundary in enumerate(spec.boundaries):
        place = states.ndim - len(spec.grid) + axis
        cells = states.shape[place]
        position = (np.arange(cells * factor) + 0.5) / factor - 0.5  # of the fine centres, in coarse cells
        left = np.floor(position).astype(int)
        weight = (position - left).astype(states.dtype).reshape((-1, *(1,) * (states.ndim - place - 1)))
        inside = (lambda j: j % cells) if boundary == "periodic" else (lambda j: np.clip(j, 0, cells - 1))  # noqa: B023
        states = (1 - weight) * states.take(inside(left), place) + weight * states.take(inside(left + 1), place)
    return states


def prolong(spec: StateSpec, states: np.ndarray, factor: int) -> np.ndarray:
    """Cell averages (..., channels, *grid) on a grid `factor` times finer, so that `coarsen` gives them back.

    Within a cell the field is linear: slopes are the MC limiter's per axis, together scaled down to stay between the smallest
    and the largest value among the cell and its neighbours. So no new extremum appears, and a jump stays a jump.
    """
    first = states.ndim - len(spec.grid)
    around = [_neighbours(states, first + axis, each.boundary) for axis, each in enumerate(spec.axes[: len(spec.grid)])]
    slopes = [_limited(states - before, after - states) for before, after in around]
    lowest, highest = (find.reduce([states, *(each for pair in around for each in pair)]) for find in (np.minimum, np.maximum))
    reach = (0.5 - 0.5 / factor) * sum(np.abs(slope) for slope in slopes)  # of the outermost fine cells
    room = np.minimum(states - lowest, highest - states)
    share = np.where(reach > room, room / np.where(reach > 0, reach, 1), 1)
    places = (np.arange(factor) + 0.5) / factor - 0.5  # of the fine centres, in coarse cells
    fine = repeated(spec, states, factor)
    for axis, slope in enumerate(slopes, first):
        offset = np.tile(places, states.shape[axis]).astype(states.dtype).reshape((-1, *(1,) * (states.ndim - axis - 1)))
        fine += repeated(spec, share * slope, factor) * offset
    return fine


def repeated(spec: StateSpec, states: np.ndarray, factor: int) -> np.ndarray:
    """The states (..., *grid) on a grid `factor` times finer, constant within each cell."""
    for axis in range(states.ndim - len(spec.grid), states.ndim):
        states = states.repeat(factor, axis)
    return states


def _neighbours(states: np.ndarray, axis: int, boundary: str) -> tuple[np.ndarray, np.ndarray]:
    """The cell before and the cell after each, along one axis; at ends that are not periodic, the cell itself."""
    cells = np.arange(states.shape[axis])
    places = (cells + step for step in (-1, 1))
    if boundary == "periodic":
        before, after = (place % len(cells) for place in places)
    else:
        before, after = (place.clip(0, len(cells) - 1) for place in places)
    return states.take(before, axis), states.take(after, axis)


def _limited(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """The MC limiter: the mean of two differences, at most twice the smaller one; 0 where their signs differ."""
    size = np.minimum(2 * np.minimum(np.abs(before), np.abs(after)), np.abs(before + after) / 2)
    return np.where((before > 0) == (after > 0), np.sign(after) * size, 0)
