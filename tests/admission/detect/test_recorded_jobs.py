"""A Trace file in a ConfigMap, named by `vramgate.dev/spec-ref`."""

from __future__ import annotations

import base64
import json

from admission.codes import ReasonCode
from admission.values import Document
from admission.workloads.config_maps import config_map_document
from estimator.tracefile import recorded
from tests.admission.detect.jobs import codes, container, job, read
from tests.estimator.frontends.test_recorded import AMPERE, trace_with
from tests.estimator.stub import spec_of

REF = "vramgate.dev/spec-ref"
SPEC = "vramgate.dev/spec"
RECORDING = recorded(spec_of(8), traits=AMPERE, trace=trace_with("aten.bmm"))
DOCUMENTS = {"configmap/traces": Document(blobs={"job.trace.gz": RECORDING.content})}


def test_a_trace_file_takes_the_place_of_everything() -> None:
    """Whatever the command line says, this is what the owner measured."""
    manifest = job(container("python", "x.py"), annotations={REF: "configmap/traces/job.trace.gz"})
    reading = read(manifest, documents=DOCUMENTS)

    assert reading.recording is not None
    assert reading.spec == reading.recording.spec
    assert reading.spec.model.source == "trace"
    assert reading.sources["model.source"].endswith("configmap/traces/job.trace.gz")


def test_another_size_than_the_recorded_one_is_refused() -> None:
    """A trace is one job at one size."""
    annotations = {
        REF: "configmap/traces/job.trace.gz",
        SPEC: json.dumps({"input": {"batchSize": 9}}),
    }
    reading = read(job(container(), annotations=annotations), documents=DOCUMENTS)

    assert codes(reading) == [ReasonCode.INVALID_SPEC]
    assert "9" in reading.unknowns[0].reason


def test_bytes_that_are_no_trace_file_are_named() -> None:
    """Broken, or something else."""
    documents = {"configmap/traces": Document(blobs={"job.trace.gz": b"\x1f\x8bbroken"})}
    manifest = job(container(), annotations={REF: "configmap/traces/job.trace.gz"})

    assert codes(read(manifest, documents=documents)) == [ReasonCode.INVALID_SPEC]


def test_binary_data_of_a_config_map_is_bytes() -> None:
    """As `kubectl create configmap --from-file` stores what is no text."""
    encoded = base64.b64encode(b"\x1f\x8b\x00").decode()
    found = config_map_document({"data": {"a": "b"}, "binaryData": {"c": encoded}})

    assert (found.files, found.blobs) == ({"a": "b"}, {"c": b"\x1f\x8b\x00"})
    assert config_map_document({"binaryData": {"c": "???"}}).problem
    assert config_map_document({"data": ["a"]}).problem
