"""What watches bring: nodes, pods, namespaces, jobs and Kueue's objects with odd values in them.

    bytes -> objects -> what agent, controller and webhook keep of them, and what comes of that

One odd object must not end the thread that follows its kind, nor what is known of the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache, partial
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest

from admission.agent import pods as agent_pods
from admission.agent.marks import Marks
from admission.agent.sampling import View
from admission.capacity.classes import classes_of
from admission.capacity.eligibility import reach_of
from admission.cluster import NAMESPACES, NODES, Resource
from admission.controller import deaths, predicted
from admission.controller.acting import event_of
from admission.controller.acts import Reason, Tell
from admission.controller.kueue import checks, flavors
from admission.controller.kueue.known import (
    Known,
    cut_check,
    cut_flavor,
    cut_queue,
    cut_workload,
)
from admission.controller.kueue.workloads import waiting_of
from admission.controller.pods import PODS, PodView
from admission.controller.store import Store
from admission.controller.tracked import TRACKED, tracked_resource
from admission.inventory import DepartedNodes, is_ignored, mode_label, steer_label
from admission.metrics import Metrics
from admission.values import NodeClass
from tests.admission.controller.dead import dead_pod
from tests.admission.controller.kueue.scene import API
from tests.admission.controller.objects import CREATED, job, pod, pod_of
from tests.admission.controller.scene import owner
from tests.builders import GPU, gpu_labels, node, unit
from tests.fuzz.choices import Choices
from tests.fuzz.objects import documents
from tests.fuzz.rules import check_line
from tests.fuzz.series import check_series, check_shown
from tests.fuzz.shaping import mutated
from tests.fuzz.target import Target

NOW = 1_000_000.0


def taken(resource: Resource, objects: Iterable[Any]) -> Mapping[str, Any]:
    """Return what is kept of *objects*, by name, as a watch of *resource* does."""
    kept: dict[str, Any] = {}
    for each in objects:
        try:
            key = resource.key(each)
        except ValueError:  # no object: the API server is asked again
            continue
        kept[key] = resource.cut(each)
    return {key: item for key, item in kept.items() if item is not None}


# ---- nodes


@cache
def _nodes() -> tuple[dict[str, Any], ...]:
    big = gpu_labels(product="NVIDIA-A100-SXM4-80GB", memory="81920", compute=(8, 0))
    mig = gpu_labels(product="NVIDIA-A100-SXM4-80GB-MIG-3g.40gb", memory="40192", compute=(8, 0))
    shared = {**gpu_labels(), f"{GPU}.sharing-strategy": "time-slicing", f"{GPU}.replicas": "4"}
    hami = node("hami")
    hami["metadata"]["annotations"] = {
        "hami.io/node-nvidia-register": "GPU-1,10,15360,100,NVIDIA-Tesla T4,0,true:",
        "volcano.sh/node-vgpu-register": "GPU-1,10,15360,NVIDIA-Tesla T4,true:",
    }
    cloud = node("cloud", labels={"node.kubernetes.io/instance-type": "p4d.24xlarge"})
    gke = node("gke", labels={"cloud.google.com/gke-accelerator": "nvidia-l4"})
    taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    return (
        node("t4", taints=[taint]),
        node("a100", labels=big),
        node("mig", labels=mig, resources={"nvidia.com/mig-3g.40gb": "4"}),
        node("shared", labels={**shared, f"{GPU}.product": "Tesla-T4-SHARED"}),
        hami,
        cloud,
        gke,
        node("amd", labels={"amd.com/gpu.vram": "64G"}, resources={"amd.com/gpu": "8"}),
    )


@cache
def _classes() -> tuple[NodeClass, ...]:
    """Return the classes of the nodes above, which nothing here changes."""
    return classes_of(_nodes())


class _Shown:
    """The webhook's metrics, of which those that have a card's name are written."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.metrics = Metrics(self._registry)
        self.metrics.classes(_classes())
        samples = [each for family in self._registry.collect() for each in family.samples]
        self._names = {each.name for each in samples if "product" in each.labels}

    def text(self) -> bytes:
        """Return their lines: the others, two thousand, do not depend on nodes."""
        return generate_latest(self._registry.restricted_registry(self._names))


@cache
def _shown() -> _Shown:
    return _Shown()


