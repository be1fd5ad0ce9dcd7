"""A StateSpec as text, for the files that have to speak for themselves: datasets and trained models."""

import json
from dataclasses import asdict
from typing import Any

from hybridworld.physics.spec import Axis, Field, Parameter, StateSpec


def spec_to_text(spec: StateSpec) -> str:
    """The spec as JSON."""
    return json.dumps(asdict(spec), default=lambda number: number.item())


def spec_from_text(text: str) -> StateSpec:
    """The spec that `spec_to_text` wrote."""
    parts = _tuples(json.loads(text))
    for name, kind in (("fields", Field), ("axes", Axis), ("parameters", Parameter)):
        parts[name] = tuple(kind(**part) for part in parts[name])
    return StateSpec(**parts)


def _tuples(value: Any) -> Any:
    """The value with tuples in place of lists: JSON has none."""
    if isinstance(value, dict):
        return {name: _tuples(part) for name, part in value.items()}
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
