"""XLA's words are read as they come, and no further than needed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from estimator.compilers.dump import Account, read_dump

NAME = "module_0001.jit_step.sm_8.0_gpu_after_optimizations"
SAID = (
    "*** Begin module_0001.jit_step.before_optimizations.txt ***\nHloModule a\n"
    "*** End module_0001.jit_step.before_optimizations.txt ***\n"
    f"*** Begin {NAME}.txt ***\nHloModule b\n*** End {NAME}.txt ***\n"
    f"*** Begin {NAME}-buffer-assignment.txt ***\nBufferAssignment:\n"
    f"*** End {NAME}-buffer-assignment.txt ***\n"
).encode()


@given(st.lists(st.integers(min_value=0, max_value=len(SAID)), max_size=20))
def test_where_a_piece_ends_does_not_matter(cuts: list[int]) -> None:
    """A pipe hands text over in pieces of any size."""
    edges = sorted({0, *cuts, len(SAID)})
    pieces = [SAID[start:end] for start, end in pairwise(edges)]

    account = read_dump(pieces)

    assert account == Account(module="HloModule b\n", assignment="BufferAssignment:\n")


def test_nothing_is_read_after_the_assignment() -> None:
    """What follows takes most of a compile's time and tells nothing."""

    def pieces() -> Iterator[bytes]:
        yield SAID
        raise AssertionError("read too far")

    assert read_dump(pieces()).assignment is not None


def test_an_error_is_kept() -> None:
    """A compile that ends before its buffers are assigned says why."""
    account = read_dump([SAID[:80], b"\n*** Error ***\nValueError: no such operator"])

    assert account == Account(error="ValueError: no such operator")


def test_too_late_is_not_an_error_of_the_module() -> None:
    """A compile that takes too long is told apart."""
    assert read_dump([SAID[:80], None]) == Account(is_late=True)
