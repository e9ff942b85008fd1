"""A buffer assignment is read as XLA counts it."""

from __future__ import annotations

import pytest

from estimator.compilers.memory import Buffer, CompiledMemory, read_assignment
from estimator.errors import TraceError

ASSIGNMENT = """BufferAssignment:
allocation 0: size 16777216, parameter 0, shape |f32[4,1024,1024]| at ShapeIndex {}, maybe-live-out:
 value: <146 w.1 @0> (size=16777216,offset=0): f32[4,1024,1024]{2,1,0}
 value: <167 loop_add_fusion.1 @0> (size=1048576,offset=0): f32[256,1024]{1,0}
allocation 1: size 1048576, parameter 1, shape |f32[256,1024]| at ShapeIndex {}:
 value: <145 x.1 @0> (size=1048576,offset=0): f32[256,1024]{1,0}
allocation 2: size 16, output shape is |(f32[], f32[4,1024,1024])|, maybe-live-out:
 value: <170 tuple.2{} @0> (size=16,offset=0): (f32[], f32[4,1024,1024]{2,1,0})
allocation 3: size 4, thread-local:
 value: <2 reduce_sum.5.0 @0> (size=4,offset=0): f32[]
allocation 4: size 4, maybe-live-out:
 value: <158 input_reduce_fusion @0> (size=4,offset=0): f32[]
allocation 5: size 40, constant:
 value: <9 table @0> (size=40,offset=0): f32[10]
allocation 28: size 16777232, preallocated-temp:
 value: <159 cudnn-conv-bw-filter.98{0} @0> (size=8388608,offset=0): f32[2048,1024]{1,0}
 value: <160 fusion.3 @0> (size=12582912,offset=16): f32[3,1024,1024]{2,1,0}
"""
MODULE = """HloModule jit_step
  %fusion.3 = f32[3,1024,1024]{2,1,0} fusion(%x.1), kind=kLoop, metadata={op_name="jit(step)/add"}
"""


def test_each_allocation_belongs_to_one_part() -> None:
    """Registers of kernels count nothing; a result over an argument counts once."""
    memory = read_assignment(ASSIGNMENT, module=MODULE)

    assert memory == CompiledMemory(
        arguments=(16 << 20, 1 << 20),
        aliased=(True, False),
        outputs=16 + 4,
        temporary=(16 << 20) + 16,
        constants=40,
        largest=(
            Buffer(
                instruction="fusion.3",
                operator="jit(step)/add",
                shape="f32[3,1024,1024]",
                nbytes=12 << 20,
            ),
            Buffer(
                instruction="cudnn-conv-bw-filter.98",
                operator="",
                shape="f32[2048,1024]",
                nbytes=8 << 20,
            ),
        ),
    )
    assert memory.alias_bytes == 16 << 20
    assert memory.total == (17 << 20) + 20 + (16 << 20) + 16 + 40


def test_memory_of_an_unknown_kind_is_an_error() -> None:
    """What a later XLA invents is not counted as nothing."""
    with pytest.raises(TraceError, match="kind that is not known"):
        read_assignment("allocation 0: size 4, in-another-world:\n")


def test_text_that_is_no_assignment_is_an_error() -> None:
    """An empty answer is not a step without memory."""
    with pytest.raises(TraceError, match="form that is not known"):
        read_assignment("BufferAssignment:\n")
