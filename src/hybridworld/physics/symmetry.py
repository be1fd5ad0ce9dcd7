"""Symmetries of space that carry solutions to solutions: mirrors and quarter turns, and what they do to vectors."""

from dataclasses import dataclass
from itertools import permutations, product

import numpy as np

from hybridworld.physics.spec import StateSpec


@dataclass(frozen=True)
class Symmetry:
    """The map y[a] = signs[a] * x[axes[a]] of space onto itself.

    A scalar field moves along with space. A vector turns with it too: v'[a] = signs[a] v[axes[a]]. An axial vector gets the
    map's determinant as a further sign.
    """

    axes: tuple[int, ...]
    signs: tuple[int, ...]

    @property
    def name(self) -> str:
        """The map in words, for example `(x, y, z) -> (y, -x, z)`."""
        letters = "xyz"[: len(self.axes)]
        images = [("-" if sign < 0 else "") + letters[axis] for axis, sign in zip(self.axes, self.signs, strict=True)]
        return f"({', '.join(letters)}) -> ({', '.join(images)})"

    @property
    def determinant(self) -> int:
        """1 for a turn, -1 for a mirror."""
        return round(float(np.linalg.det(np.eye(len(self.axes))[list(self.axes)]))) * int(np.prod(self.signs))

    @property
    def is_identity(self) -> bool:
        """Whether it leaves space as it is."""
        return self.axes == tuple(range(len(self.axes))) and all(sign > 0 for sign in self.signs)

    @property
    def inverse(self) -> "Symmetry":
        """The map that undoes it: x[axes[a]] = signs[a] * y[a]."""
        places = [self.axes.index(axis) for axis in range(len(self.axes))]
        return Symmetry(tuple(places), tuple(self.signs[place] for place in places))

    def apply(self, spec: StateSpec, states: np.ndarray) -> np.ndarray:
        """The image of states of shape (..., *spec.shape)."""
        lead = states.ndim - len(spec.shape)
        if spec.grid:
            order = [*range(lead + 1), *(lead + 1 + axis for axis in self.axes)]
            flips = tuple(lead + 1 + axis for axis, sign in enumerate(self.signs) if sign < 0)
            states = np.flip(states.transpose(order), flips)
        image = np.empty(states.shape, states.dtype)
        before, after = np.moveaxis(states, lead, 0), np.moveaxis(image, lead, 0)
        for channel, (source, sign) in enumerate(zip(*self._channels(spec), strict=True)):
            np.multiply(before[source], sign, out=after[channel, ...])
        return image

    def _channels(self, spec: StateSpec) -> tuple[list[int], list[int]]:
        """For each channel of the image: the channel it comes from, and its sign."""
        sources: list[int] = []
        signs: list[int] = []
        for each in spec.fields:
            start = len(sources)
            if each.kind == "scalar":
                sources, signs = [*sources, start], [*signs, 1]
            else:
                turn = self.determinant if each.kind == "axial" else 1
                sources = [*sources, *(start + axis for axis in self.axes)]
                signs = [*signs, *(turn * sign for sign in self.signs)]
        return sources, signs


def square_symmetries(dimensions: int = 2, swap: bool = True) -> tuple[Symmetry, ...]:
    """The eight maps of a square in the first two axes onto itself (four without `swap`, for a rectangle)."""
    rest = tuple(range(2, dimensions))
    orders = permutations((0, 1)) if swap else [(0, 1)]
    return tuple(
        Symmetry((*order, *rest), (*signs, *(1 for _ in rest))) for order in orders for signs in product((1, -1), repeat=2)
    )
