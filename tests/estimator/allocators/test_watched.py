"""Watching changes nothing."""

from __future__ import annotations

from hypothesis import given, settings

from estimator.allocators.pytorch import pytorch_allocator
from estimator.allocators.settings import CachingSettings
from estimator.allocators.watched import watched_allocator
from estimator.program import Program
from estimator.replay import replay
from tests.estimator.report.programs import CAPS, OPTIONS, programs


@given(programs(), OPTIONS, CAPS)
@settings(max_examples=150, deadline=None)
def test_a_watched_allocator_hands_out_the_same_blocks(
    program: Program, options: CachingSettings, cap: int | None
) -> None:
    """Every block lies where it lies without a ledger, and the run is the same."""
    plain = pytorch_allocator(options, capacity=cap, allowed=cap)
    watched = watched_allocator(options, capacity=cap, allowed=cap)

    assert replay(program, watched) == replay(program, plain)
    assert list(watched.blocks()) == list(plain.blocks())
    assert [(each.nbytes, each.is_free) for each in watched.pieces()] == [
        (size, is_free) for _, size, is_free in plain.blocks()
    ]
    assert watched.requested <= watched.allocated
