"""Mean, deviation and RMS of each field and of its change per frame: The Well's `stats.yaml`.

Sums are kept per shard and added up in the order of the shards, so the result does not depend on who computed what when.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import yaml

from hybridworld.physics.spec import StateSpec

EVERY = 32  # frames: neighbours say nearly the same, and reading them all would cost as much as solving


def moments(saved: np.ndarray) -> dict[str, Any]:
    """Count and sums of x, x^2, d, d^2 per channel over trajectories (batch, channels, frames, *grid); d is the next change."""
    frames = np.arange(0, saved.shape[2] - 1, EVERY)
    now = saved[:, :, frames].astype(np.float64)
    change = saved[:, :, frames + 1] - now
    axes = tuple(axis for axis in range(now.ndim) if axis != 1)
    sums = {"x": now, "xx": now * now, "d": change, "dd": change * change}
    return {"count": now.size // now.shape[1]} | {name: values.sum(axis=axes).tolist() for name, values in sums.items()}


def stats_yaml(spec: StateSpec, parts: Iterable[dict[str, Any]]) -> str:
    """The text of `stats.yaml`: a number per scalar field, a list per vector field."""
    parts = list(parts)
    count = sum(part["count"] for part in parts)
    mean, square, mean_delta, square_delta = (
        np.sum([part[name] for part in parts], axis=0) / count for name in ("x", "xx", "d", "dd")
    )
    values = {
        "mean": mean,
        "std": np.sqrt(np.maximum(square - mean**2, 0)),
        "rms": np.sqrt(square),
        "mean_delta": mean_delta,
        "std_delta": np.sqrt(np.maximum(square_delta - mean_delta**2, 0)),
        "rms_delta": np.sqrt(square_delta),
    }
    return yaml.safe_dump({name: _by_field(spec, numbers) for name, numbers in values.items()}, sort_keys=False)


def _by_field(spec: StateSpec, numbers: np.ndarray) -> dict[str, Any]:
    by_channel = dict(zip(spec.channels, numbers.tolist(), strict=True))
    fields: dict[str, Any] = {}
    for each in spec.fields:
        components = spec.components(each)
        if each.kind == "scalar" or not spec.is_field:  # the channels of a state vector are scalars in the files
            fields |= {name: by_channel[name] for name in components}
        else:
            fields[each.name] = [by_channel[name] for name in components]
    return fields
