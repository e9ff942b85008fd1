"""Read what the API server asks.

    bytes, content type -> JSON -> Review

Pure. Anything that is not an AdmissionReview we can answer is a `RequestError` (HTTP 400).
"""

from __future__ import annotations

import functools
import re
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

import orjson

from admission.codes import Operation
from admission.errors import RequestError
from admission.values import Json

API_VERSION = "admission.k8s.io/v1"
CONTENT_TYPE = "application/json"
DEFAULT_TIMEOUT_SECONDS = 5.0
"""When the request does not say: the value of our own webhook configurations."""
MARGIN_SECONDS = 0.5
"""We answer this much before the API server gives up on us."""
LEAST_SECONDS = 0.05
LONGEST_TIMEOUT_SECONDS = 30.0
"""The longest timeout a webhook configuration may have."""
MAX_DEPTH = 100
"""Kubernetes' own types nest about 20 deep; our readers recurse, Python's stack ends near 1,000."""
MAX_CONTAINERS = 200_000
"""Mappings and lists in one review: walking more would hold up the event loop."""


class Route(StrEnum):
    """Which of our webhooks is asked."""

    MUTATE = "mutate"
    VALIDATE = "validate"


_OPERATIONS = {operation.value: operation for operation in Operation}
JUDGED = (Operation.CREATE, Operation.UPDATE)
"""The operations that bring an object to look at."""


class Review(NamedTuple):
    """One question of the API server: a tuple, which is made faster than a frozen dataclass."""

    uid: str
    api_version: str
    """Of the object under review: `batch/v1`."""
    kind: str
    resource: str
    operation: Operation
    namespace: str
    name: str
    object: Json = MappingProxyType({})
    """Empty for DELETE and CONNECT."""
    old_object: Json | None = None
    dry_run: bool = False
    user: str = ""

    @property
    def metadata(self) -> Json:
        """Return the metadata of the object, empty where it is not what it should be."""
        found = self.object.get("metadata")
        return found if isinstance(found, dict) else {}

    @property
    def annotations(self) -> Json:
        """Return the annotations of the object, as it has them: their texts may be anything."""
        found = self.metadata.get("annotations")
        return found if isinstance(found, dict) else {}

    @property
    def title(self) -> str:
        """Return the object's name, or what the API server will make one of (`generateName`)."""
        if self.name:
            return self.name
        metadata = self.metadata
        return str(metadata.get("name") or metadata.get("generateName") or "")


def parse_document(body: bytes, *, content_type: str) -> object:
    """Return the JSON in *body*.

    Raises:
        RequestError: saying what was sent and what is accepted.
    """
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type != CONTENT_TYPE:
        raise RequestError(f"content type {content_type[:100]!r} is not {CONTENT_TYPE}")
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise RequestError(f"the body is not JSON: {error}"[:300]) from error


def parse_review(body: object) -> Review:
    """Return the review in the JSON *body*.

    Raises:
        RequestError: saying what was sent and what is accepted.
    """
    document = _mapping(body, "the body")
    _check_nesting(document)
    return read_review(document)


def read_review(body: object) -> Review:
    """Return the same of JSON whose objects nobody walks: how deep it nests is not looked at.

    Raises:
        RequestError: saying what was sent and what is accepted.
    """
    document = _mapping(body, "the body")
    version, kind = document.get("apiVersion"), document.get("kind")
    if version != API_VERSION or kind != "AdmissionReview":
        seen = f"{str(kind)[:60]} of {str(version)[:60]}"
        raise RequestError(f"{seen} is not accepted; accepted: AdmissionReview of {API_VERSION}")
    return _review(_mapping(document.get("request"), "request"))


def uid_of(body: object) -> str:
    """Return the uid in JSON that cannot be answered as a review, or an empty text."""
    request = body.get("request") if isinstance(body, dict) else None
    return _text(request, "uid") if isinstance(request, dict) else ""


def _review(request: Json) -> Review:
    uid, namespace, name = _texts(request, "uid", "namespace", "name")
    if not uid:
        raise RequestError("request.uid: missing; it is required")
    kind = _mapping(request.get("kind"), "request.kind")
    resource = _mapping(request.get("resource") or {}, "request.resource")
    operation = _operation(request.get("operation"))
    group, version, kind_name = _texts(kind, "group", "version", "kind")
    old = request.get("oldObject")
    user = _mapping(request.get("userInfo") or {}, "request.userInfo")
    return Review(
        uid=uid,
        api_version=f"{group}/{version}" if group else version,
        kind=kind_name,
        resource=_text(resource, "resource"),
        operation=operation,
        namespace=namespace,
        name=name,
        object=_mapping(request.get("object"), "request.object") if operation in JUDGED else {},
        old_object=None if old is None else _mapping(old, "request.oldObject"),
        dry_run=request.get("dryRun") is True,
        user=_text(user, "username"),
    )


def _operation(value: object) -> Operation:
    found = _OPERATIONS.get(value) if isinstance(value, str) else None
    if found is None:
        message = f"request.operation: {_seen(value)} is not one of {', '.join(Operation)}"
        raise RequestError(message)
    return found


def _mapping(value: object, path: str) -> Json:
    if isinstance(value, dict):
        return value
    if value is None:
        raise RequestError(f"{path}: missing; it is required")
    raise RequestError(f"{path}: {_seen(value)} is not a mapping")


def _text(parent: Json, key: str) -> str:
    """Return the text at *key*; what is absent or of another type counts as empty."""
    value: Any = parent.get(key)
    return value if isinstance(value, str) else ""


def _texts(parent: Json, *keys: str) -> list[str]:
    """Return the texts at *keys*, as `_text` does."""
    return [value if isinstance(value, str) else "" for value in map(parent.get, keys)]


def _check_nesting(document: object) -> None:
    """Refuse what would exhaust the stack or the loop of those who walk it next."""
    level: list[Any] = [document]
    walked = 0
    for _ in range(MAX_DEPTH):
        walked += len(level)
        if walked > MAX_CONTAINERS:
            raise RequestError(f"the body has more than {MAX_CONTAINERS} mappings and lists")
        level = [
            item
            for parent in level
            for item in (parent.values() if isinstance(parent, dict) else parent)
            if isinstance(item, dict | list)
        ]
        if not level:
            return
    raise RequestError(f"the body is nested deeper than {MAX_DEPTH}")


def _seen(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"


def deadline_seconds(text: str | None) -> float:
    """Return how long a review may take, from the query the API server sends (`?timeout=5s`)."""
    given = parse_duration(text) if text else None
    seconds = DEFAULT_TIMEOUT_SECONDS if given is None else min(given, LONGEST_TIMEOUT_SECONDS)
    return max(seconds - MARGIN_SECONDS, LEAST_SECONDS)


_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:h|m|s|ms|us|µs|ns))+")
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(h|ms|m|s|us|µs|ns)")
_UNIT_SECONDS = {
    "h": 3600.0,
    "m": 60.0,
    "s": 1.0,
    "ms": 1e-3,
    "us": 1e-6,
    "µs": 1e-6,
    "ns": 1e-9,
}


@functools.lru_cache(maxsize=64)
def parse_duration(text: str) -> float | None:
    """Return the seconds of a Go duration (`5s`, `1m30s`, `500ms`); None if it is none.

    Source: `time.ParseDuration` of Go; not modelled: signs, a number that starts with its dot.
    """
    if len(text) > 40 or not _DURATION.fullmatch(text):
        return None
    return sum(float(number) * _UNIT_SECONDS[unit] for number, unit in _DURATION_PART.findall(text))
