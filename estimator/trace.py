"""What a job does to device memory, in order, free of framework and card.

    frontend -> TraceBuilder -> Trace

A trace is columns, not objects: one row an event, one entry a tensor.
Sizes are unrounded bytes; rounding belongs to the allocator.
Never holds tensor values, a framework's object or a card's name.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum

from estimator.errors import TraceError
from estimator.notes import Assumption, Unknown

FIRST_PRIVATE_POOL = 128
"""Streams from here on are memory pools of their own, as every captured CUDA graph has one.

Such a pool keeps its most: what is freed in it serves only requests of the same pool, and goes
back to the driver only after `EventKind.RELEASE_POOL`.
"""
SCRATCH_STREAM = 127
"""Scratch memory of allocators that keep one growing block for it, as MXNet does."""
MANAGED_STREAM = 126
"""Memory the driver moves between host and card (`cudaMallocManaged`): no allocator's, and on the
card only as far as there is room. What is on it takes nothing of an allocator."""
MAX_STREAM = 255
"""A stream is one byte."""

AT_MOST = "atMost"
"""A fact of a trace whose sizes are the most the model may take: a usual run needs less."""
COMPANION = "companion"
"""How the module paths of a model beside the trained one begin, its number and a dot after it."""
GATHERED_FLOAT8 = "gatheredFloat8"
"""A fact of a trace: the names of layers whose weights a sharded job gathers in one byte each."""
OTHER_CARD = "otherCard"
"""A fact of a trace recorded for cards that choose other kernels: its interval is a formula's."""


class Method(StrEnum):
    """How a figure is found."""

    TRACE = "trace"
    """The framework was traced."""
    PLAN = "plan"
    """The framework's own planner, rebuilt."""
    COMPILE = "compile"
    """The compiler's buffer assignment."""
    FORMULA = "formula"
    """A closed form, or a trace of what the job does not quite run: a wider interval."""


class AllocatorKind(StrEnum):
    """Which family of allocators a framework keeps its device memory with."""

    CACHING = "caching"
    """PyTorch's caching allocator."""
    BFC = "bfc"
    """Best fit with coalescing: TensorFlow."""
    XLA_CLIENT = "xlaClient"
    """The same, as JAX sets it up."""
    POOL = "pool"
    """MXNet's pools."""


class Role(IntEnum):
    """What a tensor is for. The breakdown of an estimate sums by role."""

    PARAMETER = 0
    GRADIENT = 1
    OPTIMIZER = 2
    ACTIVATION = 3
    INPUT = 4
    TEMPORARY = 5
    WORKSPACE = 6
    COMMUNICATION = 7


class Phase(StrEnum):
    """The part of a run an event belongs to."""

    LOAD = "load"
    FORWARD = "forward"
    BACKWARD = "backward"
    OPTIMIZER = "optimizer"
    EVALUATION = "evaluation"
    GENERATION = "generation"
    SAVE = "save"


