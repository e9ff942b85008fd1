"""A recorded job: its spec, its trace, and the bytes they came in.

    JobSpec, Traits, Trace -> Recording; bytes -> Recording

Bytes are gzip of JSON, at most 900 KiB. What they unpack to is bounded before it is read. The
same job makes the same bytes.
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from dataclasses import asdict, dataclass

import orjson
from pydantic import ValidationError
from pydantic.alias_generators import to_camel

from estimator.errors import Problem, SpecError, TraceError
from estimator.spec import API_VERSION, JobSpec, ModelSource, parse_spec
from estimator.spec.problems import problems_of
from estimator.trace import Trace
from estimator.tracefile.columns import BrokenColumnError, columns_of, trace_of
from estimator.tracefile.document import (
    MAX_CONTENT,
    MAX_DOCUMENT,
    TraceDocument,
)
from estimator.traits import Traits

GZIP = b"\x1f\x8b"
MAX_PROBLEMS = 20
"""More are not listed: a file may hold hundreds of thousands."""
_WINDOW = 16 + zlib.MAX_WBITS
"""Tells zlib to expect gzip."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """One job on one kind of card, traced before."""

    spec: JobSpec
    """The job: its model's source is `trace`, its revision the digest of the content, so that the
    digest of the spec depends on the trace."""
    traits: Traits
    """Of the cards it was traced for."""
    trace: Trace
    content: bytes
    """The Trace file."""


def recorded(spec: JobSpec, *, traits: Traits, trace: Trace) -> Recording:
    """Return *trace* of *spec* as a recording.

    Raises:
        TraceError: if it is longer than a Trace file may be.
    """
    document = {
        "apiVersion": API_VERSION,
        "kind": "Trace",
        "spec": spec.document(),
        "traits": {
            to_camel(name): value for name, value in asdict(traits).items() if value is not None
        },
        "trace": columns_of(trace),
    }
    try:
        TraceDocument.model_validate(document)
    except ValidationError as error:
        first = problems_of(error)[0]
        raise TraceError(f"a Trace file cannot hold this job: {first}") from error
    packed = orjson.dumps(document)
    content = gzip.compress(packed, compresslevel=9, mtime=0)
    if len(content) > MAX_CONTENT or len(packed) > MAX_DOCUMENT:
        raise TraceError(
            f"the trace of this job takes {len(content)} bytes, {len(packed)} unpacked; a Trace "
            f"file holds {MAX_CONTENT} and {MAX_DOCUMENT}",
            hint="fewer gradient accumulation steps, or no evaluation, make it shorter",
        )
    return Recording(spec=_job(spec, packed), traits=traits, trace=trace, content=content)


def read_recording(content: bytes) -> Recording:
    """Return what the Trace file *content* holds, wherever its bytes came from.

    Raises:
        SpecError: with every problem, each with its path; one for each broken column. A file
            that breaks more than a few rules is refused in one line.
    """
    packed = unpacked(content)
    try:
        document = TraceDocument.model_validate(orjson.loads(packed))
    except orjson.JSONDecodeError as error:
        raise _problem("", f"not JSON: {error}") from error
    except ValidationError as error:
        count = error.error_count()
        if count > MAX_PROBLEMS:
            raise _problem("", f"{count} problems; {MAX_PROBLEMS} would be listed") from error
        raise SpecError(problems_of(error)) from error
    spec = _spec(document)
    try:
        trace = trace_of(document.trace, framework=spec.framework.value)
    except BrokenColumnError as error:
        raise SpecError([error.problem]) from error
    return Recording(
        spec=_job(spec, packed),
        traits=Traits(**document.traits.model_dump()),
        trace=trace,
        content=content,
    )


def is_trace_file(content: bytes) -> bool:
    """Return whether *content* is gzip, as Trace files are and no other document is."""
    return content.startswith(GZIP)


def _job(spec: JobSpec, packed: bytes) -> JobSpec:
    """Return *spec* as the job that *packed* is the trace of."""
    digest = f"sha256:{hashlib.sha256(packed).hexdigest()}"
    document = spec.document()
    model = {**document["model"], "source": ModelSource.TRACE.value, "revision": digest}
    return parse_spec({**document, "model": model})


def _spec(document: TraceDocument) -> JobSpec:
    try:
        spec = parse_spec(document.spec)
    except SpecError as error:
        problems = [
            Problem(path=f"spec.{each.path}" if each.path else "spec", message=each.message)
            for each in error.problems
        ]
        raise SpecError(problems, hint=error.hint) from error
    if spec.model.source is ModelSource.TRACE:
        raise _problem("spec.model.source", "'trace' is not accepted: a Trace file holds the job")
    return spec


def unpacked(content: bytes) -> bytes:
    """Return the JSON in *content*, one gzip member and nothing else.

    Raises:
        SpecError: if it is too long, packed or unpacked, or broken.
    """
    if len(content) > MAX_CONTENT:
        raise _problem("", f"longer than {MAX_CONTENT} bytes")
    unpacking = zlib.decompressobj(_WINDOW)
    try:
        packed = unpacking.decompress(content, MAX_DOCUMENT + 1)
    except zlib.error as error:
        raise _problem("", f"not gzip: {error}") from error
    if len(packed) > MAX_DOCUMENT:
        raise _problem("", f"unpacks to more than {MAX_DOCUMENT} bytes")
    if not unpacking.eof:
        raise _problem("", "ends early")
    if unpacking.unused_data:
        raise _problem("", "something follows the trace")
    return packed


def _problem(path: str, message: str) -> SpecError:
    return SpecError([Problem(path=path, message=message)])
