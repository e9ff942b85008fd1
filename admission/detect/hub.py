"""What is known of a model of the Hugging Face Hub: the catalog's facts, else the Hub's own files.

    name, revision, documents -> Stored

A model that neither knows is asked for, and stays unknown until somebody has fetched it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from admission.detect.lookup import Lookup
from admission.values import Document
from estimator.catalog import known_model
from estimator.documents import MAX_BYTES

CONFIG = "config.json"
ADAPTER = "adapter_config.json"
SAFETENSORS = "safetensors"
MAIN = "main"
_DTYPES = {"BF16": "bfloat16", "F16": "float16", "F32": "float32"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A checkpoint."""

    config: Mapping[str, Any] = field(default_factory=dict)
    """The Hub's `config.json`; empty for a model of the catalog, which has it."""
    dtype: str = ""
    """Of the stored weights: bfloat16, float16, float32. Empty: not known."""
    source: str = ""
    base: str = ""
    """The base model, if the checkpoint is an adapter."""
    problem: str = ""
    """Why nothing is known; completes `hf://NAME …`."""
    doubt: str = ""
    """Why what is known may be of another checkpoint."""


def stored_model(name: str, revision: str | None, lookup: Lookup) -> Stored:
    """Return what is known of the checkpoint *name*.

    The catalog knows the main revision; of another one the Hub is asked first.
    """
    known = known_model(name)
    if known is None:
        return _on_hub(name, revision, lookup) if "/" in name else Stored()
    stored = Stored(dtype=known.dtype, source="stored dtype of the checkpoint")
    if revision in (None, MAIN):
        return stored
    other = _on_hub(name, revision, lookup) if "/" in name else Stored()
    if other.config:
        return other
    why = f", and on the Hub that one {other.problem}" if other.problem else ""
    doubt = f"revision {revision:.60} of {name:.100} is taken for the main one{why}"
    return replace(stored, doubt=doubt)


def _on_hub(name: str, revision: str | None, lookup: Lookup) -> Stored:
    reference = f"hf://{name}@{revision or MAIN}"
    document = lookup.find(reference)
    if document is None:
        return Stored()
    if document.problem:
        return Stored(problem=document.problem)
    if not lookup.may_read(reference, sum(map(len, document.files.values()))):
        return Stored(problem="has more text than is read of one job's models")
    return _of_document(document, reference)


def _of_document(document: Document, reference: str) -> Stored:
    if CONFIG in document.files:
        config = _json(document.files[CONFIG])
        if config is None:
            return Stored(problem=f"has a {CONFIG} that cannot be read")
        dtype = str(config.get("torch_dtype") or config.get("dtype") or _dtype(document))
        return Stored(config=config, dtype=dtype, source=f"{reference} {CONFIG}")
    adapter = _json(document.files.get(ADAPTER, "")) or {}
    base = adapter.get("base_model_name_or_path")
    if isinstance(base, str) and base:
        return Stored(base=base, problem=f"is an adapter of {base:.100}, not a whole model")
    return Stored(problem=f"has no {CONFIG}")


def _dtype(document: Document) -> str:
    """Return the type that most stored values have, by the headers of the weights."""
    summary = _json(document.files.get(SAFETENSORS, "")) or {}
    counts = summary.get("parameters")
    if not isinstance(counts, Mapping):
        return ""
    known = {key: number for key, number in counts.items() if isinstance(number, int)}
    most = max(known, key=lambda key: known[key], default="")
    return _DTYPES.get(most, "")


def _json(text: str) -> Mapping[str, Any] | None:
    if not text or len(text) > MAX_BYTES:
        return None
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return document if isinstance(document, dict) else None