class EventKind(IntEnum):
    """One row of a trace. The id is a tensor for the first three, a kernel for `KERNEL`."""

    ALLOC = 0
    FREE = 1
    USE = 2
    """The tensor is used on its second stream: its memory returns late."""
    KERNEL = 3
    """A library call that may want scratch memory; follows the allocation of its outputs."""
    EMPTY_CACHE = 4
    """The job hands cached memory back (`torch.cuda.empty_cache`); the id is 0."""
    RELEASE_POOL = 5
    """The last graph of a private pool is gone; the id is the pool, a stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where in the run an event happens: for `peakAt` and for people."""

    step: int
    """0 while loading, then 1, 2, …"""
    phase: Phase
    operator: str
    module: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorFacts:
    """Shape, dtype and memory format of a kernel's operand."""

    shape: tuple[int, ...]
    dtype: str
    """`float32`, `float16`, `bfloat16`, `float64`, `int64`, `bool`, …"""
    channels_last: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """A library call as the card will see it; equal kernels are stored once."""

    operator: str
    """The framework's operator: `aten.convolution`, `aten.mm`, …"""
    operands: tuple[TensorFacts, ...]
    attributes: tuple[tuple[str, int | float | bool | str | tuple[int, ...]], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A finished trace. Tensor ids and kernel ids are dense and start at 0."""

    sizes: array[int]
    """Bytes of each tensor, by id (`q`)."""
    roles: bytes
    """`Role` of each tensor, by id."""
    streams: bytes
    """Stream of each tensor, by id; 0 is the default one, `FIRST_PRIVATE_POOL` a private pool."""
    kinds: bytes
    """`EventKind` of each event."""
    ids: array[int]
    """Tensor, kernel or pool id of each event (`q`)."""
    places: array[int]
    """Index into `place_table` of each event (`q`)."""
    place_table: tuple[Place, ...]
    kernels: tuple[Kernel, ...]
    framework: str
    framework_version: str
    """The version whose rules the trace follows, not that of the tracing library."""
    parameters: int = 0
    """Elements of all distinct parameters."""
    assumptions: tuple[Assumption, ...] = ()
    unknowns: tuple[Unknown, ...] = ()
    warnings: tuple[str, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    """Extras for people and benches: seconds a stage took, number of operators."""
    method: Method = Method.TRACE
    allocator: AllocatorKind = AllocatorKind.CACHING

    @property
    def num_events(self) -> int:
        """Return the number of events."""
        return len(self.kinds)


class TraceBuilder:
    """Collects events while a frontend runs; `build` freezes them."""

    def __init__(
        self,
        *,
        framework: str,
        framework_version: str,
        method: Method = Method.TRACE,
        allocator: AllocatorKind = AllocatorKind.CACHING,
    ) -> None:
        self.framework = framework
        self.framework_version = framework_version
        self.method = method
        self.allocator = allocator
        self.sizes = array("q")
        self.roles = bytearray()
        self.streams = bytearray()
        self.kinds = bytearray()
        self.ids = array("q")
        self.places = array("q")
        self.place = 0
        self._places: dict[tuple[int, Phase, str, str], int] = {}
        self._kernels: dict[Kernel, int] = {}
        self._num_pools = 0
        self.assumptions: list[Assumption] = []
        self.unknowns: list[Unknown] = []
        self.warnings: list[str] = []
        self.facts: dict[str, str] = {}
        self.at(step=0, phase=Phase.LOAD, operator="", module="")

    def at(self, *, step: int, phase: Phase, operator: str, module: str) -> None:
        """Set the place of the events that follow."""
        places = self._places
        self.place = places.setdefault((step, phase, operator, module), len(places))

    def alloc(self, nbytes: int, role: Role, *, stream: int = 0) -> int:
        """Record a new tensor of *nbytes* and return its id."""
        tensor = len(self.sizes)
        self.sizes.append(nbytes)
        self.roles.append(role)
        self.streams.append(stream)
        self.kinds.append(EventKind.ALLOC)
        self.ids.append(tensor)
        self.places.append(self.place)
        return tensor

    def free(self, tensor: int) -> None:
        """Record that *tensor* is dead."""
        self._event(EventKind.FREE, tensor)

    def use(self, tensor: int) -> None:
        """Record that *tensor* is used on a second stream."""
        self._event(EventKind.USE, tensor)

    def kernel(self, kernel: Kernel) -> int:
        """Record a library call, after the allocation of its outputs; return the kernel's id."""
        index = self._kernels.setdefault(kernel, len(self._kernels))
        self._event(EventKind.KERNEL, index)
        return index

    def kernel_again(self, index: int) -> None:
        """Record one more call of the kernel with that id."""
        self._event(EventKind.KERNEL, index)

    def empty_cache(self) -> None:
        """Record that the job empties the allocator's cache."""
        self._event(EventKind.EMPTY_CACHE, 0)

    def private_pool(self) -> int:
        """Return a new private memory pool, to be passed as the *stream* of `alloc`."""
        pool = FIRST_PRIVATE_POOL + self._num_pools
        if pool > MAX_STREAM:
            raise TraceError(f"more than {self._num_pools} private memory pools")
        self._num_pools += 1
        return pool

    def release_pool(self, pool: int) -> None:
        """Record that the last graph of a private *pool* is gone."""
        self._event(EventKind.RELEASE_POOL, pool)

    def set_role(self, tensor: int, role: Role) -> None:
        """Name the role of *tensor*, known only after its allocation."""
        self.roles[tensor] = role

    def build(self, *, parameters: int = 0) -> Trace:
        """Return the trace of everything recorded."""
        return Trace(
            sizes=array("q", self.sizes),
            roles=bytes(self.roles),
            streams=bytes(self.streams),
            kinds=bytes(self.kinds),
            ids=array("q", self.ids),
            places=array("q", self.places),
            place_table=tuple(
                Place(step=step, phase=phase, operator=operator, module=module)
                for step, phase, operator, module in self._places
            ),
            kernels=tuple(self._kernels),
            framework=self.framework,
            framework_version=self.framework_version,
            parameters=parameters,
            assumptions=tuple(self.assumptions),
            unknowns=tuple(self.unknowns),
            warnings=tuple(self.warnings),
            facts=dict(self.facts),
            method=self.method,
            allocator=self.allocator,
        )

    def _event(self, kind: EventKind, identifier: int) -> None:
        self.kinds.append(kind)
        self.ids.append(identifier)
        self.places.append(self.place)
