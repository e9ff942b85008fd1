"""Workspaces of convolutions where cuDNN cannot be asked, bounded by mechanism.

    Question, Device -> Choice

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

Kernels that transform 3x3 filters and keep the transformed input and output in memory (Winograd,
not fused: tiles of 6x6 for 4x4 outputs) hold 36/16 of input and output and 36/9 of the weight;
that is the high end for dense 3x3 filters of stride 1.

So it is a bound of the right size for one layer of each model, not a prediction for every layer:
many layers take plans that need nothing. Hence choices down to 0, and 0 as the low end.
A check on a real card: VGG-16 at batch 684 died under a cap of 9,389 MiB and ran under 10,352
(RTX 3060, Stone-ResearchLife/xMem@7114ee6d plot/data); replayed, it completes from 9,382 on with
these workspaces and from 8,402 on without.
Not modelled: split sums of weight gradients (up to 8 MiB in the table), FFT plans, engines that
differ by cuDNN version (older ones ask for less).
"""

from __future__ import annotations

from math import prod

from estimator.cudnn import Question
from estimator.device import Device
from estimator.kernels.choosing import Choice, Switches
from estimator.kernels.scratch import ELEMENT_BYTES
from estimator.units import round_up

VECTOR_BYTES = 16
"""Channels of a group are padded to this for tensor cores: 4 of fp32, 8 of 16 bits."""
WINOGRAD = (16, 9)
"""A 3x3 filter becomes 4x4 in the transformed domain."""
TILES = (36, 16, 9)
"""Elements of a 6x6 tile, of the 4x4 outputs it makes, of the filter it is made with."""


def bounded_choice(question: Question, switches: Switches, device: Device) -> Choice:
    """Return the copies cuDNN may make, and what it can do with instead."""
    item = ELEMENT_BYTES.get(question.dtype, 1)
    tensors = (question.input, question.output)
    if _has_tensor_cores(question, switches, device):
        groups = question.input[1] // question.weight[1]
        copies = [_padded_copy(shape, groups, item, question.channels_last) for shape in tensors]
        filters = prod(question.weight) * item if any(copies) else 0
    else:
        copies = [prod(shape) * item if question.channels_last else 0 for shape in tensors]
        filters = _winograd_filters(question, item)
    likely = most = sum(copies) + filters
    if not _has_tensor_cores(question, switches, device):
        most = max(likely, transformed_bytes(question))
    return Choice(
        preferred=likely,
        alternatives=(max(copies), filters, 0),
        least=0,
        most=most,
        largest=most,
    )


def older_choice(question: Question, switches: Switches, device: Device) -> Choice:
    """Return what PyTorch before 2.0 is taken to do: algorithms that need next to nothing.

    Its older interface to cuDNN was not asked. Of nothing, layout copies and Winograd's tiles,
    nothing fits one in three of the schedtune readings best (torch 1.8, five cards), and the
    others too; the high end is the largest of the three.
    """
    most = max(bounded_choice(question, switches, device).most, transformed_bytes(question))
    return Choice(preferred=0, alternatives=(), least=0, most=most, largest=most)


def transformed_bytes(question: Question) -> int:
    """Return the bytes of input, output and filter in Winograd's domain; 0 where it is not used."""
    item = ELEMENT_BYTES.get(question.dtype, 1)
    if not _is_dense_3x3(question):
        return 0
    tile, outputs, taps = TILES
    activations = prod(question.input) + prod(question.output)
    return (activations * tile // outputs + prod(question.weight) * tile // taps) * item


def _has_tensor_cores(question: Question, switches: Switches, device: Device) -> bool:
    """Return whether plans with tensor cores exist for this dtype on this card.

    fp32 uses TF32 from 8.0 on unless `torch.backends.cudnn.allow_tf32` is off.
    """
    if question.dtype in ("float16", "bfloat16"):
        return device.compute_capability >= (7, 0)
    if question.dtype == "float32":
        return device.compute_capability >= (8, 0) and switches.allow_tf32
    return False


def _padded_copy(shape: tuple[int, ...], groups: int, item: int, channels_last: bool) -> int:
    """Return the bytes of a channels-last copy with padded channels; 0 if none is needed."""
    channels = shape[1] // groups
    if channels == 0:
        return 0
    padded = round_up(channels * item, VECTOR_BYTES)
    if channels_last and padded == channels * item:
        return 0
    return prod(shape) // channels * padded


def _winograd_filters(question: Question, item: int) -> int:
    """Return the bytes of a filter and its Winograd form; 0 where Winograd does not apply."""
    if not _is_dense_3x3(question):
        return 0
    larger, smaller = WINOGRAD
    return prod(question.weight) * item * (larger + smaller) // smaller


def _is_dense_3x3(question: Question) -> bool:
    """Return whether Winograd applies: no groups, stride 1, a 3x3 filter."""
    is_dense = question.input[1] == question.weight[1] and set(question.stride) == {1}
    return is_dense and question.weight[2:] == (3, 3)
