"""Nodes and storages of a run, written down as the events of a trace.

nodes in order, Plan, references -> events
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from estimator.frontends.mxnet.graph import Entry, Node
from estimator.frontends.mxnet.kernels import kernel_of, reserve_bytes
from estimator.frontends.mxnet.planner import Key, Plan, Storage, key_of
from estimator.frontends.mxnet.scratch import scratch_bytes
from estimator.trace import SCRATCH_STREAM, Phase, Role, TraceBuilder

DROPOUT_BYTES = 8 << 20
"""The state of cuDNN's dropout, one random generator a thread of the card: about that of 80
multiprocessors. Source: apache/mxnet@1.9.1 `src/resource.cc` (`cudnnDropoutGetStatesSize`)."""
MOST_DROPOUT_STATES = 4
"""`MXNET_GPU_CUDNN_DROPOUT_STATE_COPY`."""
WORD = 4


class Recorder:
    """Writes a run into a trace."""

    def __init__(self, builder: TraceBuilder, *, trains: bool) -> None:
        self.builder = builder
        self.step = 0
        self.phase = Phase.LOAD
        self.trains = trains
        self.kept: set[int] = set()
        """Layers whose state for the whole job is there."""
        self.num_dropouts = 0

    def enter(self, phase: Phase, *, step: int | None = None) -> None:
        """Start a phase, and a step if one is named."""
        self.phase = phase
        if step is not None:
            self.step = step
        self.at("", "")

    def at(self, operator: str, module: str) -> None:
        """Set the place of what follows."""
        self.builder.at(
            step=self.step,
            phase=self.phase,
            operator=operator.removesuffix("_plain"),
            module=module,
        )

    def alloc(self, nbytes: int, role: Role) -> int:
        """Record a tensor; a storage is a whole number of words."""
        return self.builder.alloc(-(-nbytes // WORD) * WORD, role)

    def free(self, tensor: int) -> None:
        """Record that a tensor is dead."""
        self.builder.free(tensor)

    def call(self, node: Node, used: Collection[Key]) -> None:
        """Record what a node asks of a library, and what its layer keeps from its first call on."""
        if not node.is_backward and id(node) not in self.kept:
            self._keep(node)
        kernel = kernel_of(node, used)
        if kernel is not None:
            self.builder.kernel(kernel)
        scratch = scratch_bytes(node)
        if scratch:
            self.free(self.builder.alloc(scratch, Role.WORKSPACE, stream=SCRATCH_STREAM))

    def _keep(self, node: Node) -> None:
        if not self.trains:
            return
        if node.operator == "RNN":
            self.kept.add(id(node))
            self.alloc(reserve_bytes(node), Role.ACTIVATION)
        elif node.operator == "Dropout":
            self.kept.add(id(node))
            self.num_dropouts += 1
            if self.num_dropouts <= MOST_DROPOUT_STATES:
                self.alloc(DROPOUT_BYTES, Role.WORKSPACE)


def unshared(order: Sequence[Node], external: Sequence[Entry]) -> Plan:
    """Return the plan of a run operator by operator: every output has a block of its own."""
    plan = Plan()
    for entry in external:
        plan.placed[key_of(entry)] = -2
    for node in order:
        if node.is_variable:
            continue
        for entry in node.outputs():
            if key_of(entry) not in plan.placed:
                plan.placed[key_of(entry)] = len(plan.storages)
                plan.storages.append(Storage(planned=0, nbytes=entry.nbytes, first=node))
    return plan


class Run:
    """A plan's storages while its nodes run: allocated at their first use, then let go of.

    Source: apache/mxnet@1.9.1 `src/imperative/imperative_utils.h` (`AllocateMemory`, which delays
    allocation) and `imperative_utils.cc` (`RunGraph`, which lets go of arrays).
    """

    def __init__(
        self, recorder: Recorder, plan: Plan, references: dict[Key, int], *, keeps: bool = False
    ) -> None:
        self.recorder = recorder
        self.plan = plan
        self.references = references
        """References that are still to come. Two runs share one: a backward lets go of what its
        forward kept."""
        self.keeps = keeps
        """Storages stay for the whole job (`static_alloc`)."""
        self.tensors: dict[int, int] = {}
        self.entries = [0] * len(plan.storages)
        for storage in plan.placed.values():
            if storage >= 0:
                self.entries[storage] += 1
        self.left: list[int] = []

    def begin(self) -> None:
        """Start a step: every entry of every storage is held again."""
        self.left = list(self.entries)

    def write(self, node: Node, role: Role) -> None:
        """Allocate where a node writes."""
        for index in range(node.num_outputs):
            storage = self.plan.placed.get((id(node), index), -2)
            if storage >= 0 and storage not in self.tensors:
                nbytes = self.plan.storages[storage].nbytes
                self.tensors[storage] = self.recorder.alloc(nbytes, role)

    def drop(self, key: Key) -> None:
        """Let go of one entry; the last of a storage frees it."""
        storage = self.plan.placed.get(key, -2)
        if storage < 0 or self.keeps:
            return
        self.left[storage] -= 1
        if self.left[storage] == 0:
            tensor = self.tensors.pop(storage, None)
            if tensor is not None:
                self.recorder.free(tensor)


def run_nodes(
    run: Run, nodes: Sequence[Node], role: Role, used: Collection[Key], others: Sequence[Run] = ()
) -> None:
    """Record *nodes* one by one; *others* hold entries that they may be the last to read."""
    references = run.references
    runs = (run, *others)
    for node in nodes:
        if node.is_variable:
            continue
        run.recorder.at(node.operator, node.name)
        run.write(node, role)
        run.recorder.call(node, used)
        for entry in node.inputs:
            key = key_of(entry)
            references[key] = references.get(key, 0) - 1
            if references[key] == 0:
                for each in runs:
                    each.drop(key)
        for index in range(node.num_outputs):
            key = (id(node), index)
            if references.get(key, 0) == 0:
                run.drop(key)
