"""A ConfigMap as a document.

object -> Document
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping

from admission.values import Document

MAX_CHARACTERS = 4 << 20


def config_map_document(obj: object) -> Document:
    """Return the texts and the binary data of the ConfigMap *obj*."""
    if not isinstance(obj, Mapping):
        return Document(problem="is no ConfigMap")
    data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
    if not isinstance(data, Mapping) or not isinstance(binary, Mapping):
        return Document(problem="is no ConfigMap")
    texts = {str(key): str(value) for key, value in data.items()}
    if sum(map(len, texts.values())) > MAX_CHARACTERS:
        return Document(problem=f"is longer than {MAX_CHARACTERS} characters")
    blobs = {}
    for key, value in binary.items():
        try:
            blobs[str(key)] = base64.b64decode(str(value)[:MAX_CHARACTERS], validate=True)
        except (binascii.Error, ValueError):
            return Document(problem=f"has a {key!s:.100} that is not base64")
    return Document(files=texts, blobs=blobs)
