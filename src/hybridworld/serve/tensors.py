"""Tensors of the Open Inference Protocol: as JSON, or as raw bytes behind the JSON (Triton's binary-data extension).

    { "inputs": [{"name", "shape", "datatype", "parameters": {"binary_data_size": n}}, ...] }  n bytes ...
    <-------------- Inference-Header-Content-Length bytes -------------->

Numbers are little-endian and row-major. Nothing is ever unpickled.
"""

import json
import warnings
from collections.abc import Iterable, Mapping
from itertools import chain
from math import prod
from typing import Any, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hybridworld.serve.limits import Refusal

HEADER = "inference-header-content-length"
TYPES = {
    "BOOL": np.dtype("?"), "INT32": np.dtype("<i4"), "INT64": np.dtype("<i8"),
    "FP32": np.dtype("<f4"), "FP64": np.dtype("<f8"),
}  # fmt: skip
NAMES = {dtype: name for name, dtype in TYPES.items()}

Scalar = bool | int | float | str


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


DECODER, ENCODER = json.JSONDecoder(parse_constant=_no_constant), json.JSONEncoder(allow_nan=False)
"""Made once: with options, `json.loads` and `json.dumps` make a new one for each request."""
M = TypeVar("M", bound=BaseModel)


class Strict(BaseModel):
    """Types as they are, and no unknown names: a slip is told, not passed over."""

    model_config = ConfigDict(strict=True, extra="forbid")


class InputTensor(Strict):
    """A tensor of a request, with `data` (row-major, nested or flat) or with `binary_data_size` bytes behind the JSON."""

    name: str
    shape: list[int]
    datatype: str = Field(description=", ".join(TYPES))
    data: list[Any] | None = None
    parameters: dict[str, Scalar] = Field(default_factory=dict)


class OutputRequest(Strict):
    """An output that is wanted; `binary_data` true: as bytes behind the JSON."""

    name: str
    parameters: dict[str, Scalar] = Field(default_factory=dict)


class OutputTensor(Strict):
    """A tensor of an answer. Numbers that are not finite are null in JSON."""

    name: str
    shape: list[int]
    datatype: str
    data: list[Any] | None = None
    parameters: dict[str, Scalar] | None = None


def split_body(body: bytes, header: str | None) -> tuple[Any, memoryview]:
    """The JSON of a body, and the bytes behind it. `header` is the value of Inference-Header-Content-Length."""
    length = len(body)
    if header is not None:
        if not (header.isascii() and header.isdigit() and len(header) < 20 and int(header) <= length):
            raise Refusal(400, f"Inference-Header-Content-Length must be a number from 0 to {length}, the size of the body.")
        length = int(header)
    text = body[:length]
    try:
        content = DECODER.decode(text.decode(json.detect_encoding(text), "surrogatepass"))
    except (ValueError, RecursionError) as error:
        raise Refusal(400, f"The body is no JSON: {str(error).rstrip('.') or type(error).__name__}.") from error
    return content, memoryview(body)[length:]


def checked(kind: type[M], content: Any) -> M:
    """The content as a model of that kind; raises with the first thing that is wrong."""
    try:
        return kind.model_validate(content)
    except (ValidationError, RecursionError) as error:
        if isinstance(error, RecursionError):
            raise Refusal(422, "The request is nested too deeply.") from error
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "the request"
        raise Refusal(422, f"The request does not fit the protocol at '{where[:200]}': {first['msg']}.") from error


def read_tensors(tensors: Iterable[InputTensor], rest: memoryview) -> dict[str, np.ndarray]:
    """Name -> array, in the datatype that was sent."""
    found: dict[str, np.ndarray] = {}
    for tensor in tensors:
        if tensor.name in found:
            raise Refusal(422, f"The input '{tensor.name[:80]}' is there twice.")
        dtype = TYPES.get(tensor.datatype)
        if dtype is None:
            raise Refusal(422, f"{_named(tensor)} has the datatype '{tensor.datatype[:40]}': choose {', '.join(TYPES)}.")
        if any(size < 0 for size in tensor.shape) or len(tensor.shape) > 8:
            raise Refusal(422, f"{_named(tensor)} has the shape {tensor.shape[:9]}: at most 8 sizes of at least 0.")
        unknown = set(tensor.parameters) - {"binary_data_size"}
        if unknown:
            raise Refusal(422, f"{_named(tensor)} has the parameter '{min(unknown)[:80]}', which is not supported.")
        if "binary_data_size" in tensor.parameters:
            found[tensor.name], rest = _from_bytes(tensor, dtype, rest)
        else:
            found[tensor.name] = _from_json(tensor, dtype)
    if len(rest):
        raise Refusal(422, f"There are {len(rest)} bytes behind the JSON that belong to no input.")
    return found


