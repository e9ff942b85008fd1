"""Operators that move or cut: reshape, transpose, concat, split, slice, pad, tile.

Source: apache/mxnet@1.9.1 `src/operator/tensor/matrix_op*.{h,cc}`, `src/operator/nn/concat.cc`,
`src/operator/{slice_channel,swapaxis,pad}-inl.h`, `src/operator/numpy/np_matrix_op.cc`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from estimator.frontends.mxnet.attributes import Attributes
from estimator.frontends.mxnet.graph import IDENTITY, Entry, Node, Shape, Sharing
from estimator.frontends.mxnet.operators.base import (
    Call,
    Inferred,
    Operator,
    all_zero,
    backward,
    make,
    zero_gradients,
    zeros_like,
)
from estimator.frontends.mxnet.operators.gradients import from_nothing
from estimator.frontends.mxnet.operators.reshaping import (
    new_shape,
    numpy_shape,
    old_target_shape,
)

RESHAPED = from_nothing("_backward_reshape", IDENTITY)
LIKE = Sharing(pairs=((0, 0),), is_identity=True, ignored=frozenset({1}))


def _flatten(call: Call) -> Inferred:
    return Inferred([(call.data[0], prod(call.data[1:]))], [call.data])


def _reshape(call: Call) -> Inferred:
    attributes = call.attributes
    wanted = attributes.integers("shape")
    if wanted:
        shape = new_shape(call, wanted, reverse=attributes.flag("reverse"))
    elif attributes.integers("target_shape"):
        shape = old_target_shape(call)
    else:
        raise call.wrong("it says no new shape")
    return Inferred([shape], [call.data])


def _numpy_reshape(call: Call) -> Inferred:
    wanted = call.attributes.integers("newshape") or call.attributes.integers("shape")
    return Inferred([numpy_shape(call, wanted)], [call.data])


def _plain_numpy_reshape(call: Call) -> Inferred:
    """Return the shape of `_np_reshape`, where -1 is the only special size."""
    wanted = call.attributes.integers("newshape")
    known = prod(size for size in wanted if size != -1)
    rest = prod(call.data) // known if known else 0
    return Inferred([tuple(rest if size == -1 else size for size in wanted)], [call.data])


def _reshape_like(call: Call) -> Inferred:
    attributes = call.attributes
    left, right = call.data, call.input(1)
    begin = attributes.optional_integer("lhs_begin") or 0
    end = attributes.optional_integer("lhs_end")
    other_begin = attributes.optional_integer("rhs_begin") or 0
    other_end = attributes.optional_integer("rhs_end")
    tail = () if end is None else left[end:]
    shape = (*left[:begin], *right[other_begin:other_end], *tail)
    return Inferred([shape], [left, right])


def _reshape_like_gradient(node: Node, gradients: Sequence[Entry]) -> list[Entry]:
    if all_zero(gradients):
        return zero_gradients(node, gradients)
    left = make("_backward_copy", node, gradients[:1], node.inputs[:1], sharing=IDENTITY)
    return [Entry(left, 0), zeros_like(node, node.inputs[1])]


def _expand(call: Call) -> Inferred:
    axis = call.axis(call.attributes.integer("axis"), len(call.data) + 1)
    return Inferred([(*call.data[:axis], 1, *call.data[axis:])], [call.data])


def _squeeze(call: Call) -> Inferred:
    axes = {call.axis(axis) for axis in call.attributes.integers("axis")}
    kept = [
        size for axis, size in enumerate(call.data) if not (axis in axes if axes else size == 1)
    ]
    return Inferred([tuple(kept) or (1,)], [call.data])


def _transpose(call: Call) -> Inferred:
    data = call.data
    axes = call.attributes.integers("axes") or tuple(reversed(range(len(data))))
    if sorted(call.axis(axis) for axis in axes) != list(range(len(data))):
        raise call.wrong(f"axes {axes} of a tensor of {len(data)} dimensions")
    return Inferred([tuple(data[axis] for axis in axes)], [data])


def _swap(call: Call) -> Inferred:
    shape = list(call.data)
    left = call.axis(call.attributes.integer("dim1", 0))
    right = call.axis(call.attributes.integer("dim2", 0))
    shape[left], shape[right] = shape[right], shape[left]
    return Inferred([tuple(shape)], [call.data])


def _moveaxis(call: Call) -> Inferred:
    sources = [call.axis(axis) for axis in call.attributes.integers("source")]
    targets = [call.axis(axis) for axis in call.attributes.integers("destination")]
    rest = iter(axis for axis in range(len(call.data)) if axis not in sources)
    moved = dict(zip(targets, sources, strict=True))
    order = [moved[place] if place in moved else next(rest) for place in range(len(call.data))]
    return Inferred([tuple(call.data[axis] for axis in order)], [call.data])


def concat_shape(call: Call, axis: int) -> Shape:
    """Return the shape of all inputs one after another along *axis*."""
    data = call.data
    place = call.axis(axis)
    size = sum(call.input(index)[place] for index in range(len(call.inputs)))
    return (*data[:place], size, *data[place + 1 :])


def _concat(call: Call) -> Inferred:
    return Inferred([concat_shape(call, call.attributes.integer("dim", 1))], call.inputs)


def _concat_gradient(node: Node, gradients: Sequence[Entry]) -> list[Entry]:
    return backward("_backward_Concat", node, [gradients[0], *node.inputs])


def _concatenate(call: Call) -> Inferred:
    if call.attributes.optional_integer("axis") is None and "axis" in call.attributes.values:
        total = sum(prod(call.input(index)) for index in range(len(call.inputs)))
        return Inferred([(total,)], call.inputs)
    return Inferred([concat_shape(call, call.attributes.integer("axis", 0))], call.inputs)


def _stack(call: Call) -> Inferred:
    axis = call.axis(call.attributes.integer("axis", 0), len(call.data) + 1)
    shape = (*call.data[:axis], len(call.inputs), *call.data[axis:])
    return Inferred([shape], [call.data] * len(call.inputs))


def _split(call: Call) -> Inferred:
    attributes = call.attributes
    count, axis = attributes.integer("num_outputs"), call.axis(attributes.integer("axis", 1))
    if count < 1 or call.data[axis] % count:
        raise call.wrong(f"axis of {call.data[axis]} in {count} parts")
    size = call.data[axis] // count
    middle = () if attributes.flag("squeeze_axis") and size == 1 else (size,)
    shape = (*call.data[:axis], *middle, *call.data[axis + 1 :])
    return Inferred([shape] * count, [call.data])


def _split_v2_outputs(attributes: Attributes) -> int:
    sections = attributes.integer("sections", 0)
    return sections if sections > 0 else len(attributes.integers("indices"))


def _split_v2(call: Call) -> Inferred:
    attributes = call.attributes
    axis = call.axis(attributes.integer("axis", 1))
    whole = call.data[axis]
    sections = attributes.integer("sections", 0)
    if sections > 0:
        size, longer = divmod(whole, sections)
        sizes = [size + (index < longer) for index in range(sections)]
    else:
        starts = attributes.integers("indices")
        sizes = [end - start for start, end in zip(starts, (*starts[1:], whole), strict=True)]
    squeezed = attributes.flag("squeeze_axis")
    shapes = [
        (*call.data[:axis], *(() if squeezed and size == 1 else (size,)), *call.data[axis + 1 :])
        for size in sizes
    ]
    return Inferred(shapes, [call.data])


def _slice(call: Call) -> Inferred:
    attributes = call.attributes
    begins = attributes.optional_integers("begin") or ()
    ends = attributes.optional_integers("end") or ()
    steps = attributes.optional_integers("step") or (None,) * len(begins)
    shape = list(call.data)
    for axis, (begin, end, step) in enumerate(zip(begins, ends, steps, strict=True)):
        shape[call.axis(axis)] = len(range(*slice(begin, end, step).indices(call.data[axis])))
    return Inferred([tuple(shape)], [call.data])


def _slice_axis(call: Call) -> Inferred:
    attributes = call.attributes
    axis = call.axis(attributes.integer("axis"))
    chosen = slice(attributes.optional_integer("begin"), attributes.optional_integer("end"))
    size = len(range(*chosen.indices(call.data[axis])))
    return Inferred([(*call.data[:axis], size, *call.data[axis + 1 :])], [call.data])


def _slice_like(call: Call) -> Inferred:
    like = call.input(1)
    axes = call.attributes.integers("axes")
    if not axes:
        return Inferred([like], call.inputs)
    shape = list(call.data)
    for axis in axes:
        shape[call.axis(axis)] = like[call.axis(axis, len(like))]
    return Inferred([tuple(shape)], call.inputs)


def _pad(call: Call) -> Inferred:
    widths = call.attributes.integers("pad_width")
    if len(widths) != 2 * len(call.data):
        raise call.wrong(f"pad_width {widths} of data of shape {call.data}")
    shape = tuple(
        size + before + after
        for size, before, after in zip(call.data, widths[::2], widths[1::2], strict=True)
    )
    return Inferred([shape], [call.data])


def _tile(call: Call) -> Inferred:
    times = call.attributes.integers("reps")
    rank = max(len(times), len(call.data))
    data = (1,) * (rank - len(call.data)) + call.data
    times = (1,) * (rank - len(times)) + times
    return Inferred([tuple(a * b for a, b in zip(data, times, strict=True))], [call.data])


def _repeat(call: Call) -> Inferred:
    times = call.attributes.integer("repeats")
    axis = call.attributes.optional_integer("axis")
    if axis is None:
        return Inferred([(prod(call.data) * times,)], [call.data])
    place = call.axis(axis)
    shape = (*call.data[:place], call.data[place] * times, *call.data[place + 1 :])
    return Inferred([shape], [call.data])


def _crop(call: Call) -> Inferred:
    height, width = call.attributes.integers("h_w", 2, 0)
    if len(call.inputs) > 1:
        height, width = call.input(1)[2:]
    return Inferred([(*call.data[:2], height, width)], call.inputs)


def _crop_gradient(node: Node, gradients: Sequence[Entry]) -> list[Entry]:
    return backward("_backward_Crop", node, gradients)


def _depth_to_space(call: Call) -> Inferred:
    block = call.attributes.integer("block_size")
    batch, channels, height, width = call.data
    return Inferred([(batch, channels // block**2, height * block, width * block)], [call.data])


def _space_to_depth(call: Call) -> Inferred:
    block = call.attributes.integer("block_size")
    batch, channels, height, width = call.data
    return Inferred([(batch, channels * block**2, height // block, width // block)], [call.data])


def _same(call: Call) -> Inferred:
    return Inferred([call.data], [call.data])


OPERATORS: dict[str, Operator] = {
    "Flatten": Operator(
        infer=_flatten, gradient=from_nothing("_backward_copy", IDENTITY), sharing=IDENTITY
    ),
    "Reshape": Operator(infer=_reshape, gradient=RESHAPED, sharing=IDENTITY),
    "_npx_reshape": Operator(infer=_numpy_reshape, gradient=RESHAPED, sharing=IDENTITY),
    "_np_reshape": Operator(infer=_plain_numpy_reshape, gradient=RESHAPED, sharing=IDENTITY),
    "reshape_like": Operator(infer=_reshape_like, gradient=_reshape_like_gradient, sharing=LIKE),
    "expand_dims": Operator(infer=_expand, gradient=RESHAPED, sharing=IDENTITY),
    "squeeze": Operator(infer=_squeeze, gradient=from_nothing("_backward_squeeze")),
    "transpose": Operator(infer=_transpose, gradient=from_nothing("transpose")),
    "SwapAxis": Operator(infer=_swap, gradient=from_nothing("_backward_SwapAxis"), is_merged=False),
    "_np_moveaxis": Operator(infer=_moveaxis, gradient=from_nothing("_np_moveaxis")),
    "Concat": Operator(infer=_concat, gradient=_concat_gradient),
    "_rnn_param_concat": Operator(infer=_concat, gradient=_concat_gradient),
    "_npi_concatenate": Operator(infer=_concatenate, gradient=from_nothing("_backward_np_concat")),
    "stack": Operator(infer=_stack, gradient=from_nothing("_backward_stack")),
    "SliceChannel": Operator(
        infer=_split,
        gradient=lambda node, gradients: backward("_backward_SliceChannel", node, gradients),
        outputs=lambda attributes: attributes.integer("num_outputs"),
        is_merged=False,
    ),
    "_split_v2": Operator(
        infer=_split_v2,
        gradient=from_nothing("_split_v2_backward"),
        outputs=_split_v2_outputs,
    ),
    "slice": Operator(infer=_slice, gradient=from_nothing("_backward_slice")),
    "slice_axis": Operator(infer=_slice_axis, gradient=from_nothing("_backward_slice_axis")),
    "slice_like": Operator(infer=_slice_like, gradient=from_nothing("_backward_slice_like")),
    "Pad": Operator(infer=_pad, gradient=from_nothing("_backward_Pad"), is_merged=False),
    "tile": Operator(infer=_tile, gradient=from_nothing("_backward_tile")),
    "repeat": Operator(infer=_repeat, gradient=from_nothing("_backward_repeat")),
    "reverse": Operator(infer=_same, gradient=from_nothing("_backward_reverse")),
    "Crop": Operator(infer=_crop, gradient=_crop_gradient, is_merged=False),
    "depth_to_space": Operator(infer=_depth_to_space, gradient=from_nothing("space_to_depth")),
    "space_to_depth": Operator(infer=_space_to_depth, gradient=from_nothing("depth_to_space")),
}

CONCAT_PLAIN = Operator(infer=_concat, gradient=from_nothing("_backward_Concat"))
"""Concatenation of a build without oneDNN: its backward does not read its inputs."""
