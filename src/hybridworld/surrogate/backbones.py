"""The networks inside a surrogate, behind one small interface."""

from pathlib import Path
from typing import Any, Protocol

from torch import Tensor, nn

from hybridworld.errors import InvalidInput, nearest
from hybridworld.physics.registry import class_from_file
from hybridworld.physics.spec import StateSpec
from hybridworld.surrogate.leap import Leap
from hybridworld.surrogate.mlp import MLP
from hybridworld.surrogate.unet import UNet


class Backbone(Protocol):
    """A network that predicts a change: made as Class(channels, boundaries, condition, width).

    `boundaries` has one word per grid axis (`periodic`, `open`, `wall`); `condition` is the length of the vector that carries
    horizon and parameters; `width` is left out unless the configuration sets it. A network may name the layer that gives the
    change `last`: it then starts at zero, so that training begins with "no change".
    """

    def __init__(self, channels: int, boundaries: tuple[str, ...], condition: int, width: int = ...) -> None: ...

    def __call__(self, x: Tensor, condition: Tensor) -> Tensor:
        """x (batch, channels, *grid), condition (batch, size) -> (batch, channels, *grid)."""


BACKBONES: dict[str, Any] = {"unet": UNet, "leap": Leap, "mlp": MLP}


def default_backbone(spec: StateSpec) -> str:
    """The paper's choice: by the shape of the data."""
    return "unet" if spec.grid else "mlp"


def find_backbone(name: str, spec: StateSpec) -> Any:
    """The class called `name`: a known one, or a user's `path/to/file.py:Class`."""
    path, _, class_name = name.partition(":")
    if path.endswith(".py"):
        return class_from_file(Path(path), class_name, nn.Module)
    if name not in BACKBONES:
        choices = f"choose {' or '.join(BACKBONES)}, or give path/to/file.py:Class"
        raise InvalidInput(f"Unknown backbone '{name}': {choices}.{nearest(name, BACKBONES)}")
    if (name == "mlp") == bool(spec.grid):
        kind = "a grid" if spec.grid else "no grid"
        raise InvalidInput(f"{spec.name} has {kind}, for which the backbone is {default_backbone(spec)}, not {name}.")
    return BACKBONES[name]
