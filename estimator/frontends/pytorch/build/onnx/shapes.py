"""Operators that move, cut and join elements, and make them from nothing.

    Call -> tensor, or several

Shapes that a graph was exported with for one batch are made those of the batch it runs with.
Source: onnx/onnx `docs/Operators.md`, release 1.23.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.nn import functional

from estimator.frontends.pytorch.build.job import stand_in
from estimator.frontends.pytorch.build.onnx.call import Call, Result

MAX_KNOWN = 1 << 16
"""Elements of a tensor that is made of known numbers, up to which it stays on the host."""


def _shape(call: Call) -> torch.Tensor:
    shape = list(call.given(0).shape)
    start, end = call.whole("start", 0), call.node.attributes.get("end")
    return torch.tensor(shape[start : end if type(end) is int else None], dtype=torch.int64)


def _size(call: Call) -> torch.Tensor:
    return torch.tensor(call.given(0).numel(), dtype=torch.int64)


def _numbers(call: Call, index: int) -> list[int]:
    return [int(each) for each in call.numbers(index) or []]


def _reshape(call: Call) -> torch.Tensor:
    x = call.tensor()
    shape = _numbers(call, 1) if call.has(1) else call.whole_list("shape") or []
    if not call.whole("allowzero", 0):
        shape = [
            x.shape[axis] if size == 0 and axis < x.dim() else size
            for axis, size in enumerate(shape)
        ]
    return x.reshape(_for_batch(call, shape, tuple(x.shape)))


def _for_batch(call: Call, shape: list[int], source: tuple[int, ...]) -> list[int]:
    """Return *shape* as it is for the batch of this run, if the graph has another written in it.

    A shape that fits *source* stays, and so does one whose first size is open. Else the size that
    is the batch is changed: one that equals it, or the first that is not the source's own. The last
    one holds features and stays.
    """
    was, now = call.exported_batch, call.batch
    if not was or was == now or not shape or shape[0] == -1:
        return shape
    known = math.prod(size for size in shape if size >= 0)
    elements = math.prod(source)
    places = range(max(1, len(shape) - 1))
    exact = [place for place in places if shape[place] == was]
    if -1 in shape:
        place = exact[0] if exact else None
    elif known * now != elements * was:
        return shape
    else:
        other = [n for n in places if source[n : n + 1] != (shape[n],) and shape[n] % was == 0]
        place = next(iter([*exact, *other, *places]))
    if place is None:
        return shape
    return [*shape[:place], shape[place] // was * now, *shape[place + 1 :]]


def _flatten(call: Call) -> torch.Tensor:
    x = call.tensor()
    axis = call.whole("axis", 1)
    axis += x.dim() if axis < 0 else 0
    return x.reshape(math.prod(x.shape[:axis]), -1)


def _transpose(call: Call) -> torch.Tensor:
    x = call.tensor()
    return x.permute(call.whole_list("perm") or list(reversed(range(x.dim()))))


def _squeeze(call: Call) -> torch.Tensor:
    x, axes = call.tensor(), call.axes(1)
    return x.squeeze() if axes is None else x.squeeze(tuple(axes))


def _unsqueeze(call: Call) -> torch.Tensor:
    x, axes = call.tensor(), call.axes(1) or []
    total = x.dim() + len(axes)
    for axis in sorted(axis % total for axis in axes):
        x = x.unsqueeze(axis)
    return x


def _concat(call: Call) -> torch.Tensor:
    parts = [call.tensor(index) for index in range(len(call))]
    axis = call.whole("axis", 0)
    if call.batch > 1 and call.exported_batch == 1 and axis % max(1, parts[0].dim()):
        # A token that was repeated for a batch of one.
        parts = [
            part.expand(call.batch, *part.shape[1:]) if part.shape[:1] == (1,) else part
            for part in parts
        ]
    return torch.cat(parts, axis)


def _split(call: Call) -> Result:
    x, axis = call.tensor(), call.whole("axis", 0)
    sizes: int | list[int] | None = call.axes(1, "split")
    if sizes is None:
        parts = call.whole("num_outputs", call.node.outputs)
        sizes = -(-x.shape[axis] // max(1, parts))
    made: Result = torch.split(x, sizes, axis)
    return made


def _slice(call: Call) -> torch.Tensor:
    x = call.tensor()
    starts, ends = call.axes(1, "starts") or [], call.axes(2, "ends") or []
    axes = call.axes(3) or list(range(len(starts)))
    steps = call.numbers(4) or [1] * len(starts)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        if step < 0:
            # All of it backwards is what exporters write; torch has a copy for that.
            x = x.flip(axis)
            size = x.shape[axis]
            first = size - 1 - min(start + size if start < 0 else start, size - 1)
            last = size - 1 - max(end + size if -size <= end < 0 else end, -1)
            start, end, step = first, last, -step
        x = _sliced(x, axis, start, end, step)
    return x


def _sliced(x: torch.Tensor, axis: int, start: int, end: int, step: int) -> torch.Tensor:
    index: list[Any] = [slice(None)] * x.dim()
    index[axis] = slice(start, end, step)
    return x[tuple(index)]


def _expand(call: Call) -> torch.Tensor:
    x, shape = call.tensor(), _numbers(call, 1)
    was, now = call.exported_batch, call.batch
    if was > 1 and was != now and shape[:1] == [was]:
        shape = [now, *shape[1:]]
    if was == 1 and x.shape[:1] == (now,):
        shape = [now if size == was and not index else size for index, size in enumerate(shape)]
    return x.expand(torch.broadcast_shapes(tuple(shape), x.shape))  # type: ignore[no-untyped-call]


def _tile(call: Call) -> torch.Tensor:
    return call.tensor().repeat(_numbers(call, 1))


def _pad(call: Call) -> torch.Tensor:
    x = call.tensor()
    pads = call.axes(1, "pads") or []
    axes = call.numbers(3) or list(range(x.dim()))
    count = len(pads) // 2
    pairs = [0] * (2 * x.dim())
    for axis, before, after in zip(axes, pads[:count], pads[count:], strict=False):
        place = 2 * (x.dim() - 1 - axis % x.dim())
        pairs[place : place + 2] = [before, after]
    mode = {"reflect": "reflect", "edge": "replicate", "wrap": "circular"}.get(
        call.word("mode", "constant"), "constant"
    )
    while mode != "constant" and pairs[-2:] == [0, 0]:
        pairs = pairs[:-2]
    return functional.pad(x, pairs, mode) if pairs else x


def _filled(call: Call) -> torch.Tensor:
    shape = _numbers(call, 0)
    value = call.node.attributes.get("value")
    described = value if isinstance(value, Mapping) else {"dtype": "float32", "values": [0.0]}
    dtype = call.settings.type_of(str(described.get("dtype")))
    numbers: Any = described.get("values")
    if not isinstance(numbers, (list, tuple)) or len(numbers) != 1:
        raise call.refused("has no value")
    if math.prod(shape) > MAX_KNOWN:
        return stand_in(*shape, dtype=dtype)
    return torch.full(shape, numbers[0], dtype=dtype)


def _range(call: Call) -> torch.Tensor:
    start, limit, delta = (call.given(index) for index in range(3))
    if any(each.is_meta for each in (start, limit, delta)):
        raise call.refused("has a length that depends on values")
    first, last, step = start.item(), limit.item(), delta.item()
    if step == 0 or (last - first) / step > 1 << 24:
        raise call.refused("has no end")
    if (last - first) / step > MAX_KNOWN:
        return stand_in(math.ceil((last - first) / step), dtype=start.dtype)
    return torch.arange(first, last, step, dtype=start.dtype)


def _space_to_depth(call: Call) -> torch.Tensor:
    return functional.pixel_unshuffle(call.tensor(), call.whole("blocksize", 1))


def _depth_to_space(call: Call) -> torch.Tensor:
    return functional.pixel_shuffle(call.tensor(), call.whole("blocksize", 1))


def _resize(call: Call) -> torch.Tensor:
    x = call.tensor()
    is_old = call.node.op == "Upsample" or len(call.inputs) < 3
    scales, sizes = call.numbers(1 if is_old else 2), call.numbers(3)
    mode = call.word("mode", "nearest")
    if call.whole_list("axes"):
        raise call.refused("names its axes, which is not modelled")
    wanted = (
        [int(each) for each in sizes[2:]]
        if sizes
        else [math.floor(n * s) for n, s in zip(x.shape[2:], (scales or [])[2:], strict=True)]
    )
    kinds = {"linear": {3: "linear", 4: "bilinear", 5: "trilinear"}, "cubic": {4: "bicubic"}}
    kind = kinds.get(mode, {}).get(x.dim(), "nearest")
    return functional.interpolate(x, wanted, mode=kind)


def _random(call: Call) -> torch.Tensor:
    """Return numbers that are drawn, as many as the input has."""
    return torch.empty_like(call.tensor())


SHAPES: Mapping[str, Callable[[Call], Result]] = {
    "Concat": _concat,
    "ConstantOfShape": _filled,
    "DepthToSpace": _depth_to_space,
    "Expand": _expand,
    "Flatten": _flatten,
    "Pad": _pad,
    "Bernoulli": _random,
    "RandomNormalLike": _random,
    "RandomUniformLike": _random,
    "Range": _range,
    "Reshape": _reshape,
    "Resize": _resize,
    "Shape": _shape,
    "Size": _size,
    "Slice": _slice,
    "SpaceToDepth": _space_to_depth,
    "Split": _split,
    "Squeeze": _squeeze,
    "Tile": _tile,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
    "Upsample": _resize,
}
