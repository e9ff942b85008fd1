"""The parts of a process's device memory that no allocator counts.

    Device, framework, version, ranks -> Overheads

NVML shows for a process: reserved + context + libraries + communication. The driver's own
reservation is not part of it: a device's usable bytes already exclude it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from estimator.catalog.stacks import NEWEST, stack_of
from estimator.device import Device
from estimator.notes import Assumption, AssumptionCode, Unknown, UnknownCode
from estimator.overheads.architectures import Architecture, architecture_of, stack_bytes
from estimator.overheads.communication import communication_of
from estimator.overheads.contexts import OTHER_FRAMEWORKS, context_of, cudnn_of, libraries_of
from estimator.overheads.loading import Loading, loadings_of
from estimator.overheads.ranges import NOTHING, Range, span
from estimator.units import MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Overheads:
    """Bytes beside the allocator's, as ranges, and what was taken for granted."""

    context: Range
    libraries: Range
    communication: Range
    assumptions: tuple[Assumption, ...] = ()
    unknowns: tuple[Unknown, ...] = ()

    @property
    def total(self) -> Range:
        """Return the sum of all parts."""
        return self.context + self.libraries + self.communication


@dataclass(slots=True)
class _Notes:
    """Collects what was taken for granted."""

    assumptions: list[Assumption] = field(default_factory=list)
    unknowns: list[Unknown] = field(default_factory=list)

    def assume(self, code: AssumptionCode, path: str, value: str, reason: str) -> None:
        self.assumptions.append(Assumption(code=code, path=path, value=value, reason=reason))


def overheads_of(
    device: Device,
    *,
    framework: str,
    framework_version: str | None,
    num_ranks: int = 1,
    interconnect: str = "nvlink",
    num_communicators: int = 1,
    uses_cudnn: bool | None = None,
    environment: Mapping[str, str] | None = None,
) -> Overheads:
    """Return what one process of *framework* holds on *device* beside its allocator's memory.

    A version that is missing or not in the table is taken to be the newest, and the range then
    spans all versions. A device of unknown capacity (no `--gpu`) spans all architectures.
    *uses_cudnn* says whether the job calls cuDNN (`estimator.kernels.uses_cudnn`); if it is not
    known, cuDNN counts in the upper end only. *environment* is the job's: it may set
    `CUDA_MODULE_LOADING` and `NCCL_BUFFSIZE`.
    """
    variables = environment or {}
    notes = _Notes()
    if framework == "pytorch":
        context, libraries = _context_and_libraries(
            device, _loadings(framework_version, variables, device.driver, notes), uses_cudnn, notes
        )
    else:
        context, libraries = _of_other_framework(framework, notes)
    communication = communication_of(num_ranks, interconnect, variables, num_communicators)
    if communication != NOTHING:
        notes.assume(
            AssumptionCode.LIBRARIES,
            "parallelism.interconnect",
            interconnect,
            f"NCCL buffers of {num_communicators} communicator(s), from published readings",
        )
    return Overheads(
        context=context,
        libraries=libraries,
        communication=communication,
        assumptions=tuple(notes.assumptions),
        unknowns=tuple(notes.unknowns),
    )


def _context_and_libraries(
    device: Device,
    loadings: Sequence[Loading],
    uses_cudnn: bool | None,
    notes: _Notes,
) -> tuple[Range, Range]:
    """Return both ranges over all *loadings*, expecting the last, and say what they rest on."""
    architectures = _architectures(device, notes)
    stack = _stack(device) if len(architectures) == 1 else None
    rows = [
        _row(loading, each, stack, uses_cudnn) for loading in loadings for each in architectures
    ]
    likely = rows[-len(architectures) :]
    context = _spanned([row[0] for row in rows], [row[0] for row in likely])
    libraries = _spanned([row[1] for row in rows], [row[1] for row in likely])
    notes.assume(
        AssumptionCode.CONTEXT,
        "device",
        f"{context.expected // MIB} MiB",
        f"CUDA context from published readings ({context.low // MIB}-{context.high // MIB} MiB)",
    )
    notes.assume(
        AssumptionCode.LIBRARIES,
        "device",
        f"{libraries.expected // MIB} MiB",
        f"kernels, cuBLAS and cuDNN likewise ({libraries.low // MIB}-{libraries.high // MIB} MiB)",
    )
    return context, libraries


def _of_other_framework(framework: str, notes: _Notes) -> tuple[Range, Range]:
    """Return the ranges of TensorFlow, MXNet or JAX, which are not split by card or version."""
    known = OTHER_FRAMEWORKS.get(framework)
    if known is None:
        notes.unknowns.append(
            Unknown(
                code=UnknownCode.CONTEXT,
                path="framework",
                reason=f"no figures for the CUDA context of '{framework}'",
            )
        )
        known = (
            span(row[0] for row in OTHER_FRAMEWORKS.values()),
            span(row[1] for row in OTHER_FRAMEWORKS.values()),
        )
    notes.assume(
        AssumptionCode.CONTEXT,
        "framework",
        f"{known[0].expected // MIB} MiB",
        "CUDA context by framework, over all cards and versions",
    )
    return known


def _architectures(device: Device, notes: _Notes) -> tuple[Architecture, ...]:
    """Return the architecture of *device*, or all of them if it is generic or not known."""
    if device.total_bytes is None:
        return tuple(Architecture)
    architecture = architecture_of(device.compute_capability)
    if architecture is not None:
        return (architecture,)
    major, minor = device.compute_capability
    notes.unknowns.append(
        Unknown(
            code=UnknownCode.CONTEXT,
            path="device",
            reason=f"no figures for the CUDA context of compute capability {major}.{minor}",
        )
    )
    return tuple(Architecture)


def _loadings(
    version: str | None, environment: Mapping[str, str], driver: str | None, notes: _Notes
) -> tuple[Loading, ...]:
    """Return how modules may be loaded, the likeliest last."""
    stack = stack_of(version)
    if stack is not None:
        return loadings_of(stack.cuda, environment, driver)
    newest = ".".join(map(str, NEWEST.torch))
    notes.assume(
        AssumptionCode.FRAMEWORK_VERSION,
        "frameworkVersion",
        newest,
        f"the context of torch {version} is not known; the range spans all versions"
        if version
        else "no version given; the range spans all versions",
    )
    return tuple(Loading)


def _stack(device: Device) -> int | None:
    """Return the stack of all threads of *device*, None if its multiprocessors are not known."""
    if device.multiprocessors is None:
        return None
    return stack_bytes(device.compute_capability, device.multiprocessors)


def _row(
    loading: Loading, architecture: Architecture, stack: int | None, uses_cudnn: bool | None
) -> tuple[Range, Range]:
    """Return context and libraries of one way to load on one architecture."""
    context = context_of(loading, architecture, stack)
    libraries, cudnn = libraries_of(loading, architecture), cudnn_of(loading, architecture)
    if uses_cudnn is None:
        return context, replace(libraries, high=libraries.high + cudnn.high)
    return context, libraries + cudnn if uses_cudnn else libraries


def _spanned(every: list[Range], likely: list[Range]) -> Range:
    return span(every, expected=span(likely).expected)
