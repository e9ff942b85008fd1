"""What TensorFlow's search for the fastest convolution takes, once for each shape.

Convolution, Choice -> Group

Every plan within the workspace limit is tried, one at a time, on a copy of the output. Copy and
workspace lie between zones that show who writes where they must not. Either may be refused:
without the copy the output itself is written, and a plan whose workspace is refused is left out.

Source: tensorflow/tensorflow@02a6dd023be38a2ce9a3324a9da00b611099a076
tensorflow/core/kernels/conv_ops_gpu.cc (`AutotuneUnfusedConv`, `AutotuneConvImpl`),
stream_executor/gpu/redzone_allocator.h (`kDefaultRedzoneSize`).
"""

from __future__ import annotations

from estimator.cudnn import Direction, Question
from estimator.kernels.choosing import Choice, halves
from estimator.kernels.scratch import ELEMENT_BYTES, Block, Group, attribute
from estimator.trace import Kernel
from estimator.units import MIB

REDZONES = 16 * MIB
"""Before and behind one allocation."""
NAME = "tensorflow"


def is_searched_so(kernel: Kernel) -> bool:
    """Return whether it is TensorFlow that searches."""
    return attribute(kernel, "autotune") == NAME


def search_of(question: Question, choice: Choice, *, is_bounded: bool) -> Group:
    """Return what the first call of *question* takes before it runs.

    *is_bounded*: nobody knows the plans, so the largest of them is the high end only.
    """
    copy = _output_bytes(question) + REDZONES
    blocks = [Block(nbytes=copy, choices=(0,), least=0)]
    if choice.largest:
        expected = choice.preferred if is_bounded else choice.largest
        sizes = tuple(size + REDZONES for size in halves(expected) if size)
        blocks.append(
            Block(
                nbytes=expected + REDZONES,
                choices=(*sizes, 0),
                least=0,
                most=max(expected, choice.largest) + REDZONES,
            )
        )
    return tuple(blocks)


def _output_bytes(question: Question) -> int:
    """Return the bytes of what the product writes."""
    shape = {
        Direction.FORWARD: question.output,
        Direction.DATA: question.input,
        Direction.WEIGHT: question.weight,
    }[question.direction]
    total = ELEMENT_BYTES.get(question.dtype, 1)
    for size in shape:
        total *= size
    return total
