"""What a job does, written down as the events of a trace.

allocations, frees, calls of nodes -> events
"""

from __future__ import annotations

from collections.abc import Collection

from estimator.frontends.mxnet.graph import Key, Node
from estimator.frontends.mxnet.kernels import kernel_of, reserve_bytes
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
        self.calls: dict[Node, tuple[int | None, int]] = {}
        """Kernel and scratch bytes of each node that was called: every step asks for the same."""
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
        called = self.calls.get(node)
        if called is None:
            called = self._first_call(node, used)
        elif called[0] is not None:
            self.builder.kernel_again(called[0])
        scratch = called[1]
        if scratch:
            self.free(self.builder.alloc(scratch, Role.WORKSPACE, stream=SCRATCH_STREAM))

    def _first_call(self, node: Node, used: Collection[Key]) -> tuple[int | None, int]:
        """Record the first call of a node, but for its scratch memory."""
        if self.trains and not node.is_backward:
            self._keep(node)
        kernel = kernel_of(node, used)
        called = (None if kernel is None else self.builder.kernel(kernel), scratch_bytes(node))
        self.calls[node] = called
        return called

    def _keep(self, node: Node) -> None:
        if node.operator == "RNN":
            self.alloc(reserve_bytes(node), Role.ACTIVATION)
        elif node.operator == "Dropout":
            self.num_dropouts += 1
            if self.num_dropouts <= MOST_DROPOUT_STATES:
                self.alloc(DROPOUT_BYTES, Role.WORKSPACE)
