"""Build the values that tests are about: nodes, cards, jobs, estimates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from admission.codes import Verdict
from admission.decision import class_verdict
from admission.values import (
    ClassVerdict,
    Json,
    NodeClass,
    NodeFacts,
    Program,
    Reading,
    Unit,
    UnitJudgement,
    Workload,
    WorkloadRef,
)
from estimator.device import Device
from estimator.result import (
    Breakdown,
    DeviceFacts,
    Enough,
    Estimate,
    Fit,
    Knob,
    Least,
    Moment,
    Rank,
    Usage,
)
from estimator.spec import JobSpec, parse_spec
from estimator.trace import Method
from estimator.units import GIB, MIB

GPU = "nvidia.com/gpu"


def gpu_labels(
    *,
    product: str = "Tesla-T4",
    memory: str = "15360",
    count: int = 8,
    compute: tuple[int, int] = (7, 5),
    **more: str,
) -> dict[str, str]:
    """Return GPU feature discovery's labels; *more* are further `nvidia.com/gpu.` ones."""
    return {
        f"{GPU}.product": product,
        f"{GPU}.memory": memory,
        f"{GPU}.count": str(count),
        f"{GPU}.replicas": "1",
        f"{GPU}.sharing-strategy": "none",
        f"{GPU}.compute.major": str(compute[0]),
        f"{GPU}.compute.minor": str(compute[1]),
        "nvidia.com/cuda.driver-version.full": "580.95.05",
        **{f"{GPU}.{key.replace('_', '-')}": value for key, value in more.items()},
    }


def node(
    name: str = "node-0",
    *,
    labels: Mapping[str, str] | None = None,
    resources: Mapping[str, str] | None = None,
    taints: Sequence[Json] = (),
) -> dict[str, Any]:
    """Return a Node object: eight T4 unless *labels* and *resources* say otherwise."""
    resources = {GPU: "8"} if resources is None else resources
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                **(gpu_labels() if labels is None else labels),
            },
        },
        "spec": {"taints": list(taints)},
        "status": {"capacity": dict(resources), "allocatable": dict(resources)},
    }


def device(name: str = "Tesla-T4", *, budget: int = 14 * GIB, total: int | None = None) -> Device:
    """Return a card of which a pod may use *budget*; the driver keeps the rest of *total*."""
    return Device(
        name=name,
        total_bytes=budget if total is None else total,
        reservation_bytes=0 if total is None else total - budget,
        budget_bytes=budget,
        compute_capability=(7, 5),
    )


def node_class(
    name: str = "Tesla-T4",
    *,
    budget: int | None = 14 * GIB,
    num_nodes: int = 1,
    gpus: int = 8,
    sharing: str = "none",
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Json] = (),
    unknown_reason: str | None = None,
) -> NodeClass:
    """Return a class of *num_nodes* alike nodes; a *budget* of None is a card of unknown memory."""
    stem = name.lower()
    members = tuple(
        NodeFacts(
            name=f"{stem}-{index}",
            labels={f"{GPU}.product": name, **(labels or {})},
            taints=tuple(taints),
        )
        for index in range(num_nodes)
    )
    return NodeClass(
        name=name,
        product=name,
        count=num_nodes,
        gpus_per_node=gpus,
        gpu_resource=GPU,
        device=None if budget is None else device(name, budget=budget),
        sharing=sharing,
        nodes=tuple(member.name for member in members),
        labels=members[0].labels,
        taints=members[0].taints,
        unknown_reason=unknown_reason,
        members=members,
    )


def spec_document(*, batch_size: int = 256) -> dict[str, Any]:
    """Return the JobSpec of a plain training step of ResNet-50 at 224 x 224."""
    return {
        "framework": "pytorch",
        "model": {"source": "torchvision", "name": "resnet50"},
        "input": {"batchSize": batch_size, "imageSize": [3, 224, 224]},
    }


def job_spec(*, batch_size: int = 256) -> JobSpec:
    """Return `spec_document` as a JobSpec."""
    return parse_spec(spec_document(batch_size=batch_size))


