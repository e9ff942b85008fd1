"""What the API server is told.

    uid, verdict in words -> Answer(status, body)

Three words: `allowed`, `denied` (only for a verdict) and `errored` (a request we cannot answer).
A fault of ours is never `allowed: false`: that would deny although the policy is to ignore us.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import orjson

from admission.review import API_VERSION

PREFIX = "vramgate: "
"""In front of each warning: kubectl does not say whose it is. (Of a denial it does.)"""
MAX_WARNING_BYTES = 256
MAX_WARNINGS_BYTES = 4096
"""The API server drops all warnings of a response beyond this."""
MAX_MESSAGE = 8192

_EMPTY = {"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": {"uid": ""}}
_HEAD = orjson.dumps(_EMPTY).removesuffix(b'""}}')
"""How every answer begins, up to the uid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An HTTP answer: JSON, with its status."""

    status: int
    body: bytes


class Readdressed:
    """An answer to one review, for others to be given."""

    def __init__(self, answer: Answer, *, uid: str) -> None:
        """Take *answer* to the review *uid*.

        Raises:
            ValueError: if it is the answer to another.
        """
        head = _head(uid)
        if not answer.body.startswith(head):
            raise ValueError("the answer is not addressed to that review")
        self._status = answer.status
        self._rest = answer.body[len(head) :]

    def to(self, uid: str) -> Answer:
        """Return the same for the review *uid*."""
        return Answer(status=self._status, body=_head(uid) + self._rest)


def allowed(
    uid: str,
    *,
    warnings: Iterable[str] = (),
    audit: Mapping[str, str] | None = None,
    patch: Sequence[Mapping[str, object]] = (),
) -> Answer:
    """Return the answer that lets the object pass, changed by the operations of *patch*."""
    response: dict[str, object] = {"uid": uid, "allowed": True}
    if patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(orjson.dumps(list(patch))).decode()
    return _reviewed(response, warnings=warnings, audit=audit)


def denied(
    uid: str,
    *,
    message: str,
    warnings: Iterable[str] = (),
    audit: Mapping[str, str] | None = None,
) -> Answer:
    """Return the answer that refuses the object; *message* is what the person reads."""
    status = {"code": 403, "reason": "Forbidden", "message": _printable(message)[:MAX_MESSAGE]}
    response = {"uid": uid, "allowed": False, "status": status}
    return _reviewed(response, warnings=warnings, audit=audit)


def errored(message: str, *, code: int = 400, uid: str = "") -> Answer:
    """Return the answer to a request that cannot be answered; the API server then fails open."""
    status: dict[str, object] = {
        "apiVersion": "v1",
        "kind": "Status",
        "status": "Failure",
        "code": code,
        "message": _printable(message)[:MAX_MESSAGE],
    }
    if uid:
        status["details"] = {"uid": uid}
    return Answer(status=code, body=orjson.dumps(status))


def clean_warnings(warnings: Iterable[str]) -> tuple[str, ...]:
    """Return *warnings* as the API server will pass them on: lines, each once, within its limits.

    Each says whose it is.

    A warning with a control character or a newline is dropped silently by the API server, and all
    of them are when they are longer than 4,096 bytes together. Whatever is left out is at the end.
    """
    lines = (" ".join(_printable(line).split()) for text in warnings for line in text.splitlines())
    kept: dict[str, None] = {}
    room = MAX_WARNINGS_BYTES
    for line in lines:
        short = _shortened(PREFIX + line)
        if not line or short in kept:
            continue
        room -= len(short.encode())
        if room < 0:
            break
        kept[short] = None
    return tuple(kept)


def _reviewed(
    response: dict[str, object],
    *,
    warnings: Iterable[str],
    audit: Mapping[str, str] | None,
) -> Answer:
    cleaned = clean_warnings(warnings)
    if cleaned:
        response["warnings"] = cleaned
    if audit:
        response["auditAnnotations"] = dict(audit)
    review = {"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response}
    return Answer(status=200, body=orjson.dumps(review))


def _head(uid: str) -> bytes:
    """Return how every answer to review *uid* begins."""
    return _HEAD + orjson.dumps(uid)


def _shortened(line: str) -> str:
    """Return *line* within the limit of one warning, cut at a character with an ellipsis."""
    encoded = line.encode()
    if len(encoded) <= MAX_WARNING_BYTES:
        return line
    return encoded[: MAX_WARNING_BYTES - len("…".encode())].decode(errors="ignore") + "…"


def _printable(text: str) -> str:
    """Return *text* with every control character but the newline as a space."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char == "\n" else " " for char in text)
