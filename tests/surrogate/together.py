"""Trainings for one process or many, run as a script by torchrun: python together.py FOLDER."""

import sys
from pathlib import Path

import torch

from hybridworld.surrogate.train import Task, train
from tests.surrogate.flows import Oscillator, Ring, table, tiny

CASES = {
    "mlp": (Oscillator(), "training.batch=30", "training.samples=300", "training.ema=0.9"),  # a share of 3 of 30: 2 and 1
    "solver": (Oscillator(), "training.batch=8", "training.samples=40", "training.dagger=0.3", "training.dagger_kind=solver"),
    "unet": (Ring(), "training.batch=6", "training.samples=30", "training.augment=true"),
}


def run(folder):
    """All of them, into one folder each."""
    torch.set_num_threads(1)
    outcomes = {}
    for name, (environment, *wishes) in CASES.items():
        config = tiny(environment.spec, "training.epochs=3", "training.validation=16", "training.lr=1e-3", *wishes)
        sources = table(environment, "train", 16), table(environment, "val", 16)
        outcomes[name] = train(Task(config, *sources, solve=environment.solve), folder / name)
    return outcomes


if __name__ == "__main__":
    run(Path(sys.argv[1]))
