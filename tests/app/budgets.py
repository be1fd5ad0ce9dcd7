"""Trainings of systems of a user's own that take seconds."""

from tests.app import commands

MINE = """
from dataclasses import dataclass
from tests.surrogate.flows import Drift, Oscillator

@dataclass(frozen=True)
class Field(Drift):
    pass

@dataclass(frozen=True)
class Vector(Oscillator):
    pass
"""
TINY = ("surrogate.width=8", "training.batch=4")
NETWORK = ("surrogate.width=8", "surrogate.patch=4")
SHORT = ("training.epochs=2", "training.samples=24", "training.batch=4", "training.validation=3", "training.calibration=4")


def train(*arguments, wishes=TINY):
    """`hybridworld train ...` with a small network."""
    return commands.train(*arguments, wishes=wishes)
