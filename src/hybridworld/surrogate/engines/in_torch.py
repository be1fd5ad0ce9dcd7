"""Torch as an engine: compiled ahead of time by its own compiler, or as it is, with products in bfloat16."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from hybridworld.surrogate.engines.engine import Engine, Program, Run

FILE = "compiled.pt2"


def compile_program(program: Program, folder: Path) -> None:
    """C++ is written and compiled, which takes a minute."""
    from torch._inductor import aoti_compile_and_package

    aoti_compile_and_package(program, package_path=str(folder / FILE))


def open_compiled(folder: Path, answer: Run, threads: int) -> Run:
    """The compiled network, ready to answer; it runs on torch's own threads."""
    from torch._inductor import aoti_load_package

    model: Any = aoti_load_package(str(folder / FILE))
    return lambda *inputs: model(*(each.contiguous() for each in inputs))


def in_bfloat16(folder: Path, answer: Run, threads: int) -> Run:
    """Convolutions and matrix products in bfloat16, all else as it was."""

    def run(*inputs: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return answer(*inputs).float()

    return run


COMPILED = Engine("compiled", ("torch",), compile_program, open_compiled, quick=False)
BFLOAT16 = Engine("eager-bf16", ("torch",), lambda program, folder: None, in_bfloat16, exact=False)
