"""Workspaces of convolutions, bounded by mechanism: cuDNN is not asked.

    Kernel, Device -> Scratch

Which plan cuDNN takes first is its own secret. What a large workspace holds is not: tensor-core
kernels read channels-last, so a plan for a contiguous tensor copies input and output into that
layout, channels padded to 16 bytes; kernels without tensor cores hold Winograd's transformed
filters instead, and copy channels-last tensors the other way.

The rule, against the largest workspace over all plans of a model (cuDNN 9.26 asked for cards
that were not there, /docs/limits.md; MiB, 224², fp32):

    ResNet-50 b32     A100 155    147.1 = 98 in + 49 out + 0.1 weight, a 256->128 1x1 at 56²
    ResNet-50 b256    A100 1,184  1,176.1, the same
    VGG-16 b32        A100 787    784.1 = 392 + 392 + 0.1
    EfficientNet b32  A100 173    171.5 = 24.5 + 147, the first 1x1 expansion
    ConvNeXt-T b32    A100 294    294 = 4 x (36.75 + 36.75), a channels-last depthwise 7x7: one
                                  channel a group, padded to four
    ResNet-50, VGG-16 T4, V100 25 25 = 9 weight + 16 Winograd, a 512->512 3x3
    ConvNeXt-T b32    T4 55       55.1 = 36.75 + 18.4, channels-last input and output copied

So it is a bound of the right size for one layer of each model, not a prediction for every layer:
many layers take plans that need nothing. Hence choices down to 0, and 0 as the low end.
A check on a real card: VGG-16 at batch 684 died under a cap of 9,389 MiB and ran under 10,352
(RTX 3060, Stone-ResearchLife/xMem@7114ee6d plot/data); replayed, it completes from 9,382 on with
these workspaces and from 8,402 on without.
Not modelled: split sums of weight gradients (up to 8 MiB in the table), FFT plans, engines that
differ by cuDNN version (older ones ask for less), what `benchmark` times.

Source of the order of events: PyTorch aten/src/ATen/native/cudnn/Conv_v8.cpp
(rbarfinezhadfeli0/pytorch@0edb9997 mirror): the first plan that runs is kept and an out-of-memory
error moves on to the next; with `benchmark` one workspace of the largest size is allocated and
halved on out-of-memory. Depthwise: `is_depthwise`, `use_cudnn_depthwise` in
aten/src/ATen/native/Convolution.cpp.
"""

from __future__ import annotations

from estimator.device import Device
from estimator.kernels.scratch import (
    NONE,
    Block,
    Scratch,
    attribute,
    element_bytes,
    tensor_bytes,
)
from estimator.notes import Assumption, AssumptionCode, Unknown, UnknownCode
from estimator.trace import Kernel, TensorFacts
from estimator.units import MIB, round_up

OPERATORS = frozenset(
    {
        "aten.convolution",
        "aten.convolution_backward",
        "aten.cudnn_convolution",
        "aten.cudnn_convolution_transpose",
    }
)
VECTOR_BYTES = 16
"""Channels of a group are padded to this for tensor cores: 4 of fp32, 8 of 16 bits."""
WINOGRAD = (16, 9)
"""A 3x3 filter becomes 4x4 in the transformed domain."""
SMALLEST = 1 * MIB
"""Benchmarking halves its workspace down to about this, then goes without (assumed)."""

ASSUMPTION = Assumption(
    code=AssumptionCode.KERNEL_WORKSPACE,
    path="runtime.cudnn",
    value="bounded by mechanism",
    reason="cuDNN was not asked: each convolution is charged a layout copy, "
    "between nothing (low end) and that",
)


class LayoutBound:
    """A `WorkspaceSource` that bounds convolutions by the copies their kernels may need."""

    def scratch(self, kernel: Kernel, device: Device) -> Scratch | Unknown:
        """Return the workspace of a convolution, with what it takes if memory is short.

        Operands are input, weight, and output or its gradient.
        """
        if len(kernel.operands) < 3:
            return Unknown(
                code=UnknownCode.KERNEL,
                path=kernel.operator,
                reason="its input, weight and output are not all known",
            )
        groups = _groups(kernel)
        source, weight = kernel.operands[:2]
        if _is_native_depthwise(kernel, source, weight, groups):
            return NONE
        last = source.channels_last or weight.channels_last
        made = [Block(nbytes=tensor_bytes(each)) for each in _converted(kernel, last)]
        most, choices = self.workspace(kernel, device, last=last)
        if most == 0:
            return Scratch(blocks=tuple(made))
        workspace = Block(nbytes=most, choices=_falling(most, choices), least=0)
        return Scratch(blocks=(*made, workspace), assumption=ASSUMPTION)

    def workspace(
        self, kernel: Kernel, device: Device, *, last: bool
    ) -> tuple[int, tuple[int, ...]]:
        """Return the bytes of the copies cuDNN may make, and of what it can do with instead."""
        source, weight, target = kernel.operands[:3]
        groups = _groups(kernel)
        if _has_tensor_cores(kernel, source, device):
            copies = [_padded_copy(tensor, groups, last=last) for tensor in (source, target)]
            filters = tensor_bytes(weight) if any(copies) else 0
        else:
            copies = [tensor_bytes(tensor) if last else 0 for tensor in (source, target)]
            filters = _winograd_filters(kernel, weight, groups)
        most = sum(copies) + filters
        if attribute(kernel, "benchmark"):
            return most, _halves(most)
        return most, (max(copies), filters, 0)


