"""Engines: what does the arithmetic of a surrogate in inference.

    eager           torch, one operation after the other: always there, and what the others are compared with
    compiled        torch, compiled for this machine ahead of time; needs a C++ compiler
    onnxruntime     ONNX Runtime; packages onnxruntime and onnxscript
    openvino        OpenVINO; package openvino

`NAME-bf16` is the same with products in bfloat16. An engine is made of an exported program, all of `Surrogate.answer` for a batch
of any size, is kept in a file, and takes the tensors of `Surrogate.inputs`. It uses as many threads as torch.

Which of them is right and fast on a machine is found out by `deploy.probe`, never assumed: engines have died with an illegal
instruction on processors that they claim to support.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from hybridworld.errors import InvalidInput, nearest
from hybridworld.surrogate.surrogate import Surrogate

BFLOAT16 = "-bf16"
CELLS = 2**14
"""Cells that one call of an engine works on, about: larger batches of fields leave the caches, and take longer per state."""


class Engine:
    """(states, horizons ...) -> states."""

    packages: tuple[str, ...] = ()
    """What has to be installed beyond torch."""

    def __init__(self, path: Path, bfloat16: bool) -> None:
        raise NotImplementedError

    @staticmethod
    def convert(program: ExportedProgram, path: Path) -> None:
        """Write the program into a file that `__init__` reads."""
        raise NotImplementedError

    def __call__(self, *inputs: Tensor) -> Tensor:
        """The tensors of `Surrogate.inputs`, in their order."""
        raise NotImplementedError


class Eager(Engine):
    """Torch itself; of use in bfloat16 alone, since without an engine a surrogate does the same."""

    def __init__(self, path: Path, bfloat16: bool) -> None:
        self._run: Callable[..., Tensor] = torch.export.load(path).module()

    @staticmethod
    def convert(program: ExportedProgram, path: Path) -> None:
        torch.export.save(program, path)

    def __call__(self, *inputs: Tensor) -> Tensor:
        return self._run(*inputs)


class Compiled(Engine):
    """Torch, compiled into a library."""

    def __init__(self, path: Path, bfloat16: bool) -> None:
        self._run: Callable[..., Tensor] = torch._inductor.aoti_load_package(str(path))

    @staticmethod
    def convert(program: ExportedProgram, path: Path) -> None:
        torch._inductor.aoti_compile_and_package(program, package_path=str(path))

    def __call__(self, *inputs: Tensor) -> Tensor:
        return self._run(*(each.contiguous() for each in inputs))


class OnnxRuntime(Engine):
    """ONNX Runtime on the processor; float32 alone."""

    packages = ("onnxruntime", "onnxscript")

    def __init__(self, path: Path, bfloat16: bool) -> None:
        self._path = path
        self._sessions: dict[int, Any] = {}

    @staticmethod
    def convert(program: ExportedProgram, path: Path) -> None:
        torch.onnx.export(program, f=path, external_data=False, verbose=False)

    def __call__(self, *inputs: Tensor) -> Tensor:
        session = self._session(torch.get_num_threads())
        names = [each.name for each in session.get_inputs()]
        answers = (session.run(None, dict(zip(names, piece, strict=True)))[0] for piece in pieces(inputs))
        return torch.from_numpy(joined(answers))

    def _session(self, threads: int) -> Any:
        if threads not in self._sessions:
            import onnxruntime

            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = threads
            options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # others may need the core
            self._sessions[threads] = onnxruntime.InferenceSession(self._path, options, ["CPUExecutionProvider"])
        return self._sessions[threads]


class OpenVino(Engine):
    """OpenVINO on the processor."""

    packages = ("openvino",)

    def __init__(self, path: Path, bfloat16: bool) -> None:
        import openvino

        self._core = openvino.Core()
        if bfloat16 and "BF16" not in self._core.get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
            raise InvalidInput("OpenVINO has no bfloat16 on this processor.")
        self._model = self._core.read_model(path)
        self._precision = openvino.Type.bf16 if bfloat16 else openvino.Type.f32
        self._compiled: dict[int, Any] = {}
        self._mine = threading.local()  # a request serves one call at a time

    @staticmethod
    def convert(program: ExportedProgram, path: Path) -> None:
        """Through the frontend itself: `openvino.convert_model` reports its use over the network, unasked."""
        import openvino
        from openvino.frontend import FrontEndManager
        from openvino.frontend.pytorch.fx_decoder import TorchFXPythonDecoder

        frontend = FrontEndManager().load_by_framework("pytorch")
        decoder = TorchFXPythonDecoder.from_exported_program(program)  # has to outlive the conversion
        openvino.save_model(frontend.convert(frontend.load(decoder)), path, compress_to_fp16=False)

    def __call__(self, *inputs: Tensor) -> Tensor:
        request = self._request(torch.get_num_threads())
        return torch.from_numpy(joined(request.infer(piece, share_inputs=True)[0] for piece in pieces(inputs)))

    def _request(self, threads: int) -> Any:
        if threads not in self._compiled:
            options = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": self._precision}
            self._compiled[threads] = self._core.compile_model(self._model, "CPU", options)
        if getattr(self._mine, "threads", None) != threads:
            self._mine.threads, self._mine.request = threads, self._compiled[threads].create_infer_request()
        return self._mine.request


KINDS: dict[str, type[Engine]] = {"eager": Eager, "compiled": Compiled, "onnxruntime": OnnxRuntime, "openvino": OpenVino}
EAGER = "eager"
NAMES = (*KINDS, *(kind + BFLOAT16 for kind in KINDS if kind != "onnxruntime"))


def kind_of(name: str) -> type[Engine]:
    """The class of an engine."""
    if name not in NAMES:
        raise InvalidInput(f"Unknown engine '{name}': choose auto, {', '.join(NAMES)}.{nearest(name, NAMES)}")
    return KINDS[name.removesuffix(BFLOAT16)]


def missing(name: str) -> list[str]:
    """The packages that an engine needs and that are not installed."""
    return [package for package in kind_of(name).packages if installed(package) is None]


def installed(package: str) -> str | None:
    """Its version."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


