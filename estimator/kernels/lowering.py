"""Lower a trace for one card: each library call becomes the scratch memory it takes.

    Trace, Device -> Program

Scratch is allocated where the call is, after its outputs, and freed right behind it; cuBLAS's
workspaces are allocated at a handle's first product and stay. With `low`, every workspace that
is a bound and not a rule is at its low end.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field

from estimator.device import Device
from estimator.kernels import convolution, matmul
from estimator.kernels.convolution import LayoutBound
from estimator.kernels.rules import RULES
from estimator.kernels.scratch import (
    NONE,
    Block,
    Scratch,
    WorkspaceSource,
    attribute,
    certain,
)
from estimator.notes import Assumption, Unknown, UnknownCode
from estimator.program import Program
from estimator.trace import EventKind, Kernel, Role, Trace

NEWEST = (9, 99)
"""Version of a framework whose version text cannot be read: the newest rules hold."""


def lower(
    trace: Trace,
    device: Device,
    *,
    low: bool = False,
    environment: Mapping[str, str] | None = None,
    workspaces: WorkspaceSource | None = None,
) -> Program:
    """Return *trace* as plain allocations on *device*.

    *environment* is the job's; *workspaces* answers for convolutions, by default with a bound.
    Every operator without a rule is named once in the program's unknowns.
    """
    return _Lowering(
        trace=trace,
        device=device,
        low=low,
        environment=environment or {},
        workspaces=workspaces or LayoutBound(),
    ).program()


def uses_cudnn(trace: Trace) -> bool:
    """Return whether a job calls cuDNN: it convolves, or runs one of cuDNN's own operators.

    PyTorch's own depthwise kernels count too, being rarely the only convolutions of a model.
    """
    return any(
        kernel.operator in convolution.OPERATORS or "cudnn" in kernel.operator
        for kernel in trace.kernels
    )


@dataclass(slots=True, kw_only=True)
class _Lowering:
    """The columns of a program as they grow."""

    trace: Trace
    device: Device
    low: bool
    environment: Mapping[str, str]
    workspaces: WorkspaceSource
    sizes: array[int] = field(default_factory=lambda: array("q"))
    roles: bytearray = field(default_factory=bytearray)
    streams: bytearray = field(default_factory=bytearray)
    kinds: bytearray = field(default_factory=bytearray)
    ids: array[int] = field(default_factory=lambda: array("q"))
    places: array[int] = field(default_factory=lambda: array("q"))
    choices: dict[int, tuple[int, ...]] = field(default_factory=dict)
    handles: set[str] = field(default_factory=set)
    known: dict[int, Scratch] = field(default_factory=dict)
    assumptions: dict[Assumption, None] = field(default_factory=dict)
    unknowns: dict[str, Unknown] = field(default_factory=dict)

    def program(self) -> Program:
        """Copy the trace up to each kernel, and put its scratch there."""
        trace = self.trace
        self.sizes = array("q", trace.sizes)
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
            assumptions=(*trace.assumptions, *self.assumptions),
            unknowns=(
                *trace.unknowns,
                *matmul.unknowns_of(self.environment),
                *self.unknowns.values(),
            ),
        )

    def copy(self, start: int, end: int) -> None:
        """Append the trace's events from *start* up to *end*."""
        self.kinds += self.trace.kinds[start:end]
        self.ids.extend(self.trace.ids[start:end])
        self.places.extend(self.trace.places[start:end])

    def call(self, identifier: int, place: int) -> None:
        """Append what a kernel takes: first its handle's workspace, then its scratch."""
        kernel = self.trace.kernels[identifier]
        if kernel.operator in matmul.OPERATORS:
            self.open_handle(kernel, place)
        scratch = self.known.get(identifier)
        if scratch is None:
            scratch = self.known[identifier] = self.scratch(kernel)
        tensors = [self.allocate(block, place) for block in scratch.blocks if self.wanted(block)]
        for tensor in reversed(tensors):
            self.event(EventKind.FREE, tensor, place)

    def open_handle(self, kernel: Kernel, place: int) -> None:
        """Allocate a handle's workspace at its first product; it is never freed."""
        thread = str(attribute(kernel, "thread") or "forward")
        if thread in self.handles:
            return
        self.handles.add(thread)
        nbytes = matmul.workspace_bytes(self.device, self.environment)
        if nbytes:
            self.allocate(Block(nbytes=nbytes), place)

    def scratch(self, kernel: Kernel) -> Scratch:
        """Return the scratch of *kernel*, noting what it rests on."""
        found = self.rule(kernel)
        if isinstance(found, Unknown):
            self.unknowns.setdefault(kernel.operator, found)
            return NONE
        if found.assumption is not None:
            self.assumptions[found.assumption] = None
        return found

    def rule(self, kernel: Kernel) -> Scratch | Unknown:
        """Return what the operator's rule says."""
        if kernel.operator in matmul.OPERATORS:
            if not matmul.is_with_bias(kernel):
                return NONE
            version = _version(self.trace.framework_version)
            return certain(matmul.lt_workspace_bytes(version, self.environment))
        if kernel.operator in convolution.OPERATORS:
            return self.workspaces.scratch(kernel, self.device)
        rule = RULES.get(kernel.operator)
        if rule is not None:
            return rule(kernel, self.device)
        return Unknown(
            code=UnknownCode.KERNEL,
            path=kernel.operator,
            reason="no rule for the scratch memory of this operator; none is charged",
        )

    def wanted(self, block: Block) -> bool:
        """Return whether anything is left of *block* at this end of the interval."""
        return self.size(block) > 0

    def size(self, block: Block) -> int:
        """Return the size of *block* at this end of the interval."""
        return block.least if self.low and block.least is not None else block.nbytes

    def allocate(self, block: Block, place: int) -> int:
        """Append a scratch tensor and its allocation; return its id."""
        tensor = len(self.sizes)
        size = self.size(block)
        self.sizes.append(size)
        self.roles.append(Role.WORKSPACE)
        self.streams.append(0)
        smaller = tuple(choice for choice in block.choices if choice < size)
        if smaller:
            self.choices[tensor] = smaller
        self.event(EventKind.ALLOC, tensor, place)
        return tensor

    def event(self, kind: EventKind, tensor: int, place: int) -> None:
        self.kinds.append(kind)
        self.ids.append(tensor)
        self.places.append(place)


def _version(text: str) -> tuple[int, int]:
    match = re.match(r"(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else NEWEST
