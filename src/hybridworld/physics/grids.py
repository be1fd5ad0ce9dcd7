"""Carry fields between a grid and a coarser one: cell averages down, linear interpolation up."""

import numpy as np

from hybridworld.physics.spec import StateSpec


def coarsen(spec: StateSpec, states: np.ndarray, factor: int) -> np.ndarray:
    """Averages over blocks of factor^d cells of states (..., channels, *grid); total mass is kept exactly."""
    for axis in range(states.ndim - len(spec.grid), states.ndim):
        shape = (*states.shape[:axis], states.shape[axis] // factor, factor, *states.shape[axis + 1 :])
        states = states.reshape(shape).mean(axis=axis + 1)
    return states


def refine(spec: StateSpec, states: np.ndarray, factor: int) -> np.ndarray:
    """Linear interpolation between cell centres, on a grid `factor` times finer; beyond open ends the value is constant."""
    for axis, boundary in enumerate(axis.boundary for axis in spec.axes[: len(spec.grid)]):
        place = states.ndim - len(spec.grid) + axis
        cells = states.shape[place]
        position = (np.arange(cells * factor) + 0.5) / factor - 0.5  # of the fine centres, in coarse cells
        left = np.floor(position).astype(int)
        weight = (position - left).astype(states.dtype).reshape((-1, *(1,) * (states.ndim - place - 1)))
        inside = (lambda j: j % cells) if boundary == "periodic" else (lambda j: np.clip(j, 0, cells - 1))  # noqa: B023
        states = (1 - weight) * states.take(inside(left), place) + weight * states.take(inside(left + 1), place)
    return states
