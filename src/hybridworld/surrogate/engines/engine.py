"""What an engine is: it writes a network in its own form into a folder, once, and opens that to answer."""

import json
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from hybridworld.physics.spec_text import spec_to_text

Run = Callable[..., Tensor]
"""The tensors of `Surrogate.inputs`, in their order -> states. It may be called by several threads at once."""
Program = torch.export.ExportedProgram
"""The arithmetic of a surrogate as a graph, for any number of states; to run it takes none of the user's code."""
DESCRIPTION = "description"
"""The buffer of a program that tells, as bytes, what it is of: for an engine that has a form of its own for some networks."""


@dataclass(frozen=True)
class Engine:
    """How to write a program, and how to open what was written: open(folder, answer, threads) -> Run.

    `answer` is the same arithmetic in eager torch, for an engine that runs that. An engine that is not `exact` computes in
    bfloat16.
    """

    name: str
    needs: tuple[str, ...]
    """Packages, by the names under which they are imported."""
    write: Callable[[Program, Path], None]
    open: Callable[[Path, Run, int], Run]
    exact: bool = True
    quick: bool = True
    """Whether it is written in seconds, so that it is tried unasked."""

    @property
    def missing(self) -> list[str]:
        """The packages that are not installed."""
        return [name for name in self.needs if find_spec(name) is None]


@dataclass(frozen=True)
class Running:
    """An engine at work: its name, and what it does."""

    name: str
    run: Run

    def __call__(self, *inputs: Tensor) -> Tensor:
        return self.run(*inputs)


class Arithmetic(nn.Module):
    """`Surrogate.answer` with its inputs in their order, which is what can be exported."""

    def __init__(self, surrogate: Any, names: tuple[str, ...]) -> None:
        super().__init__()
        self.surrogate, self.names = surrogate, names
        text = json.dumps({"spec": spec_to_text(surrogate.spec), "config": surrogate.config.model_dump(mode="json")})
        self.register_buffer(DESCRIPTION, torch.tensor(list(text.encode()), dtype=torch.uint8))

    def forward(self, *inputs: Tensor) -> Tensor:
        """The tensors of `Surrogate.inputs` -> states."""
        return self.surrogate.answer(**dict(zip(self.names, inputs, strict=True)))


def description(program: Program) -> dict[str, Any]:
    """What a program is of: `spec` and `config` of the surrogate, as text of a model's file."""
    return json.loads(bytes(program.state_dict[DESCRIPTION].tolist()))


def exported(surrogate: Any, inputs: Mapping[str, Tensor]) -> Program:
    """The program of a surrogate; `inputs` are those of two states or more, since torch takes a size of 1 for a constant."""
    examples = tuple(each[:2].clone() for each in inputs.values())  # distinct tensors: the exporter merges equal ones
    rows = torch.export.Dim("rows", min=1, max=2**20)
    shapes = (tuple({0: rows} for _ in examples),)
    with torch.no_grad(), warnings.catch_warnings(action="ignore"):  # about the exporter's own ways
        return torch.export.export(Arithmetic(surrogate, tuple(inputs)).eval(), examples, dynamic_shapes=shapes)


def arrays(inputs: tuple[Tensor, ...]) -> list[np.ndarray]:
    """The inputs as contiguous float32 arrays, for an engine that takes NumPy."""
    return [np.ascontiguousarray(each.numpy(), np.float32) for each in inputs]
