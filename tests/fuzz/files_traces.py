"""Trace files and HLO: read, and estimated as a fork would.

bytes -> Recording -> Estimates, or every problem with its path; HLO text -> Outline
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable
from functools import cache
from typing import Any
from unittest import mock

import orjson

from admission.detect.annotation import Annotation
from admission.detect.recorded import recorded_reading
from estimator.compilers.liveness import outline_of
from estimator.cudnn.shipped import Shipped, shipped_editions
from estimator.errors import EstimatorError, SpecError, TraceError
from estimator.tracefile import kept_content, read_kept, read_recording
from estimator.workers import answer as workers
from estimator.workers.wire import Ask, Operation, decode_estimates, encode_ask
from tests.builders import unit
from tests.estimator.compilers.test_hlo import MODULE
from tests.estimator.stub import StubFrontend, card, spec_of
from tests.estimator.test_trace_file import AMPERE, document_of, packed, recording_of
from tests.fuzz.choices import Choices
from tests.fuzz.files_specs import check_problems
from tests.fuzz.files_watch import nothing_outside
from tests.fuzz.shaping import as_json, mutated
from tests.fuzz.target import Broken, Target

MAX_MESSAGE = 6_000


def check_estimate(content: bytes) -> None:
    """Read a Trace file as the webhook does, and estimate it as a fork does.

    Raises: Broken.
    """
    with nothing_outside():
        reading = recorded_reading(Annotation(content=content), unit())
        for finding in reading.unknowns:
            if len(finding.reason) > MAX_MESSAGE:
                raise Broken("a problem that nobody reads to its end")
        if reading.recording is None:
            if not reading.unknowns:
                raise Broken("neither a recording nor a problem")
            return
        _estimated(content)


def _estimated(content: bytes) -> None:
    recording = read_recording(content)
    devices = (card(), card(capability=7), card(budget=1))
    for operation in (Operation.ESTIMATE, Operation.ACCOUNT, Operation.DRAW):
        ask = Ask(
            operation=operation, spec=recording.spec, devices=devices, content=recording.content
        )
        try:
            with mock.patch.object(workers, "shipped_editions", _editions):
                reply = workers.answer(encode_ask(ask), None)
        except TraceError:
            raise  # "our bug": a file must not bring that about
        except EstimatorError as error:
            if len(error.message) > MAX_MESSAGE:
                raise Broken(f"an error of {len(error.message)} characters") from None
            return
        if operation is Operation.ESTIMATE:
            for each in decode_estimates(reply.answer):
                if not 0 <= each.least.device_bytes <= each.enough.device_bytes:
                    raise Broken("least is above enough")


@cache
def _editions() -> tuple[Shipped, ...]:
    """Return the tables that come with us, which a fork unpacks once, not for each input."""
    return shipped_editions()


def _run_trace_file(data: bytes) -> None:
    """Read bytes as gzip, or as what is packed in it."""
    check_estimate(data if data[:2] == b"\x1f\x8b" else gzip.compress(data, 1, mtime=0))


def _run_trace_columns(data: bytes) -> None:
    """Change values in a Trace file, and in its columns."""
    choices = Choices(data)
    check_estimate(_written(mutated(choices.pick(_documents()), choices)))


def _run_kept_trace(data: bytes) -> None:
    """Read what a fork left, which may be anything."""
    if data[:2] != b"\x1f\x8b":
        data = _written(mutated(orjson.loads(gzip.decompress(_kept())), Choices(data)))
    with nothing_outside():
        try:
            read_kept(data)
        except SpecError as error:
            check_problems(error)


def _written(document: Any) -> bytes:
    """Return *document* as a file."""
    return gzip.compress(as_json(document).encode(), 1, mtime=0)


@cache
def _documents() -> tuple[dict[str, Any], ...]:
    """Return a file with an event of every kind, and one of few kernels."""
    return document_of(recording_of()), document_of(_stub())


@cache
def _stub() -> Any:
    return recording_of(StubFrontend().trace_job(spec_of(8), traits=AMPERE))


@cache
def _kept() -> bytes:
    trace = StubFrontend().trace_job(spec_of(8), traits=AMPERE)
    content = kept_content(spec_of(8), AMPERE, trace)
    assert content is not None
    return content


# ---- HLO


def _run_hlo(data: bytes) -> None:
    """Read bytes as the text of a module."""
    with nothing_outside():
        try:
            outline_of(data.decode("utf-8", "replace"))
        except TraceError:
            return


# ---- seeds


def _file_seeds() -> Iterable[bytes]:
    for document in _documents():
        yield orjson.dumps(document)
        yield packed(document)
    yield gzip.compress(b" " * (13 << 20), 9, mtime=0)
    yield zlib.compress(b"{}")
    yield packed({}) + packed({})
    yield packed({})[:-6]


def _decisions() -> Iterable[bytes]:
    for number in range(64):
        yield bytes((number, 1, number * 3 % 256, number % 8, number * 7 % 256, 1, number, 0, 5))
        yield bytes(range(number, number + 40))


def _kept_seeds() -> Iterable[bytes]:
    yield _kept()
    yield from _decisions()


_WHILE = """HloModule m
%body (p: (f32[4])) -> (f32[4]) {
  %p = (f32[4]) parameter(0)
  %x = f32[4] get-tuple-element(%p), index=0
  ROOT %t = (f32[4]) tuple(%x)
}
ENTRY %main (a: f32[4]) -> f32[4] {
  %a = f32[4] parameter(0)
  %t = (f32[4]) tuple(%a)
  %w = (f32[4]) while(%t), condition=%body, body=%body
  %c = (f32[4]) conditional(%a, %t, %t), branch_computations={%body, %body}
  %v = f32[1,2,2,1] convolution(%a, %a), window={size=2x2}, dim_labels=b01f_01io->b01f
  %s = f32[4] select-and-scatter(%a, %a, %a), select=%body, scatter=%body
  ROOT %y = f32[4] get-tuple-element(%w), index=0
}
"""


def _hlo_seeds() -> Iterable[bytes]:
    yield MODULE.encode()
    yield _WHILE.encode()


TARGETS = (
    Target(
        name="trace-file",
        run=_run_trace_file,
        seeds=_file_seeds,
        dictionary=(b'"events"', b'"kinds"', b'"operands"', b'"shape"', b"aten.convolution"),
        seconds=2.0,
        max_bytes=8192,
    ),
    Target(
        name="trace-columns", run=_run_trace_columns, seeds=_decisions, seconds=2.0, max_bytes=400
    ),
    Target(name="kept-trace", run=_run_kept_trace, seeds=_kept_seeds, max_bytes=2048),
    Target(
        name="hlo-text",
        run=_run_hlo,
        seeds=_hlo_seeds,
        dictionary=(
            *(b"parameter(", b"tuple(", b"get-tuple-element(", b"index=", b"f32[", b"ENTRY %"),
            *(b"call(", b"to_apply=%", b"body=%", b"while(", b"fusion(", b"calls=%", b"ROOT %"),
        ),
        max_bytes=4096,
        begins=(b"", b"HloModule m\nENTRY %m {\n"),
    ),
)
