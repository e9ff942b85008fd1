"""What convolutions take on a card beside their output: layout copies, and cuDNN's workspace.

Node, types of its inputs -> allocations and kernels of a Trace

On a card with tensor cores for its dtype a convolution runs channels-last, else Grappler's layout
pass has turned the graph to channels-first: either way data need no copy. Filters always do: they
are stored H, W, in, out. cuDNN pads both sides alike, so a padding that is not symmetric makes a
padded copy of the input, or of its gradient. The input's gradient is computed beside the output
it then becomes. A filter of one pixel, channels-last and not strided, is a matrix product.

Depthwise convolutions are TensorFlow's own kernels, without scratch.
Not modelled: cuDNN's grouped kernels for 16-bit depthwise filters.

Source: tensorflow/tensorflow@024ada2d3ef7851490131a468a1fa7748c102f22
tensorflow/core/kernels/conv_ops_impl.h (`LaunchConvOpImpl`);
conv_ops_gpu.cc@02a6dd023be38a2ce9a3324a9da00b611099a076 (`ComputeInNhwcEnabled`). Recalled:
conv_grad_input_ops.cc, conv_grad_filter_ops.cc (`pre_transformed_in_backprop`,
`pre_transformed_filter_backprop`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from estimator.frontends.tensorflow.graph import SIZES, Node, TensorType
from estimator.trace import Kernel, Role, TensorFacts, TraceBuilder

FORWARD, INPUT, FILTER = "forward", "input", "filter"
CONVOLUTIONS: Mapping[str, str] = {
    "Conv2D": FORWARD,
    "Conv3D": FORWARD,
    "Conv2DBackpropInput": INPUT,
    "Conv3DBackpropInputV2": INPUT,
    "Conv2DBackpropFilter": FILTER,
    "Conv3DBackpropFilterV2": FILTER,
}
"""Operator -> which product it is."""
OPERATOR = {
    FORWARD: "aten.convolution",
    INPUT: "aten.convolution_backward",
    FILTER: "aten.convolution_backward",
}
"""The names kernels know the three products by."""
AUTOTUNE = "tensorflow"
"""Who searches for the fastest plan: TensorFlow tries all within its limit, one at a time."""
TENSOR_CORE_DTYPES = frozenset({"float16", "bfloat16"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shapes:
    """A convolution's shapes, batch and channels first, whatever product it is."""

    source: tuple[int, ...]
    weight: tuple[int, ...]
    target: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    dtype: str

    @property
    def uneven(self) -> tuple[int, ...]:
        """Pixels by which the two sides' padding differs, by dimension."""
        return tuple(abs(before - after) for before, after in self.padding)

    @property
    def padded(self) -> tuple[int, ...]:
        """The input's shape once its padding is the same on both sides."""
        spatial = zip(self.source[2:], self.uneven, strict=True)
        return (*self.source[:2], *(size + more for size, more in spatial))

    @property
    def is_pointwise(self) -> bool:
        """Return whether it is a matrix product of pixels."""
        ones = (*self.weight[2:], *self.stride, *self.dilation)
        return all(each == 1 for each in ones) and self.weight[1] == self.source[1]

    def nbytes(self, shape: Sequence[int]) -> int:
        """Return the bytes of a tensor of *shape*."""
        size: int = SIZES[self.dtype]
        return math.prod(shape) * size


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """Records library calls as a card with these traits makes them."""

    tensor_cores_for_fp32: bool
    """Ampere and newer, TF32 allowed."""
    limit: int
    """Most bytes of a workspace that the search may use."""
    deterministic: bool = False
    autotune: bool = True

    def record(self, node: Node, kinds: Sequence[TensorType], builder: TraceBuilder) -> None:
        """Record what *node* takes beside its outputs, which are allocated already."""
        product = CONVOLUTIONS.get(node.operator)
        if product is None:
            return
        shapes = _shapes_of(node, kinds, product)
        if shapes is None:
            return
        is_last = shapes.dtype in TENSOR_CORE_DTYPES or (
            shapes.dtype == "float32" and self.tensor_cores_for_fp32
        )
        if is_last and shapes.is_pointwise:
            return
        taken = [
            builder.alloc(nbytes, Role.WORKSPACE)
            for nbytes in _copies(shapes, product)
            if nbytes > 0
        ]
        builder.kernel(self._kernel(shapes, product, is_last))
        for tensor in reversed(taken):
            builder.free(tensor)

    def _kernel(self, shapes: _Shapes, product: str, is_last: bool) -> Kernel:
        operands = tuple(
            TensorFacts(shape=shape, dtype=shapes.dtype, channels_last=is_last)
            for shape in (shapes.padded, shapes.weight, shapes.target)
        )
        common = tuple(min(pair) for pair in shapes.padding)
        attributes: list[tuple[str, Any]] = [
            ("stride", shapes.stride),
            ("padding", common),
            ("dilation", shapes.dilation),
            ("groups", shapes.source[1] // shapes.weight[1]),
            ("transposed", False),
            ("benchmark", self.autotune),
            ("deterministic", self.deterministic),
            ("allow_tf32", True),
            ("autotune", AUTOTUNE),
            ("workspace_limit", self.limit),
        ]
        if product != FORWARD:
            attributes.append(("output_mask", (int(product == INPUT), int(product == FILTER), 0)))
        return Kernel(operator=OPERATOR[product], operands=operands, attributes=tuple(attributes))


def _copies(shapes: _Shapes, product: str) -> list[int]:
    """Return what is taken around the call: copies in another layout or with more padding."""
    filters = shapes.nbytes(shapes.weight)
    padded = shapes.nbytes(shapes.padded)
    is_uneven = any(shapes.uneven)
    match product:
        case "forward":
            return [padded if is_uneven else 0, filters]
        case "input":
            return [filters, padded, shapes.nbytes(shapes.source) if is_uneven else 0]
        case _:
            return [padded if is_uneven else 0, filters]


def _shapes_of(node: Node, kinds: Sequence[TensorType], product: str) -> _Shapes | None:
    """Return the shapes of the convolution of *node*, None if they are not all known."""
    output = node.outputs[0]
    source, weight, target = {
        FORWARD: lambda: (kinds[0], kinds[1], output),
        INPUT: lambda: (output, kinds[1], kinds[2]),
        FILTER: lambda: (kinds[0], output, kinds[2]),
    }[product]()
    if source.shape is None or weight.shape is None or target.shape is None:
        return None
    if len(source.shape) != len(weight.shape) or len(source.shape) < 3:
        return None
    data_format = node.attributes["data_format"].s.decode() or "NHWC"
    is_last = data_format.endswith("C")
    strides = _spatial(node, "strides", is_last)
    dilations = _spatial(node, "dilations", is_last) or (1,) * len(strides)
    planes = weight.shape[:-2]
    images = _first(source.shape, is_last)
    return _Shapes(
        source=images,
        weight=(weight.shape[-1], weight.shape[-2], *planes),
        target=_first(target.shape, is_last),
        stride=strides,
        dilation=dilations,
        padding=_padding(node, images[2:], planes, strides, dilations, is_last),
        dtype=output.dtype,
    )


def _first(shape: tuple[int, ...], is_last: bool) -> tuple[int, ...]:
    """Return *shape* with its channels first."""
    return (shape[0], shape[-1], *shape[1:-1]) if is_last else shape


def _spatial(node: Node, name: str, is_last: bool) -> tuple[int, ...]:
    values = tuple(node.attributes[name].list.i)
    return values[1:-1] if is_last else values[2:]


def _padding(
    node: Node,
    images: Sequence[int],
    planes: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    is_last: bool,
) -> tuple[tuple[int, int], ...]:
    """Return the pixels before and behind by dimension, as TensorFlow computes them."""
    kind = node.attributes["padding"].s.decode()
    if kind == "EXPLICIT":
        values = tuple(node.attributes["explicit_paddings"].list.i)
        pairs = tuple(zip(values[::2], values[1::2], strict=True))
        return pairs[1:-1] if is_last else pairs[2:]
    if kind == "VALID":
        return ((0, 0),) * len(images)
    found = []
    for size, plane, stride, dilation in zip(images, planes, strides, dilations, strict=True):
        reach = (plane - 1) * dilation + 1
        whole = max(0, (-(-size // stride) - 1) * stride + reach - size)
        found.append((whole // 2, whole - whole // 2))
    return tuple(found)
