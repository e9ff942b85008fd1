"""Which library runs a convolution, and what it asks of it.

    Kernel -> native, or tensors copied and questions for cuDNN

A backward is two products, the input's gradient and then the weight's, each asked alone. A
transposed convolution is the gradient of a plain one, and the reverse. One dimension becomes two.

Source: `ConvParams` (`use_cudnn`, `use_cudnn_depthwise`, `is_depthwise`, `view1d_as_2d`),
`check_cudnn_depthwise_workload_with_filter` in PyTorch aten/src/ATen/native/Convolution.cpp and
`cudnn_conv_suggest_memory_format` in ConvUtils.h
(rbarfinezhadfeli0/pytorch@0edb9997 mirror); rules for cuDNN 8.2 and newer.
Not modelled: cuDNN switched off, tensors of 2^31 elements and more (treated as any other).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from estimator.cudnn import Direction, Question
from estimator.kernels.choosing import Switches
from estimator.kernels.scratch import attribute
from estimator.trace import Kernel, TensorFacts

OPERATORS = frozenset(
    {
        "aten.convolution",
        "aten.convolution_backward",
        "aten.cudnn_convolution",
        "aten.cudnn_convolution_transpose",
    }
)
BACKWARD = "aten.convolution_backward"
NARROWEST = 7
"""Narrowest input of a 16-bit depthwise convolution that goes to cuDNN."""
FEWEST_CHANNELS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Convolution:
    """A convolution's kernel with its arguments read; one spatial dimension is two by now."""

    operator: str
    source: TensorFacts
    weight: TensorFacts
    target: TensorFacts
    """The output, or its gradient."""
    groups: int
    transposed: bool
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    wants_input: bool
    """In a backward: whether the gradient of the input is computed."""
    wants_weight: bool

    @property
    def is_backward(self) -> bool:
        """Return whether it computes gradients."""
        return self.operator == BACKWARD

    @property
    def is_channels_last(self) -> bool:
        """Return whether PyTorch runs it channels-last: input or weight is."""
        return self.source.channels_last or self.weight.channels_last


def convolution_of(kernel: Kernel) -> Convolution | None:
    """Return *kernel* as a convolution, None if its shapes are not all known."""
    if len(kernel.operands) < 3 or len(kernel.operands[0].shape) < 3:
        return None
    source, weight, target = (_planar(each) for each in kernel.operands[:3])
    spatial = len(kernel.operands[0].shape) - 2
    mask = _integers(attribute(kernel, "output_mask")) or (1, 1, 1)
    groups = attribute(kernel, "groups")
    return Convolution(
        operator=kernel.operator,
        source=source,
        weight=weight,
        target=target,
        groups=groups if isinstance(groups, int) and groups > 0 else 1,
        transposed=bool(attribute(kernel, "transposed")) or "transpose" in kernel.operator,
        stride=_flat(_spatial(kernel, "stride", spatial, 1), 1),
        padding=_flat(_spatial(kernel, "padding", spatial, 0), 0),
        dilation=_flat(_spatial(kernel, "dilation", spatial, 1), 1),
        wants_input=bool(mask[0]),
        wants_weight=bool(mask[1]),
    )


def switches_of(kernel: Kernel) -> Switches:
    """Return the switches of the run *kernel* was recorded with."""
    limit = attribute(kernel, "workspace_limit")
    return Switches(
        limit=limit if isinstance(limit, int) else None,
        benchmark=bool(attribute(kernel, "benchmark")),
        deterministic=bool(attribute(kernel, "deterministic")),
        allow_tf32=attribute(kernel, "allow_tf32") is not False,
    )


def is_native(convolution: Convolution) -> bool:
    """Return whether PyTorch's own depthwise kernels run, which need no workspace.

    Contiguous depthwise convolutions are PyTorch's own, but for fp16 shapes cuDNN is faster at.
    """
    source, weight = convolution.source, convolution.weight
    is_depthwise = (
        convolution.groups > 1
        and not convolution.transposed
        and len(source.shape) in (4, 5)
        and source.shape[1] == convolution.groups
        and weight.shape[0] % convolution.groups == 0
    )
    if not is_depthwise or convolution.is_channels_last:
        return False
    return not _is_faster_in_cudnn(convolution)


