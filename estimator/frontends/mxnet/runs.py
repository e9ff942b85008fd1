"""A plan's storages while its nodes run: allocated at their first use, then let go of.

    nodes in order, Plan, references -> turns -> events of a step

Which storage a node is the first to write and which it is the last to read is the same in every
step, so it is found once. Source: apache/mxnet@1.9.1 `src/imperative/imperative_utils.h`
(`AllocateMemory`, which delays allocation) and `imperative_utils.cc` (`RunGraph`, which lets go of
arrays).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from estimator.frontends.mxnet.events import Recorder
from estimator.frontends.mxnet.graph import Entry, Key, Node
from estimator.frontends.mxnet.planner import EXTERNAL, Plan, Storage
from estimator.trace import Role


def unshared(order: Sequence[Node], external: Sequence[Entry]) -> Plan:
    """Return the plan of a run operator by operator: every output has a block of its own."""
    plan = Plan(placed=dict.fromkeys(external, EXTERNAL))
    for node in order:
        if node.is_variable:
            continue
        for entry in node.outputs():
            if entry not in plan.placed:
                plan.placed[entry] = len(plan.storages)
                plan.storages.append(Storage(planned=0, nbytes=entry.nbytes, first=node))
    return plan


class Run:
    """A plan's storages, and the tensors that are there."""

    def __init__(self, recorder: Recorder, plan: Plan, *, keeps: bool = False) -> None:
        self.recorder = recorder
        self.plan = plan
        self.keeps = keeps
        """Storages stay for the whole job (`static_alloc`)."""
        self.tensors: dict[int, int] = {}
        self.left = Counter(storage for storage in plan.placed.values() if storage >= 0)
        """Entries of each storage that nobody has let go of yet, while turns are found."""

    def write(self, storages: Sequence[int], role: Role) -> None:
        """Allocate storages that are not there."""
        for storage in storages:
            if storage not in self.tensors:
                nbytes = self.plan.storages[storage].nbytes
                self.tensors[storage] = self.recorder.alloc(nbytes, role)

    def free(self, storage: int) -> None:
        """Free a storage if it is there."""
        tensor = self.tensors.pop(storage, None)
        if tensor is not None:
            self.recorder.free(tensor)

    def is_last(self, storage: int) -> bool:
        """Let go of one entry of a storage and return whether it was the last."""
        if self.keeps:
            return False
        self.left[storage] -= 1
        return self.left[storage] == 0


@dataclass(slots=True)
class Turn:
    """What one node does in every step."""

    node: Node
    writes: list[int]
    """Storages of its own run it writes to."""
    lasts: list[tuple[Run, int]]
    """Storages of which it is the last to let go."""


def turns_of(
    nodes: Sequence[Node], references: dict[Key, int], run: Run, others: Sequence[Run] = ()
) -> list[Turn]:
    """Return what *nodes* do, one by one; *others* hold entries that they may be the last to read.

    *references* are those still to come, and are counted down: a backward, whose turns are found
    after its forward's, lets go of what that kept.
    """
    runs = (run, *others)
    turns = []
    for node in nodes:
        if node.is_variable:
            continue
        outputs: list[Key] = [(node, index) for index in range(node.num_outputs)]
        places = [run.plan.placed.get(key, EXTERNAL) for key in outputs]
        lasts = []
        for entry in node.inputs:
            left = references[entry] = references.get(entry, 0) - 1
            if left == 0:
                lasts += list(_let_go(entry, runs))
        for key in outputs:
            if not references.get(key):
                lasts += list(_let_go(key, (run,)))
        turns.append(Turn(node, [place for place in places if place >= 0], lasts))
    return turns


def _let_go(key: Key, runs: Sequence[Run]) -> Iterator[tuple[Run, int]]:
    """Yield the storages of which an entry was the last."""
    for run in runs:
        storage = run.plan.placed.get(key, EXTERNAL)
        if storage >= 0 and run.is_last(storage):
            yield run, storage


def take_turns(run: Run, turns: Sequence[Turn], role: Role, used: Collection[Key]) -> None:
    """Record one step of nodes."""
    recorder = run.recorder
    for turn in turns:
        node = turn.node
        recorder.at(node.operator, node.name)
        run.write(turn.writes, role)
        recorder.call(node, used)
        for owner, storage in turn.lasts:
            owner.free(storage)
