"""What a process holds on a card beside its allocator's segments.

    Device, framework and its version -> Overheads

Published readings with sources, no measurement. A figure is a range, never a single number.
"""

from __future__ import annotations

from estimator.catalog.stacks import Stack, stack_of
from estimator.overheads.process import Overheads, overheads_of
from estimator.overheads.ranges import Range

__all__ = ["Overheads", "Range", "Stack", "overheads_of", "stack_of"]
