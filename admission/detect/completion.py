"""A model's architecture, where the document that was found only refers to it.

spec document, documents -> the document with `model.config`, or why it is not had; how its weights
are packed, if they are
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from admission.codes import ReasonCode
from admission.detect.annotation import json_types
from admission.detect.draft import Draft
from admission.detect.hub import stored_model
from admission.detect.lookup import Lookup
from admission.detect.packed import packed_as
from admission.values import Finding
from estimator.deferred import Deferred

if TYPE_CHECKING:
    from admission.detect import model_files
else:
    model_files = Deferred("admission.detect.model_files")

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
    if model.get("source") in _FILES and model_files.is_reference(name):
        yield from _model_file(document, sources, name, lookup, path=path)
        return
    if model.get("source") != "huggingface":
        return
    stored = stored_model(name, revision, lookup)
    if stored.doubt:
        draft.doubt(f"{path}: {stored.doubt}", "model.config")
    if stored.config:
        document["model"] = {**model, "config": json_types(stored.config)}
        sources["model.config"] = stored.source
        packed = packed_as(stored.config)
        if packed is not None and "quantization" not in document:
            document["quantization"] = packed
            sources["quantization"] = stored.source
    elif stored.problem:
        yield Finding(
            code=ReasonCode.DOCUMENT,
            path=path,
            reason=f"model {name:.120} is not in the catalog, and on the Hub it {stored.problem}",
            hint="put its config.json into the annotation vramgate.dev/spec: "
            "model: {source: huggingface, name: …, config: {…}}",
        )


def _model_file(
    document: dict[str, Any],
    sources: dict[str, str],
    reference: str,
    lookup: Lookup,
    *,
    path: str,
) -> Iterator[Finding]:
    """Put in what the file at *reference* says of the model; yield why it is not had.

    The optimizer it was compiled with counts where nobody said another.
    """
    found = model_files.read_model_file(reference, lookup)
    if found.model:
        document["model"] = {**document["model"], **json_types(found.model)}
        sources["model.config"] = reference
        training = document.get("training", {})
        if found.training and isinstance(training, Mapping) and "optimizer" not in training:
            document["training"] = {**found.training, **training}
            sources["training.optimizer.name"] = reference
    elif found.problem:
        yield Finding(
            code=ReasonCode.DOCUMENT,
            path=path,
            reason=f"the model file {reference:.120} {found.problem}",
            hint="put the architecture into the annotation vramgate.dev/spec: "
            "model: {source: …, name: …, config: {…}}",
        )
