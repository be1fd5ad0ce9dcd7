"""OpenVINO on the CPU, in float32 or in bfloat16.

A network that was compiled for a fixed number of states is a quarter faster than one for any number, and large fields one
after the other take no longer than as a batch. So single states and large fields have a network for one state, and batches of
small states one for any number.
"""

from functools import partial
from math import prod
from pathlib import Path
from threading import local
from typing import Any

import torch
from torch import Tensor

from hybridworld.surrogate.engines.engine import Engine, Program, Run, arrays

FILE = "openvino.xml"
LARGE = 2**12
"""Cells of a field from which on a batch brings nothing."""


def write_openvino(program: Program, folder: Path) -> None:
    """The graph as XML, and its weights beside it, in full precision."""
    import openvino

    report_nothing()
    graph = openvino.convert_model(program)
    examples, _ = program.example_inputs
    graph.reshape({port: [-1, *each.shape[1:]] for port, each in zip(graph.inputs, examples, strict=True)})
    openvino.save_model(graph, folder / FILE, compress_to_fp16=False)


def report_nothing() -> None:
    """The converter tells its makers over the network what it converts, unless it may not."""
    from openvino.tools.ovc import telemetry_utils

    begin = getattr(telemetry_utils, "init_ovc_telemetry", None) or telemetry_utils.init_mo_telemetry  # its older name
    begin().consent = False  # there is one of it in a process


def open_openvino(folder: Path, answer: Run, threads: int, precision: str) -> Run:
    """Without a precision it would choose bfloat16 by itself where the processor has it."""
    import openvino

    core = openvino.Core()
    graph = core.read_model(folder / FILE)
    large = prod(cells.get_length() for cells in list(graph.inputs[0].partial_shape)[2:]) >= LARGE
    options = {
        "INFERENCE_PRECISION_HINT": precision,
        "INFERENCE_NUM_THREADS": threads,
        "PERFORMANCE_HINT": "LATENCY",
        "NUM_STREAMS": 1,
    }
    many = None if large else Compiled(core.compile_model(graph, "CPU", options))
    graph.reshape({each: [1, *list(each.partial_shape)[1:]] for each in graph.inputs})
    one = Compiled(core.compile_model(graph, "CPU", options))

    def run(*inputs: Tensor) -> Tensor:
        if many is not None and len(inputs[0]) > 1:
            return many(*inputs)
        rows = zip(*(each.split(1) for each in inputs), strict=True)
        return torch.cat([one(*row) for row in rows])

    return run


class Compiled:
    """A network that any number of threads may call."""

    def __init__(self, network: Any) -> None:
        self._network, self._here = network, local()

    def __call__(self, *inputs: Tensor) -> Tensor:
        if not hasattr(self._here, "request"):  # a request serves one thread
            self._here.request = self._network.create_infer_request()
        return torch.from_numpy(self._here.request.infer(arrays(inputs), share_inputs=True)[0])


OPENVINO = Engine("openvino", ("openvino",), write_openvino, partial(open_openvino, precision="f32"))
BFLOAT16 = Engine("openvino-bf16", ("openvino",), write_openvino, partial(open_openvino, precision="bf16"), exact=False)
