"""Layers: convolution, pooling, fully connected, upsampling.

Source: apache/mxnet@1.9.1 `src/operator/nn/{convolution,deconvolution,pooling,fully_connected,
upsampling}.cc`, `src/operator/contrib/{bilinear_resize,adaptive_avg_pooling}.cc`.
Not modelled: sparse weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from estimator.frontends.mxnet.attributes import Attributes
from estimator.frontends.mxnet.graph import (
    NOTHING_SHARED,
    Entry,
    Node,
    Shape,
    Sharing,
)
from estimator.frontends.mxnet.operators.base import (
    Call,
    Gradient,
    Inferred,
    Operator,
    Types,
    backward,
)
from estimator.frontends.mxnet.operators.gradients import from_nothing

WIDE = "float32"
SECOND = Sharing(pairs=((1, 0),))


def channels_axis(attributes: Attributes, rank: int) -> int:
    """Return the axis of channels: last in layouts such as NHWC."""
    return rank - 1 if attributes.text("layout").endswith("C") else 1


def spatial_axes(attributes: Attributes, rank: int) -> range:
    """Return the axes of space."""
    return range(1, rank - 1) if attributes.text("layout").endswith("C") else range(2, rank)


def _window(call: Call) -> tuple[tuple[int, ...], ...]:
    """Return kernel, stride, dilation and padding, one value a dimension of space."""
    attributes = call.attributes
    kernel = attributes.integers("kernel")
    rank = len(kernel)
    if not kernel or rank + 2 != len(call.data):
        raise call.wrong(f"a kernel of {rank} dimensions on data of shape {call.data}")
    stride = attributes.integers("stride", rank, 1)
    dilation = attributes.integers("dilate", rank, 1)
    padding = attributes.integers("pad", rank, 0)
    if any(len(each) != rank for each in (stride, dilation, padding)) or min(*stride, *kernel) < 1:
        raise call.wrong("stride, dilation, padding and kernel do not go together")
    return kernel, stride, dilation, padding


def _placed(call: Call, channels: int, space: Sequence[int]) -> Shape:
    """Return a shape of the data's layout."""
    batch = call.data[0]
    if call.attributes.text("layout").endswith("C"):
        return (batch, *space, channels)
    return (batch, channels, *space)


def _positive(call: Call, shape: Shape) -> Shape:
    if any(size < 1 for size in shape):
        raise call.wrong(f"its output would be of shape {shape}; data of {call.data} is too small")
    return shape


def _convolution(call: Call) -> Inferred:
    attributes, data = call.attributes, call.data
    kernel, stride, dilation, padding = _window(call)
    filters, groups = attributes.integer("num_filter"), attributes.integer("num_group", 1)
    channels = data[channels_axis(attributes, len(data))]
    if groups < 1 or filters < 1 or channels % groups or filters % groups:
        raise call.wrong(f"{filters} filters in {groups} groups on {channels} channels")
    space = [
        (data[axis] + 2 * pad - (hole * (size - 1) + 1)) // step + 1
        for axis, size, step, hole, pad in zip(
            spatial_axes(attributes, len(data)), kernel, stride, dilation, padding, strict=True
        )
    ]
    narrow = channels // groups
    last = attributes.text("layout").endswith("C")
    weight = (filters, *kernel, narrow) if last else (filters, narrow, *kernel)
    output = _positive(call, _placed(call, filters, space))
    return Inferred([output], [data, weight, (filters,)][: len(call.inputs)])


