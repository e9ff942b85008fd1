"""Lower a trace for one card: each library call becomes the scratch memory it takes.

    Trace, Device -> Program

Scratch is allocated where the call is, after its outputs, and freed right behind it; cuBLAS's
workspaces that a handle keeps are allocated at its first product. Every workspace that is not
certain is taken at the end of its range that is asked for.

Inside a CUDA graph scratch comes from the graph's private pool, as the tensors around it do. So
does a handle's workspace, which PyTorch keeps for each handle and stream; it goes back as soon as
memory outside the pool is asked for. Source: torch 2.15.0 (d0f2af8b)
torch/_inductor/cudagraph_trees.py: `clear_cublas_manager` around each warm-up and recording.
Not modelled: that this gives the workspaces of other streams back as well.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from estimator.device import Device
from estimator.kernels import choosing, dispatch, matmul
from estimator.kernels.convolution import ConvolutionScratch
from estimator.kernels.rules import RULES
from estimator.kernels.scratch import (
    NONE,
    Block,
    Group,
    Scratch,
    WorkspaceSource,
    attribute,
    certain,
)
from estimator.kernels.versions import version_of
from estimator.notes import Assumption, Unknown, UnknownCode
from estimator.program import Program
from estimator.trace import (
    FIRST_PRIVATE_POOL,
    MANAGED_STREAM,
    SCRATCH_STREAM,
    AllocatorKind,
    EventKind,
    Kernel,
    Role,
    Trace,
)

SCRATCH_STREAMS = {AllocatorKind.POOL: SCRATCH_STREAM}
"""Stream of scratch outside of a private pool; 0 for allocators that hand it out as any block."""


SizedBlock = tuple[int, tuple[int, ...]]
"""A block's size at one end, and the sizes to try after that fails."""
Sized = tuple[SizedBlock, ...]


class End(Enum):
    """Which end of every workspace's range a program takes."""

    LOW = "low"
    EXPECTED = "expected"
    HIGH = "high"


def lower(
    trace: Trace,
    device: Device,
    *,
    end: End = End.EXPECTED,
    environment: Mapping[str, str] | None = None,
    workspaces: WorkspaceSource | None = None,
    answers: dict[int, Scratch | Unknown] | None = None,
) -> Program:
    """Return *trace* as plain allocations on *device*.

    *environment* is the job's; *workspaces* answers for convolutions, by default with a bound.
    *answers* holds what the rules said of the kernels at another end, and is added to.
    Every operator without a rule is named once in the program's unknowns.
    """
    return _Lowering(
        trace=trace,
        device=device,
        end=end,
        environment=environment or {},
        workspaces=workspaces or ConvolutionScratch(),
        answers={} if answers is None else answers,
    ).program()


def uses_cudnn(trace: Trace) -> bool:
    """Return whether a job calls cuDNN: it convolves, or runs one of cuDNN's own operators.

    PyTorch's own depthwise kernels count too, being rarely the only convolutions of a model.
    """
    return any(
        kernel.operator in dispatch.OPERATORS or "cudnn" in kernel.operator
        for kernel in trace.kernels
    )


MANAGED = bytes((MANAGED_STREAM,))


