"""A body becomes a review or a request error that says what is accepted."""

from __future__ import annotations

import contextlib
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission.codes import Operation
from admission.errors import RequestError
from admission.review import (
    MAX_DEPTH,
    Review,
    deadline_seconds,
    parse_document,
    parse_duration,
    parse_review,
    uid_of,
)

JSON = "application/json"


def document(**changes: Any) -> dict[str, Any]:
    """Return an AdmissionReview that creates a Job; *changes* replace keys of its request."""
    request = {
        "uid": "0815",
        "kind": {"group": "batch", "version": "v1", "kind": "Job"},
        "resource": {"group": "batch", "version": "v1", "resource": "jobs"},
        "namespace": "team",
        "name": "train",
        "operation": "CREATE",
        "userInfo": {"username": "ada"},
        "object": {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train"}},
        "oldObject": None,
        "dryRun": False,
        **changes,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def parse(value: object, content_type: str = JSON) -> Review:
    """Return the review of a document."""
    return read(orjson.dumps(value), content_type)


def read(body: bytes, content_type: str = JSON) -> Review:
    """Return the review of a body."""
    return parse_review(parse_document(body, content_type=content_type))


def test_review_of_a_job_is_read_whole() -> None:
    """Everything a decision or a log line needs is there."""
    obj = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train"}}

    assert parse(document(dryRun=True, oldObject=obj, operation="UPDATE")) == Review(
        uid="0815",
        api_version="batch/v1",
        kind="Job",
        resource="jobs",
        operation=Operation.UPDATE,
        namespace="team",
        name="train",
        object=obj,
        old_object=obj,
        dry_run=True,
        user="ada",
    )


def test_core_kinds_have_a_version_without_a_group() -> None:
    """A Pod is `v1`, not `/v1`."""
    kind = {"group": "", "version": "v1", "kind": "Pod"}

    assert parse(document(kind=kind)).api_version == "v1"


def test_deletion_brings_no_object() -> None:
    """DELETE and CONNECT have nothing to look at and are no error."""
    review = parse(document(operation="DELETE", object=None))

    assert (review.operation, review.object) == (Operation.DELETE, {})


def test_content_type_may_carry_a_charset() -> None:
    """Parameters and case of the content type do not matter."""
    assert parse(document(), "Application/JSON; charset=utf-8").uid == "0815"


@pytest.mark.parametrize("content_type", ["", "text/plain", "application/yaml"])
def test_other_content_types_are_refused(content_type: str) -> None:
    """The message names the type sent and the one accepted."""
    with pytest.raises(RequestError, match="is not application/json"):
        parse(document(), content_type)


@pytest.mark.parametrize("body", [b"", b"{", b"nonsense", b'{"a": NaN}', b"\xff\xfe", b"[" * 5000])
def test_bodies_that_are_no_json_are_refused(body: bytes) -> None:
    """An empty, cut, binary or endlessly nested body is an error of the request."""
    with pytest.raises(RequestError, match="not JSON"):
        read(body)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "the body: .* is not a mapping"),
        ({}, "None of None is not accepted; accepted: AdmissionReview of admission.k8s.io/v1"),
        (
            {**document(), "apiVersion": "admission.k8s.io/v1beta1"},
            "AdmissionReview of admission.k8s.io/v1beta1 is not accepted",
        ),
        ({**document(), "request": None}, "request: missing"),
        (document(uid=""), "request.uid: missing"),
        (document(uid=7), "request.uid: missing"),
        (document(kind="Job"), "request.kind: 'Job' is not a mapping"),
        (document(object=None), "request.object: missing"),
        (document(object=[1]), r"request.object: \[1\] is not a mapping"),
        (document(oldObject="x"), "request.oldObject: 'x' is not a mapping"),
        (document(operation="PATCH"), "request.operation: 'PATCH' is not one of CREATE"),
        (document(operation={}), "request.operation"),
    ],
)
def test_what_is_no_review_is_refused_with_its_path(value: object, message: str) -> None:
    """Each mistake is named where it is."""
    with pytest.raises(RequestError, match=message):
        parse(value)


def test_nesting_beyond_the_limit_is_refused() -> None:
    """Readers recurse: what is deeper than any Kubernetes type is not walked."""
    deep: dict[str, Any] = {}
    for _ in range(MAX_DEPTH):
        deep = {"a": deep}

    with pytest.raises(RequestError, match="nested deeper"):
        parse(document(object=deep))


@pytest.mark.parametrize("key", ["apiVersion", "kind"])
def test_nesting_is_refused_wherever_it_is(key: str) -> None:
    """Also in what names the body itself, which the message would have to show."""
    body = orjson.dumps({**document(), key: None}).replace(b"null", b"[" * 1000 + b"]" * 1000, 1)

    with pytest.raises(RequestError, match="nested deeper"):
        read(body)


def test_endless_lists_are_refused() -> None:
    """Walking millions of values would hold up every other review."""
    with pytest.raises(RequestError, match="more than"):
        parse(document(object={"a": [[] for _ in range(200_001)]}))


def test_uid_of_a_broken_review_is_still_found() -> None:
    """An error names the request it is about wherever the body allows it."""
    assert uid_of(document(object=None)) == "0815"
    assert uid_of(None) == ""
    assert uid_of([1]) == ""
    assert uid_of({"request": [1]}) == ""
    assert uid_of(document(uid=7)) == ""


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5s", 5.0),
        ("1m30s", 60 + 30.0),
        ("500ms", 0.5),
        ("2.5s", 2.5),
        ("1h", 3600.0),
        ("1us", 1e-6),
        ("5", None),
        ("s", None),
        ("-5s", None),
        ("5s ", None),
        ("five", None),
        ("9" * 50 + "s", None),
    ],
)
def test_go_durations_are_understood(text: str, seconds: float | None) -> None:
    """The API server writes its timeout as Go does."""
    assert parse_duration(text) == seconds


@given(st.binary(max_size=200))
def test_no_body_raises_anything_but_a_request_error(body: bytes) -> None:
    """Whatever is sent, the answer is a review or HTTP 400."""
    with contextlib.suppress(RequestError):
        read(body)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5s", 4.5),
        ("10s", 9.5),
        ("1m", 29.5),
        (None, 4.5),
        ("", 4.5),
        ("soon", 4.5),
        ("0s", 0.05),
        ("100ms", 0.05),
    ],
)
def test_deadline_is_half_a_second_before_the_timeout(text: str | None, seconds: float) -> None:
    """What is missing or no duration counts as the 5 s of our own configuration."""
    assert deadline_seconds(text) == seconds
