"""A trained model in one file: weights, and all that it takes to use and to judge them.

A `.safetensors` file holds numbers and text, no code. Its metadata has the config, the spec of the states, validation errors,
provenance, and the sha256 of everything: a file that differs by one bit is refused, not believed.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from textwrap import shorten
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load as read_tensors
from safetensors.torch import save as tensors_to_bytes
from torch import Tensor, nn

from hybridworld.data.atomic import make_place, write_atomically
from hybridworld.data.provenance import from_older_file
from hybridworld.errors import HybridWorldError, InvalidInput
from hybridworld.physics.arguments import shown
from hybridworld.physics.environment import Environment
from hybridworld.physics.registry import class_from_file, find_system, known_systems
from hybridworld.physics.spec import StateSpec
from hybridworld.physics.spec_text import spec_from_text, spec_to_text
from hybridworld.surrogate.backbones import BACKBONES, Backbone
from hybridworld.surrogate.config import Config, checked
from hybridworld.surrogate.normalisation import Normalisation
from hybridworld.surrogate.surrogate import Surrogate
from hybridworld.surrogate.wrapped import Wrapped, model_from, wrapped_config

FORMAT = 1
OF_WRAPPED: Any = {"surrogate": {"backbone", "params"}, "training": {"horizons"}}
"""Settings of a model that was not trained here."""
WEIGHTS, ARRAYS = "weights.", "arrays."


Code = type[Backbone] | Callable[..., Any]
"""A user's own: the class of a backbone, or a model that was wrapped, or what makes it."""


@dataclass
class Bundle:
    """A surrogate, and what is known about it."""

    surrogate: Surrogate
    config: Config
    validation: Mapping[str, Any] = field(default_factory=dict)
    """Errors on validation pairs, by name and horizon."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """Data, seed, versions, hardware."""
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)
    """More numbers that travel along, float32: what calibration measured."""
    reference: Mapping[str, Any] = field(default_factory=dict)
    """`Environment.identity` of the solver that it approximates; empty where that is not known."""

    def like(self, spec: StateSpec) -> "Bundle":
        """The same model for as many objects as such states have; of fields it is the model as it is."""
        same = not (spec.objects and self.surrogate.spec.objects) or spec.grid == self.surrogate.spec.grid
        return self if same else replace(self, surrogate=self.surrogate.resized(spec.grid))

    @property
    def share_of_no_change(self) -> float | None:
        """The validation MSE over that of "no change", mean over horizons; None where a model's file does not tell."""
        shares = [
            each["mse"] / each["no_change"]["mse"]
            for each in self.validation.get("horizons", {}).values()
            if each.get("no_change", {}).get("mse")
        ]
        return float(np.mean(shares)) if shares else None


def save_bundle(path: Path, bundle: Bundle) -> None:
    """Write a model's file in one step."""
    wrapped = bundle.surrogate if isinstance(bundle.surrogate, Wrapped) else None
    if wrapped:
        wrapped.check_savable()
    state = {name: values for name, values in bundle.surrogate.state_dict().items() if isinstance(values, Tensor)}
    tensors = {WEIGHTS + name: values.detach().cpu() for name, values in state.items()}
    tensors |= {ARRAYS + name: torch.from_numpy(np.asarray(values, np.float32)) for name, values in bundle.arrays.items()}
    tensors = {name: values.contiguous().clone() for name, values in tensors.items()}  # networks may share weights, files not
    _check_finite(path, tensors)
    text = json.dumps(
        {
            "format": FORMAT,
            "config": bundle.config.model_dump(mode="json", include=OF_WRAPPED if wrapped else None),
            **({"wrapped": {"answered": wrapped.answered}} if wrapped else {}),
            "spec": spec_to_text(bundle.surrogate.spec),
            "validation": bundle.validation,
            "provenance": bundle.provenance,
            "reference": bundle.reference,
        },
        sort_keys=True,
    )
    write_atomically(make_place(path), tensors_to_bytes(tensors, {"hybridworld": text, "sha256": digest(text, tensors)}))