def _deconvolution(call: Call) -> Inferred:
    attributes, data = call.attributes, call.data
    kernel, stride, dilation, padding = _window(call)
    filters, groups = attributes.integer("num_filter"), attributes.integer("num_group", 1)
    channels = data[channels_axis(attributes, len(data))]
    if groups < 1 or filters % groups:
        raise call.wrong(f"{filters} filters in {groups} groups")
    target = attributes.integers("target_shape")
    extra = attributes.integers("adj", len(kernel), 0)
    space = list(target) or [
        step * (data[axis] - 1) + hole * (size - 1) + 1 - 2 * pad + more
        for axis, size, step, hole, pad, more in zip(
            spatial_axes(attributes, len(data)),
            kernel, stride, dilation, padding, extra, strict=True,
        )
    ]  # fmt: skip
    weight = (channels, filters // groups, *kernel)
    output = _positive(call, _placed(call, filters, space))
    return Inferred([output], [data, weight, (filters,)][: len(call.inputs)])


def _pooled(size: int, window: int, step: int, pad: int, convention: str) -> int:
    if convention == "full":
        return 1 - (-(size + 2 * pad - window) // step)
    if convention == "same":
        return -(-(size + 2 * pad) // step)
    return 1 + (size + 2 * pad - window) // step


def _pooling(call: Call) -> Inferred:
    attributes, data = call.attributes, call.data
    axes = spatial_axes(attributes, len(data))
    channels = data[channels_axis(attributes, len(data))]
    if attributes.flag("global_pool"):
        space = [1] * len(axes)
    else:
        kernel, stride, _, padding = _window(call)
        convention = attributes.text("pooling_convention", "valid")
        space = [
            _pooled(data[axis], size, step, pad, convention)
            for axis, size, step, pad in zip(axes, kernel, stride, padding, strict=True)
        ]
    output = _positive(call, _placed(call, channels, space))
    return Inferred([output] * len(call.outputs), [data])


def pools_keep_indices(attributes: Attributes) -> int:
    """Return the outputs of a pooling in builds with oneDNN: the second holds indices.

    Source: apache/mxnet@1.9.1 `src/operator/nn/mkldnn/mkldnn_pooling-inl.h`
    (`MKLDNNRequireWorkspace`, `SupportMKLDNNPooling`).
    """
    rank = len(attributes.integers("kernel"))
    if attributes.text("pool_type", "max") != "max" or not 1 <= rank <= 3:
        return 1
    return 1 if attributes.text("layout", "NCHW") not in ("NCW", "NCHW", "NCDHW", "None") else 2


def _pooling_types(_: Attributes, inputs: Sequence[str | None], num_outputs: int) -> Types:
    data = inputs[0] or WIDE
    return Types((data, "int32")[:num_outputs], (data,))


def _pooling_gradient(node: Node, gradients: Sequence[Entry]) -> list[Entry]:
    sharing = SECOND if node.num_outputs > 1 else NOTHING_SHARED
    reads = [*gradients, *node.inputs, *node.outputs()]
    return backward("_backward_Pooling", node, reads, sharing=sharing)


def _dense(call: Call) -> Inferred:
    attributes, hidden = call.attributes, call.attributes.integer("num_hidden")
    data = call.inputs[0]
    flat = attributes.flag("flatten", True)
    output = call.outputs[0]
    if data is not None and output is not None and not data[0] and output[0]:
        data = (output[0], *data[1:])
    if data is None or not all(data[1 if flat else -1 :]):
        return Inferred(call.outputs, [data])
    width = prod(data[1:]) if flat else data[-1]
    shape = (data[0], hidden) if flat else (*data[:-1], hidden)
    return Inferred([shape], [data, (hidden, width), (hidden,)][: len(call.inputs)])


def _dense_gradient(node: Node, gradients: Sequence[Entry]) -> list[Entry]:
    reads = [gradients[0], node.inputs[0], node.inputs[1]]
    return backward("_backward_FullyConnected", node, reads, sharing=SECOND)


def _upsampling(call: Call) -> Inferred:
    attributes, data = call.attributes, call.data
    scale = attributes.integer("scale")
    nearest = attributes.text("sample_type", "nearest") == "nearest"
    channels = data[1]
    if nearest and attributes.text("multi_input_mode", "concat") != "sum":
        channels = sum(call.input(index)[1] for index in range(len(call.inputs)))
    weight: list[Shape | None] = []
    if not nearest:
        size = 2 * scale - scale % 2
        weight = [(data[1], 1, size, size)]
    output = (data[0], channels, *(size * scale for size in data[2:]))
    return Inferred([output], [*call.inputs[: len(call.inputs) - len(weight)], *weight])


def _upsampling_gradient(node: Node, gradients: Sequence[Entry]) -> list[Entry]:
    nearest = node.attributes.get("sample_type", "nearest") == "nearest"
    reads = [*gradients, *([] if nearest else node.inputs)]
    return backward("_backward_UpSampling", node, reads)


def _resized(call: Call) -> Inferred:
    attributes, data = call.attributes, call.data
    height = attributes.integer("height", 1)
    width = attributes.integer("width", 1)
    scale_height = attributes.number("scale_height", 0.0)
    scale_width = attributes.number("scale_width", 0.0)
    mode = attributes.text("mode", "size")
    if mode != "size" or len(call.inputs) > 1:
        raise call.wrong(f"mode '{mode[:32]}' is not modelled")
    if scale_height and scale_width:
        height, width = int(scale_height * data[2]), int(scale_width * data[3])
    return Inferred([(*data[:2], height, width)], [data])


def _adaptive(call: Call) -> Inferred:
    sizes = call.attributes.integers("output_size") or (1,)
    height, width = (sizes[0], sizes[0]) if len(sizes) == 1 else sizes[:2]
    return Inferred([(*call.data[:2], height, width)], [call.data])


def _all_inputs(operator: str) -> Gradient:
    def gradient(node: Node, gradients: Sequence[Entry]) -> list[Entry]:
        return backward(operator, node, [gradients[0], *node.inputs])

    return gradient


OPERATORS: dict[str, Operator] = {
    "Convolution": Operator(infer=_convolution, gradient=_all_inputs("_backward_Convolution")),
    "Deconvolution": Operator(
        infer=_deconvolution, gradient=_all_inputs("_backward_Deconvolution")
    ),
    "Pooling": Operator(
        infer=_pooling,
        gradient=_pooling_gradient,
        outputs=pools_keep_indices,
        types=_pooling_types,
    ),
    "FullyConnected": Operator(infer=_dense, gradient=_dense_gradient, is_partial=True),
    "UpSampling": Operator(infer=_upsampling, gradient=_upsampling_gradient),
    "_contrib_BilinearResize2D": Operator(
        infer=_resized, gradient=from_nothing("_backward_contrib_BilinearResize2D")
    ),
    "_contrib_AdaptiveAvgPooling2D": Operator(
        infer=_adaptive, gradient=from_nothing("_backward_contrib_AdaptiveAvgPooling2D")
    ),
}

POOLING_PLAIN = Operator(infer=_pooling, gradient=_pooling_gradient)
"""Pooling of a build without oneDNN: it keeps no indices."""
