"""Model files that a spec names by reference: what they say of the architecture.

    `configmap/NAME/KEY` or `https://…`, documents -> the keys of `model` they stand for

A Keras configuration (`to_json()`, or the one inside a `.keras` archive or an HDF5 file), an MXNet
symbol, and the forward graph of an ONNX file. Of Keras' archives also the optimizer the model was
compiled with. Weights are never read, nothing is unpickled or built here; another kind of file is a
named problem.
"""

from __future__ import annotations

import io
import lzma
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from admission.detect import hdf5
from admission.detect.compiled import compiled_training
from admission.detect.lookup import Lookup
from admission.detect.onnx_graph import read_graph
from admission.detect.protobuf import MessageError

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
_ONNX = b"\x08"
"""How an ONNX file begins: with the version of its format. No text does."""
_ATTRIBUTES = ("model_config", "training_config", "keras_version", "backend")
"""What Keras writes at the root of an HDF5 file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """What a model file says. Both are empty while it is not fetched."""

    model: Mapping[str, Any] = field(default_factory=dict)
    """`source`, `name` and `config` for the spec."""
    training: Mapping[str, Any] = field(default_factory=dict)
    """What the model was compiled with, as keys of `training`; empty as a rule."""
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
        return _hdf5(content, reference)
    if reference.endswith(".onnx") or content.startswith(_ONNX):
        return _onnx(content, reference)
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
        return _keras(reference, document, document.get("compile_config"))
    if isinstance(document, dict) and {"nodes", "arg_nodes"} <= document.keys():
        return _model("mxnet", reference, document)
    return ModelFile(problem="is neither a Keras configuration nor an MXNet symbol")


def _hdf5(content: bytes, reference: str) -> ModelFile:
    """Return the Keras model in an HDF5 file, as `to_json()` of that release would have it."""
    try:
        texts = hdf5.root_texts(content, _ATTRIBUTES, most=MAX_CONFIG)
    except hdf5.Hdf5Error as error:
        return ModelFile(problem=str(error))
    if "model_config" not in texts:
        return ModelFile(problem="is an HDF5 file of weights alone: it has no model_config")
    try:
        document = orjson.loads(texts["model_config"])
        training = orjson.loads(texts.get("training_config", "null"))
    except orjson.JSONDecodeError:
        return ModelFile(problem="is an HDF5 file whose model_config is no JSON")
    if not isinstance(document, dict) or not {"class_name", "config"} <= document.keys():
        return ModelFile(problem="is an HDF5 file whose model_config is no Keras configuration")
    release: dict[str, Any] = {
        key: texts[key] for key in ("keras_version", "backend") if key in texts
    }
    return _keras(reference, {**document, **release}, training)


def _onnx(content: bytes, reference: str) -> ModelFile:
    try:
        graph = read_graph(content)
    except MessageError as error:
        return ModelFile(problem=f"is read as an ONNX graph and {error}")
    return _model("file", reference, graph)


def _keras(reference: str, document: Mapping[str, Any], compiled: object) -> ModelFile:
    found = _model("keras", reference, document)
    return replace(found, training=compiled_training(compiled))


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