def _is_faster_in_cudnn(convolution: Convolution) -> bool:
    """Return whether PyTorch sends a contiguous depthwise convolution to cuDNN."""
    source, weight = convolution.source, convolution.weight
    if source.dtype != "float16" or len(source.shape) != 4:
        return False
    batch, channels, height, width = source.shape
    down, stride = convolution.stride
    if set(convolution.dilation) != {1} or channels < FEWEST_CHANNELS:
        return False
    if stride != down and height != 1:
        return False
    if height == 1 and stride == 1:
        return True
    size = weight.shape[3]
    is_covered = weight.shape[2] == size and size in (1, 3, 5) and width >= NARROWEST
    if not is_covered or stride not in (1, 2):
        return False
    if stride == 1:
        return True
    if batch == 1:
        return size != 1 or width <= 28
    if size == 1:
        return batch <= 16 and channels >= 128 and width <= 7
    return channels >= 512 or (channels >= 256 and width >= 28)


def converted(convolution: Convolution) -> list[TensorFacts]:
    """Return the operands PyTorch itself copies into channels-last before it calls cuDNN.

    If input or weight is channels-last, all operands are made so, the gradient of the output
    too. The output of a forward is allocated that way at once.
    Not modelled: operands that are contiguous in neither order, and are copied too.
    """
    if not convolution.is_channels_last:
        return []
    operands = [convolution.source, convolution.weight]
    if convolution.is_backward:
        operands.append(convolution.target)
    return [each for each in operands if not each.channels_last and not _is_both_ways(each)]


def _is_both_ways(tensor: TensorFacts) -> bool:
    """Return whether a contiguous tensor is channels-last as well: one channel or one pixel."""
    return tensor.shape[1] == 1 or all(size == 1 for size in tensor.shape[2:])


def questions_of(convolution: Convolution) -> tuple[Question, ...]:
    """Return what cuDNN is asked, in the order it is called."""
    if not convolution.is_backward:
        direction = Direction.DATA if convolution.transposed else Direction.FORWARD
        return (_question(convolution, direction),)
    asked = []
    if convolution.wants_input:
        forwards = Direction.FORWARD if convolution.transposed else Direction.DATA
        asked.append(_question(convolution, forwards))
    if convolution.wants_weight:
        asked.append(_question(convolution, Direction.WEIGHT))
    return tuple(asked)


def _question(convolution: Convolution, direction: Direction) -> Question:
    """Return the question about the plain convolution underneath."""
    narrow, wide = convolution.source.shape, convolution.target.shape
    if convolution.transposed:
        narrow, wide = wide, narrow
    return Question(
        direction=direction,
        dtype=convolution.source.dtype,
        input=narrow,
        weight=convolution.weight.shape,
        output=wide,
        stride=convolution.stride,
        padding=convolution.padding,
        dilation=convolution.dilation,
        channels_last=convolution.is_channels_last,
    )


def _planar(tensor: TensorFacts) -> TensorFacts:
    """Return a tensor of one spatial dimension as one of height 1, as PyTorch runs it."""
    shape = tensor.shape
    return replace(tensor, shape=(*shape[:2], 1, shape[2])) if len(shape) == 3 else tensor


def _flat(values: tuple[int, ...], along_height: int) -> tuple[int, ...]:
    return (along_height, *values) if len(values) == 1 else values


def _spatial(kernel: Kernel, name: str, count: int, default: int) -> tuple[int, ...]:
    """Return an argument with one value a spatial dimension."""
    values = _integers(attribute(kernel, name)) or (default,)
    return values * count if len(values) == 1 else values


def _integers(value: object) -> tuple[int, ...]:
    return value if isinstance(value, tuple) else ()
