"""Convolution workspaces, bounded by the copies their kernels may need."""

from __future__ import annotations

from dataclasses import replace

import pytest

from estimator.device import ComputeCapability, Device
from estimator.kernels.convolution import BOUNDED, ConvolutionScratch
from estimator.kernels.scratch import NONE, Block, Scratch, together
from estimator.notes import AssumptionCode, Unknown, UnknownCode
from estimator.trace import Kernel, TensorFacts
from estimator.units import MIB

A100: ComputeCapability = (8, 0)
V100: ComputeCapability = (7, 0)
T4: ComputeCapability = (7, 5)
FP32 = 4


def card(capability: ComputeCapability) -> Device:
    """Return a card of this compute capability."""
    return Device(
        name="card",
        total_bytes=None,
        reservation_bytes=0,
        budget_bytes=None,
        compute_capability=capability,
    )


def convolution(
    source: tuple[int, ...],
    weight: tuple[int, ...],
    target: tuple[int, ...],
    *,
    dtype: str = "float32",
    channels_last: bool = False,
    groups: int = 1,
    stride: int = 1,
    benchmark: bool = False,
    tf32: bool = True,
) -> Kernel:
    """Return a convolution as the PyTorch frontend records it."""
    return Kernel(
        operator="aten.convolution",
        operands=tuple(
            TensorFacts(shape=shape, dtype=dtype, channels_last=channels_last)
            for shape in (source, weight, target)
        ),
        attributes=(
            ("stride", (stride, stride)),
            ("groups", groups),
            ("transposed", False),
            ("benchmark", benchmark),
            ("allow_tf32", tf32),
        ),
    )


def block_of(kernel: Kernel, capability: ComputeCapability) -> Block:
    """Return the one workspace of *kernel*."""
    found = ConvolutionScratch().scratch(kernel, card(capability))
    assert isinstance(found, Scratch)
    (block,) = found.blocks
    assert found.assumption is not None
    assert found.assumption.code is AssumptionCode.KERNEL_WORKSPACE
    return block


RESNET_1X1 = convolution((32, 256, 56, 56), (128, 256, 1, 1), (32, 128, 56, 56))
RESNET_1X1_B256 = convolution((256, 256, 56, 56), (128, 256, 1, 1), (256, 128, 56, 56))
VGG_3X3 = convolution((32, 64, 224, 224), (64, 64, 3, 3), (32, 64, 224, 224))
EFFICIENTNET_1X1 = convolution((32, 16, 112, 112), (96, 16, 1, 1), (32, 96, 112, 112))
CONVNEXT_DEPTHWISE = convolution(
    (32, 96, 56, 56), (96, 1, 7, 7), (32, 96, 56, 56), channels_last=True, groups=96
)
VGG_LAST = convolution((32, 512, 14, 14), (512, 512, 3, 3), (32, 512, 14, 14))
CONVNEXT_DOWN = convolution(
    (32, 96, 56, 56), (192, 96, 2, 2), (32, 192, 28, 28), channels_last=True, stride=2
)


@pytest.mark.parametrize(
    ("kernel", "capability", "published"),
    [
        (RESNET_1X1, A100, 155),
        (RESNET_1X1_B256, A100, 1184),
        (VGG_3X3, A100, 787),
        (EFFICIENTNET_1X1, A100, 173),
        (CONVNEXT_DEPTHWISE, A100, 294),
        (VGG_LAST, T4, 25),
        (VGG_LAST, V100, 25),
        (CONVNEXT_DOWN, T4, 55),
    ],
)
def test_the_bound_explains_the_largest_workspace_of_each_model(
    kernel: Kernel, capability: ComputeCapability, published: int
) -> None:
    """Within 6 % of what cuDNN 9.26 answered for cards that were not there (MiB)."""
    mechanism = block_of(kernel, capability).nbytes / MIB

    assert published * 0.94 <= mechanism <= published * 1.01


def test_a_contiguous_convolution_copies_input_and_output_for_tensor_cores() -> None:
    """fp32 on A100: input, output and weight; less if that does not fit, nothing at the low end."""
    source = 32 * 256 * 56 * 56 * FP32
    target = 32 * 128 * 56 * 56 * FP32
    weight = 128 * 256 * FP32

    assert block_of(RESNET_1X1, A100) == Block(
        nbytes=source + target + weight,
        choices=(source, weight, 0),
        least=0,
        most=source + target + weight,
    )


def test_channels_are_padded_to_16_bytes() -> None:
    """Three channels of fp32 become four, of fp16 eight."""
    shapes = ((8, 3, 64, 64), (64, 3, 3, 3), (8, 64, 64, 64))
    weight = 64 * 3 * 3 * 3
    pixels = 8 * 64 * 64

    single = block_of(convolution(*shapes), A100)
    half = block_of(convolution(*shapes, dtype="float16"), A100)

    assert single.nbytes == (pixels * 4 + pixels * 64 + weight) * FP32
    assert half.nbytes == (pixels * 8 + pixels * 64 + weight) * 2


