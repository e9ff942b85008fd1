"""Answers are AdmissionReviews whose warnings survive the API server."""

from __future__ import annotations

import base64
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission.response import (
    MAX_WARNING_BYTES,
    MAX_WARNINGS_BYTES,
    Readdressed,
    allowed,
    clean_warnings,
    denied,
    errored,
)


def response(body: bytes) -> dict[str, Any]:
    """Return the response part of an AdmissionReview."""
    review = orjson.loads(body)
    assert (review["apiVersion"], review["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    found: dict[str, Any] = review["response"]
    return found


def test_allowed_says_no_more_than_it_must() -> None:
    """Without warnings there is only the uid and the word."""
    answer = allowed("0815")

    assert answer.status == 200
    assert response(answer.body) == {"uid": "0815", "allowed": True}


@given(st.text(max_size=40), st.text(max_size=40))
def test_an_answer_readdressed_is_the_same_but_for_its_uid(before: str, after: str) -> None:
    """Whatever the uids hold."""
    warned: dict[str, Any] = {"warnings": ["may not fit"], "audit": {"verdict": "tight"}}

    answer = Readdressed(allowed(before, **warned), uid=before).to(after)

    assert answer == allowed(after, **warned)


def test_an_answer_to_another_is_not_readdressed() -> None:
    """Nobody gets what was somebody else's."""
    with pytest.raises(ValueError, match="not addressed"):
        Readdressed(allowed("0815"), uid="4711")


def test_allowed_carries_warnings_and_audit_annotations() -> None:
    """Both reach the API server next to the word."""
    answer = allowed("0815", warnings=["may not fit"], audit={"verdict": "tight"})

    assert response(answer.body) == {
        "uid": "0815",
        "allowed": True,
        "warnings": ["vramgate: may not fit"],
        "auditAnnotations": {"verdict": "tight"},
    }


def test_allowed_carries_a_patch_as_the_api_server_reads_it() -> None:
    """Base64 of JSON, with its type; without operations there is neither."""
    steps = [{"op": "add", "path": "/metadata/labels", "value": {}}]

    found = response(allowed("0815", patch=steps).body)

    assert found["patchType"] == "JSONPatch"
    assert orjson.loads(base64.b64decode(found["patch"])) == steps
    assert response(allowed("0815", patch=[]).body) == {"uid": "0815", "allowed": True}


def test_denied_is_a_403_with_the_message() -> None:
    """The person's client shows the message, its lines kept and its bells taken out."""
    answer = denied("0815", message="needs 20 GiB\nhint: batch size 8\a", warnings=["a conflict"])

    assert answer.status == 200
    assert response(answer.body) == {
        "uid": "0815",
        "allowed": False,
        "status": {
            "code": 403,
            "reason": "Forbidden",
            "message": "needs 20 GiB\nhint: batch size 8 ",
        },
        "warnings": ["vramgate: a conflict"],
    }


def test_errored_is_an_http_error_and_never_a_denial() -> None:
    """Under `failurePolicy: Ignore` the API server then goes on without us."""
    answer = errored("the body is not JSON", uid="0815")

    assert answer.status == 400
    assert orjson.loads(answer.body) == {
        "apiVersion": "v1",
        "kind": "Status",
        "status": "Failure",
        "code": 400,
        "message": "the body is not JSON",
        "details": {"uid": "0815"},
    }


def test_warning_of_two_lines_becomes_two_warnings() -> None:
    """A newline in a warning would make the API server drop it silently."""
    warnings = clean_warnings(["one\ntwo\r\n\tthree", "", " \n", "one"])

    assert warnings == ("vramgate: one", "vramgate: two", "vramgate: three")


def test_each_warning_says_whose_it_is() -> None:
    """kubectl shows a warning without the webhook's name, unlike a denial."""
    warnings = clean_warnings(["may not fit", "hint: batch size 8"])

    assert warnings == ("vramgate: may not fit", "vramgate: hint: batch size 8")
    assert b"vramgate" not in denied("0815", message="needs 20 GiB").body


def test_long_warning_is_cut_at_a_character() -> None:
    """After `vramgate: ` (10 bytes) 121 `é` (2 each) and the ellipsis (3) are the most in 256."""
    (warning,) = clean_warnings(["é" * 300])

    assert warning == "vramgate: " + "é" * 121 + "…"
    assert len(warning.encode()) == 10 + 121 * 2 + 3


def test_warnings_beyond_the_total_are_left_out_from_the_end() -> None:
    """Sixteen warnings of 256 bytes are 4,096: the seventeenth would lose them all."""
    warnings = clean_warnings(f"{number:03d}" + "x" * 243 for number in range(20))

    assert len(warnings) == 16
    assert warnings[0].startswith("vramgate: 000")


@given(st.lists(st.text(max_size=400), max_size=40))
def test_any_warnings_pass_the_api_server(texts: list[str]) -> None:
    """Whatever a manifest puts into a message: printable, within the limits, each once."""
    warnings = clean_warnings(texts)

    assert all(warning and warning.isprintable() for warning in warnings)
    assert all(len(warning.encode()) <= MAX_WARNING_BYTES for warning in warnings)
    assert sum(len(warning.encode()) for warning in warnings) <= MAX_WARNINGS_BYTES
    assert len(set(warnings)) == len(warnings)
    assert response(allowed("0815", warnings=texts).body)["allowed"] is True
