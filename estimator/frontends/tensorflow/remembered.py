"""Traces this process has made: many cards of a cluster share one.

JobSpec, Traits -> Trace

A step that is not compiled is the same on cards of every size and capability with the same kind
of arithmetic. One that XLA compiled is the same on cards that have memory enough.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace

from estimator.compilers import SCARCE
from estimator.spec import JobSpec
from estimator.trace import Method, Trace
from estimator.traits import Traits

MOST = 8
TOTAL = "compiledBytes"
"""A fact of a trace: what XLA's plan takes in all."""

Key = tuple[str, Traits]


class Remembered:
    """The last few traces."""

    def __init__(self) -> None:
        self._traces: OrderedDict[Key, Trace] = OrderedDict()

    def find(self, spec: JobSpec, traits: Traits, *, is_jit: bool) -> Trace | None:
        """Return the trace of *spec* on cards like those with *traits*, None if there is none."""
        found = self._traces.get(_key(spec, traits, is_jit=is_jit))
        if found is not None and is_scarce(found, traits):
            return None
        return found

    def keep(self, spec: JobSpec, traits: Traits, trace: Trace, *, is_jit: bool) -> None:
        """Remember *trace*, unless it is for a card short of memory."""
        if is_scarce(trace, traits):
            return
        self._traces[_key(spec, traits, is_jit=is_jit)] = trace
        while len(self._traces) > MOST:
            self._traces.popitem(last=False)


def is_scarce(trace: Trace, traits: Traits) -> bool:
    """Return whether XLA may plan otherwise on cards as small as those with *traits*."""
    card = traits.xla_memory_bytes
    if trace.method is not Method.COMPILE or card is None:
        return False
    return int(trace.facts.get(TOTAL, "0")) > SCARCE * card


def _key(spec: JobSpec, traits: Traits, *, is_jit: bool) -> Key:
    plain = replace(traits, xla_memory_bytes=None)
    return spec.digest(), plain if is_jit else replace(plain, xla_target=None)
