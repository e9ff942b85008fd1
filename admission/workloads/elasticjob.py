"""ElasticJob (elastic.pytorch.org/v1alpha1): `spec.replicaSpecs.Worker`, args for torchrun.

The image's own entry point or the command is the launcher; the controller puts the rendezvous and
the range of nodes before the args of every container.
Source: pytorch/elastic 171399e8, `kubernetes/controllers/pod.go`, `examples/Dockerfile`.
"""

from __future__ import annotations

from dataclasses import replace

from admission.values import Documents, Json, Program
from admission.workloads.fields import Amount, entries, sequence
from admission.workloads.kind import Pods
from admission.workloads.replicas import replica_templates
from admission.workloads.units import Template


def read(obj: Json, _documents: Documents) -> Pods:
    """Return the templates of the roles, with torchrun before args that stand alone."""
    templates = replica_templates(obj, "replicaSpecs")
    return Pods(templates=tuple(_launched(template) for template in templates), framework="pytorch")


def _launched(template: Template) -> Template:
    path = f"{template.pod_path}.containers"
    containers = tuple(entries(template.pod.get("containers"), path))
    if len(containers) != 1:
        return template
    container, where = containers[0]
    nodes = _nodes(template.replicas)
    if container.get("command"):
        args = sequence(container.get("args"), f"{where}.args")
        launched = {**container, "args": [*nodes, *args]}
    else:
        launched = {**container, "command": ["torchrun", *nodes]}
    program = Program(container=launched, path=where, pod=template.pod)
    return replace(template, program=program)


def _nodes(replicas: Amount) -> list[str]:
    """Return torchrun's flag for the nodes: of the range that it may grow and shrink in, where it
    begins."""
    return [f"--nnodes={replicas.number}"] if replicas.is_known else []
