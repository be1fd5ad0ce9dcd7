"""Large batches, a few rows at a time: enough for one forward pass to be efficient, little enough for any machine."""

from collections.abc import Iterator
from math import prod

from hybridworld.physics.spec import StateSpec

CELLS = 2**17
"""Values per channel in one forward pass, about."""


def rows_at_once(spec: StateSpec) -> int:
    """How many such states go through a network together."""
    return max(1, CELLS // prod(spec.grid))


def row_slices(spec: StateSpec, count: int) -> Iterator[slice]:
    """The rows of a batch of `count` states, piece by piece."""
    size = rows_at_once(spec)
    return (slice(start, min(start + size, count)) for start in range(0, count, size))
