"""Trainings that can be run in a process of their own, and die there at a chosen moment."""

import os
from pathlib import Path

import torch
from torch import nn

from hybridworld.data.stream import Stream
from hybridworld.errors import InvalidInput
from hybridworld.surrogate import checkpoint
from hybridworld.surrogate import train as training
from tests.surrogate.flows import Oscillator, Ring, table, tiny

COMMON = ("training.validation=16", "training.lr=3e-3", "training.patience=99")
WISHES = {
    "mlp": ("training.batch=10", "training.samples=200", "training.epochs=3", "training.ema=0.9", "training.dagger=0.25"),
    "unet": ("training.batch=4", "training.samples=28", "training.epochs=3", "training.ema=0.8", "training.augment=true"),
    "own": ("training.batch=8", "training.samples=80", "training.epochs=3", "training.dagger_kind=solver",
            "training.dagger=0.5", "surrogate.backbone=own.py:Forgetful"),
}  # fmt: skip


class Forgetful(nn.Module):
    """A user's network that draws random numbers."""

    def __init__(self, channels, boundaries, condition, width=8):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(channels + condition, width), nn.SiLU(), nn.Dropout(0.3), nn.Linear(width, channels)
        )

    def forward(self, x, condition):
        return self.layers(torch.cat([x, condition], dim=1))


class Choosy(Oscillator):
    """It refuses some states."""

    def check_physical(self, states):
        if (states[:, 0] > 0.5).any():
            raise InvalidInput("That is too far to the right.")


def task(kind):
    """The training called `kind`; its data come from a moving window in one case, and from a table in the others."""
    environment = {"mlp": Oscillator(), "unet": Ring(), "own": Choosy()}[kind]
    config = tiny(environment.spec, *COMMON, *WISHES[kind])
    own = {"solve": environment.solve, "backbone": Forgetful} if kind == "own" else {}
    source = table(Oscillator() if kind == "own" else environment)
    if kind == "mlp":
        source = Stream(environment, buffer=3, block=8, pairs_per_trajectory=12)
    return training.Task(config, source, table(Ring() if kind == "unet" else Oscillator(), "val", 16), **own)


def run(kind, folder, watch=None):
    """Train with a checkpoint whenever none is being written."""
    torch.set_num_threads(1)
    checkpoint.EVERY = 0.0
    return training.train(task(kind), Path(folder), watch)


def run_and_die(kind, folder, number, steps, moment=0):
    """Send oneself a signal after so many steps, or already at that moment: before or after a write, a sync or a rename."""
    events = 0

    def event(state=None, loss=None):
        nonlocal events, steps
        events += 1
        steps -= state is not None
        if events == moment or (state is not None and steps == 0):
            os.kill(os.getpid(), number)

    def deadly(function):
        def call(*arguments, **options):
            event()
            result = function(*arguments, **options)
            event()
            return result

        return call

    for module, name in ((Path, "replace"), (os, "fsync"), (training, "save_bundle"), (torch, "save")):
        setattr(module, name, deadly(getattr(module, name)))
    try:
        run(kind, folder, training.Watch(on_step=event))
    except KeyboardInterrupt:
        os._exit(130)