def estimate(
    *,
    least: int,
    enough: int | None = None,
    activations: int = 0,
    card: Device | None = None,
    allocator_limit: int | None = None,
    spec: JobSpec | None = None,
) -> Estimate:
    """Return an estimate whose peak is *enough*; what is no activation is parameters."""
    high = least if enough is None else enough
    found = card or device()
    usage = Usage(allocated_bytes=high, reserved_bytes=high, device_bytes=high)
    low, up = Least(reserved_bytes=least, device_bytes=least), Enough(device_bytes=high)
    moment = Moment(step=2, phase="backward", operator="aten.mm", module="fc")
    described = spec or job_spec()
    return Estimate(
        spec=described.normalised(),
        spec_digest=described.digest(),
        device=DeviceFacts(
            name=found.name,
            compute_capability="7.5",
            total_bytes=found.total_bytes,
            reservation_bytes=found.reservation_bytes,
            usable_bytes=found.usable_bytes,
            budget_bytes=found.budget_bytes,
        ),
        least=low,
        enough=up,
        peak=usage,
        most=usage,
        allocator_limit_bytes=allocator_limit,
        breakdown=Breakdown(activations=activations, parameters=high - activations),
        peak_at=moment,
        reserved_at=moment,
        ranks=(Rank(rank=0, stage=0, least=low, enough=up, peak=usage, most=usage),),
        method=Method.TRACE,
    )


def fit(*, largest_batch: int | None = None, knobs: Sequence[str] = ()) -> Fit:
    """Return what a search found: the largest batch, and *knobs* in words."""
    return Fit(
        device=DeviceFacts(name="Tesla-T4", compute_capability="7.5"),
        largest_batch=largest_batch,
        knobs=tuple(Knob(path=f"training.{text}", value=True, text=text) for text in knobs),
        searched=("input.batchSize", "training.gradientCheckpointing"),
    )


def pod(
    *, annotations: Mapping[str, str] | None = None, gpus: int = 1, **spec: Any
) -> dict[str, Any]:
    """Return a pod template with one GPU container; *spec* are further keys of the pod spec."""
    container = {
        "name": "train",
        "image": "example.com/train:1",
        "command": ["python", "train.py"],
        "resources": {"limits": {GPU: str(gpus)}},
    }
    return {
        "metadata": {"annotations": dict(annotations or {})},
        "spec": {"containers": [container], **spec},
    }


def unit(
    *,
    role: str = "main",
    gpus: int = 1,
    pod_gpus: int | None = None,
    gpu_resource: str = GPU,
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> Unit:
    """Return the unit of a Job's pod template; *spec* are further keys of the pod spec."""
    template = pod(annotations=annotations, gpus=gpus, **spec)
    return Unit(
        role=role,
        template="spec.template",
        container="train",
        container_path="spec.template.spec.containers[0]",
        replicas=1,
        gpus=gpus,
        pod_gpus=gpus if pod_gpus is None else pod_gpus,
        gpu_resource=gpu_resource,
        pod=template["spec"],
        pod_metadata=template["metadata"],
        container_spec=template["spec"]["containers"][0],
        program=Program(
            container=template["spec"]["containers"][0],
            path="spec.template.spec.containers[0]",
            pod=template["spec"],
        ),
    )


def workload(
    *units: Unit, kind: str = "Job", controlled: bool = False, started: bool = False
) -> Workload:
    """Return a workload called default/train with these units."""
    return Workload(
        ref=WorkloadRef(api_version="batch/v1", kind=kind, namespace="default", name="train"),
        units=units,
        metadata={"namespace": "default", "name": "train"},
        controlled=controlled,
        started=started,
    )


def judged(
    verdict: Verdict,
    *classes: ClassVerdict,
    reason: str,
    reading: Reading | None = None,
    of: Unit | None = None,
    **more: Any,
) -> UnitJudgement:
    """Return the judgement of a unit whose spec was read, with the first class's estimate."""
    return UnitJudgement(
        unit=of or unit(),
        reading=reading or Reading(spec=job_spec()),
        verdict=verdict,
        classes=classes,
        estimate=classes[0].estimate if classes else None,
        reason=reason,
        **more,
    )


def verdict_on(
    where: NodeClass, *, least: int, enough: int | None = None, activations: int = 0
) -> ClassVerdict:
    """Return the verdict of a job with these needs on *where*."""
    return class_verdict(where, estimate(least=least, enough=enough, activations=activations))


def mib(number: int) -> int:
    """Return *number* MiB in bytes."""
    return number * MIB
