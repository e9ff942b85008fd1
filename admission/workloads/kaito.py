"""Workspace (kaito.sh/v1beta1, v1alpha1): a model that is tuned by KAITO's own program.

There is no container in it. The one that KAITO makes runs on as many GPUs as `instanceType` has;
here its command line is `kaito-tuning --preset=… --method=…`, with the ConfigMap of `tuning.config`
mounted as there. What KAITO takes from its own defaults is left to the reader of that command.
Source: kaito-project/kaito 056b8280, `pkg/workspace/tuning/preset_tuning.go`,
`pkg/utils/common_preset.go`, `api/v1beta1/workspace_types.go`.
"""

from __future__ import annotations

from typing import Any

from admission.codes import ReasonCode
from admission.values import Documents, Json
from admission.workloads.fields import at, mapping, text
from admission.workloads.instances import gpus_of
from admission.workloads.kind import Pods
from admission.workloads.resources import GPU, MIG_PREFIX
from admission.workloads.units import Template

PROGRAM = "kaito-tuning"
CONFIG_FOLDER = "/mnt/config"
_CONTAINER = "tuning"
_INSTANCE_LABEL = "node.kubernetes.io/instance-type"
_PHI3_MODULES = "k_proj,q_proj,v_proj,o_proj,gate_proj,down_proj,up_proj"


def read(obj: Json, _documents: Documents) -> Pods:
    """Return the pod that tunes; a workspace that serves has none to judge."""
    if obj.get("tuning") is None:
        return Pods(skip=ReasonCode.NO_TRAINING)
    tuning = mapping(obj.get("tuning"), "tuning")
    resource = mapping(obj.get("resource"), "resource")
    template = Template(
        role=_CONTAINER,
        path="tuning",
        metadata={},
        pod=_pod(tuning, resource),
        places={"containers[0]": "tuning"},
        standing="resource",
        steering="resource.labelSelector",
    )
    return Pods(templates=(template,), framework="pytorch")


def _pod(tuning: Json, resource: Json) -> Json:
    preset = at(tuning, "tuning", "preset")
    name = text(preset.get("name"), "tuning.preset.name")
    config = text(tuning.get("config"), "tuning.config")
    method = text(tuning.get("method"), "tuning.method")
    command = [PROGRAM, *([f"--preset={name}"] if name else [])]
    if method:
        command.append(f"--method={method}")
    variables = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
    if name.lower().startswith("phi-3"):
        variables["DEFAULT_TARGET_MODULES"] = _PHI3_MODULES
    container: dict[str, Any] = {
        "name": _CONTAINER,
        "image": text(at(preset, "tuning.preset", "presetOptions").get("image"), "tuning.preset"),
        "command": command,
        "env": [{"name": key, "value": value} for key, value in variables.items()],
        "resources": {"limits": _limits(resource)},
    }
    pod: dict[str, Any] = {"containers": [container], "nodeSelector": _selector(resource)}
    if config:
        command.append(f"--config={CONFIG_FOLDER}/training_config.yaml")
        container["volumeMounts"] = [{"name": "config", "mountPath": CONFIG_FOLDER}]
        pod["volumes"] = [{"name": "config", "configMap": {"name": config}}]
    return pod


def _limits(resource: Json) -> Json:
    """Return the GPUs of the container: all of its instance, or a part of one."""
    partition = at(resource, "resource", "partition")
    profile = text(partition.get("profile"), "resource.partition.profile")
    if partition.get("mode") == "mig" and profile:
        number = partition.get("count")
        return {f"{MIG_PREFIX}{profile.removeprefix('mig-')}": 1 if number is None else number}
    instance = text(resource.get("instanceType"), "resource.instanceType")
    found = gpus_of(instance)
    return {GPU: f"<GPUs of {instance or 'its nodes'}>" if found is None else found}


def _selector(resource: Json) -> Json:
    """Return the labels of the nodes that it may run on."""
    selector = at(resource, "resource", "labelSelector")
    labels = dict(mapping(selector.get("matchLabels"), "resource.labelSelector.matchLabels"))
    instance = text(resource.get("instanceType"), "resource.instanceType")
    if instance:
        labels[_INSTANCE_LABEL] = instance
    return labels
