"""Every way of asking for a GPU is seen, and what asks for none is seen through."""

from __future__ import annotations

import pytest

from tests.chart.recorder import Recorder
from tests.chart.rendering import Document
from tests.chart.samples import (
    JOB,
    MPIJOB,
    PYTORCHJOB,
    WORKFLOW,
    WORKSPACE,
    Sample,
    cpu_template,
    gpu_template,
    template,
    workflow,
)
from tests.e2e.rest import ApiServer

pytestmark = pytest.mark.e2e

SENT = ["/mutate CREATE", "/validate CREATE"]


@pytest.mark.parametrize(
    "pod",
    [
        template(
            {"requests": {"nvidia.com/mig-1g.10gb": 1}, "limits": {"nvidia.com/mig-1g.10gb": 1}}
        ),
        template({"limits": {"nvidia.com/gpumem": 3000}}),
        template({"limits": {"nvidia.com/gpu.shared": 1}}),
        template({"limits": {"koordinator.sh/gpu-memory-ratio": 50}}),
        template({"limits": {"volcano.sh/gpu-memory": 1024}}),
        template({"limits": {"amd.com/gpu": 1}}),
        template({"limits": {"deviceclass.resource.kubernetes.io/gpu.nvidia.com": 1}}),
        template(resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "one"}]),
        {"metadata": {"annotations": {"gpu-fraction": "0.5"}}, **template()},
        {"metadata": {"annotations": {"gpu-memory": "2000"}}, **template()},
        template(
            initContainers=[
                {
                    "name": "beside",
                    "image": "example.com/a:1",
                    "restartPolicy": "Always",
                    "resources": {"limits": {"nvidia.com/gpu": 1}},
                }
            ]
        ),
    ],
)
@pytest.mark.parametrize("sample", [JOB, PYTORCHJOB], ids=["Job", "PyTorchJob"])
def test_every_way_of_asking_for_a_gpu_is_seen(
    api: ApiServer, sent: Recorder, sample: Sample, pod: Document
) -> None:
    """Slices, shares, other vendors, claims, annotations and sidecars count."""
    answer = api.create(sample.made(pod), dry_run=True)

    assert answer.status == 201, answer.message
    assert sent.seen == SENT


@pytest.mark.parametrize(
    "spec",
    [
        workflow(cpu_template(), podSpecPatch="containers: []"),
        {"workflowTemplateRef": {"name": "train"}},
        workflow(cpu_template(), templateDefaults={"container": {}}),
        workflow(cpu_template(), podMetadata={"annotations": {"gpu-memory": "2000"}}),
        {"templates": [{"name": "a", "container": {}, "podSpecPatch": "containers: []"}]},
        {"templates": [{"name": "a", "steps": [[{"name": "s", "templateRef": {"name": "t"}}]]}]},
        {"templates": [{"name": "a", "steps": [{"name": "s", "templateRef": {"name": "t"}}]}]},
        {"templates": [{"name": "a", "dag": {"tasks": [{"name": "s", "inline": {}}]}}]},
        {
            "templates": [
                {"name": "a", "script": {"resources": {"limits": {"nvidia.com/gpu": "1"}}}}
            ]
        },
        {
            "templates": [
                {
                    "name": "a",
                    "containerSet": {
                        "containers": [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}]
                    },
                }
            ]
        },
    ],
)
def test_workflow_whose_gpus_may_be_elsewhere_is_sent(
    api: ApiServer, sent: Recorder, spec: Document
) -> None:
    """A patch is text and a referred template another object: no condition sees into them."""
    document = {**WORKFLOW.made(cpu_template()), "spec": spec}

    answer = api.create(document, dry_run=True)

    assert answer.status == 201, answer.message
    assert sent.seen == SENT


def test_workflow_of_plain_steps_is_not_sent(api: ApiServer, sent: Recorder) -> None:
    """Pipelines on processors are many, and are seen through."""
    steps = {
        "name": "all",
        "steps": [[{"name": "s", "template": "main"}], [{"name": "t", "template": "main"}]],
    }
    dag = {"name": "graph", "dag": {"tasks": [{"name": "s", "template": "main"}]}}
    spec = workflow(cpu_template())
    spec["templates"] += [steps, dag, {"name": "wait", "suspend": {}}]

    answer = api.create({**WORKFLOW.made(cpu_template()), "spec": spec}, dry_run=True)

    assert answer.status == 201, answer.message
    assert sent.seen == []


def test_large_objects_are_seen_through(api: ApiServer, sent: Recorder) -> None:
    """The last of many containers or templates is looked at within what a condition may cost."""
    (idle,) = template({"limits": {"cpu": "1", "memory": "1Gi"}})["spec"]["containers"]
    (busy,) = gpu_template()["spec"]["containers"]
    pod = template()
    pod["spec"]["containers"] = [{**idle, "name": f"c{n}"} for n in range(200)] + [busy]
    spec = workflow(cpu_template())
    spec["templates"] = [{"name": f"t{n}", "container": idle} for n in range(1000)]
    spec["templates"].append({"name": "last", "container": busy})

    for document in (JOB.made(pod), {**WORKFLOW.made(cpu_template()), "spec": spec}):
        sent.forget()
        answer = api.create(document, dry_run=True)
        assert answer.status == 201, answer.message
        assert sent.seen == SENT


def test_mpijob_of_the_oldest_form_is_sent(api: ApiServer, sent: Recorder) -> None:
    """Its GPUs are counted beside the one template."""
    document = {
        **MPIJOB.made(cpu_template()),
        "apiVersion": "kubeflow.org/v1alpha1",
        "spec": {"gpus": 16, "template": cpu_template()},
    }

    assert api.create(document, dry_run=True).status == 201
    assert sent.seen == SENT


def test_workspace_that_serves_is_not_sent(api: ApiServer, sent: Recorder) -> None:
    """Only tuning is training."""
    document = WORKSPACE.made(cpu_template())
    document["inference"] = document.pop("tuning")

    assert api.create(document, dry_run=True).status == 201
    assert sent.seen == []


@pytest.mark.parametrize("sample", [WORKFLOW, PYTORCHJOB], ids=["Workflow", "PyTorchJob"])
def test_fields_that_are_written_and_left_empty_hide_nothing(
    api: ApiServer, sent: Recorder, sample: Sample
) -> None:
    """`sidecars:` with nothing behind it is null, which some kinds keep."""
    (busy,) = gpu_template()["spec"]["containers"]
    idle = {"name": "idle", "resources": None}
    spec: Document
    if sample is WORKFLOW:
        bare = {"name": "b", "container": {"resources": {"limits": None}}, "sidecars": None}
        empty = {"name": "a", "container": idle, "metadata": None, "steps": None, "dag": None}
        full = {"name": "main", "container": busy, "initContainers": None, "resourceClaims": None}
        templates = [bare, {**empty, "containerSet": None, "script": None}, full]
        spec = {"templates": templates, "podMetadata": None}
    else:
        pod = {"containers": [idle, busy], "initContainers": None, "resourceClaims": None}
        roles = {"Worker": {"template": {"metadata": {"annotations": None}, "spec": pod}}}
        spec = {"pytorchReplicaSpecs": roles, "template": None}

    answer = api.create({**sample.made(cpu_template()), "spec": spec}, dry_run=True)

    assert answer.status == 201, answer.message
    assert sent.seen == SENT
