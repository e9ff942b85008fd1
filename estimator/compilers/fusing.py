"""Which values of a program XLA never writes: their readers compute them.

    Graph -> Kernels

XLA:GPU fuses a producer into all of its readers where that saves time: the write and the reads of
its value against reading its own operands once more in each of them. Bytes decide, as such kernels
wait for memory. The best saving goes first.
Source: openxla/xla@4336d12e xla/backends/gpu/transforms/priority_fusion.cc,
xla/service/gpu/model/gpu_performance_model.cc, gemm_fusion.cc, gpu_fusible.cc.
Not modelled: caches, coalescing, limits on the size of a kernel, layouts, results of several kinds.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from estimator.compilers.hlo import Graph

LAUNCH = 2_000_000
"""Bytes a card of 2 TB/s moves in the microsecond that starting a kernel takes."""
BYTES_A_STEP = 0.105
"""Bytes that card moves in the time of one step of arithmetic, of which it does 19.5 T a second."""
AT_ONCE = 0.95
"""How much of the shorter of moving and computing is hidden behind the other."""
TINY = 256
"""Bytes of values that are left out: scalars, of which there are thousands."""
STEPS = {
    "log": 259,
    "log-plus-one": 259,
    "tanh": 504,
    "power": 1221,
    "cbrt": 1195,
}
"""Clock cycles XLA counts for an element in floating point; for everything else `OTHER`.