@dataclass(slots=True, kw_only=True)
class _Lowering:
    """The columns of a program as they grow."""

    trace: Trace
    device: Device
    end: End
    environment: Mapping[str, str]
    workspaces: WorkspaceSource
    answers: dict[int, Scratch | Unknown]
    """What the rules said, by kernel id: the same at each end."""
    sizes: array[int] = field(default_factory=lambda: array("q"))
    roles: bytearray = field(default_factory=bytearray)
    streams: bytearray = field(default_factory=bytearray)
    kinds: bytearray = field(default_factory=bytearray)
    ids: array[int] = field(default_factory=lambda: array("q"))
    places: array[int] = field(default_factory=lambda: array("q"))
    choices: dict[int, tuple[int, ...]] = field(default_factory=dict)
    handles: set[tuple[str, str]] = field(default_factory=set)
    """Threads and libraries whose handle has its workspace."""
    stream: int = 0
    """Where scratch memory is outside of a private pool."""
    has_pools: bool = False
    pool: int = 0
    """The private pool that memory was last asked of, 0 outside of any."""
    pooled: dict[tuple[str, str], int] = field(default_factory=dict)
    """The same workspaces inside the pool, and their tensors."""
    known: dict[int, Scratch] = field(default_factory=dict)
    """Scratch by kernel id: a kernel in it has been called before."""
    sized: dict[int, tuple[Sized, ...]] = field(default_factory=dict)
    """What each call of such a kernel takes, group by group."""
    assumptions: dict[Assumption, None] = field(default_factory=dict)
    unknowns: dict[str, Unknown] = field(default_factory=dict)

    @property
    def version(self) -> tuple[int, int]:
        """The version of the framework whose rules hold."""
        return version_of(self.trace.framework_version)

    def program(self) -> Program:
        """Copy the trace up to each kernel, and put its scratch there."""
        trace = self.trace
        self.sizes = array("q", trace.sizes)
        for tensor, stream in enumerate(trace.streams if MANAGED in trace.streams else b""):
            if stream == MANAGED_STREAM:
                self.sizes[tensor] = 0
        self.has_pools = max(trace.streams, default=0) >= FIRST_PRIVATE_POOL
        self.stream = SCRATCH_STREAMS.get(trace.allocator, 0)
        self.roles += trace.roles
        self.streams += trace.streams
        start = 0
        while (event := trace.kinds.find(EventKind.KERNEL, start)) >= 0:
            self.copy(start, event)
            self.call(trace.ids[event], trace.places[event])
            start = event + 1
        self.copy(start, len(trace.kinds))
        return Program(
            sizes=self.sizes,
            roles=bytes(self.roles),
            streams=bytes(self.streams),
            kinds=bytes(self.kinds),
            ids=self.ids,
            places=self.places,
            place_table=trace.place_table,
            choices=self.choices,
            is_certain=all(scratch.is_certain for scratch in self.known.values()),
            assumptions=(*trace.assumptions, *self.assumptions),
            unknowns=(
                *trace.unknowns,
                *matmul.unknowns_of(self.environment),
                *(choosing.unknowns_of(self.environment) if uses_cudnn(trace) else ()),
                *self.unknowns.values(),
            ),
        )

    def copy(self, start: int, end: int) -> None:
        """Append the trace's events from *start* up to *end*; see which pool they are in."""
        if self.pooled:
            start = self.leave_pool(start, end)
        self.append(start, end)
        if not self.has_pools:
            return
        last = self.trace.kinds.rfind(EventKind.ALLOC, start, end)
        if last >= 0:
            stream = self.trace.streams[self.trace.ids[last]]
            self.pool = stream if stream >= FIRST_PRIVATE_POOL else 0

    def append(self, start: int, end: int) -> None:
        """Append the trace's events from *start* up to *end* as they are."""
        self.kinds += self.trace.kinds[start:end]
        self.ids.extend(self.trace.ids[start:end])
        self.places.extend(self.trace.places[start:end])

    def leave_pool(self, start: int, end: int) -> int:
        """Free the pool's workspaces where other memory is asked for; return the next event."""
        trace = self.trace
        for event in range(start, end):
            is_asked = trace.kinds[event] == EventKind.ALLOC
            if is_asked and trace.streams[trace.ids[event]] != self.pool:
                self.append(start, event)
                for tensor in self.pooled.values():
                    self.event(EventKind.FREE, tensor, trace.places[event])
                self.pooled.clear()
                return event
        return start

    def call(self, identifier: int, place: int) -> None:
        """Append what a kernel takes: first its handle's workspace, then its scratch."""
        kernel = self.trace.kernels[identifier]
        if kernel.operator in matmul.OPERATORS:
            self.open_handle(kernel, place)
        groups = self.sized.get(identifier)
        if groups is None:
            scratch = self.known[identifier] = self.scratch(identifier)
            for group in scratch.search:
                self.take(self.sized_group(group), place)
            groups = tuple(self.sized_group(group) for group in scratch.groups)
            self.sized[identifier] = groups
        for blocks in groups:
            self.take(blocks, place)

    def sized_group(self, group: Group) -> Sized:
        """Return the blocks of *group* that take memory at this end."""
        return tuple(block for block in map(self.sized_block, group) if block[0] > 0)

    def take(self, blocks: Sized, place: int) -> None:
        """Append the allocations of *blocks* and their frees."""
        tensors = [self.allocate(block, place) for block in blocks]
        for tensor in reversed(tensors):
            self.event(EventKind.FREE, tensor, place)

    def open_handle(self, kernel: Kernel, place: int) -> None:
        """Allocate what a handle keeps, at the first product that wants it.

        Outside of a private pool it is never freed.
        """
        thread = str(attribute(kernel, "thread") or "forward")
        kept = matmul.kept_bytes(kernel, self.device, self.version, self.environment)
        for library, nbytes in kept.items():
            handle = (thread, library)
            if not nbytes or handle in (self.pooled if self.pool else self.handles):
                continue
            tensor = self.allocate((nbytes, ()), place)
            if self.pool:
                self.pooled[handle] = tensor
            else:
                self.handles.add(handle)

    def scratch(self, identifier: int) -> Scratch:
        """Return the scratch of a kernel, noting what it rests on."""
        kernel = self.trace.kernels[identifier]
        found = self.answers.get(identifier)
        if found is None:
            found = self.answers[identifier] = self.rule(kernel)
        if isinstance(found, Unknown):
            self.unknowns.setdefault(kernel.operator, found)
            return NONE
        if found.assumption is not None:
            self.assumptions[found.assumption] = None
        return found

    def rule(self, kernel: Kernel) -> Scratch | Unknown:
        """Return what the operator's rule says."""
        if kernel.operator in matmul.OPERATORS:
            return certain(matmul.call_bytes(kernel, self.device, self.version, self.environment))
        if kernel.operator in dispatch.OPERATORS:
            return self.workspaces.scratch(kernel, self.device)
        rule = RULES.get(kernel.operator)
        if rule is not None:
            return rule(kernel, self.device)
        return Unknown(
            code=UnknownCode.KERNEL,
            path=kernel.operator,
            reason="no rule for the scratch memory of this operator; none is charged",
        )

    def sized_block(self, block: Block) -> SizedBlock:
        """Return the size of *block* at this end of the range, and the smaller choices."""
        size = block.nbytes
        if self.end is End.LOW and block.least is not None:
            size = block.least
        elif self.end is End.HIGH and block.most is not None:
            size = block.most
        return size, tuple(choice for choice in block.choices if choice < size)

    def allocate(self, block: SizedBlock, place: int) -> int:
        """Append a scratch tensor and its allocation; return its id."""
        tensor = len(self.sizes)
        size, smaller = block
        self.sizes.append(size)
        self.roles.append(Role.WORKSPACE)
        self.streams.append(self.pool or self.stream)
        if smaller:
            self.choices[tensor] = smaller
        self.event(EventKind.ALLOC, tensor, place)
        return tensor

    def event(self, kind: EventKind, tensor: int, place: int) -> None:
        self.kinds.append(kind)
        self.ids.append(tensor)
        self.places.append(place)
