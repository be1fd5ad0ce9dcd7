"""What an agent shall bring about in a system that it acts on."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

PerState = Callable[[np.ndarray], np.ndarray]
"""A function of states (batch, channels, *grid) that returns one number for each of them, (batch,)."""


class Mark(NamedTuple):
    """What a picture of a set of objects shows of a task: a place (axes,), and the number of the object that belongs there."""

    place: np.ndarray
    thing: int


@dataclass(frozen=True)
class Task:
    """It is done where `missed` is at most `near`; `cost` is what a planner makes small on the way there."""

    text: str
    goal: np.ndarray  # (numbers,): what tells this task from another of the system
    near: float
    unit: str
    missed: PerState
    cost: PerState
    mark: Mark | None = None
