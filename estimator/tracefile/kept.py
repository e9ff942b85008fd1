"""A trace kept for the same job at another batch: which job, which cards, which batch.

    JobSpec, Traits, Trace -> bytes -> KeptTrace

Gzip of JSON with the bounds of a Trace file. Nothing of the job itself is in it, only a digest:
who reads it knows the job. Never trusted for coming from a process of ours.
"""

from __future__ import annotations

import gzip
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import orjson
from pydantic import Field, ValidationError
from pydantic.alias_generators import to_camel

from estimator.errors import Problem, SpecError, TraceError
from estimator.spec import Framework, JobSpec, digest_of
from estimator.spec.problems import problems_of
from estimator.spec.vocabulary import Part
from estimator.trace import GATHERED_FLOAT8, OTHER_CARD, Method, Trace
from estimator.tracefile.columns import BrokenColumnError, columns_of, trace_of
from estimator.tracefile.document import MAX_CONTENT, Text, TracePart, TraitsPart
from estimator.tracefile.recording import unpacked
from estimator.traits import Traits

MAX_KEPT_EVENTS = 60_000
"""Longer traces are not kept: writing one takes about 1 µs of CPU an event. A ResNet-50 has
3,300 events, four layers of a Llama about 3,000."""
MAX_BATCH = 1 << 40


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptTrace:
    """The trace of a job at one batch, without its facts for people."""

    job: str
    """`job_digest` of the job."""
    traits: Traits
    batch: int
    trace: Trace


class KeptDocument(Part):
    """What the bytes hold."""

    job: Text
    framework: Framework
    traits: TraitsPart
    batch: Annotated[int, Field(strict=True, ge=1, le=MAX_BATCH)]
    trace: TracePart


def job_digest(spec: JobSpec) -> str:
    """Return the digest of *spec* at no batch: equal for jobs that differ in nothing else."""
    document: dict[str, Any] = spec.identity()
    return digest_of({**document, "input": {**document["input"], "batchSize": 0}})


def kept_content(spec: JobSpec, traits: Traits, trace: Trace) -> bytes | None:
    """Return *trace* of *spec* as bytes; None if it is too long, or columns cannot hold it.

    Facts that figures depend on are not in the columns, save one; a compiler's plan is no trace
    of another batch.
    """
    is_held = trace.method is not Method.COMPILE and not (
        {GATHERED_FLOAT8, OTHER_CARD} & trace.facts.keys()
    )
    if not is_held or trace.num_events > MAX_KEPT_EVENTS:
        return None
    try:
        columns = columns_of(trace)
    except TraceError:
        return None
    document = {
        "job": job_digest(spec),
        "framework": spec.framework,
        "traits": {
            to_camel(name): value for name, value in asdict(traits).items() if value is not None
        },
        "batch": spec.input.batch_size,
        "trace": columns,
    }
    content = gzip.compress(orjson.dumps(document), compresslevel=1, mtime=0)
    return content if len(content) <= MAX_CONTENT else None


def read_kept(content: bytes) -> KeptTrace:
    """Return the trace in *content*, wherever its bytes came from.

    Raises:
        SpecError: if it is too long, or breaks a rule.
    """
    try:
        document = KeptDocument.model_validate(orjson.loads(unpacked(content)))
        trace = trace_of(document.trace, framework=document.framework.value)
    except orjson.JSONDecodeError as error:
        raise SpecError([Problem(path="", message=f"not JSON: {error}")]) from error
    except ValidationError as error:
        raise SpecError(problems_of(error)[:1]) from error
    except BrokenColumnError as error:
        raise SpecError([error.problem]) from error
    return KeptTrace(
        job=document.job,
        traits=Traits(**document.traits.model_dump()),
        batch=document.batch,
        trace=trace,
    )
