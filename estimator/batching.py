"""One job at any batch size, from two traces.

    Trace at batch p, Trace at batch q -> Trace at batch b

Tensor sizes are affine in the batch: bytes = fixed + each * batch. The order of events does not
change, so two traces give every other one. Peaks are not affine and are never interpolated:
the trace is, and everything after it is computed again.
Kernels are compared where they are called: which of them are equal, and so are one entry of the
table, changes with the batch (two sequences of 2048 tokens are as long as a hidden width of 4096).
Never guesses: two traces whose events differ give no family.

A compiler's arena is about affine only: its family is a first guess for whoever asks the compiler
about the batch that it finds.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from estimator.spec import JobSpec
from estimator.spec.vocabulary import LossKind
from estimator.trace import (
    AT_MOST,
    GATHERED_FLOAT8,
    OTHER_CARD,
    EventKind,
    Kernel,
    Method,
    TensorFacts,
    Trace,
)

READ_FACTS = (AT_MOST, GATHERED_FLOAT8, OTHER_CARD)
"""Facts of a trace that figures depend on. The others say how it was made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """The kernels of two traces, call by call."""

    pairs: tuple[tuple[Kernel, Kernel], ...]
    """Each combination once, in the order of the first call."""
    ids: array[int]
    """The ids of all events; those of kernels are indices into `pairs`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFamily:
    """Two traces of one job that differ in nothing but the batch."""

    small: Trace
    small_batch: int
    large: Trace
    large_batch: int
    calls: Calls

    def at(self, batch: int) -> Trace:
        """Return the trace at *batch*.

        Source: exact at batch 128 and 256 for 12 of 12 convolution and attention families
        (measured on fake tensors). Not modelled: operators that choose another path by size.
        """
        step = self.large_batch - self.small_batch
        distance = batch - self.small_batch
        sizes = array(
            "q",
            (
                low + -((low - high) // step) * distance
                for low, high in zip(self.small.sizes, self.large.sizes, strict=True)
            ),
        )
        ids, kernels = self._called([_kernel(*pair, step, distance) for pair in self.calls.pairs])
        return replace(self.small, sizes=sizes, ids=ids, kernels=kernels)

    def _called(self, kernels: Sequence[Kernel]) -> tuple[array[int], tuple[Kernel, ...]]:
        """Return the ids of all events and the table, where *kernels* has one for each pair."""
        table: dict[Kernel, int] = {}
        merged = [table.setdefault(kernel, len(table)) for kernel in kernels]
        if len(table) == len(kernels):
            return self.calls.ids, tuple(kernels)
        ids = array("q", self.calls.ids)
        for event in _kernel_events(self.small):
            ids[event] = merged[ids[event]]
        return ids, tuple(table)


def cuts_by_batch(spec: JobSpec) -> bool:
    """Return whether *spec* cuts its tokens into pieces whose number or rest varies with the batch.

    Two traces of such a job may have as many pieces as each other, and a third one others: fused
    losses take pieces of a power of two tokens, chunked ones eight pieces, the last one shorter
    (sources: `frontends/pytorch/lean/loss.py`).
    """
    return spec.training.loss is not LossKind.DEFAULT


def exact_family(
    spec: JobSpec, small: Trace, large: Trace, *, small_batch: int, large_batch: int
) -> BatchFamily | None:
    """Return the family of two traces of *spec* if every trace it gives is the job's own.

    A family of a compiler's plans, or of a job that `cuts_by_batch`, is a first guess only.
    """
    if Method.COMPILE in (small.method, large.method) or cuts_by_batch(spec):
        return None
    return family_of(small, large, small_batch=small_batch, large_batch=large_batch)


def family_of(
    small: Trace, large: Trace, *, small_batch: int, large_batch: int
) -> BatchFamily | None:
    """Return the family of two traces, or None if they differ in more than the batch."""
    step = large_batch - small_batch
    if step <= 0 or not _same_events(small, large):
        return None
    is_planned = Method.COMPILE is small.method is large.method
    if not is_planned and any(
        (b - a) % step for a, b in zip(small.sizes, large.sizes, strict=True)
    ):
        return None
    calls = _calls_of(small, large)
    if calls is None or not all(_same_kernel(a, b, step) for a, b in calls.pairs):
        return None
    return BatchFamily(
        small=small, small_batch=small_batch, large=large, large_batch=large_batch, calls=calls
    )


def _same_events(small: Trace, large: Trace) -> bool:
    return (
        small.kinds == large.kinds
        and small.roles == large.roles
        and small.streams == large.streams
        and small.places == large.places
        and small.place_table == large.place_table
        and _same_notes(small, large)
    )


def _same_notes(small: Trace, large: Trace) -> bool:
    return (
        small.framework_version == large.framework_version
        and small.parameters == large.parameters
        and small.assumptions == large.assumptions
        and small.unknowns == large.unknowns
        and small.warnings == large.warnings
        and small.method is large.method
        and all(small.facts.get(fact) == large.facts.get(fact) for fact in READ_FACTS)
    )


def _kernel_events(trace: Trace) -> Iterator[int]:
    event = -1
    while (event := trace.kinds.find(EventKind.KERNEL, event + 1)) >= 0:
        yield event


def _calls_of(small: Trace, large: Trace) -> Calls | None:
    """Return the calls of two traces with equal kinds, None if other ids differ."""
    pairs: dict[tuple[int, int], int] = {}
    ids, others = array("q", small.ids), array("q", large.ids)
    for event in _kernel_events(small):
        pair = pairs.setdefault((ids[event], others[event]), len(pairs))
        ids[event] = others[event] = pair
    if ids != others:
        return None
    return Calls(pairs=tuple((small.kernels[a], large.kernels[b]) for a, b in pairs), ids=ids)


def _kernel(low: Kernel, high: Kernel, step: int, distance: int) -> Kernel:
    operands = tuple(
        TensorFacts(
            shape=tuple(
                left + (right - left) // step * distance
                for left, right in zip(a.shape, b.shape, strict=True)
            ),
            dtype=a.dtype,
            channels_last=a.channels_last,
        )
        for a, b in zip(low.operands, high.operands, strict=True)
    )
    return replace(low, operands=operands)


def _same_kernel(low: Kernel, high: Kernel, step: int) -> bool:
    return (
        low.operator == high.operator
        and low.attributes == high.attributes
        and len(low.operands) == len(high.operands)
        and all(
            a.dtype == b.dtype
            and a.channels_last == b.channels_last
            and len(a.shape) == len(b.shape)
            and all((y - x) % step == 0 for x, y in zip(a.shape, b.shape, strict=True))
            for a, b in zip(low.operands, high.operands, strict=True)
        )
    )
