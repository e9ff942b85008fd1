"""Forward graphs as `model.config` holds them, written by names.

lines `result = Operator(inputs)` -> config
"""

from __future__ import annotations

import re
from typing import Any

Attributes = dict[str, Any]
_LINE = re.compile(r"([\w ,]+) = ([\w.]+)\(([\w ,]*)\)")


def stored(*shape: int, dtype: str = "float32", values: list[Any] | None = None) -> Attributes:
    """Return a stored tensor."""
    return {"dtype": dtype, "shape": list(shape), **({} if values is None else {"values": values})}


def numbers(*values: int) -> Attributes:
    """Return a stored list of whole numbers."""
    return stored(len(values), dtype="int64", values=list(values))


def graph(
    lines: str,
    *,
    inputs: dict[str, list[int | str]],
    tensors: dict[str, Attributes],
    attributes: dict[str, Attributes] | None = None,
    dtype: str = "float32",
    opset: int = 17,
) -> dict[str, Any]:
    """Return the graph of *lines*; *attributes* by the first result of a node, `_` is no input."""
    known = {name: index for index, name in enumerate((*inputs, *tensors))}
    known["_"] = -1
    count = len(inputs) + len(tensors)
    nodes = []
    for line in lines.strip().splitlines():
        found = _LINE.fullmatch(line.strip())
        assert found is not None, line
        results = found[1].split(", ")
        taken = [known[name] for name in found[3].split(", ")] if found[3] else []
        for name in results:
            known[name] = count
            count += 1
        own = (attributes or {}).get(results[0], {})
        nodes.append({"op": found[2], "inputs": taken, "outputs": len(results), "attributes": own})
    return {
        "format": "onnx",
        "opset": opset,
        "inputs": [
            {"name": name, "dtype": dtype, "shape": shape} for name, shape in inputs.items()
        ],
        "tensors": [{"name": name, **tensor} for name, tensor in tensors.items()],
        "nodes": nodes,
        "outputs": [count - 1],
    }


def job(config: dict[str, Any], *, batch: int = 4, **more: Any) -> dict[str, Any]:
    """Return a job that trains the graph *config*; keys of *more* are laid over its input."""
    return {
        "framework": "pytorch",
        "frameworkVersion": "2.15.0",
        "model": {"source": "file", "name": "configmap/models/m.onnx", "config": config},
        "input": {"batchSize": batch, **more.pop("input", {})},
        "training": {"optimizer": {"name": "sgd"}, **more.pop("training", {})},
        **more,
    }


CONVOLUTIONS = graph(
    """
    a = Conv(x, w, b)
    n = BatchNormalization(a, scale, shift, mean, variance)
    r = Relu(n)
    p = MaxPool(r)
    f = Flatten(p)
    y = Gemm(f, head, bias)
    """,
    inputs={"x": ["batch", 3, 16, 16]},
    tensors={
        "w": stored(8, 3, 3, 3),
        "b": stored(8),
        "scale": stored(8, values=[1.0] * 8),
        "shift": stored(8, values=[0.0] * 8),
        "mean": stored(8, values=[0.0] * 8),
        "variance": stored(8, values=[1.0] * 8),
        "head": stored(10, 512),
        "bias": stored(10),
    },
    attributes={
        "a": {"pads": [1, 1, 1, 1]},
        "p": {"kernel_shape": [2, 2], "strides": [2, 2]},
        "y": {"transB": 1},
    },
)
AS_LAYERS = {
    "inputShape": [3, 16, 16],
    "layers": [
        {"type": "conv", "in": 3, "out": 8, "kernel": 3, "padding": 1},
        {"type": "batchNorm", "features": 8},
        {"type": "activation", "name": "relu"},
        {"type": "pooling", "kind": "max", "kernel": 2, "stride": 2},
        {"type": "flatten"},
        {"type": "linear", "in": 512, "out": 10},
    ],
}
"""The same model, built of torch's own modules."""

GROUPS = {
    "silu": ("s = Sigmoid(h)\ny = Mul(h, s)", "y = Swish(h)"),
    "gelu": (
        "d = Div(h, root)\ne = Erf(d)\na = Add(e, one)\nm = Mul(h, a)\ny = Mul(m, half)",
        "y = Gelu(h)",
    ),
    "gelu, other order": (
        "d = Mul(h, root)\ne = Erf(d)\na = Add(one, e)\nm = Mul(half, h)\ny = Mul(m, a)",
        "y = Gelu(h)",
    ),
    "layer norm": (
        "u = ReduceMean(h)\nd = Sub(h, u)\nq = Pow(d, two)\nv = ReduceMean(q)\n"
        "e = Add(v, half)\nr = Sqrt(e)\nn = Div(d, r)\nm = Mul(n, scale)\ny = Add(m, shift)",
        "y = LayerNormalization(h, scale, shift)",
    ),
}
"""Nodes that exporters write apart, and the one node they are."""


def grouped(lines: str) -> dict[str, Any]:
    """Return a layer followed by *lines*, which end in `y`."""
    factor = {name: stored(values=[value]) for name, value in
              (("root", 1.41), ("one", 1.0), ("half", 0.5), ("two", 2.0))}  # fmt: skip
    weights = {"w": stored(64, 32), "scale": stored(64), "shift": stored(64)}
    means = {name: {"axes": [-1]} for name in ("u", "v")}
    return graph(
        f"h = MatMul(x, w0)\n{lines}\nz = MatMul(y, w)",
        inputs={"x": ["batch", 16]},
        tensors={"w0": stored(16, 64), **weights, **factor},
        attributes=means,
    )


def attention(batch: int | str = 1, *, hidden: int = 32, length: int = 6) -> dict[str, Any]:
    """Return one layer of attention on tokens, exported for one batch: it is in its shapes."""
    first = batch if isinstance(batch, int) else -1
    heads = numbers(first, length, 4, hidden // 4)
    return graph(
        """
        e = Gather(table, x)
        qm = MatMul(e, wq)
        qh = Reshape(qm, heads)
        q = Transpose(qh)
        km = MatMul(e, wk)
        kh = Reshape(km, heads)
        k = Transpose(kh)
        vh = Reshape(e, heads)
        v = Transpose(vh)
        s = MatMul(q, k)
        d = Div(s, root)
        p = Softmax(d)
        o = MatMul(p, v)
        t = Transpose(o)
        j = Reshape(t, joined)
        y = MatMul(j, head)
        """,
        inputs={"x": [batch, length]},
        tensors={
            "table": stored(50, hidden),
            "wq": stored(hidden, hidden),
            "wk": stored(hidden, hidden),
            "head": stored(hidden, 50),
            "heads": heads,
            "joined": numbers(first, length, hidden),
            "root": stored(values=[2.8]),
        },
        attributes={
            "q": {"perm": [0, 2, 1, 3]},
            "k": {"perm": [0, 2, 3, 1]},
            "v": {"perm": [0, 2, 1, 3]},
            "t": {"perm": [0, 2, 1, 3]},
        },
        dtype="int64",
    )