def _run_nodes(data: bytes) -> None:
    """Keep nodes as the webhook does, make classes of them, place a pod, show them as series."""
    choices = Choices(data)
    objects = [mutated(each, choices) for each in _nodes() if choices.byte() % 2] or [_nodes()[0]]
    kept = taken(NODES, objects)
    classes = classes_of(kept.values())
    DepartedNodes(keep_seconds=60.0).update(kept, {}, now=NOW)
    reach_of(unit(nodeSelector={f"{GPU}.product": "Tesla-T4"}), classes)
    _shown().metrics.classes(classes)
    check_series(_shown().text())
    predicted.nodes_of(classes)
    namespace = {"metadata": {"name": "a", "labels": {"vramgate.dev/mode": "warn"}}}
    for item in taken(NAMESPACES, [mutated(namespace, choices)]).values():
        mode_label(item["metadata"])
        steer_label(item["metadata"])
        is_ignored(item["metadata"])


# ---- pods


@cache
def _pods() -> tuple[dict[str, Any], ...]:
    running = pod(notes={"vramgate.dev/estimate-bytes": "123", "vramgate.dev/peak-bytes": "{}"})
    running["status"] = {
        "phase": "Running",
        "containerStatuses": [
            {
                "name": "train",
                "containerID": "containerd://" + "a" * 64,
                "restartCount": 3,
                "lastState": {"terminated": {"exitCode": 1, "reason": "Error", "message": "x"}},
                "state": {"running": {"startedAt": CREATED}},
            }
        ],
        "initContainerStatuses": [{"name": "init", "containerID": "cri-o://" + "b" * 64}],
    }
    waiting = pod_of(job(8), "/apis/batch/v1/namespaces/team/jobs/train", pod(8, gated=True))
    return dead_pod(), running, waiting


def _run_pods(data: bytes) -> None:
    """Keep a pod as agent and controller do, and look at everything that they look at."""
    choices = Choices(data)
    obj = mutated(choices.pick(_pods()), choices)
    kept = taken(agent_pods.resource_of("node"), [obj, _pods()[1]])
    found = agent_pods.pods_of(kept)
    marks = Marks(growth=0.1, seconds=60.0)
    list(marks.follow(found, now=NOW, totals={"GPU-1": 16 << 30}))
    holding = {(each, "GPU-1"): 1 << 30 for each in found.owners.values()}
    marks.hold(holding, found)
    list(marks.due(NOW))
    check_shown(View(marks=marks.rows()))
    _controlled_pod(obj)


def _controlled_pod(obj: Any) -> None:
    store = Store()
    store.take_pods("pods", taken(PODS, [obj]))
    for view in store.pods():
        _look_at(view)
    predicted.predicted_of(store.pods(), _classes())


def _look_at(view: PodView) -> None:
    properties = [name for name, each in vars(PodView).items() if isinstance(each, property)]
    for name in properties:
        getattr(view, name)
    death = deaths.death_of(view)
    if death is not None:
        deaths.failed_first(death, [view])
        note = f"{view.ref.said} {death.ending.container} {death.ending.message}"
        event = event_of(
            Tell(about=view.ref, reason=Reason.OUT_OF_MEMORY, note=note), now=_moment()
        )
        check_line(event["message"], "an Event")


# ---- jobs and Kueue's objects


@cache
def _tracked() -> tuple[dict[str, Any], ...]:
    """Return the objects as the API server keeps them: in a namespace, with an uid and a status."""
    stored = {
        "namespace": "team",
        "uid": "u",
        "generation": 2,
        "creationTimestamp": CREATED,
        "ownerReferences": owner("JobSet", "jobset.x-k8s.io/v1alpha2", "/jobsets/all", "all"),
        "annotations": {"vramgate.dev/verdict": "fits", "vramgate.dev/estimate": "123"},
        "labels": {"kueue.x-k8s.io/queue-name": "q"},
    }
    ended = {"type": "Complete", "status": "True", "lastTransitionTime": CREATED}
    status = {"startTime": CREATED, "active": 1, "conditions": [ended]}
    return tuple(
        {**each, "metadata": {"name": "train", **stored}, "status": status} for each in documents()
    )


def _run_workloads(data: bytes) -> None:
    """Keep objects of every kind that is followed."""
    choices = Choices(data)
    version = choices.pick(tuple(TRACKED))
    kind = choices.pick(TRACKED[version])
    found = _tracked()
    obj = mutated(found[choices.below(len(found))], choices, donors=found)
    store = Store()
    resource = tracked_resource(version, kind, "/all")
    store.take_workloads("/all", (version.rpartition("/")[0], kind), taken(resource, [obj]))
    for each in store.workloads():
        store.workload_of_uid(each.ref.uid)
        _ = each.key, each.verdict


