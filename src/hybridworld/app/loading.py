"""Trained models that a command names."""

from pathlib import Path

import torch

from hybridworld.app.progress import stderr
from hybridworld.deploy.engines import set_engine
from hybridworld.deploy.hybrid import HybridModel
from hybridworld.deploy.load import find_model, load
from hybridworld.physics.environment import Environment
from hybridworld.surrogate.bundle import Bundle, load_bundle
from hybridworld.surrogate.engines.registry import EAGER
from hybridworld.surrogate.parallel import device_of, threads_for


def load_model(
    model: str | Path, backbone: str | None = None, environment: Environment | None = None, device: str | None = None
) -> Bundle:
    """The model that ships under that name, or the file; `backbone` (file.py:name) is for one with code of the user's.

    `environment` runs the guide of a guided model of the user's own system. It computes on the CPU unless a device is named.
    """
    bundle = load_bundle(find_model(model), backbone, environment)
    torch.set_num_threads(threads_for(bundle.surrogate.spec))
    bundle.surrogate.to("cpu" if device is None else device_of(device))
    return bundle


def load_hybrid(
    model: str,
    environment: Environment | None = None,
    backbone: str | None = None,
    dask: str | None = None,
    signal: str | None = None,
    device: str | None = None,
    engine: str | None = EAGER,
) -> HybridModel:
    """The model of that name or file as a `HybridModel`, ready to answer.

    With the engine `auto`, or without one, the fastest that agrees is looked for, once per machine, and that is told.
    """
    hybrid = load(model, environment, backbone, dask, signal, device, EAGER)
    torch.set_num_threads(threads_for(hybrid.spec))
    set_engine(hybrid, engine, tell)
    return hybrid


def tell(sentence: str) -> None:
    """Print a sentence on stderr, so that stdout holds only results."""
    stderr.print(sentence, style="dim", highlight=False, soft_wrap=True, markup=False)
