"""A convolution as cuDNN's operation graph.

Question -> finalized descriptor
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from estimator.cudnn import names
from estimator.cudnn.backend import Backend, Descriptor
from estimator.cudnn.questions import Direction, Question

ALIGNMENT = 64
"""Bytes. `getAlignment` of PyTorch's Conv_v8.cpp gives at most this, and its allocator's blocks
have it. 120 convolutions had the same plans with 16 and with 32."""

_DTYPES = {
    "float32": names.DATA_FLOAT,
    "float64": names.DATA_DOUBLE,
    "float16": names.DATA_HALF,
    "bfloat16": names.DATA_BFLOAT16,
}
_OPERATIONS = {
    Direction.FORWARD: names.FORWARD,
    Direction.DATA: names.BACKWARD_DATA,
    Direction.WEIGHT: names.BACKWARD_FILTER,
}


def graph_of(question: Question, backend: Backend, stack: ExitStack) -> Descriptor:
    """Return the operation graph of *question*; it and its parts end with *stack*.

    Raises:
        LibraryError: if cuDNN does not take the convolution.
    """
    code = _OPERATIONS[question.direction]
    operation = backend.new(code.descriptor, stack)
    operation.set_float(code.alpha, 1.0)
    operation.set_float(code.beta, 0.0)
    operation.set_descriptor(code.convolution, _convolution(question, backend, stack))
    tensors = (("x", question.input), ("w", question.weight), ("y", question.output))
    for (name, shape), attribute in zip(tensors, (code.x, code.w, code.y), strict=True):
        tensor = backend.new(names.TENSOR_DESCRIPTOR, stack)
        _describe(tensor, name, shape, question)
        operation.set_descriptor(attribute, tensor)
    operation.finalize()
    graph = backend.new(names.OPERATIONGRAPH_DESCRIPTOR, stack)
    graph.set_descriptor(names.OPERATIONGRAPH_OPS, operation)
    graph.finalize()
    return graph


def _convolution(question: Question, backend: Backend, stack: ExitStack) -> Descriptor:
    """Return the convolution; it computes in float, for float64 in double."""
    compute = names.DATA_DOUBLE if question.dtype == "float64" else names.DATA_FLOAT
    mode = names.CROSS_CORRELATION
    convolution = backend.new(names.CONVOLUTION_DESCRIPTOR, stack)
    convolution.set_enum(names.CONVOLUTION_COMP_TYPE, names.TYPE_DATA_TYPE, compute)
    convolution.set_enum(names.CONVOLUTION_CONV_MODE, names.TYPE_CONVOLUTION_MODE, mode)
    convolution.set_integers(names.CONVOLUTION_SPATIAL_DIMS, (len(question.stride),))
    convolution.set_integers(names.CONVOLUTION_DILATIONS, question.dilation)
    convolution.set_integers(names.CONVOLUTION_FILTER_STRIDES, question.stride)
    convolution.set_integers(names.CONVOLUTION_PRE_PADDINGS, question.padding)
    convolution.set_integers(names.CONVOLUTION_POST_PADDINGS, question.padding)
    convolution.finalize()
    return convolution


def _describe(tensor: Descriptor, name: str, shape: Sequence[int], question: Question) -> None:
    tensor.set_integers(names.TENSOR_UNIQUE_ID, (ord(name),))
    tensor.set_enum(names.TENSOR_DATA_TYPE, names.TYPE_DATA_TYPE, _DTYPES[question.dtype])
    tensor.set_integers(names.TENSOR_BYTE_ALIGNMENT, (ALIGNMENT,))
    tensor.set_integers(names.TENSOR_DIMENSIONS, shape)
    tensor.set_integers(names.TENSOR_STRIDES, strides(shape, last=question.channels_last))
    tensor.finalize()


def strides(shape: Sequence[int], *, last: bool) -> tuple[int, ...]:
    """Return the strides of a dense tensor, contiguous or with its channels *last*."""
    order = (0, *range(2, len(shape)), 1) if last else range(len(shape))
    found = [0] * len(shape)
    step = 1
    for axis in reversed(order):
        found[axis] = step
        step *= shape[axis]
    return tuple(found)
