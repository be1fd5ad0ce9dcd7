"""A kernel of this package, compiled by numba, for networks of sets of objects.

Such a network is a hundred small products and twice as many steps between them; each costs other engines more than its
arithmetic. The kernel runs in the thread that calls it, so it waits for nobody where cores are busy; threads share large
batches. Rows do not depend on each other: in a batch of any size, on any number of threads, an answer has the same bits.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hybridworld.errors import InvalidInput
from hybridworld.physics.spec import StateSpec
from hybridworld.physics.spec_text import spec_from_text
from hybridworld.physics.threads import thread_count
from hybridworld.surrogate.engines.engine import Engine, Program, Run, arrays, description

COLUMNS = 16  # a multiple of what `products` wants
FILE = "objects.npz"
Pair = tuple[np.ndarray, np.ndarray]
"""A matrix (inputs, outputs) and its bias."""
LAYERS = {
    "told": "conditioning.layers.0",
    "condition": "conditioning.layers.2",
    "stem": "backbone.stem.0",
    "stem_out": "backbone.stem.2",
    "head": "backbone.head.2",
}
ROUNDS = {"message": "message", "out": "out", "mlp": "mlp.0", "mlp_out": "mlp.2"}
"""Layers that the kernel takes as they are, of the network and of each round."""
SHARED = 8
"""States for each thread, at least: fewer take less time than to begin a thread."""


def write_kernel(program: Program, folder: Path) -> None:
    """The weights and scales in the form that the kernel takes."""
    found = description(program)
    settings, spec = found["config"], spec_from_text(found["spec"])
    if settings["backbone"] != "objects" or settings["residual"] != "scaled" or settings["variables"] != "channels":
        raise InvalidInput("is made for networks of objects that predict scaled changes of channels")
    if not spec.rates:
        raise InvalidInput("is made for objects of which something moves freely")
    names = {name.partition("surrogate.")[2]: values.detach().numpy() for name, values in program.state_dict.items()}
    rates = next(values for name, values in program.constants.items() if name.endswith("conditioning.rates"))
    scales, weights = scales_of(spec, names, settings["params"]), weights_of(names | {"rates": rates.numpy()}, spec)
    content: dict[str, Any] = {f"scales.{name}": values for name, values in scales.items()}
    content |= {f"weights.{name}": values for name, values in weights.items()}
    np.savez(folder / FILE, **content)


def open_kernel(folder: Path, answer: Run, threads: int) -> Run:
    """The kernel with those weights, compiled before it is asked."""
    from hybridworld.surrogate.engines import objects_kernel as kernel

    answers: Any = kernel.answer

    with np.load(folder / FILE) as file:
        scales = kernel.Scales(*(file[f"scales.{name}"] for name in kernel.Scales._fields))
        weights = kernel.Weights(*(file[f"weights.{name}"] for name in kernel.Weights._fields))

    width = weights.norm.shape[2]
    half = max(width // 2, 1)

    def run(states: Tensor, horizons: Tensor, params: Tensor | None = None) -> Tensor:
        known = torch.empty(len(states), 0) if params is None else params
        given, out = arrays((states, horizons, known)), np.empty(states.shape, np.float32)

        def part(rows: slice) -> None:
            answers(*(each[rows] for each in given), scales, weights, half, width, out[rows])

        over_rows(part, len(out))
        return torch.from_numpy(out)

    params = len(weights.told) - 2 * len(weights.rates)
    run(torch.zeros(1, len(scales.mean), 1), torch.ones(1), torch.zeros(1, params))  # so that it is compiled, or read
    return run


def over_rows(work: Callable[[slice], object], count: int) -> None:
    """Call work(rows) for parts of a batch, one for each thread; this thread takes one of them."""
    parts = max(min(thread_count(), count // SHARED), 1)
    bounds = [count * part // parts for part in range(parts + 1)]
    mine, *others = (slice(*each) for each in pairwise(bounds))
    if not others:
        work(mine)
        return
    with ThreadPoolExecutor(len(others)) as pool:  # of this call alone, so that any number of threads may ask
        helpers = [pool.submit(work, rows) for rows in others]
        work(mine)
    for each in helpers:
        each.result()


def scales_of(spec: StateSpec, names: Mapping[str, np.ndarray], sees_params: bool) -> dict[str, np.ndarray]:
    """The arrays of `objects_kernel.Scales`."""
    channels = spec.channels
    places, speeds = np.array(spec.rates).T
    extent = next((each for each in spec.fields if each.kind == "extent"), None)
    walls = dict(zip(spec.components(spec.position), spec.axes, strict=True)) if spec.position else {}
    ends = [walls.get(channels[each]) for each in places]
    low, high = (
        np.array([getattr(end, name) if end and end.boundary == "wall" else open_end for end in ends], np.float32)
        for name, open_end in (("low", -np.inf), ("high", np.inf))
    )
    marker, value = spec.driven or (channels[0], np.nan)
    driven = [(k, channels.index(each.sets)) for k, each in enumerate(spec.params) if each.sets]
    return {name: names[name] for name in ("mean", "std", "param_mean", "param_std", "changes")} | {
        "horizons": np.log2(names["horizons"]),
        "places": places,
        "speeds": speeds,
        "low": low,
        "high": high,
        "sizes": np.array([channels.index(name) for name in spec.components(extent)] if extent else [], int),
        "driven": np.array(driven if spec.driven and sees_params else [], int).reshape(-1, 2),
        "marker": np.array([channels.index(marker), value], np.float32),
        "frame_step": np.array([spec.frame_step], np.float32),
    }


def weights_of(names: Mapping[str, np.ndarray], spec: StateSpec) -> dict[str, np.ndarray]:
    """The arrays of `objects_kernel.Weights`, from those of the surrogate by their names."""

    def linear(name: str) -> Pair:
        weight = names[f"{name}.weight"].T
        return weight, names.get(f"{name}.bias", np.zeros(weight.shape[1], np.float32))

    depth = 1 + max(int(name.split(".")[2]) for name in names if name.startswith("backbone.rounds."))
    places, layers = len(spec.rates), {name: linear(layer) for name, layer in LAYERS.items()}
    parts: dict[str, list[Pair]] = {name: [] for name in ("hear", "body", "near", *ROUNDS)}
    films, norms = [], []
    for each in (f"backbone.rounds.{number}" for number in range(depth)):
        approach, shift = linear(f"{each}.approach")
        mine, others, bend = (linear(f"{each}.{name}") for name in ("mine", "others", "bend"))
        hear = beside([mine, (others[0], others[1] + shift), bend])
        gain, offset = names[f"{each}.norm.weight"], names[f"{each}.norm.bias"]
        parts["hear"].append((gain[:, None] * hear[0], hear[1] + offset @ hear[0]))
        ends = np.zeros((len(spec.channels) + places, approach.shape[1]), np.float32)
        ends[-places:] = approach[:places]  # where the other one is at the end: linear in both
        products = [linear(f"{each}.{name}") for name in ("between", "at_mine", "at_others")]
        parts["body"].append(beside([*products, (ends, shift)]))
        parts["near"].append((approach[places:], shift))
        for name, layer in ROUNDS.items():
            parts[name].append(linear(f"{each}.{layer}"))
        for film in ("heard", "steered"):
            weight, bias = linear(f"{each}.{film}.linear")
            films.append((weight, bias + np.repeat(np.array([1, 0], np.float32), len(bias) // 2)))  # the gain is 1 + a
        norms.append([names[f"{each}.norm_after.{part}"] for part in ("weight", "bias")])
    layers["film"] = beside(films)
    layers |= {name: (np.stack([w for w, _ in each]), np.stack([b for _, b in each])) for name, each in parts.items()}
    found = {name: filled_up(weight) for name, (weight, _) in layers.items()}
    found |= {f"{name}_bias": filled_up(bias) for name, (_, bias) in layers.items() if name not in ("body", "near")}
    found |= {"rates": names["rates"], "norm": np.array(norms)}
    found["head_norm"] = np.array([names[f"backbone.head.0.{part}"] for part in ("weight", "bias")])
    return {name: np.ascontiguousarray(values, np.float32) for name, values in found.items()}


def beside(layers: Sequence[Pair]) -> Pair:
    """Layers with the same inputs as one, whose outputs stand one after the other."""
    weights, biases = zip(*layers, strict=True)
    return np.concatenate(weights, axis=1), np.concatenate(biases)


def filled_up(weight: np.ndarray) -> np.ndarray:
    """A matrix or a bias with columns filled up with zeros, as the kernel wants them."""
    return np.pad(weight, [(0, 0)] * (weight.ndim - 1) + [(0, -weight.shape[-1] % COLUMNS)])


NUMBA = Engine("numba", ("numba",), write_kernel, open_kernel)
