"""A model's architecture, where the document that was found only refers to it.

spec document, documents -> the document with `model.config`, or why it is not had
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from admission.codes import ReasonCode
from admission.detect.annotation import json_types
from admission.detect.draft import Draft
from admission.detect.hub import stored_model
from admission.detect.lookup import Lookup
from admission.detect.model_files import is_reference, read_model_file
from admission.values import Finding

_FILES = ("file", "keras", "mxnet")
"""Sources whose name may be a reference to a model file."""


def complete_model(
    document: dict[str, Any], sources: dict[str, str], lookup: Lookup, draft: Draft, *, path: str
) -> Iterator[Finding]:
    """Put in the architecture of a model that is named by reference; yield why it is not had.

    The Hub's configuration of a model that the catalog lacks, or a model file's.
    """
    model = document.get("model")
    if not isinstance(model, Mapping) or model.get("config"):
        return
    name, revision = model.get("name"), model.get("revision")
    if not isinstance(name, str) or not isinstance(revision, str | None):
        return
    if is_reference(name) and model.get("source") in _FILES:
        yield from _model_file(document, name, lookup, path=path)
        return
    if model.get("source") != "huggingface":
        return
    stored = stored_model(name, revision, lookup)
    if stored.doubt:
        draft.doubt(f"{path}: {stored.doubt}", "model.config")
    if stored.config:
        document["model"] = {**model, "config": json_types(stored.config)}
        sources["model.config"] = stored.source
    elif stored.problem:
        yield Finding(
            code=ReasonCode.DOCUMENT,
            path=path,
            reason=f"model {name:.120} is not in the catalog, and on the Hub it {stored.problem}",
            hint="put its config.json into the annotation vramgate.dev/spec: "
            "model: {source: huggingface, name: …, config: {…}}",
        )


def _model_file(
    document: dict[str, Any], reference: str, lookup: Lookup, *, path: str
) -> Iterator[Finding]:
    """Put in what the file at *reference* says of the model; yield why it is not had."""
    found = read_model_file(reference, lookup)
    if found.model:
        document["model"] = {**document["model"], **json_types(found.model)}
    elif found.problem:
        yield Finding(
            code=ReasonCode.DOCUMENT,
            path=path,
            reason=f"the model file {reference:.120} {found.problem}",
            hint="put the architecture into the annotation vramgate.dev/spec: "
            "model: {source: …, name: …, config: {…}}",
        )
