"""RayJob and RayCluster (ray.io): a head and groups of workers; the command is `spec.entrypoint`.

The driver runs on the head, through a shell, and the work on whatever pods have GPUs. A RayCluster
holds no job: what runs on it comes later, through Ray's own API.
Source: ray-project/kuberay v1.5.0, `ray-operator/apis/ray/v1` and `controllers/ray/common`;
ray-project/ray 2.46.0, `python/ray/dashboard/modules/job/job_supervisor.py` (`shell=True`).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from admission.codes import ReasonCode
from admission.values import Documents, Json, Program
from admission.workloads.fields import (
    Amount,
    amount,
    at,
    entries,
    mapping,
    sequence,
    text,
)
from admission.workloads.kind import Pods
from admission.workloads.units import Template, limited, template_of
from estimator.documents import read_document
from estimator.errors import SpecError

HEAD = "head"
_FRAMEWORKS = {"torch": "pytorch", "tensorflow": "tensorflow", "jax": "jax", "mxnet": "mxnet"}
_STARTED = ("", "New", "Suspending", "Suspended")
_PINS = ("==", ">=", "<=", "~=", "!=", ">", "<", "[", ";", "@", " ")


def read_job(obj: Json, _documents: Documents) -> Pods:
    """Return head and worker groups, with the entrypoint as what all of them run."""
    spec = at(obj, "", "spec")
    command = text(spec.get("entrypoint"), "spec.entrypoint")
    groups = tuple(_groups(at(spec, "spec", "rayClusterSpec"), "spec.rayClusterSpec"))
    if not command.strip():
        return Pods(templates=groups, skip=ReasonCode.NO_JOB)
    environment = _environment(text(spec.get("runtimeEnvYAML"), "spec.runtimeEnvYAML"))
    packages = _packages(environment)
    program = _program(command, environment, packages, groups)
    framework, package = _framework(packages)
    return Pods(
        templates=tuple(
            Template(
                role=group.role,
                path=group.path,
                replicas=group.replicas,
                metadata=group.metadata,
                pod=group.pod,
                program=program,
                steering="",
            )
            for group in groups
        ),
        framework=framework,
        framework_source=f"spec.runtimeEnvYAML pip {package}",
    )


def read_cluster(obj: Json, _documents: Documents) -> Pods:
    """Return head and worker groups, which nothing is known to run on."""
    groups = tuple(_groups(at(obj, "", "spec"), "spec"))
    return Pods(templates=groups, skip=ReasonCode.NO_JOB)


def has_started(obj: Json) -> bool:
    """Return whether the operator has begun to make the cluster."""
    status = text(at(obj, "", "status").get("jobDeploymentStatus"), "status.jobDeploymentStatus")
    return status not in _STARTED


def _groups(cluster: Json, path: str) -> Iterator[Template]:
    head = at(cluster, path, "headGroupSpec")
    if head:
        yield template_of(
            head.get("template"), f"{path}.headGroupSpec.template", role=HEAD, steering=""
        )
    groups = tuple(entries(cluster.get("workerGroupSpecs"), f"{path}.workerGroupSpecs"))
    limited(groups, f"{path}.workerGroupSpecs", what="worker groups")
    scales = cluster.get("enableInTreeAutoscaling") is True
    for group, where in groups:
        yield template_of(
            group.get("template"),
            f"{where}.template",
            role=text(group.get("groupName"), f"{where}.groupName"),
            replicas=_replicas(group, where, scales=scales),
            steering="",
        )


def _replicas(group: Json, where: str, *, scales: bool) -> Amount:
    """Return the pods of a group, between its bounds; one that may grow has at least one."""
    least = amount(group.get("minReplicas"), f"{where}.minReplicas", default=0)
    wanted = amount(group.get("replicas"), f"{where}.replicas", default=least.number)
    number = max(wanted.number, least.number)
    if group.get("maxReplicas") is not None:
        most = amount(group.get("maxReplicas"), f"{where}.maxReplicas")
        number = min(number, most.number) if most.is_known else number
        scales = scales and most.number > 0
    found = Amount(number=max(number, int(scales)), is_known=wanted.is_known)
    return found.times(amount(group.get("numOfHosts"), f"{where}.numOfHosts"))


def _program(
    command: str, environment: Json, packages: tuple[str, ...], groups: tuple[Template, ...]
) -> Program:
    """Return the driver as a container: the head's, with what Ray's runtime environment adds."""
    head = next((group for group in groups if group.role == HEAD), None)
    pod: Json = head.pod if head else {}
    where = head.pod_path if head else "spec"
    first = next((body for body, _ in entries(pod.get("containers"), f"{where}.containers")), {})
    variables = mapping(environment.get("env_vars"), "spec.runtimeEnvYAML: env_vars")
    added = [{"name": name, "value": str(value)} for name, value in variables.items()]
    own = sequence(first.get("env"), f"{where}.containers[0].env")
    if packages:
        command = f"pip install {shlex.join(packages)}\n{command}"
    return Program(
        container={
            **{key: value for key, value in first.items() if key not in ("command", "args")},
            "command": ["/bin/bash", "-c", command],
            "env": [*own, *added],
        },
        path="spec.entrypoint",
        pod=pod,
    )


def _environment(document: str) -> Json:
    """Return Ray's runtime environment; one that cannot be read says nothing."""
    if not document.strip():
        return {}
    try:
        return mapping(read_document(document, aliases=False), "spec.runtimeEnvYAML")
    except SpecError:
        return {}


def _packages(environment: Json) -> tuple[str, ...]:
    """Return what pip installs; a file with requirements is not seen."""
    found = environment.get("pip")
    if isinstance(found, dict):
        found = found.get("packages")
    return tuple(item for item in found if isinstance(item, str)) if isinstance(found, list) else ()


def _framework(packages: tuple[str, ...]) -> tuple[str, str]:
    """Return the one framework among *packages* and the package that says so."""
    found = {}
    for package in packages:
        name = package.strip().lower()
        for pin in _PINS:
            name = name.partition(pin)[0]
        if name in _FRAMEWORKS:
            found[_FRAMEWORKS[name]] = package
    return next(iter(found.items())) if len(found) == 1 else ("", "")
