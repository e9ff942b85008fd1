"""MXNet's memory planner: which outputs of a graph lie in which storage.

    nodes in order, references -> Plan

Greedy, in the order of execution: an output takes the place of an input it may share, else a
free storage of a size within sixteen times its own, else a new one. A storage is as large as the
largest it ever held. Sizes are planned as if every element had four bytes.
Source: apache/mxnet@1.9.1 `src/nnvm/plan_memory.cc` (`MXGraphAllocator`, `MXAllocMemory`).
Not modelled: `NNVM_EXEC_NUM_TEMP`, several devices in one graph (`__ctx_group__`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from estimator.frontends.mxnet.graph import ITEM_BYTES, Entry, Key, Node

PLANNED_BYTES = 4
MATCH_RANGE = 16
"""`NNVM_EXEC_MATCH_RANGE`."""
EXTERNAL = -2
"""Not planned: an argument, or an array of somebody else."""


@dataclass(slots=True)
class Storage:
    """One block of a plan."""

    planned: int
    """Bytes as planned, four an element."""
    nbytes: int
    """Bytes in the types of what lies in it: what is allocated."""
    first: Node
    """The node that first writes to it."""
    last_release: int = -1


@dataclass(slots=True)
class Plan:
    """Storages of a graph, and the storage of each entry."""

    storages: list[Storage] = field(default_factory=list)
    placed: dict[Key, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Return the bytes planned: what MXNet prints as `Total … MB allocated`."""
        return sum(storage.planned for storage in self.storages)


def references_of(
    order: Sequence[Node], outputs: Sequence[Entry], *, counts_ignored: bool = False
) -> dict[Key, int]:
    """Return how often each entry is read, and once more for each time it is an output.

    *counts_ignored*: as a hybridised block counts, where inputs that are not read count too, and
    so are never let go of (`SetForwardRefCounts` in `src/imperative/cached_op.h`).
    """
    counts: dict[Key, int] = {}
    for node in order:
        read: Sequence[Entry] = node.inputs
        if node.sharing.ignored and not counts_ignored:
            read = [entry for index, entry in enumerate(read) if index not in node.sharing.ignored]
        for entry in read:
            counts[entry] = counts.get(entry, 0) + 1
    for entry in outputs:
        counts[entry] = counts.get(entry, 0) + 1
    return counts


def plan(
    order: Sequence[Node],
    references: Mapping[Key, int],
    external: Sequence[Entry] = (),
    *,
    match_range: int = MATCH_RANGE,
) -> Plan:
    """Return the plan of the nodes in *order*; entries in *external* lie elsewhere."""
    planner = _Planner(references, match_range)
    for entry in external:
        planner.plan.placed[entry] = EXTERNAL
    for node in order:
        if not node.is_variable:
            planner.visit(node)
    return planner.plan


class _Planner:
    """The state of a plan while nodes are visited."""

    def __init__(self, references: Mapping[Key, int], match_range: int) -> None:
        self.references = references
        self.match_range = match_range
        self.plan = Plan()
        self.readers: list[int] = []
        """References of each storage that are still to come."""
        self.free: list[tuple[int, int, int]] = []
        """Free storages: planned bytes, order of release, storage."""
        self.releases = 0

    def visit(self, node: Node) -> None:
        """Place the outputs of a node, then let go of what it was the last to read."""
        if node.sharing.pairs:
            self.share(node)
        self.allocate(node)
        placed, readers, ignored = self.plan.placed, self.readers, node.sharing.ignored
        for index, entry in enumerate(node.inputs):
            storage = placed.get(entry, EXTERNAL)
            if storage < 0 or index in ignored:
                continue
            readers[storage] -= 1
            if readers[storage] == 0:
                self.release(storage)
        for index in range(node.num_outputs):
            storage = placed[node, index]
            if storage >= 0 and readers[storage] == 0:
                self.release(storage)

    def share(self, node: Node) -> None:
        """Place outputs where an input lies that nobody reads any more."""
        sharing, placed = node.sharing, self.plan.placed
        reads_nothing = len(sharing.ignored) == len(node.inputs)
        taken: set[int] = set()
        for source, target in sharing.pairs:
            if source >= len(node.inputs) or target >= node.num_outputs or source in taken:
                continue
            entry, output = node.inputs[source], Entry(node, target)
            storage = placed.get(entry, EXTERNAL)
            count = self.references.get(output, 0)
            if output in placed or storage < 0 or not count or output.elements != entry.elements:
                continue
            is_last = self.readers[storage] == 1 and not reads_nothing
            is_same = sharing.is_identity and output.dtype == entry.dtype
            if not (is_last or is_same) or _width(output) != _width(entry):
                continue
            taken.add(source)
            placed[output] = storage
            self.readers[storage] += count
            self.grow(storage, output)

    def allocate(self, node: Node) -> None:
        """Place the other outputs, the largest first."""
        placed = self.plan.placed
        outputs = [
            (entry.elements, entry.output, entry) for entry in node.outputs() if entry not in placed
        ]
        for elements, _, entry in sorted(outputs, reverse=True):
            storage = self.request(elements * PLANNED_BYTES, node)
            self.readers[storage] = self.references.get(entry, 0)
            placed[entry] = storage
            self.grow(storage, entry)

    def request(self, planned: int, node: Node) -> int:
        """Return a free storage near in size, or a new one."""
        storages = self.plan.storages
        if self.match_range:
            middle = bisect_left(self.free, (planned,))
            chosen = -1
            if middle < bisect_right(self.free, (planned * self.match_range, 1 << 62)):
                chosen = middle
            elif middle > bisect_left(self.free, (planned // self.match_range,)):
                chosen = middle - 1
            if chosen >= 0:
                storage = self.free.pop(chosen)[2]
                storages[storage].planned = max(storages[storage].planned, planned)
                return storage
        storages.append(Storage(planned=planned, nbytes=0, first=node))
        self.readers.append(0)
        return len(storages) - 1

    def grow(self, storage: int, entry: Entry) -> None:
        """Note that an entry lies in a storage, which has to hold it."""
        block = self.plan.storages[storage]
        block.nbytes = max(block.nbytes, entry.nbytes)

    def release(self, storage: int) -> None:
        """Put a storage among the free ones."""
        self.releases += 1
        insort(self.free, (self.plan.storages[storage].planned, self.releases, storage))


def _width(entry: Entry) -> int:
    return ITEM_BYTES[entry.dtype]
