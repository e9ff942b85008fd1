"""Model files that a spec names: Keras configurations, MXNet symbols, ONNX graphs, nothing else."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import pytest

from admission.codes import ReasonCode
from admission.detect.compiled import compiled_training
from admission.values import Document
from tests.admission.detect.hdf5_files import LATEST, OLD
from tests.admission.detect.jobs import codes, container, job, read
from tests.admission.detect.onnx_files import PERCEPTRON

SPEC = "vramgate.dev/spec"
KERAS = json.dumps({"class_name": "Sequential", "config": {"name": "net", "layers": []}})
SYMBOL = json.dumps({"nodes": [{"op": "null", "name": "data", "inputs": []}], "arg_nodes": [0]})


def archive(**files: str) -> bytes:
    """Return a zip archive of *files*; `__` in a name stands for a dot."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as made:
        for name, text in files.items():
            made.writestr(name.replace("__", "."), text)
    return buffer.getvalue()


def reading(document: Document, *, source: str = "keras", key: str = "m.json") -> Any:
    """Return the reading of a job whose model is in a ConfigMap."""
    stated = {
        "framework": "tensorflow",
        "model": {"source": source, "name": f"configmap/models/{key}"},
        "input": {"batchSize": 2},
    }
    manifest = job(container("python", "x.py"), annotations={SPEC: json.dumps(stated)})
    return read(manifest, documents={"configmap/models": document})


@pytest.mark.parametrize(
    ("document", "source"),
    [
        (Document(files={"m.json": KERAS}), "keras"),
        (Document(blobs={"m.json": archive(config__json=KERAS, model__weights__h5="x")}), "keras"),
        (Document(files={"m.json": SYMBOL}), "mxnet"),
        (Document(blobs={"m.json": OLD}), "keras"),
        (Document(blobs={"m.json": LATEST}), "keras"),
        (Document(blobs={"m.json": PERCEPTRON}), "file"),
    ],
)
def test_the_architecture_is_taken_from_the_file(document: Document, source: str) -> None:
    """Whatever the source was called, the file tells what it is."""
    found = reading(document, source="file")

    assert found.spec is not None
    assert found.spec.model.source == source
    assert found.spec.model.config


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (Document(problem="is not there"), "is not there"),
        (Document(files={}), "has no key m.json"),
        (Document(files={"m.json": "import torch"}), "neither a Keras configuration"),
        (Document(files={"m.json": "[1, 2]"}), "neither a Keras configuration"),
        (Document(blobs={"m.json": OLD[:40]}), "HDF5 file that is cut off"),
        (
            Document(blobs={"m.json": OLD.replace(b"model_config", b"model_confug")}),
            "weights alone",
        ),
        (Document(blobs={"m.json": OLD.replace(b'{"class_name"', b'["class_name"')}), "no JSON"),
        (Document(blobs={"m.json": PERCEPTRON[:90]}), "ONNX graph and is cut off"),
        (Document(blobs={"m.json": b"PK\x03\x04garbage"}), "archive without"),
        (Document(blobs={"m.json": archive(config__json="0" * (2 << 20))}), "archive without"),
        (Document(blobs={"m.json": archive(other__json=KERAS)}), "archive without"),
        (Document(files={"m.json": " " * (2 << 20)}), "longer than"),
    ],
)
def test_what_is_no_model_file_says_why(document: Document, problem: str) -> None:
    """Bombs, pickles and strangers are a named reason."""
    found = reading(document)

    assert codes(found) == [ReasonCode.DOCUMENT]
    assert problem in found.unknowns[0].reason


def test_the_optimizer_a_model_was_compiled_with_counts() -> None:
    """Keras writes it beside the architecture: where nobody says another, it is the job's."""
    found = reading(Document(blobs={"m.h5": OLD}), key="m.h5")

    optimizer = found.spec.training.optimizer
    assert (optimizer.name, optimizer.momentum, optimizer.nesterov) == ("sgd", 0.9, True)
    assert found.sources["training.optimizer.name"] == "configmap/models/m.h5"


@pytest.mark.parametrize(
    ("compiled", "training"),
    [
        ({"optimizer": "adam"}, {"optimizer": {"name": "adam"}}),
        (
            {
                "optimizer": {
                    "class_name": "AdamW",
                    "config": {"weight_decay": 0.1, "use_ema": True},
                }
            },
            {"optimizer": {"name": "adamw", "weightDecay": 0.1}, "ema": True},
        ),
        ({"optimizer": {"class_name": "LossScaleOptimizer", "config": {}}}, {}),
        ({"optimizer": {"class_name": "mine>Adam", "config": {}}}, {}),
        ({"optimizer": {"class_name": ["Adam"]}}, {}),
        ({"optimizer": 3}, {}),
        ([], {}),
        (None, {}),
    ],
)
def test_only_plain_optimizers_are_taken(compiled: object, training: dict[str, Any]) -> None:
    """Others are left to the estimator's default, which it lists."""
    assert compiled_training(compiled) == training