@cache
def _kueue() -> Mapping[str, dict[str, Any]]:
    reserved = {"type": "QuotaReserved", "status": "True", "lastTransitionTime": CREATED}
    metadata = {"name": "job-train", "namespace": "team", "uid": "w", "generation": 1}
    template = job(8)["spec"]["template"]
    quota = {"name": "t4", "resources": [{"name": GPU, "nominalQuota": "8"}]}
    return {
        "Workload": {
            "apiVersion": API,
            "metadata": {
                **metadata,
                "ownerReferences": owner("Job", "batch/v1", "/jobs/train", "train"),
            },
            "spec": {"podSets": [{"name": "main", "count": 1, "template": template}]},
            "status": {
                "admission": {
                    "clusterQueue": "q",
                    "podSetAssignments": [{"name": "main", "flavors": {GPU: "t4"}, "count": 1}],
                },
                "conditions": [reserved],
                "admissionChecks": [{"name": "gpu-memory", "state": "Pending", "message": ""}],
            },
        },
        "AdmissionCheck": {
            "metadata": metadata,
            "spec": {"controllerName": checks.CONTROLLER},
            "status": {"conditions": [{"type": "Active", "status": "True"}]},
        },
        "ClusterQueue": {
            "metadata": metadata,
            "spec": {"resourceGroups": [{"coveredResources": [GPU], "flavors": [quota]}]},
        },
        "ResourceFlavor": {
            "metadata": metadata,
            "spec": {
                "nodeLabels": {f"{GPU}.product": "Tesla-T4"},
                "nodeTaints": [{"key": "a", "value": "b", "effect": "NoSchedule"}],
                "tolerations": [{"key": "a", "operator": "Exists"}],
            },
        },
    }


def _run_kueue(data: bytes) -> None:
    """Keep Kueue's objects, and answer a Workload that waits."""
    choices = Choices(data)
    objects = {kind: mutated(each, choices) for kind, each in _kueue().items()}
    cuts = {
        "Workload": cut_workload,
        "AdmissionCheck": cut_check,
        "ClusterQueue": cut_queue,
        "ResourceFlavor": cut_flavor,
    }
    known = Known()
    takes = {
        "Workload": known.take_workloads,
        "AdmissionCheck": known.take_checks,
        "ClusterQueue": known.take_queues,
        "ResourceFlavor": known.take_flavors,
    }
    for kind, obj in objects.items():
        cut = partial(_cut, cuts[kind])
        takes[kind](taken(Resource(path=f"/{kind}", cut=cut, in_namespaces=True), [obj]))
    for check in known.checks.values():
        checks.activation(check, now=_moment())
    for flavor in known.flavors.values():
        flavors.has_nodes(_classes(), flavor)
        flavors.is_given(flavor, pod={"tolerations": []})
    for queue in known.queues.values():
        queue.may_hold("t4", GPU, number=4)
    list(known.asked())
    for queued in known.workloads.values():
        waiting = waiting_of(objects["Workload"], queued)
        names = frozenset({"gpu-memory", *known.names})
        for step in checks.answers(
            waiting,
            names,
            before="Pending",
            state="Ready",
            message=f"{waiting.cluster_queue} {queued.key}",
            now=_moment(),
        ):
            if isinstance(step["value"], Mapping) and "message" in step["value"]:
                check_line(step["value"]["message"], "the message of a check")


def _cut(cut: Any, obj: Any) -> Any:
    return cut(obj, API)


def _moment() -> Any:
    from datetime import UTC, datetime

    return datetime(2030, 1, 1, tzinfo=UTC)


def _seeds() -> Iterable[bytes]:
    for number in range(64):
        yield bytes((number, 1, number * 3 % 256, number % 8, number * 7 % 256, 1, number, 0, 5))
        yield bytes(range(number, number + 40))


TARGETS = tuple(
    Target(name=name, run=run, seeds=_seeds, max_bytes=400)
    for name, run in (
        ("nodes", _run_nodes),
        ("pods", _run_pods),
        ("tracked-workloads", _run_workloads),
        ("kueue-objects", _run_kueue),
    )
)
