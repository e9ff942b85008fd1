"""The graph of an ONNX file: what is read of it; what nobody exports is a named problem."""

from __future__ import annotations

import struct
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission.detect.onnx_graph import MAX_NODES, read_graph
from admission.detect.protobuf import MessageError
from tests.admission.detect.onnx_files import (
    INT64,
    PERCEPTRON,
    attribute,
    model,
    node,
    number,
    part,
    shape_of,
    tensor,
    value,
    varint,
)

X = value("x", "batch", 4)


def test_a_graph_is_numbered_inputs_then_tensors_then_results() -> None:
    """Names go, shapes stay, and only what says a shape is read of the data."""
    graph = read_graph(PERCEPTRON)

    assert graph == {
        "format": "onnx",
        "opset": 17,
        "producer": "pytorch",
        "inputs": [{"name": "x", "dtype": "float32", "shape": ["batch", 12]}],
        "tensors": [
            {"name": "w", "dtype": "float32", "shape": [10, 12]},
            {"name": "b", "dtype": "float32", "shape": [10]},
            {"name": "s", "dtype": "int64", "shape": [2], "values": [-1, 10]},
        ],
        "nodes": [
            {"op": "Gemm", "inputs": [0, 1, 2], "outputs": 1, "attributes": {"transB": 1}},
            {"op": "Relu", "inputs": [4], "outputs": 1},
            {"op": "Reshape", "inputs": [5, 3], "outputs": 1},
        ],
        "outputs": [6],
    }


def test_weights_in_the_file_are_stepped_over() -> None:
    """The same graph comes out whether a megabyte of weights is in the file or not."""
    nodes = (node("MatMul", "x w", "y"),)
    within = model(*nodes, inputs=(X,), tensors=(tensor("w", (4, 65_536), data=bytes(1 << 20)),))
    beside = model(*nodes, inputs=(X,), tensors=(tensor("w", (4, 65_536)),))

    assert read_graph(within) == read_graph(beside)


def test_constants_are_tensors_that_are_not_trained() -> None:
    """A node `Constant` has no inputs: its tensor is stored like others, and marked."""
    stored = part(1, "value") + part(5, shape_of("", (2, 3)))
    graph = read_graph(
        model(node("Reshape", "x s", "y"), node("Constant", "", "s", stored), inputs=(X,))
    )

    assert graph["tensors"] == [
        {"name": "s", "dtype": "int64", "shape": [2], "values": [2, 3], "constant": True}
    ]


def test_operators_of_other_domains_keep_them() -> None:
    """`Gelu` of Microsoft's is not the `Gelu` of ONNX."""
    graph = read_graph(model(node("FastGelu", "x", "y", domain="com.microsoft"), inputs=(X,)))

    assert graph["nodes"][0]["op"] == "com.microsoft.FastGelu"


def test_infinity_and_the_least_number_become_numbers_of_a_spec() -> None:
    """Masks are filled with minus infinity, slices start at the least number of 64 bits."""
    low = tensor("l", (), data=struct.pack("<f", float("-inf")))
    first = tensor("f", (1,), kind=INT64, data=struct.pack("<q", -(1 << 63)))
    graph = read_graph(model(node("Foo", "x l f", "y"), inputs=(X,), tensors=(low, first)))

    assert [each["values"] for each in graph["tensors"]] == [[-3.4028235e38], [1 - (1 << 63)]]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "no ONNX model"),
        (number(1, 8), "no ONNX model"),
        (PERCEPTRON[:-40], "cut off"),
        (number(1, 8) + varint(7 << 3 | 2) + varint(2 << 30), "cut off"),
        (number(1, 8) + varint(7 << 3 | 2) + b"\xff" * 11, "does not end"),
        (number(1, 8) + varint(7 << 3 | 3), "no kind"),
        (number(1, 8) + part(7, b"") + part(7, b""), "two graphs"),
        (number(1, 8) + number(7, 3), "bytes are expected"),
        (model(node("Add", "x z", "y"), inputs=(X,)), "no node before Add makes z"),
        (
            model(node("Add", "x b", "a"), node("Add", "a x", "b"), inputs=(X,), outputs=("b",)),
            "a cycle",
        ),
        (model(node("Relu", "x", "x"), inputs=(X,), outputs=("x",)), "of one name"),
        (model(node("Relu", "x", "y"), inputs=(X,), outputs=("q",)), "makes q"),
        (
            model(node("Add", "x w", "y"), inputs=(X,), tensors=(tensor("w", (1 << 50,)),)),
            "dimension that no tensor has",
        ),
        (
            model(node("Add", "x w", "y"), inputs=(X,), tensors=(tensor("w", (-1,)),)),
            "dimension that no tensor has",
        ),
        (
            model(node("Add", "x w", "y"), inputs=(X,), tensors=(tensor("w", (1,) * 17),)),
            "more than 16 dimensions",
        ),
        (model(node("Relu", "x" + "x" * 2_000, "y"), inputs=(X,)), "name of more than"),
        (model(*[node("Relu", "x", "")] * (MAX_NODES + 1), inputs=(X,)), "nodes"),
        (model(node("Sum", " ".join(["x"] * 65), "y"), inputs=(X,)), "more than 64 results"),
        (number(1, 8) * 150_001, "more than 150000 fields"),
        (
            model(
                *[
                    node("Sum", " ".join(f"t{n}" for n in range(start, start + 50)), f"y{start}")
                    for start in range(0, 3_000, 50)
                ],
                inputs=(X,),
                tensors=tuple(shape_of(f"t{n}", (1,) * 64) for n in range(3_000)),
                outputs=("y0",),
            ),
            "more than 150000 values",
        ),
    ],
)
def test_what_nobody_exports_says_why(content: bytes, problem: str) -> None:
    """Cut off, with sizes of gigabytes, in a circle, or without end."""
    with pytest.raises(MessageError, match=problem):
        read_graph(content)


def test_data_of_a_tensor_that_lies_about_its_size_is_not_taken() -> None:
    """A shape of two numbers with five in its data has no known values."""
    wrong = tensor("s", (2,), kind=INT64, data=struct.pack("<5q", 1, 2, 3, 4, 5))
    graph = read_graph(model(node("Reshape", "x s", "y"), inputs=(X,), tensors=(wrong,)))

    assert "values" not in graph["tensors"][0]


def test_long_lists_of_attributes_are_not_read() -> None:
    """No attribute of a model that trains has so many: the operator says what it misses."""
    graph = read_graph(model(node("Foo", "x", "y", attribute("a", *range(65))), inputs=(X,)))

    assert "attributes" not in graph["nodes"][0]


@given(st.binary(max_size=200), st.integers(0, len(PERCEPTRON)), st.integers(0, 200))
def test_damaged_files_raise_nothing_else(noise: bytes, start: int, length: int) -> None:
    """Whatever stands in a file, it is a graph of JSON types or a named problem."""
    damaged = PERCEPTRON[:start] + noise + PERCEPTRON[start + length :]
    found: Any = None
    with suppress(MessageError):
        found = read_graph(damaged)

    assert found is None or found["format"] == "onnx"