Its table for Ampere lists only what takes long. Cards of 7.0 and 9.0 have longer tables.
Source: openxla/xla@091793fc xla/service/gpu/model/hlo_op_profiles_data.h, and
`kDefaultFlopsPerElement`.
"""
OTHER = 3
NO_STEPS = frozenset(
    {
        "broadcast",
        "reshape",
        "transpose",
        "slice",
        "concatenate",
        "pad",
        "reverse",
        "iota",
        "gather",
    }
)
MAX_INPUTS = 40
"""Arguments of one kernel, of which XLA allows some more."""

FREE = frozenset({"constant", "iota", "partition-id", "replica-id"})
"""Operators whose value costs nothing to compute again."""
OPAQUE = frozenset(
    {
        "all-gather",
        "all-reduce",
        "all-to-all",
        "cholesky",
        "collective-permute",
        "conditional",
        "convolution",
        "custom-call",
        "dot",
        "fft",
        "infeed",
        "outfeed",
        "parameter",
        "ragged-dot",
        "reduce-scatter",
        "rng",
        "rng-bit-generator",
        "scatter",
        "select-and-scatter",
        "sort",
        "topk",
        "triangular-solve",
        "while",
    }
)
"""Operators that are kernels of their own."""
ROOTS = frozenset({"reduce", "dynamic-update-slice", "reduce-window"})
"""Operators whose kernel takes producers in, but whose value has to be written."""
LATE = frozenset({"select-and-scatter", "scatter"})
"""Operators whose kernel takes producers in, too: they become loops over their updates."""


@dataclass(slots=True)
class Kernels:
    """What is written, and what each kernel reads."""

    reads: dict[int, set[int]]
    """Kernel -> the written values it reads. A kernel has the number of the node it writes."""
    is_loop: dict[int, bool]
    """Whether a kernel may write over an operand of the same size."""


def fuse(graph: Graph) -> Kernels:
    """Return the kernels of *graph*."""
    return _Fusing(graph).run()


class _Fusing:
    def __init__(self, graph: Graph) -> None:
        self.nodes = graph.nodes
        self.kept = set(graph.results)
        self.reads: dict[int, set[int]] = {}
        self.readers: dict[int, set[int]] = {}
        self.steps: dict[int, float] = {}
        for number in self._reachable(graph):
            node = self.nodes[number]
            if node.nbytes <= TINY and not node.inner:
                continue
            self.reads[number] = {each for each in node.operands if self.nodes[each].nbytes > TINY}
            self.readers.setdefault(number, set())
            self.steps[number] = steps_of(node.operator, node.kind) * self._iterations(number)
            for operand in self.reads[number]:
                self.readers.setdefault(operand, set()).add(number)

    def run(self) -> Kernels:
        """Fuse until nothing is saved."""
        waiting = [(-self._saved(number), number) for number in self.reads]
        heapq.heapify(waiting)
        while waiting:
            cost, number = heapq.heappop(waiting)
            if cost >= 0 or number not in self.reads:
                continue
            saved = self._saved(number)
            if saved != -cost:
                if saved > 0:
                    heapq.heappush(waiting, (-saved, number))
                continue
            for changed in self._fuse(number):
                heapq.heappush(waiting, (-self._saved(changed), changed))
        loops = {n: self.nodes[n].operator not in OPAQUE - LATE for n in self.reads}
        return Kernels(self.reads, loops)

    def _reachable(self, graph: Graph) -> list[int]:
        found: set[int] = set()
        stack = list(graph.results)
        stack += [n for n, node in enumerate(self.nodes) if node.operator == "while"]
        while stack:
            number = stack.pop()
            if number not in found:
                found.add(number)
                stack.extend(self.nodes[number].operands)
        return sorted(found)

    def _iterations(self, number: int) -> int:
        """Return how many elements a kernel goes through: a reduction its operands'."""
        node = self.nodes[number]
        if node.operator not in ROOTS:
            return node.elements
        return max((self.nodes[each].elements for each in node.operands), default=node.elements)

    def _saved(self, number: int) -> float:
        """Return what computing *number* in all of its readers saves, in bytes; 0 if it cannot."""
        node = self.nodes[number]
        readers = self.readers[number]
        if (
            node.operator in OPAQUE
            or node.operator in ROOTS
            or number in self.kept
            or not readers
            or not all(self._takes(reader, number) for reader in readers)
        ):
            return 0.0
        saved = self._time(number, self.reads[number], self.steps[number])
        for reader in readers:
            reads, steps = self._with(reader, number)
            saved += self._time(reader, self.reads[reader], self.steps[reader])
            saved -= self._time(reader, reads, steps)
        return max(saved, 0.0)

    def _with(self, reader: int, number: int) -> tuple[set[int], float]:
        """Return what *reader* reads and computes if it computes *number* itself."""
        reads = (self.reads[reader] | self.reads[number]) - {number}
        times = self._iterations(reader) / max(self.nodes[number].elements, 1)
        return reads, self.steps[reader] + self.steps[number] * times

    def _time(self, number: int, reads: set[int], steps: float) -> float:
        """Return how long a kernel takes, in bytes that could be moved meanwhile."""
        node = self.nodes[number]
        most = max(node.nbytes, 1)
        if node.operator in ROOTS or node.operator in OPAQUE:
            moved = sum(self.nodes[each].nbytes for each in reads) + node.nbytes
        else:
            moved = sum(min(self.nodes[each].nbytes, 8 * most) for each in reads) + node.nbytes
        computed = steps * BYTES_A_STEP
        return LAUNCH + moved + computed - AT_ONCE * min(moved, computed)

    def _takes(self, reader: int, number: int) -> bool:
        node = self.nodes[reader]
        if node.operator == "dot":
            return len(self.reads[number]) <= 1  # of one array and scalars: no rows' statistics
        if node.operator == "scatter":
            return node.operands[0] != number  # it is written over
        if node.operator in OPAQUE:
            return False
        return len(self.reads[reader] | self.reads[number]) <= MAX_INPUTS

    def _fuse(self, number: int) -> set[int]:
        """Compute *number* in its readers; return the kernels whose saving may have changed."""
        own = self.reads[number]
        readers = self.readers[number]
        for reader in readers:
            self.reads[reader], self.steps[reader] = self._with(reader, number)
        for each in own:
            self.readers[each].discard(number)
            self.readers[each] |= readers
        del self.reads[number], self.readers[number]
        return own | readers


def steps_of(operator: str, kind: str) -> int:
    """Return the clock cycles of one element."""
    if operator in NO_STEPS or operator in OPAQUE:
        return 0
    return STEPS.get(operator, OTHER) if kind.startswith(("f", "bf")) else OTHER
