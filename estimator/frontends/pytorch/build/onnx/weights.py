"""What the stored tensors of a graph are: trained, kept beside, or numbers.

    Graph -> Kind of each tensor

No file says what was trained. Taken as trained: every fraction of more than one element, except
where an operator has it as a running mean, a factor or a mask. More states than a job has may come
of that, never fewer.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from enum import Enum, auto

from estimator.frontends.pytorch.build.onnx.call import DTYPES, MAIN
from estimator.frontends.pytorch.build.onnx.graph import Graph, Stored

FRACTIONS = ("float32", "float16", "bfloat16", "float64")
_BESIDE: Mapping[str, tuple[int, ...]] = {
    "Clip": (1, 2),
    "Dropout": (1, 2),
    "Pad": (1, 2),
    "Resize": (1, 2, 3),
    "Upsample": (1,),
    "Where": (0,),
}
"""Inputs that are never trained."""
_RUNNING = {("BatchNormalization", 3), ("BatchNormalization", 4)}
"""Means and variances: on the card, however few."""
_SURELY: Mapping[str, tuple[int, ...]] = {
    "Conv": (1, 2),
    "ConvTranspose": (1, 2),
    "Gemm": (1, 2),
    "MatMul": (0, 1),
    "BatchNormalization": (1, 2),
    "PRelu": (1,),
}
"""Inputs that are trained even if they are a single element."""


class Kind(Enum):
    """What a stored tensor is to a job."""

    TRAINED = auto()
    BESIDE = auto()
    """On the card, without a gradient."""
    NUMBERS = auto()
    """On the host: its numbers are known, and say a shape or a factor."""


def kinds_of(graph: Graph) -> list[Kind]:
    """Return what each stored tensor of *graph* is, in order."""
    uses: dict[int, set[tuple[str, int]]] = defaultdict(set)
    takers: dict[int, set[str]] = defaultdict(set)
    count = graph.first_result
    results = []
    for node in graph.nodes:
        results.append(count)
        count += node.outputs
        for place, number in enumerate(node.inputs):
            uses[number].add((node.op, place))
            takers[number].add(node.op)
    masks = {
        number
        for node, made in zip(graph.nodes, results, strict=True)
        if node.op == "Add" and "Softmax" in takers[made]
        for number in node.inputs
    }
    first = len(graph.inputs)
    return [
        _kind(tensor, uses[first + index], is_mask=first + index in masks)
        for index, tensor in enumerate(graph.tensors)
    ]


def _kind(tensor: Stored, uses: set[tuple[str, int]], *, is_mask: bool) -> Kind:
    if tensor.dtype not in FRACTIONS or tensor.constant:
        return Kind.NUMBERS if tensor.values is not None else Kind.BESIDE
    if any(place in _SURELY.get(op, ()) for op, place in uses):
        return Kind.TRAINED
    if uses <= _RUNNING:
        return Kind.BESIDE
    is_beside = is_mask or all(place in _BESIDE.get(op, ()) for op, place in uses)
    if tensor.values is not None and (is_beside or math.prod(tensor.shape) <= 1):
        return Kind.NUMBERS
    return Kind.BESIDE if is_beside else Kind.TRAINED


def main_type(graph: Graph) -> str:
    """Return the type that most stored fractions of *graph* have."""
    counts: Counter[str] = Counter()
    for tensor in graph.tensors:
        if tensor.dtype in FRACTIONS and tensor.dtype in DTYPES:
            counts[tensor.dtype] += math.prod(tensor.shape)
    return counts.most_common(1)[0][0] if counts else MAIN
