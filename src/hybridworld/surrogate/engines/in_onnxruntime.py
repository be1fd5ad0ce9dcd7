"""ONNX Runtime on the CPU. It has no convolutions in bfloat16 there."""

import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from hybridworld.surrogate.engines.engine import Engine, Program, Run, arrays

FILE = "model.onnx"


def write_onnx(program: Program, folder: Path) -> None:
    """The graph and its weights in ONNX's format."""
    with warnings.catch_warnings(action="ignore"):  # about the exporter's own ways
        written: Any = torch.onnx.export(program, dynamo=True, verbose=False)
    written.save(folder / FILE)


def open_onnx(folder: Path, answer: Run, threads: int) -> Run:
    """A session with so many threads."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # others may need the core
    session = onnxruntime.InferenceSession(folder / FILE, options, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_inputs()]

    def run(*inputs: Tensor) -> Tensor:
        return torch.from_numpy(session.run(None, dict(zip(names, arrays(inputs), strict=True)))[0])

    return run


ONNXRUNTIME = Engine("onnxruntime", ("onnxruntime", "onnx", "onnxscript"), write_onnx, open_onnx)
