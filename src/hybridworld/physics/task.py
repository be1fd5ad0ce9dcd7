"""What an agent shall bring about in a system that it acts on."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

PerState = Callable[[np.ndarray], np.ndarray]
"""A function of states (batch, channels, *grid) that returns one number for each of them, (batch,)."""


@dataclass(frozen=True)
class Task:
    """It is done where `missed` is at most `near`; `cost` is what a planner makes small on the way there."""

    text: str
    goal: np.ndarray  # (numbers,): what tells this task from another of the system
    near: float
    unit: str
    missed: PerState
    cost: PerState
    place: np.ndarray | None = None  # (axes,): where in space the goal is, if it is a place
