"""Euler 2D on 32 x 32 cells: small enough to train and to calibrate many times. Used by `bench promises` in the docs."""

from dataclasses import dataclass

from hybridworld.physics.euler2d import Euler2D


@dataclass(frozen=True)
class Euler32(Euler2D):
    """The same physics on a small grid."""

    grid: tuple[int, ...] = (32, 32)
