"""The networks inside a surrogate, behind one small interface."""

from pathlib import Path
from typing import Any, Protocol

from torch import Tensor, nn

from hybridworld.errors import InvalidInput, nearest
from hybridworld.physics.registry import class_from_file
from hybridworld.physics.spec import StateSpec
from hybridworld.surrogate.leap import Leap
from hybridworld.surrogate.mlp import MLP
from hybridworld.surrogate.objects import Objects
from hybridworld.surrogate.unet import UNet


class Backbone(Protocol):
    """A network that predicts a change: made as Class(channels, boundaries, condition, width).

    `boundaries` has one word per grid axis (`periodic`, `open`, `wall`, or `objects` for a set); `condition` is the length of
    the vector that carries horizon and parameters; `width` is left out unless the configuration sets it. A network may name
    the layer that gives the change `last`: it then starts at zero, so that training begins with "no change".
    """

    def __init__(self, channels: int, boundaries: tuple[str, ...], condition: int, width: int = ...) -> None: ...

    def __call__(self, x: Tensor, condition: Tensor) -> Tensor:
        """x (batch, channels, *grid), condition (batch, size) -> (batch, channels, *grid)."""


BACKBONES: dict[str, Any] = {"unet": UNet, "leap": Leap, "mlp": MLP, "objects": Objects}
FOR = {"unet": "fields", "leap": "fields", "mlp": "state vectors", "objects": "objects"}
"""The states that each of them is made for."""


def default_backbone(spec: StateSpec) -> str:
    """By the shape of the data; for fields and state vectors it is the paper's choice."""
    return next(name for name, states in FOR.items() if states == states_of(spec))


def states_of(spec: StateSpec) -> str:
    """What kind of states these are: fields, objects or state vectors."""
    return "fields" if spec.is_field else "objects" if spec.objects else "state vectors"


def find_backbone(name: str, spec: StateSpec) -> Any:
    """The class called `name`: a known one, or a user's `path/to/file.py:Class`."""
    path, _, class_name = name.partition(":")
    if path.endswith(".py"):
        return class_from_file(Path(path), class_name, nn.Module)
    if name not in BACKBONES:
        choices = f"choose {' or '.join(BACKBONES)}, or give path/to/file.py:Class"
        raise InvalidInput(f"Unknown backbone '{name}': {choices}.{nearest(name, BACKBONES)}")
    if FOR[name] != states_of(spec):
        found, default = states_of(spec), default_backbone(spec)
        raise InvalidInput(f"The states of {spec.name} are {found}, for which the backbone is {default}, not {name}.")
    return BACKBONES[name]
