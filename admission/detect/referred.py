"""What the annotation `vramgate.dev/spec-ref` leads to.

    text, documents -> the JobSpec text it stands for, or the bytes of a Trace file

`configmap/NAME/KEY` of the job's own namespace gives either, `https://…` a JobSpec, and
`hf://ORG/MODEL` the model only.
"""

from __future__ import annotations

from dataclasses import dataclass

import orjson

from admission.detect.lookup import Lookup

MAX_LENGTH = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Referred:
    """The text, empty while it is not fetched; or why there is none."""

    text: str = ""
    content: bytes = b""
    """Of a Trace file."""
    problem: str = ""
    """Completes `what it refers to …`."""


def resolve(reference: str, lookup: Lookup) -> Referred:
    """Return what *reference* leads to; an empty one leads to nothing."""
    if not reference:
        return Referred()
    if len(reference) > MAX_LENGTH:
        return Referred(problem=f"is named in more than {MAX_LENGTH} characters")
    if reference.startswith("hf://"):
        return _model(reference)
    if reference.startswith("https://"):
        return _text(reference, "", lookup)
    kind, _, rest = reference.partition("/")
    name, slash, key = rest.partition("/")
    if kind != "configmap" or not slash or not name or not key:
        return Referred(problem="is none of configmap/NAME/KEY, hf://ORG/MODEL and https://…")
    return _text(f"configmap/{name}", key, lookup)


def _text(reference: str, key: str, lookup: Lookup) -> Referred:
    document = lookup.find(reference)
    if document is None:
        return Referred()
    if document.problem:
        return Referred(problem=document.problem)
    if key in document.blobs:
        return Referred(content=document.blobs[key])
    if key not in document.files:
        return Referred(problem=f"has no key {key:.100}")
    return Referred(text=document.files[key])


def _model(reference: str) -> Referred:
    name, _, revision = reference.removeprefix("hf://").partition("@")
    model = {"source": "huggingface", "name": name}
    if revision:
        model["revision"] = revision
    return Referred(text=orjson.dumps({"model": model}).decode())
