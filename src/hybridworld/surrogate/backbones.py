"""The networks inside a surrogate, behind one small interface."""

from pathlib import Path
from typing import Any, Protocol

from torch import Tensor, nn

from hybridworld.errors import InvalidInput, nearest
from hybridworld.physics.registry import class_from_file
from hybridworld.physics.spec import StateSpec
from hybridworld.surrogate.config import SurrogateConfig
from hybridworld.surrogate.guided import GuidedLeap
from hybridworld.surrogate.leap import Leap
from hybridworld.surrogate.mlp import MLP
from hybridworld.surrogate.unet import UNet


class Backbone(Protocol):
    """A network that predicts a change: made as Class(channels, boundaries, condition, width).

    `boundaries` has one word per grid axis (`periodic`, `open`, `wall`); `condition` is the length of the vector that carries
    horizon and parameters; `width` is left out unless the configuration sets it. A network may name the layer that gives the
    change `last`: it then starts at zero, so that training begins with "no change". A built-in one says in `states` what it is
    made for, and may have a static method `options(config, spec)`, which returns further arguments by name.
    """

    def __init__(self, channels: int, boundaries: tuple[str, ...], condition: int, width: int = ...) -> None: ...

    def __call__(self, x: Tensor, condition: Tensor) -> Tensor:
        """x (batch, channels, *grid), condition (batch, size) -> (batch, channels, *grid)."""


BACKBONES: dict[str, Any] = {"unet": UNet, "leap": Leap, "mlp": MLP}
"""Name -> network. The first one that is made for its states is the default of a system."""
GUIDED: dict[str, Any] = {"leap": GuidedLeap}
"""Name -> the same network with a guide, where there is one: see `guided`."""


def default_backbone(spec: StateSpec) -> str:
    """The name of the first backbone for such states; for fields and state vectors it is the paper's choice."""
    return next(name for name, network in BACKBONES.items() if network.states == states_of(spec))


def states_of(spec: StateSpec) -> str:
    """What kind of states these are: `fields` or `state vectors`."""
    return "fields" if spec.grid else "state vectors"


def find_backbone(name: str, spec: StateSpec) -> Any:
    """The class called `name`: a known one, or a user's `path/to/file.py:Class`."""
    path, _, class_name = name.partition(":")
    if path.endswith(".py"):
        return class_from_file(Path(path), class_name, nn.Module)
    if name not in BACKBONES:
        choices = f"choose {' or '.join(BACKBONES)}, or give path/to/file.py:Class"
        raise InvalidInput(f"Unknown backbone '{name}': {choices}.{nearest(name, BACKBONES)}")
    if BACKBONES[name].states != states_of(spec):
        found, default = states_of(spec), default_backbone(spec)
        raise InvalidInput(f"The states of {spec.name} are {found}, for which the backbone is {default}, not {name}.")
    return BACKBONES[name]


def network_for(config: SurrogateConfig, spec: StateSpec, own: Any = None) -> tuple[Any, dict[str, Any]]:
    """The class of the network that is configured, or the user's `own`, and its arguments beyond the usual three, by name."""
    network, options = own or find_backbone(config.backbone, spec), {} if config.width is None else {"width": config.width}
    if own is None and config.backbone in BACKBONES:
        network = GUIDED[config.backbone] if config.guide else network
        options |= network.options(config, spec) if hasattr(network, "options") else {}
    return network, options
