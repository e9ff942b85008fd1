"""Reviews as bytes, made once: what is sent differs in the uid alone.

object, operation, route -> Body; Body, uid -> a request of HTTP
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from admission.codes import Operation
from admission.review import JUDGED, Route
from deploy.demo import review_of

UID = "00000000-0000-4000-8000-000000000000"
"""Stands where the uid of each review will be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """A review in two pieces: before and behind its uid."""

    route: Route
    before: bytes
    behind: bytes
    is_judged: bool = True
    """Whether its operation brings an object to look at: the server counts no others."""

    def text(self, uid: str = UID) -> bytes:
        """Return the body with *uid*."""
        return b"".join((self.before, uid.encode(), self.behind))

    def request(self, uid: str, *, timeout_seconds: int) -> bytes:
        """Return the whole request with *uid*."""
        length = len(self.before) + len(uid) + len(self.behind)
        head = (
            f"POST /{self.route.value}?timeout={timeout_seconds}s HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            f"Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        )
        return b"".join((head.encode(), self.before, uid.encode(), self.behind))


def body_of(
    obj: Mapping[str, Any], *, route: Route, operation: Operation = Operation.CREATE
) -> Body:
    """Return the review of *obj*; an update is one of the same object with a label more."""
    document = review_of(obj)
    request = document["request"]
    request |= {"uid": UID, "operation": operation.value}
    if operation is Operation.UPDATE:
        request["oldObject"] = obj
        labels = {**obj["metadata"].get("labels", {}), "example.com/seen": "yes"}
        request["object"] = {**obj, "metadata": {**obj["metadata"], "labels": labels}}
    if operation is Operation.DELETE:
        request |= {"oldObject": obj, "object": None}
    before, _, behind = orjson.dumps(document).partition(UID.encode())
    return Body(route=route, before=before, behind=behind, is_judged=operation in JUDGED)
