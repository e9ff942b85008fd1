"""What holds for every answer, whatever was sent.

    answer -> nothing, or Broken

No text of an answer can make a terminal, a log or a page show anything but itself: no control
characters, no line ends, none that turn the direction of text around or are not seen.
"""

from __future__ import annotations

import base64
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from admission.response import MAX_WARNING_BYTES, MAX_WARNINGS_BYTES
from admission.steer.notes import PREFIX
from tests.fuzz.target import Broken

_TRACES = ("Traceback (most recent call last)", "/admission/", "/estimator/", "site-packages")


def check_line(text: str, where: str) -> None:
    """Hold *text* to one line of characters that are seen.

    Raises: Broken.
    """
    for character in text:
        category = unicodedata.category(character)
        if category[0] == "C" or category in ("Zl", "Zp"):
            raise Broken(f"{where} holds U+{ord(character):04X}")
    for trace in _TRACES:
        if trace in text:
            raise Broken(f"{where} tells of our insides")


def check_lines(text: str, where: str) -> None:
    """Hold each line of *text* to it: messages have lines of their own."""
    for line in text.split("\n"):
        check_line(line, where)


def check_review_answer(status: int, body: bytes, *, uid: str) -> dict[str, Any]:
    """Hold the answer to one review to what it must be; return the response in it.

    A 4xx has no response: an empty one is returned.
    """
    document = orjson.loads(body)
    if status != 200:
        if not 400 <= status < 500:
            raise Broken(f"answered {status}")
        check_lines(document["message"], "the message of a refused request")
        return {}
    response: dict[str, Any] = document["response"]
    if response["uid"] != uid:
        raise Broken("answered with another uid")
    warnings = response.get("warnings", [])
    for warning in warnings:
        check_line(warning, "a warning")
        if len(warning.encode()) > MAX_WARNING_BYTES:
            raise Broken("a warning is too long")
    if sum(len(warning.encode()) for warning in warnings) > MAX_WARNINGS_BYTES:
        raise Broken("the warnings are too long together")
    check_lines(response.get("status", {}).get("message", ""), "the message of a denial")
    for key, text in response.get("auditAnnotations", {}).items():
        check_line(text, f"audit annotation {key}")
    if "patch" in response:
        check_patch(orjson.loads(base64.b64decode(response["patch"])))
    return response


def check_patch(patch: list[dict[str, Any]]) -> None:
    """Hold what a patch writes under our names to lines; it removes nothing that is not ours."""
    for operation in patch:
        if operation["op"] == "remove" and "vramgate" not in operation["path"]:
            raise Broken(f"removes {operation['path'][:80]}")
        for key, text in _ours(operation["path"].rpartition("/")[2], operation.get("value")):
            check_line(text, f"annotation {key}")


def _ours(key: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yield the texts under our names in what is written at *key*."""
    name = key.replace("~1", "/").replace("~0", "~")
    if isinstance(value, str) and name.startswith(PREFIX):
        yield name, value
    if isinstance(value, Mapping):
        for each, below in value.items():
            yield from _ours(each, below)
