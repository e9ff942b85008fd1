"""Kept traces: read back as written, refused if anything in them is not as written."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson
import pytest

from estimator.errors import SpecError
from estimator.trace import AT_MOST, GATHERED_FLOAT8, OTHER_CARD, Method
from estimator.tracefile import KeptTrace, job_digest, kept_content, read_kept
from estimator.tracefile.document import MAX_CONTENT
from estimator.tracefile.kept import MAX_KEPT_EVENTS
from tests.estimator.stub import StubFrontend, spec_of
from tests.estimator.test_trace_file import AMPERE, full_trace


def content_of() -> bytes:
    """Return the full trace as that of the stub's job at batch 8."""
    content = kept_content(spec_of(8), AMPERE, full_trace())
    assert content is not None
    return content


def test_a_kept_trace_is_read_as_it_was_written() -> None:
    """The job is told by a digest that is the same at every batch, and for no other job."""
    assert read_kept(content_of()) == KeptTrace(
        job=job_digest(spec_of(3)), traits=AMPERE, batch=8, trace=full_trace()
    )
    assert job_digest(spec_of(8)) == job_digest(spec_of(9))
    assert job_digest(spec_of(8)) != job_digest(spec_of(8, frameworkVersion="2.14.0"))
    assert content_of() == content_of()


def test_what_columns_do_not_hold_is_not_kept() -> None:
    """Facts that figures depend on, plans of a compiler, long traces, odd numbering."""
    trace = StubFrontend().trace_job(spec_of(8), traits=AMPERE)
    times = MAX_KEPT_EVENTS // len(trace.kinds) + 1
    odd = replace(trace, ids=trace.ids[::-1])

    for other in (
        replace(trace, facts={GATHERED_FLOAT8: "layer"}),
        replace(trace, facts={OTHER_CARD: "t4"}),
        replace(trace, method=Method.COMPILE),
        replace(trace, kinds=trace.kinds * times),
        odd,
    ):
        assert kept_content(spec_of(8), AMPERE, other) is None
    said = kept_content(spec_of(8), AMPERE, replace(trace, facts={AT_MOST: "boxes"}))
    assert said is not None
    assert read_kept(said).trace.facts == {AT_MOST: "boxes"}


def _nothing(document: dict[str, Any]) -> None:
    document.pop("job")


def _batch(document: dict[str, Any]) -> None:
    document["batch"] = 0


def _size(document: dict[str, Any]) -> None:
    document["trace"]["tensors"]["sizes"][0] = -1


def _dead(document: dict[str, Any]) -> None:
    document["trace"]["events"]["ids"][-1] = 1 << 20


def _more(document: dict[str, Any]) -> None:
    document["command"] = "rm"


@pytest.mark.parametrize("change", [_nothing, _batch, _size, _dead, _more])
def test_a_broken_one_is_refused(change: Callable[[dict[str, Any]], None]) -> None:
    """One number out of its bounds is enough."""
    document: dict[str, Any] = orjson.loads(gzip.decompress(content_of()))
    change(document)

    with pytest.raises(SpecError):
        read_kept(gzip.compress(orjson.dumps(document)))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        gzip.compress(b"{"),
        content_of()[:-9],
        content_of() + b"x",
        bytes(MAX_CONTENT + 1),
    ],
)
def test_bytes_that_are_none_are_refused(content: bytes) -> None:
    """Not gzip, not JSON, cut off, followed by something, too long."""
    with pytest.raises(SpecError):
        read_kept(content)
