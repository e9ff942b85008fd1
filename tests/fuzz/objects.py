"""Objects to begin with: one of every kind, and manifests as people write them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.admission.workloads.objects import OBJECTS

CORPUS = Path(__file__).parents[1] / "corpus"
MAX_TEXT = 12_000
"""Longer manifests are left out: they take the time of many."""


@cache
def texts() -> tuple[str, ...]:
    """Return the manifests of the corpus."""
    found = (path.read_text("utf-8") for path in sorted(CORPUS.glob("*.yaml")))
    return tuple(text for text in found if len(text) <= MAX_TEXT)


@cache
def documents() -> tuple[dict[str, Any], ...]:
    """Return an object of every kind, then those of the corpus."""
    found = [dict(each) for each in OBJECTS.values()]
    for text in texts():
        for document in yaml.load_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            if isinstance(document, Mapping) and isinstance(document.get("kind"), str):
                found.append(dict(document))
    return tuple(found)
