"""Trained models that a command names."""

from pathlib import Path

import torch

from hybridworld.deploy.hybrid import HybridModel
from hybridworld.deploy.load import find_model, load
from hybridworld.physics.environment import Environment
from hybridworld.surrogate.bundle import Bundle, load_bundle
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
) -> HybridModel:
    """The model of that name or file as a `HybridModel`, ready to answer."""
    hybrid = load(model, environment, backbone, dask, signal, device)
    torch.set_num_threads(threads_for(hybrid.spec))
    return hybrid