def load_bundle(path: Path, backbone: str | Code | None = None, system: Environment | None = None) -> Bundle:
    """Read such a file. No code from it or because of it is run: a user's own has to be given as `backbone`.

    That is the class of a backbone, or what makes a wrapped model, itself or as `path/to/file.py:name`.
    A guided surrogate runs the solver of `system`, or of the known system that has its name; without, it has no guide.
    """
    text, tensors = _read(path)
    try:
        content = json.loads(text)
        if content["format"] != FORMAT:
            raise ValueError(f"it has the format {content['format']}, and this version reads {FORMAT}")
        spec, wrapped, settings = spec_from_text(content["spec"]), content.get("wrapped"), content["config"]
        if wrapped is None:
            settings.get("training", {}).setdefault("draw", "listed")  # what there was before it could be chosen
            config = checked(settings)
        else:
            config = wrapped_config(spec, **settings["surrogate"], **settings["training"])
        validation, provenance = content["validation"], from_older_file(content["provenance"])
        reference = content.get("reference", {})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidInput(f"{path} is not a model that can be read: {str(error).rstrip('.')}.") from error
    name = config.surrogate.backbone
    if backbone is None and name not in BACKBONES:
        what, part = ("was trained with the backbone", "class") if wrapped is None else ("is about the model", "code")
        raise InvalidInput(
            f"{path} {what} {name}: give its {part} as `backbone` (on the command line --backbone {name}), it is not run by "
            "itself."
        )
    own: Any = network_class(backbone) if wrapped is None else model_from(backbone)
    weights = {name.removeprefix(WEIGHTS): values for name, values in tensors.items() if name.startswith(WEIGHTS)}
    try:
        scales = Normalisation.among(weights)
        if wrapped is None:
            surrogate = Surrogate(spec, config.surrogate, scales, own)
        else:
            surrogate = Wrapped(own, spec, config.surrogate, scales, own is not backbone, wrapped["answered"])
        surrogate.load_state_dict(weights)
    except HybridWorldError as error:
        if wrapped is not None:
            raise
        raise InvalidInput(f"{path}: {error}") from error
    except (KeyError, RuntimeError, TypeError, ValueError) as error:
        why = shorten(str(error).splitlines()[-1].strip(" \t."), 200)  # the first line of torch is a heading
        raise InvalidInput(f"{path}: the weights do not fit the network {name}: {why}.") from error
    surrogate.eval()
    if isinstance(surrogate, Wrapped):
        surrogate.check_same()
    if config.surrogate.guide and (system or spec.name in known_systems()):
        surrogate.attach_guide(system or find_system(spec.name))
    arrays = {name.removeprefix(ARRAYS): values.numpy() for name, values in tensors.items() if name.startswith(ARRAYS)}
    return Bundle(surrogate, config, validation, provenance, arrays, reference)


def network_class(backbone: str | Code | None) -> Any:
    """The class of a user's own backbone, which `path/to/file.py:Class` may name."""
    if isinstance(backbone, type | None):
        return backbone
    if not isinstance(backbone, str):
        raise InvalidInput(f"The backbone is {shown(backbone)}: give its class, or path/to/file.py:Class.")
    path, _, name = backbone.partition(":")
    return class_from_file(Path(path), name, nn.Module)


def _read(path: Path) -> tuple[str, dict[str, Tensor]]:
    """The metadata's text and all tensors of a file that is what it was when it was written."""
    if not path.is_file():
        raise InvalidInput(f"There is no model {path}.")
    content = path.read_bytes()
    try:
        tensors = read_tensors(content)
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    except (
        SafetensorError,
        ValueError,
        KeyError,
        AttributeError,
        TypeError,
        RuntimeError,
        OverflowError,
        MemoryError,
    ) as error:
        raise InvalidInput(f"{path} is damaged, or no safetensors file: {error}.") from error
    notes = header.get("__metadata__") or {}
    if "hybridworld" not in notes:
        raise InvalidInput(f"{path} is a safetensors file, but not a model of hybridworld.")
    text = notes["hybridworld"]
    if digest(text, tensors) != notes.get("sha256"):
        raise InvalidInput(f"{path} is damaged: its content does not have the sha256 that was written with it.")
    _check_finite(path, tensors)
    return text, tensors


def digest(text: str, tensors: Mapping[str, Tensor]) -> str:
    """sha256 of the metadata and of all tensors: names, types, shapes, bytes."""
    total = hashlib.sha256(text.encode())
    for name, values in sorted(tensors.items()):
        total.update(f"\n{name} {values.dtype} {tuple(values.shape)}\n".encode())
        if values.numel():  # nothing cannot be seen as bytes
            total.update(values.contiguous().flatten().view(torch.uint8).numpy().data)
    return total.hexdigest()


def _check_finite(path: Path, tensors: Mapping[str, Tensor]) -> None:
    for name, values in tensors.items():
        if not torch.isfinite(values).all():
            raise InvalidInput(f"{path}: {name.removeprefix(WEIGHTS)} holds values that are not finite.")
