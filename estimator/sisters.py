"""A job's trace from those of two other batches, if somebody made them.

    KeptTraces -> Frontend -> Trace

Stands before a framework's frontend, where a job is traced with few layers and for one rank. Two
traces of other batches that are a family (`batching.py`) give the third; else it is traced anew,
and what is made is handed out for the next to keep.
A batch of one takes other paths (broadcasts, squeezed axes): it is neither kept nor found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from estimator.batching import BatchFamily, cuts_by_batch, exact_family
from estimator.errors import SpecError
from estimator.frontends import Frontend
from estimator.spec import Framework, JobSpec
from estimator.trace import Trace
from estimator.tracefile import KeptTrace, job_digest, kept_content, read_kept
from estimator.traits import Traits

KEEPING = frozenset({Framework.PYTORCH})
"""Frameworks whose families were compared with traces: 24 jobs, batches from 2 up to 8192, all
equal to the byte."""
SMALLEST = (2, 4)
"""Batches that are traced for a job of one sample."""
NEEDED = 2
"""Batches that make a family. More are not kept: if two of a job are none, others are not."""


@dataclass(slots=True, kw_only=True)
class Sisters:
    """A frontend that remembers the traces of a job at other batches."""

    inner: Frontend
    known: dict[tuple[str, Traits], dict[int, Trace]] = field(default_factory=dict)
    FRAMEWORK: str = ""
    _made: list[tuple[JobSpec, Traits, Trace]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Be of the framework of *inner*."""
        self.FRAMEWORK = self.inner.FRAMEWORK

    def trace_job(self, spec: JobSpec, *, traits: Traits) -> Trace:
        """Return the trace of *spec*, from its sisters where they are a family."""
        batch = spec.input.batch_size
        if batch == 1 or cuts_by_batch(spec):
            return self.inner.trace_job(spec, traits=traits)
        known = self.known.setdefault((job_digest(spec), traits), {})
        if batch in known:
            return known[batch]
        family = _family(spec, known)
        if family is not None:
            return family.at(batch)
        trace = self.inner.trace_job(spec, traits=traits)
        if len(known) < NEEDED:
            known[batch] = trace
            self._made.append((spec, traits, trace))
        return trace

    def made(self) -> Iterator[bytes]:
        """Yield what was traced here and may be kept, once."""
        made, self._made = self._made, []
        for spec, traits, trace in made:
            content = kept_content(spec, traits, trace)
            if content is not None:
                yield content

    def missing(self, spec: JobSpec) -> tuple[int, ...]:
        """Return at which batches *spec*, traced here, is to be traced for any other to be found.

        Half of an even batch, else twice: a smaller job is the quicker one to trace, and meets no
        limit of size that the job itself did not.
        """
        found = [known for known in self.known.values() if known]
        if cuts_by_batch(spec) or (found and all(len(known) >= NEEDED for known in found)):
            return ()
        if not found:
            return SMALLEST if spec.input.batch_size == 1 else ()
        batch = max(batch for known in found for batch in known)
        return (batch // 2,) if batch % 2 == 0 and batch > 2 else (batch * 2,)


def sisters_of(inner: Frontend, contents: Iterable[bytes]) -> Sisters:
    """Return *inner* with the traces in *contents*; what cannot be read is as if never kept."""
    sisters = Sisters(inner=inner)
    for content in contents:
        try:
            kept = read_kept(content)
        except SpecError:
            continue
        _keep(sisters, kept)
    return sisters


def _keep(sisters: Sisters, kept: KeptTrace) -> None:
    known = sisters.known.setdefault((kept.job, kept.traits), {})
    if kept.trace.framework == sisters.FRAMEWORK and len(known) < NEEDED:
        known[kept.batch] = kept.trace


def _family(spec: JobSpec, known: dict[int, Trace]) -> BatchFamily | None:
    """Return the family of the two batches in *known*, if there are two and they are one."""
    if len(known) < NEEDED:
        return None
    (small_batch, small), (large_batch, large) = sorted(known.items(), key=lambda each: each[0])
    return exact_family(spec, small, large, small_batch=small_batch, large_batch=large_batch)
