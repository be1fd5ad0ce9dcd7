"""Tensors as JSON and as bytes."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hybridworld.serve.limits import Refusal
from hybridworld.serve.tensors import TYPES, InputTensor, checked, read_tensors, split_body, write_answer

ARRAYS = st.sampled_from(sorted(TYPES)).flatmap(
    lambda name: hnp.arrays(TYPES[name], hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=4))
)


def read(content, rest=b""):
    return read_tensors([checked(InputTensor, each) for each in content], memoryview(rest))


def described(name, array, **more):
    datatype = next(kind for kind, dtype in TYPES.items() if dtype == array.dtype)
    return {"name": name, "shape": list(array.shape), "datatype": datatype, **more}


@given(first=ARRAYS, second=ARRAYS)
def test_bytes_come_back_as_they_were(first, second):
    body, length = write_answer({"id": "7"}, {"a": first, "b": second}, ["a", "b"])
    content, rest = split_body(body, str(length))
    assert content["id"] == "7"
    found = read(content["outputs"], rest)
    for name, array in (("a", first), ("b", second)):
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


@given(array=ARRAYS, nested=st.booleans())
def test_json_comes_back_as_it_was_and_what_is_not_finite_is_null(array, nested):
    body, length = write_answer({}, {"a": array})
    assert length is None
    (told,) = json.loads(body)["outputs"]
    finite = np.isfinite(array)
    assert [value is None for value in told["data"]] == (~finite).reshape(-1).tolist()
    if finite.all():
        data = array.tolist() if nested else told["data"]
        np.testing.assert_array_equal(read([told | {"data": data}])["a"], array)


@pytest.mark.parametrize(
    ("tensor", "sentence"),
    [
        ({"data": ["1.5", "2"]}, "must be numbers"),
        ({"data": [1.0, None]}, "must be numbers"),
        ({"data": [True, False]}, "must be numbers"),
        ({"data": [[1.0], 2.0]}, "must be numbers"),
        ({"data": [{"a": 1}, 1]}, "must be numbers"),
        ({"data": [1.0]}, r"has 1 values; its shape \[2\] needs 2"),
        ({"data": []}, "has 0 values"),
        ({"data": [10**400, 1]}, "too large for FP64"),
        ({"data": [1.5, 2], "datatype": "INT32"}, "must be whole numbers"),
        ({"data": [2**40, 2], "datatype": "INT32"}, "too large for INT32"),
        ({"data": [1, 0], "datatype": "BOOL"}, "must be true and false"),
        ({"data": [1, 2], "datatype": "BYTES"}, "datatype 'BYTES': choose BOOL, INT32"),
        ({"data": [1, 2], "shape": [-1]}, "at least 0"),
        ({"data": [1, 2], "shape": [1] * 9}, "at most 8 sizes"),
        ({}, "has no data"),
        ({"parameters": {"binary_data_size": 15}}, "its shape needs 16 bytes"),
        ({"parameters": {"binary_data_size": True}}, "binary_data_size of True"),
        ({"parameters": {"binary_data_size": 16}}, "needs 16 bytes behind the JSON, and there are 0"),
        ({"parameters": {"binary_data_size": 16}, "data": [1, 2]}, "has both data and binary_data_size"),
        ({"parameters": {"shared_memory_region": "x"}, "data": [1, 2]}, "'shared_memory_region', which is not supported"),
        ({"shape": [2**40, 2**40], "parameters": {"binary_data_size": 16}}, "needs 9671406556917033397649408 bytes"),
    ],
)
def test_what_is_no_tensor_is_refused_with_a_sentence(tensor, sentence):
    with pytest.raises(Refusal, match=sentence) as told:
        read([{"name": "x", "shape": [2], "datatype": "FP64", **tensor}])
    assert told.value.status == 422


def test_bytes_that_belong_to_nothing_and_names_that_repeat_are_refused():
    tensor = described("x", np.zeros(1), data=[0.0])
    with pytest.raises(Refusal, match="3 bytes behind the JSON that belong to no input"):
        read([tensor], b"abc")
    with pytest.raises(Refusal, match="'x' is there twice"):
        read([tensor, tensor])


@pytest.mark.parametrize(
    "body", [b"", b"{", b"\xff\xfe", b"NaN", b"[Infinity]", b"[" * 100_000, b"1" * 5_000, b'{"a": -Infinity}']
)
def test_what_is_no_json_is_refused(body):
    with pytest.raises(Refusal, match="The body is no JSON") as told:
        split_body(body, None)
    assert told.value.status == 400


@pytest.mark.parametrize("header", ["-1", "x", "", "3", "1e2", "٣", "9" * 30])
def test_a_wrong_length_of_the_json_is_refused(header):
    with pytest.raises(Refusal, match="must be a number from 0 to 2"):
        split_body(b"{}", header)


@pytest.mark.parametrize(
    ("content", "where"),
    [
        ([], "the request"),
        ({"name": 1}, "name"),
        ({"name": "x", "shape": ["1"], "datatype": "FP64"}, "shape.0"),
        ({"name": "x", "shape": [1.5], "datatype": "FP64"}, "shape.0"),
        ({"name": "x", "shape": [1], "datatype": "FP64", "extra": 1}, "extra"),
    ],
)
def test_what_does_not_fit_the_protocol_is_told_with_its_place(content, where):
    with pytest.raises(Refusal, match=f"at '{where}'"):
        checked(InputTensor, content)
