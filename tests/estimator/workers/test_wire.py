"""Requests, answers and errors survive the way to a fork and back."""

from __future__ import annotations

import pytest

from estimator.errors import (
    EstimateTimeoutError,
    EstimatorError,
    EstimatorUnavailableError,
    MemoryLimitError,
    Problem,
    SpecError,
    TraceError,
    UnsupportedJobError,
)
from estimator.notes import UnknownCode
from estimator.pipeline import Job
from estimator.processes import frames
from estimator.report.job import account_on
from estimator.workers import wire
from tests.estimator import stub
from tests.estimator.report import pages
from tests.estimator.workers.cases import CARD, spec_of


def test_a_request_is_read_as_it_was_written() -> None:
    """Spec and devices are equal after the way there."""
    ask = wire.Ask(
        operation=wire.Operation.FIT, spec=spec_of("name", batch_size=3), devices=(CARD, CARD)
    )

    assert wire.decode_ask(wire.encode_ask(ask)) == ask


def test_what_may_be_kept_goes_there_and_back() -> None:
    """Bytes are bytes; an answer that brings nothing, and an error, bring nothing."""
    kept = (b"\x1f\x8b\x00", b"")
    ask = wire.Ask(
        operation=wire.Operation.ESTIMATE, spec=spec_of("name"), devices=(CARD,), kept=kept
    )

    assert wire.decode_ask(wire.encode_ask(ask)).kept == kept
    left = wire.decode_leavings(wire.encode_answers([], kept=kept, may_go_on=True))
    none = wire.decode_leavings(wire.encode_error(TraceError("a")))
    assert left == wire.Leavings(kept=kept, may_go_on=True)
    assert none == wire.Leavings(kept=(), may_go_on=False)


@pytest.mark.parametrize(
    "error",
    [
        TraceError("a", hint="b"),
        EstimateTimeoutError("a"),
        MemoryLimitError("a"),
        EstimatorUnavailableError("a"),
        SpecError([Problem(path="a", message="b"), Problem(path="", message="c")], hint="d"),
        UnsupportedJobError("a", code=UnknownCode.KERNEL, path="b"),
    ],
)
def test_an_error_is_raised_as_it_was_written(error: EstimatorError) -> None:
    """Kind, message, hint and the fields of the kind are equal after the way back."""
    with pytest.raises(type(error)) as caught:
        wire.decode_estimates(wire.encode_error(error))

    assert vars(caught.value) == vars(error)


def test_a_frame_that_is_too_long_is_refused_on_both_sides() -> None:
    """Neither side trusts a length."""
    with pytest.raises(TraceError, match="are accepted"):
        frames.frame(bytes(frames.MAX_BYTES + 1))
    with pytest.raises(TraceError, match="are accepted"):
        frames.frame_length(b"\xff\xff\xff\xff")


def test_an_account_is_read_as_it_was_written() -> None:
    """Rows, pictures and figures are equal after the way back."""
    found = account_on(Job(spec=stub.spec_of(8), frontend=stub.StubFrontend()), stub.card())

    assert wire.decode_accounts(wire.encode_answers([found])) == (found,)


def test_a_drawing_is_read_as_it_was_written() -> None:
    """Estimates, columns and the tree; it is a small message whatever the run was."""
    found = pages.long_drawing()

    message = wire.encode_answers([found])

    assert wire.decode_drawing(message) == found
    assert len(message) < 1_000_000