def _converted(kernel: Kernel, last: bool) -> list[TensorFacts]:
    """Return the operands PyTorch itself copies into channels-last before it calls cuDNN.

    If input or weight is channels-last, all operands are made so, the gradient of the output
    too. The output of a forward is allocated that way at once.
    Source: `cudnn_conv_suggest_memory_format` and `convolution` in
    aten/src/ATen/native/{ConvUtils.h,Convolution.cpp}.
    Not modelled: operands that are contiguous in neither order, and are copied too.
    """
    if not last:
        return []
    is_backward = kernel.operator.endswith("backward")
    operands = kernel.operands[:3] if is_backward else kernel.operands[:2]
    return [each for each in operands if not each.channels_last and not _is_both_ways(each)]


def _is_both_ways(tensor: TensorFacts) -> bool:
    """Return whether a contiguous tensor is channels-last as well: one channel or one pixel."""
    return tensor.shape[1] == 1 or all(size == 1 for size in tensor.shape[2:])


def _groups(kernel: Kernel) -> int:
    groups = attribute(kernel, "groups")
    return groups if isinstance(groups, int) and groups > 0 else 1


def _is_native_depthwise(
    kernel: Kernel, source: TensorFacts, weight: TensorFacts, groups: int
) -> bool:
    """Return whether PyTorch's own depthwise kernels run, which need no workspace.

    16-bit ones may go to cuDNN for some shapes; they are charged as if they did.
    """
    return (
        groups > 1
        and not attribute(kernel, "transposed")
        and len(source.shape) in (4, 5)
        and source.shape[1] == groups
        and weight.shape[0] % groups == 0
        and not source.channels_last
        and not weight.channels_last
        and element_bytes(source) >= 4
    )


def _has_tensor_cores(kernel: Kernel, source: TensorFacts, device: Device) -> bool:
    """Return whether plans with tensor cores exist for this dtype on this card.

    fp32 uses TF32 from 8.0 on unless `torch.backends.cudnn.allow_tf32` is off.
    """
    if source.dtype in ("float16", "bfloat16"):
        return device.compute_capability >= (7, 0)
    if source.dtype == "float32":
        return device.compute_capability >= (8, 0) and attribute(kernel, "allow_tf32") is not False
    return False


def _padded_copy(tensor: TensorFacts, groups: int, *, last: bool) -> int:
    """Return the bytes of a channels-last copy with padded channels; 0 if none is needed."""
    channels = tensor.shape[1] // groups if len(tensor.shape) > 1 else 0
    if channels == 0:
        return 0
    padded = round_up(channels * element_bytes(tensor), VECTOR_BYTES)
    if last and padded == channels * element_bytes(tensor):
        return 0
    return tensor_bytes(tensor) // (channels * element_bytes(tensor)) * padded


def _winograd_filters(kernel: Kernel, weight: TensorFacts, groups: int) -> int:
    """Return the bytes of a filter and its Winograd form; 0 where Winograd does not apply."""
    strides = attribute(kernel, "stride")
    is_dense = groups == 1 and (not isinstance(strides, tuple) or set(strides) <= {1})
    if not is_dense or weight.shape[2:] != (3, 3):
        return 0
    larger, smaller = WINOGRAD
    return tensor_bytes(weight) * (larger + smaller) // smaller


def _halves(nbytes: int) -> tuple[int, ...]:
    """Return what benchmarking tries when *nbytes* cannot be had."""
    halves = []
    while nbytes > SMALLEST:
        nbytes //= 2
        halves.append(nbytes)
    return (*halves, 0)


def _falling(nbytes: int, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return *sizes* below *nbytes*, largest first, each once."""
    return tuple(sorted({size for size in sizes if size < nbytes}, reverse=True))
