"""About what a step takes, before XLA has compiled it.

    text of an HLO module -> Outline

Fusion says which values are written (`fusing.py`), a list schedule in what order, and the peak
follows from who is alive. A figure of seconds, for the time until the compile's own is there: its
interval is that of a formula. The compile is the measure; nothing here is fitted to a model.
Source: openxla/xla@4336d12e xla/hlo/transforms/simplifiers/hlo_memory_scheduler.cc
(`ListScheduler`), xla/service/heap_simulator (a buffer is written over an operand that dies).
Not modelled: layouts and the copies they take, rematerialisation, holes in the arena.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from estimator.compilers.fusing import Kernels, fuse
from estimator.compilers.hlo import Graph, Reader
from estimator.compilers.packing import Value, packed


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """Bytes a step is likely to take."""

    arguments: tuple[int, ...]
    aliased: tuple[bool, ...]
    outputs: int
    temporary: int

    @property
    def total(self) -> int:
        """Return the sum."""
        return sum(self.arguments) + self.outputs + self.temporary


def outline_of(text: str) -> Outline:
    """Return about what the module in *text* takes.

    Raises:
        TraceError: if it is not the text of an HLO module, or too large a one.
    """
    graph = Reader(text).read()
    sizes = {number: graph.nodes[node].nbytes for node, number in graph.arguments.items()}
    over = set(graph.written_over.values())
    outputs = {
        node
        for index, node in enumerate(graph.results)
        if index not in graph.written_over and node not in graph.arguments
    }
    return Outline(
        arguments=tuple(sizes[number] for number in sorted(sizes)),
        aliased=tuple(number in over for number in sorted(sizes)),
        outputs=sum(graph.nodes[node].nbytes for node in outputs),
        temporary=packed(_Schedule(graph, fuse(graph)).values()),
    )


class _Schedule:
    """Runs whatever frees the most next, as XLA's list scheduler does."""

    def __init__(self, graph: Graph, kernels: Kernels) -> None:
        self.nodes = graph.nodes
        self.kernels = kernels
        self.results = set(graph.results)
        self.left = {number: 0 for number in kernels.reads}
        self.readers: dict[int, list[int]] = {number: [] for number in kernels.reads}
        for reader, reads in kernels.reads.items():
            for each in reads:
                self.left[each] += 1
                self.readers[each].append(reader)
        self.missing = {number: len(reads) for number, reads in kernels.reads.items()}

    def values(self) -> list[Value]:
        """Return size and life of every value of the arena."""
        ready = [self._entry(number) for number, count in self.missing.items() if count == 0]
        heapq.heapify(ready)
        done: set[int] = set()
        lives: dict[int, list[int]] = {}
        inner: list[Value] = []
        while ready:
            entry = heapq.heappop(ready)
            number = entry[-1]
            if number in done:
                continue
            if entry != self._entry(number):
                heapq.heappush(ready, self._entry(number))
                continue
            moment = len(done)
            done.add(number)
            life = self._place(number, lives, moment)
            if life is not None:
                lives[number] = life
            if self.nodes[number].inner:
                inner.append((self.nodes[number].inner, moment, moment))
            for each in self.kernels.reads[number]:
                self.left[each] -= 1
                if each in lives:
                    lives[each][2] = moment
                if self.left[each] == 1:
                    self._look_again(self.readers[each], done, ready)
            for reader in self.readers[number]:
                self.missing[reader] -= 1
            self._look_again(self.readers[number], done, ready)
        distinct = {id(life): life for life in lives.values()}
        return [(size, first, last) for size, first, last in distinct.values()] + inner

    def _place(self, number: int, lives: dict[int, list[int]], moment: int) -> list[int] | None:
        """Return the life of a new value, that of a dying operand if it is written over it."""
        size = self._size(number)
        if not size:
            return None
        if self.kernels.is_loop[number]:
            for each in self.kernels.reads[number]:
                if each in lives and lives[each][0] == size and self._dies(each):
                    return lives[each]
        return [size, moment, moment]

    def _look_again(
        self, readers: list[int], done: set[int], ready: list[tuple[int, int, int]]
    ) -> None:
        for reader in readers:
            if reader not in done and self.missing[reader] == 0:
                heapq.heappush(ready, self._entry(reader))

    def _size(self, number: int) -> int:
        """Return what a value takes of the arena: arguments and results are not in it."""
        node = self.nodes[number]
        is_outside = node.operator == "parameter" or number in self.results
        return 0 if is_outside else node.nbytes

    def _dies(self, number: int) -> bool:
        """Return whether the kernel that reads *number* next is its last reader."""
        return self.left[number] == 1 and number not in self.results

    def _entry(self, number: int) -> tuple[int, int, int]:
        """Return the rank of a kernel: what it frees less what it takes, then the older one."""
        freed = sum(self._size(each) for each in self.kernels.reads[number] if self._dies(each))
        return self._size(number) - freed, -len(self.readers[number]), number