def test_channels_last_needs_no_copy() -> None:
    """Aligned channels-last tensors are read as they are."""
    kernel = convolution(
        (8, 64, 56, 56), (64, 64, 3, 3), (8, 64, 56, 56), channels_last=True, dtype="bfloat16"
    )

    assert ConvolutionScratch().scratch(kernel, card(A100)) == Scratch(assumption=BOUNDED)


def test_a_contiguous_weight_is_copied_beside_a_channels_last_input() -> None:
    """PyTorch makes all operands channels-last itself: a certain block, at the low end too."""
    kernel = convolution(
        (8, 64, 56, 56), (64, 64, 3, 3), (8, 64, 56, 56), channels_last=True, dtype="bfloat16"
    )
    source, weight, target = kernel.operands
    mixed = replace(kernel, operands=(source, replace(weight, channels_last=False), target))

    assert ConvolutionScratch().scratch(mixed, card(A100)) == together(
        Block(nbytes=64 * 64 * 3 * 3 * 2), assumption=BOUNDED
    )


def test_a_1x1_weight_is_channels_last_as_it_is() -> None:
    """One pixel a channel has no order to change."""
    kernel = convolution(
        (8, 64, 56, 56), (64, 64, 1, 1), (8, 64, 56, 56), channels_last=True, dtype="bfloat16"
    )
    source, weight, target = kernel.operands
    mixed = replace(kernel, operands=(source, replace(weight, channels_last=False), target))

    assert ConvolutionScratch().scratch(mixed, card(A100)) == Scratch(assumption=BOUNDED)


def test_a_contiguous_gradient_is_copied_in_the_backward() -> None:
    """A forward allocates its output channels-last; each product of a backward finds a copy."""
    kernel = convolution(
        (8, 64, 56, 56), (64, 64, 3, 3), (8, 64, 56, 56), channels_last=True, dtype="bfloat16"
    )
    source, weight, target = kernel.operands
    operands = (source, weight, replace(target, channels_last=False))
    backward = replace(kernel, operator="aten.convolution_backward", operands=operands)

    assert ConvolutionScratch().scratch(replace(kernel, operands=operands), card(A100)) == Scratch(
        assumption=BOUNDED
    )
    assert ConvolutionScratch().scratch(backward, card(A100)) == Scratch(
        groups=((Block(nbytes=8 * 64 * 56 * 56 * 2),),) * 2, assumption=BOUNDED
    )


def test_without_tf32_there_is_no_layout_copy() -> None:
    """A contiguous 1x1 needs nothing on a card or with a setting that has no TF32."""
    plain = convolution((32, 256, 56, 56), (128, 256, 1, 1), (32, 128, 56, 56), tf32=False)

    assert ConvolutionScratch().scratch(plain, card(A100)) == Scratch(assumption=BOUNDED)
    assert ConvolutionScratch().scratch(RESNET_1X1, card(T4)) == Scratch(assumption=BOUNDED)


def test_one_dimension_runs_as_two() -> None:
    """A contiguous fp32 depthwise convolution over a sequence is PyTorch's own, too."""
    kernel = convolution((8, 96, 500), (96, 1, 3), (8, 96, 500), groups=96)

    assert ConvolutionScratch().scratch(kernel, card(A100)) == NONE


def test_a_contiguous_fp32_depthwise_convolution_is_pytorchs_own() -> None:
    """PyTorch's depthwise kernels need no workspace."""
    kernel = convolution((8, 96, 56, 56), (96, 1, 3, 3), (8, 96, 56, 56), groups=96)

    assert ConvolutionScratch().scratch(kernel, card(A100)) == NONE


def test_a_search_halves_its_workspace_under_pressure() -> None:
    """With benchmark on the first call may also take the search's, by halves down to nothing."""
    kernel = convolution((32, 256, 56, 56), (128, 256, 1, 1), (32, 128, 56, 56), benchmark=True)
    found = ConvolutionScratch().scratch(kernel, card(A100))
    assert isinstance(found, Scratch)
    ((block,),) = found.search

    assert (block.nbytes, block.most) == (0, found.blocks[0].nbytes)
    assert block.most is not None
    assert block.choices[0] == block.most // 2
    assert block.choices[-1] == 0
    assert all(
        larger // 2 == smaller
        for larger, smaller in zip(block.choices[:-2], block.choices[1:-1], strict=True)
    )


def test_a_convolution_without_shapes_is_unknown() -> None:
    """Too few operands are reported, not taken for zero."""
    found = ConvolutionScratch().scratch(
        Kernel(operator="aten.convolution", operands=()), card(A100)
    )

    assert isinstance(found, Unknown)
    assert found.code is UnknownCode.KERNEL
