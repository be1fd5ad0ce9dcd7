"""Plain HTTP, for what no decent client would send."""

import http.client
import json

import numpy as np

from hybridworld.serve.tensors import TYPES

HEADER = "Inference-Header-Content-Length"


def send(port, method, path, body=None, headers=None):
    """Status, headers, body."""
    here = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    try:
        here.request(method, path, body, headers or {})
        response = here.getresponse()
        return response.status, dict(response.getheaders()), response.read()
    finally:
        here.close()


def sentence(told):
    """What a refusal says."""
    return json.loads(told[2])["error"]


def packed(content, **tensors):
    """A request with tensors as bytes: body and headers."""
    described, tail = [], b""
    for name, values in tensors.items():
        array = np.ascontiguousarray(values)
        kind, size = next(kind for kind, dtype in TYPES.items() if dtype == array.dtype), {"binary_data_size": array.nbytes}
        described.append({"name": name, "shape": list(array.shape), "datatype": kind, "parameters": size})
        tail += array.tobytes()
    text = json.dumps({**content, "inputs": described}).encode()
    return text + tail, {HEADER: str(len(text))}


def unpacked(told):
    """The JSON of an answer, and its tensors."""
    assert told[0] == 200, told[2][:500]
    headers = {name.lower(): value for name, value in told[1].items()}
    start = int(headers[HEADER.lower()])
    content, tensors = json.loads(told[2][:start]), {}
    for each in content["outputs"]:
        size = each["parameters"]["binary_data_size"]
        tensors[each["name"]] = np.frombuffer(told[2][start : start + size], TYPES[each["datatype"]]).reshape(each["shape"])
        start += size
    assert start == len(told[2])
    return content, tensors


def infer_request(states, horizons, params, **parameters):
    """The body and headers of an infer request."""
    tensors = {"state": states, "horizon": np.reshape(np.asarray(horizons, np.float64), (-1, 1))}
    if params.shape[1]:
        tensors["params"] = params
    return packed({"parameters": {"binary_data_output": True, **parameters}}, **tensors)