class Graph(nn.Module):
    """`Surrogate.answer` with its inputs in order; in bfloat16 torch chooses which operations are safe in it."""

    def __init__(self, surrogate: Surrogate, names: Sequence[str], bfloat16: bool) -> None:
        super().__init__()
        self.surrogate, self.names, self.bfloat16 = surrogate, tuple(names), bfloat16

    def forward(self, *inputs: Tensor) -> Tensor:
        """-> states"""
        answer = partial(self.surrogate.answer, **dict(zip(self.names, inputs, strict=True)))
        if not self.bfloat16:
            return answer()
        with torch.autocast("cpu", torch.bfloat16):
            return answer()


def export(surrogate: Surrogate, inputs: dict[str, Tensor], bfloat16: bool = False) -> ExportedProgram:
    """All of the arithmetic for a batch of any size, traced on these inputs: at least two rows of them."""
    graph = Graph(surrogate, list(inputs), bfloat16).eval()
    batch = Dim("batch", min=1)
    own = tuple(each.detach().clone() for each in inputs.values())  # the same tensor twice would become one input
    with torch.no_grad():
        return torch.export.export(graph, own, dynamic_shapes={"inputs": tuple({0: batch} for _ in own)})


def pieces(inputs: Sequence[Tensor]) -> Iterator[list[np.ndarray]]:
    """The inputs as arrays, few enough rows at a time."""
    states = inputs[0]
    arrays = [each.contiguous().numpy() for each in inputs]
    rows = max(1, CELLS // states[0, 0].numel()) if states.dim() > 2 else len(states)
    for start in range(0, len(states), rows):
        yield [each[start : start + rows] for each in arrays]


def joined(answers: Iterator[np.ndarray]) -> np.ndarray:
    """The answers to the pieces."""
    first, *more = answers
    return np.concatenate([first, *more]) if more else first
