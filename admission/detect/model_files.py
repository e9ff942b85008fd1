"""Model files that a spec names by reference: what they say of the architecture.

    `configmap/NAME/KEY` or `https://…`, documents -> the keys of `model` they stand for

A Keras configuration (`to_json()`, or the one inside a `.keras` archive) and an MXNet symbol.
Weights are never read, nothing is unpickled or built here; another kind of file is a named problem.
"""

from __future__ import annotations

import io
import lzma
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from admission.detect.lookup import Lookup

MAX_CONFIG = 1 << 20
"""Bytes of a configuration, unpacked."""
_ARCHIVED = "config.json"
_ZIP = b"PK\x03\x04"
_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    KeyError,
    NotImplementedError,
    RuntimeError,
    OSError,
    EOFError,
    ValueError,
)
"""What `zipfile` raises at archives that somebody made up."""
_HDF5 = b"\x89HDF"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """What a model file says. Both are empty while it is not fetched."""

    model: Mapping[str, Any] = field(default_factory=dict)
    """`source`, `name` and `config` for the spec."""
    problem: str = ""
    """Why there is nothing; completes `REFERENCE …`."""


def is_reference(name: str) -> bool:
    """Return whether a model's *name* is a reference to a file that can be fetched."""
    return name.startswith(("configmap/", "https://"))


def read_model_file(reference: str, lookup: Lookup) -> ModelFile:
    """Return what the file at *reference* says of its model."""
    if reference.startswith("https://"):
        document, key = lookup.find(reference), ""
    else:
        _, _, rest = reference.partition("/")
        name, _, key = rest.partition("/")
        document = lookup.find(f"configmap/{name}") if name and key else None
        if not name or not key:
            return ModelFile(problem="is no configmap/NAME/KEY")
    if document is None:
        return ModelFile()
    if document.problem:
        return ModelFile(problem=document.problem)
    content = document.blobs.get(key)
    if content is None:
        text = document.files.get(key)
        if text is None:
            return ModelFile(problem=f"has no key {key:.100}")
        content = text.encode()
    if not lookup.may_read(reference, min(len(content), MAX_CONFIG)):
        return ModelFile(problem="is more text than is read of one job's models")
    return _read(content, reference)


def _read(content: bytes, reference: str) -> ModelFile:
    if content.startswith(_HDF5):
        return ModelFile(problem="is an HDF5 file; give the model's to_json(), or a .keras file")
    if reference.endswith(".onnx"):
        return ModelFile(problem="is an ONNX graph, which is not read yet")
    if content.startswith(_ZIP):
        content = _archived(content)
        if not content:
            return ModelFile(
                problem=f"is an archive without a {_ARCHIVED} of at most {MAX_CONFIG} bytes"
            )
    if len(content) > MAX_CONFIG:
        return ModelFile(problem=f"is longer than {MAX_CONFIG} bytes")
    try:
        document = orjson.loads(content)
    except orjson.JSONDecodeError:
        return ModelFile(problem="is neither a Keras configuration nor an MXNet symbol in JSON")
    if isinstance(document, dict) and "class_name" in document and "config" in document:
        return _model("keras", reference, document)
    if isinstance(document, dict) and {"nodes", "arg_nodes"} <= document.keys():
        return _model("mxnet", reference, document)
    return ModelFile(problem="is neither a Keras configuration nor an MXNet symbol")


def _model(source: str, reference: str, document: Mapping[str, Any]) -> ModelFile:
    return ModelFile(model={"source": source, "name": reference, "config": document})


def _archived(content: bytes) -> bytes:
    """Return the configuration in a `.keras` archive, empty if there is none that may be read."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            info = archive.getinfo(_ARCHIVED)
            if info.file_size > MAX_CONFIG:
                return b""
            with archive.open(info) as file:
                found = file.read(MAX_CONFIG + 1)
    except _BROKEN:
        return b""
    return found if len(found) <= MAX_CONFIG else b""
