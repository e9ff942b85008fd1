"""What the API server sends to Vramgate, tried on a real one with the rendered install.yaml."""

from __future__ import annotations

import pytest

from tests.chart.conftest import IGNORED
from tests.chart.recorder import Recorder
from tests.chart.rendering import NAMESPACE as RELEASE_NAMESPACE
from tests.chart.rendering import Document
from tests.chart.samples import (
    JOB,
    POD,
    PYTORCHJOB,
    SAMPLES,
    Sample,
    cpu_template,
    gpu_template,
)
from tests.e2e.rest import ApiServer

pytestmark = pytest.mark.e2e

BOTH = ["/mutate", "/validate"]
CHANGING = [each for each in SAMPLES if each is not POD]
VISIBLE = [each for each in SAMPLES if not each.hides_gpus]


def kinds(samples: list[Sample] | tuple[Sample, ...]) -> pytest.MarkDecorator:
    """Return the test's repetition for each of *samples*."""
    names = [f"{each.group}/{each.kind}" for each in samples]
    return pytest.mark.parametrize("sample", samples, ids=names)


def routes(sample: Sample, operation: str) -> list[str]:
    """Return the lines of a review of *sample* by every route it is sent to."""
    paths = BOTH[1:] if sample.observed else BOTH
    return [f"{path} {operation}" for path in paths]


def stored(api: ApiServer, sample: Sample, pod: Document) -> Document:
    """Return an object that the API server has stored."""
    document = sample.made(pod)
    answer = api.create(document)
    assert answer.status == 201, answer.message
    return document


@kinds(SAMPLES)
def test_object_that_asks_for_a_gpu_is_sent(api: ApiServer, sent: Recorder, sample: Sample) -> None:
    """Every kind that Vramgate reads reaches it by the routes that concern it."""
    answer = api.create(sample.made(gpu_template()), dry_run=True)

    assert answer.status == 201, answer.message
    assert sent.seen == routes(sample, "CREATE")


@kinds(VISIBLE)
def test_object_without_a_gpu_is_not_sent(api: ApiServer, sent: Recorder, sample: Sample) -> None:
    """A cluster does not pay for objects that ask for a processor only."""
    answer = api.create(sample.made(cpu_template()), dry_run=True)

    assert answer.status == 201, answer.message
    assert sent.seen == []


@kinds(CHANGING)
def test_change_of_other_labels_and_status_is_not_sent(
    api: ApiServer, recorder: Recorder, sample: Sample
) -> None:
    """Controllers write these all the time, and they say nothing about memory."""
    document = stored(api, sample, gpu_template())
    recorder.forget()

    updates: list[Document] = [
        {"metadata": {"labels": {"team": "vision"}, "annotations": {"seen": "yes"}}},
        {"metadata": {"finalizers": ["example.com/keep"]}},
        {"metadata": {"finalizers": None}},
        {"status": {"conditions": []}},
    ]
    for changes in updates:
        assert api.patch(document, changes).status == 200

    assert recorder.seen == []


@kinds(CHANGING)
@pytest.mark.parametrize(
    "metadata",
    [
        {"annotations": {"vramgate.dev/spec": "{}"}},
        {"annotations": {"vramgate.dev/spec-ref": "configmap/a/b"}},
        {"annotations": {"vramgate.dev/retry-min-bytes": "1"}},
        {"labels": {"vramgate.dev/mode": "warn"}},
        {"labels": {"vramgate.dev/steer": "off"}},
    ],
    ids=["spec", "spec-ref", "retry-min-bytes", "mode", "steer"],
)
def test_change_of_what_is_said_to_us_is_sent(
    api: ApiServer, recorder: Recorder, sample: Sample, metadata: Document
) -> None:
    """Our annotations and labels are reviewed although the spec stays as it is."""
    document = stored(api, sample, gpu_template())
    recorder.forget()

    answer = api.patch(document, {"metadata": metadata})

    assert answer.status == 200, answer.message
    assert recorder.distinct == routes(sample, "UPDATE")


@kinds(CHANGING)
def test_change_of_the_spec_is_sent(api: ApiServer, recorder: Recorder, sample: Sample) -> None:
    """What a job says of its pods is reviewed again when it changes."""
    document = stored(api, sample, gpu_template())
    recorder.forget()

    answer = api.patch(document, sample.change)

    assert answer.status == 200, answer.message
    assert recorder.distinct == routes(sample, "UPDATE")


def test_deletion_is_not_sent(api: ApiServer, recorder: Recorder) -> None:
    """Neither the deletion nor the updates of an object that is being deleted."""
    document = stored(api, PYTORCHJOB, gpu_template())
    api.patch(document, {"metadata": {"finalizers": ["example.com/keep"]}})
    recorder.forget()

    assert api.delete(document).status == 200
    assert api.patch(document, {"spec": {"changed": "yes"}}).status == 200
    assert api.patch(document, {"metadata": {"finalizers": None}}).status == 200

    assert recorder.seen == []


@pytest.mark.parametrize(
    ("owner", "expected"),
    [
        ("batch/v1 Job", []),
        ("kubeflow.org/v1 PyTorchJob", []),
        ("apps/v1 ReplicaSet", []),
        ("batch.volcano.sh/v1alpha1 Job", ["/mutate CREATE"]),
        ("ray.io/v1 RayCluster", ["/mutate CREATE"]),
        ("argoproj.io/v1alpha1 Workflow", ["/mutate CREATE"]),
    ],
)
def test_pod_of_a_controller_is_steered_at_most(
    api: ApiServer, sent: Recorder, owner: str, expected: list[str]
) -> None:
    """It was judged at its owner; it is steered where the owner's template could not be."""
    version, kind = owner.split()
    reference = {"apiVersion": version, "kind": kind, "name": "a", "uid": "1", "controller": True}

    answer = api.create(POD.made(gpu_template(), ownerReferences=[reference]), dry_run=True)

    assert answer.status == 201, answer.message
    assert sent.seen == expected


@pytest.mark.parametrize("namespace", ["kube-system", RELEASE_NAMESPACE, IGNORED])
def test_namespaces_that_are_left_alone_send_nothing(
    api: ApiServer, sent: Recorder, namespace: str
) -> None:
    """The cluster's own, ours, and those that say so."""
    answer = api.create(JOB.made(gpu_template(), namespace=namespace), dry_run=True)

    assert answer.status == 201, answer.message
    assert sent.seen == []


def test_object_that_is_labelled_to_be_ignored_is_not_sent(api: ApiServer, sent: Recorder) -> None:
    """The label works on an object as on a namespace."""
    labels = {"vramgate.dev/webhook": "ignore"}

    assert api.create(JOB.made(gpu_template(), labels=labels), dry_run=True).status == 201
    assert sent.seen == []