def write_answer(
    answer: Mapping[str, Any], tensors: Mapping[str, np.ndarray], binary: Iterable[str] = ()
) -> tuple[bytes, int | None]:
    """The body with `tensors` as its outputs, and the length of its JSON where bytes of the `binary` ones follow it."""
    outputs, tail, wanted = [], [], set(binary)
    for name, values in tensors.items():
        array = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
        told: dict[str, Any] = {"name": name, "shape": list(values.shape), "datatype": NAMES[array.dtype]}
        if name in wanted:
            tail.append(array.tobytes())
            told["parameters"] = {"binary_data_size": len(tail[-1])}
        else:
            told["data"] = _to_json(array)
        outputs.append(told)
    text = ENCODER.encode({**answer, "outputs": outputs}).encode()
    return b"".join([text, *tail]), len(text) if wanted else None


def _named(tensor: InputTensor) -> str:
    return f"The input '{tensor.name[:80]}'"


def _from_bytes(tensor: InputTensor, dtype: np.dtype, rest: memoryview) -> tuple[np.ndarray, memoryview]:
    size = tensor.parameters["binary_data_size"]
    expected = prod(tensor.shape) * dtype.itemsize
    if tensor.data is not None:
        raise Refusal(422, f"{_named(tensor)} has both data and binary_data_size: give one of them.")
    if isinstance(size, bool) or size != expected:
        raise Refusal(422, f"{_named(tensor)} has a binary_data_size of {str(size)[:40]}; its shape needs {expected} bytes.")
    if len(rest) < expected:
        raise Refusal(422, f"{_named(tensor)} needs {expected} bytes behind the JSON, and there are {len(rest)}.")
    return np.frombuffer(rest[:expected], dtype).reshape(tensor.shape), rest[expected:]


def _from_json(tensor: InputTensor, dtype: np.dtype) -> np.ndarray:
    if tensor.data is None:
        raise Refusal(422, f"{_named(tensor)} has no data.")
    flat: list[Any] = tensor.data
    for _ in tensor.shape[1:]:
        if not flat or type(flat[0]) is not list:
            break
        if any(type(each) is not list for each in flat):
            raise _no_numbers(tensor)
        flat = list(chain.from_iterable(flat))
    kinds = set(map(type, flat))
    if not kinds <= ({bool} if dtype.kind == "b" else {int} if dtype.kind == "i" else {int, float}):
        raise _no_numbers(tensor)
    if len(flat) != prod(tensor.shape):
        raise Refusal(422, f"{_named(tensor)} has {len(flat)} values; its shape {tensor.shape} needs {prod(tensor.shape)}.")
    try:
        with warnings.catch_warnings(), np.errstate(over="ignore"):
            warnings.simplefilter("ignore", RuntimeWarning)
            return np.array(flat, dtype if dtype.kind != "f" else np.float64).astype(dtype).reshape(tensor.shape)
    except OverflowError as error:
        raise Refusal(422, f"{_named(tensor)} holds a number that is too large for {tensor.datatype}.") from error


def _no_numbers(tensor: InputTensor) -> Refusal:
    kind = {"BOOL": "true and false", "INT32": "whole numbers", "INT64": "whole numbers"}.get(tensor.datatype, "numbers")
    return Refusal(422, f"The data of the input '{tensor.name[:80]}' must be {kind}, in a flat list or nested as its shape.")


def _to_json(array: np.ndarray) -> list[Any]:
    flat = array.reshape(-1)
    if array.dtype.kind != "f" or np.isfinite(flat).all():
        return flat.tolist()
    return [value if np.isfinite(value) else None for value in flat.tolist()]
