"""RayJobs and the RayClusters they run on, with one worker on one card.

batch size, product -> a RayJob that trains a ResNet-50
"""

from __future__ import annotations

import json
from typing import Any

from tests.e2e.operators.made import NAMESPACE
from tests.e2e.processes import poll_until
from tests.e2e.rest import ApiServer
from tests.e2e.workloads import SPEC_ANNOTATION, resnet50_spec

API = "ray.io/v1"
IMAGE = "rayproject/ray:2.46.0-gpu"


def cluster_spec(*, batch_size: int = 0, product: str = "") -> dict[str, Any]:
    """Return a head without a GPU and one worker with one, annotated if there is a *batch_size*."""
    nobody = {"schedulerName": "nobody"}  # cards are for other tests
    head = {**nobody, "containers": [{"name": "ray-head", "image": IMAGE}]}
    resources = {"limits": {"nvidia.com/gpu": "1"}}
    worker: dict[str, Any] = {
        **nobody,
        "containers": [{"name": "ray-worker", "image": IMAGE, "resources": resources}],
    }
    if product:
        worker["nodeSelector"] = {"nvidia.com/gpu.product": product}
    spec = json.dumps(resnet50_spec(batch_size=batch_size))
    annotations = {SPEC_ANNOTATION: spec} if batch_size else {}
    return {
        "rayVersion": "2.46.0",
        "headGroupSpec": {"rayStartParams": {}, "template": {"spec": head}},
        "workerGroupSpecs": [
            {
                "groupName": "gpu",
                "replicas": 1,
                "minReplicas": 1,
                "maxReplicas": 1,
                "rayStartParams": {},
                "template": {"metadata": {"annotations": annotations}, "spec": worker},
            }
        ],
    }


def rayjob(name: str, *, batch_size: int, product: str = "") -> dict[str, Any]:
    """Return a RayJob that trains on one card."""
    return {
        "apiVersion": API,
        "kind": "RayJob",
        "metadata": {"namespace": NAMESPACE, "name": name},
        "spec": {
            "entrypoint": "python train.py",
            "rayClusterSpec": cluster_spec(batch_size=batch_size, product=product),
        },
    }


def clusters_of(api: ApiServer, rayjob: str) -> list[str]:
    """Return the names of the RayClusters that were made for *rayjob*."""
    path = f"/apis/{API}/namespaces/{NAMESPACE}/rayclusters"
    found = api.read(path, labelSelector=f"ray.io/originated-from-cr-name={rayjob}").body["items"]
    return [each["metadata"]["name"] for each in found]


def cluster_of(api: ApiServer, rayjob: str) -> str:
    """Return the name of the RayCluster of *rayjob*, once there is one."""
    poll_until(lambda: bool(clusters_of(api, rayjob)), what=f"the RayCluster of {rayjob}")
    return clusters_of(api, rayjob)[0]
