"""Scratch of PyTorch's own kernels that sort, scan or normalise.

    Kernel, Device -> Scratch

Bounds from what an algorithm must hold: a radix sort keeps a second copy of keys and values.
Not modelled: the few kilobytes cub and reductions keep for their blocks.

Source: aten/src/ATen/native/cuda/Sort.cpp, Embedding.cu, Indexing.cu of PyTorch, and cub's
double buffers; sizes are bounds of ours, named so in the assumption.
"""

from __future__ import annotations

from estimator.device import Device
from estimator.kernels.scratch import NONE, Scratch, bound, element_bytes, num_elements
from estimator.notes import Assumption, AssumptionCode
from estimator.trace import Kernel

FLOAT = 4
INDEX = 8
"""Bytes of an int64 index."""


def _assumption(kernel: Kernel) -> Assumption:
    return Assumption(
        code=AssumptionCode.KERNEL_WORKSPACE,
        path=kernel.operator,
        value="second copy of keys and indices",
        reason="a radix sort holds its keys and values twice; small inputs are sorted in place",
    )


def sort(kernel: Kernel, device: Device) -> Scratch:  # noqa: ARG001 - it is a Rule
    """Return a second copy of the first operand and of its indices."""
    keys = kernel.operands[0]
    return bound(num_elements(keys) * (element_bytes(keys) + INDEX), _assumption(kernel))


def sorted_indices(kernel: Kernel, device: Device) -> Scratch:  # noqa: ARG001 - it is a Rule
    """Return sorted indices, their origins and the sort's copies: four int64 an index.

    The indices are the integer operand with the most elements.
    """
    counts = [num_elements(each) for each in kernel.operands if each.dtype in ("int64", "int32")]
    if not counts:
        return NONE
    return bound(4 * max(counts) * INDEX, _assumption(kernel))


def fourier(kernel: Kernel, device: Device) -> Scratch:  # noqa: ARG001 - it is a Rule
    """Return one complex copy of the input, what an out-of-place transform works in."""
    return bound(
        num_elements(kernel.operands[0]) * 2 * max(FLOAT, element_bytes(kernel.operands[0])),
        Assumption(
            code=AssumptionCode.KERNEL_WORKSPACE,
            path=kernel.operator,
            value="one complex copy of the input",
            reason="cuFFT was not asked; small transforms need nothing",
        ),
    )


def no_scratch(kernel: Kernel, device: Device) -> Scratch:  # noqa: ARG001 - it is a Rule
    """Return nothing: the kernel writes its outputs and a few kilobytes of block sums."""
    return NONE
