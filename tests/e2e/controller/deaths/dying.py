"""Jobs that die on small cards and end well on large ones, and what became of them.

names of nodes -> a Job, JobSet or PyTorchJob; an object -> pods, Events, how it ended
"""

from __future__ import annotations

import itertools
from typing import Any

from kubernetes import client

from tests.e2e.controller.deaths.conftest import PLAYED, TEAM
from tests.e2e.jobset import resnet50_jobset
from tests.e2e.kwok.player import EXIT, OOM_ON
from tests.e2e.nodes import POOL, T4
from tests.e2e.processes import poll_until
from tests.e2e.rest import ApiServer
from tests.e2e.workloads import resnet50_job, resnet50_pytorchjob

Document = dict[str, Any]
SMALL = 64
"""The batch size: by the estimate it fits a T4."""
EVERY = "node-"
"""What the names of all nodes begin with: a job that dies everywhere."""
NOBODY = "nobody"
_numbers = itertools.count(1)


def dying(document: Document, template: Document, *, on: str = "node-t4") -> Document:
    """Return *document* whose pods, made of *template*, die on the nodes that *on* begins."""
    document["metadata"]["name"] = f"dies-{next(_numbers)}"
    template["metadata"] = {"annotations": {OOM_ON: on, EXIT: "0"}}
    template["spec"]["nodeSelector"] = {POOL: PLAYED}
    return document


def dying_job(
    *, retries: int, policy: str = "Never", on: str = "node-t4", batch_size: int = SMALL
) -> Document:
    """Return a Job with *retries* left."""
    job = resnet50_job(TEAM, batch_size=batch_size, card=T4)
    job["spec"]["backoffLimit"] = retries
    job["spec"]["template"]["spec"]["restartPolicy"] = policy
    return dying(job, job["spec"]["template"], on=on)


def dying_jobset(*, restarts: int) -> Document:
    """Return a JobSet of two Jobs that may be started again *restarts* times."""
    jobset = resnet50_jobset(TEAM, batch_size=SMALL, card=T4)
    jobset["spec"]["failurePolicy"] = {"maxRestarts": restarts}
    return dying(jobset, jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"])


def dying_pytorchjob() -> Document:
    """Return a PyTorchJob whose replicas are started again."""
    job = resnet50_pytorchjob(TEAM, batch_size=SMALL, card=T4)
    master = job["spec"]["pytorchReplicaSpecs"]["Master"]
    master["restartPolicy"] = "OnFailure"
    return dying(job, master["template"])


def events(core: client.CoreV1Api, document: Document) -> list[tuple[str, str]]:
    """Return what the controller said of *document*: reasons and messages, in their order."""
    name = document["metadata"]["name"]
    found = core.list_namespaced_event(
        TEAM, field_selector=f"involvedObject.name={name},source=vramgate-controller"
    ).items
    found.sort(key=lambda each: int(each.metadata.resource_version))
    return [(each.reason, each.message) for each in found]


def ending(api: ApiServer, document: Document) -> str:
    """Return `Complete` or `Failed` as each kind says it; empty while it goes on."""
    status = api.get(document).body.get("status") or {}
    words = {"Complete": "Complete", "Completed": "Complete", "Succeeded": "Complete"}
    for each in status.get("conditions") or ():
        if each["status"] == "True" and each["type"] in (*words, "Failed"):
            return words.get(each["type"], "Failed")
    return ""


def pods(core: client.CoreV1Api, document: Document) -> list[client.V1Pod]:
    """Return the pods of *document* that are there."""
    name = document["metadata"]["name"]
    return [
        pod
        for pod in core.list_namespaced_pod(TEAM).items
        if pod.metadata.name.startswith(f"{name}-")
    ]


def notes_on(api: ApiServer, document: Document) -> dict[str, str]:
    """Return the annotations of *document* as it is now."""
    found: dict[str, str] = api.get(document).body["metadata"].get("annotations") or {}
    return found


def landed(core: client.CoreV1Api, document: Document) -> set[str]:
    """Return the nodes on which pods of *document* ended well."""
    return {pod.spec.node_name for pod in pods(core, document) if pod.status.phase == "Succeeded"}


def remove(core: client.CoreV1Api, job: Document) -> None:
    """Delete *job*, a Job, and wait until it and its pods are gone."""
    batch = client.BatchV1Api(core.api_client)
    name = job["metadata"]["name"]
    batch.delete_namespaced_job(name, TEAM, propagation_policy="Foreground")
    poll_until(lambda: not pods(core, job), what=f"the pods of {name} to be gone")
    selector = f"metadata.name={name}"
    poll_until(
        lambda: not batch.list_namespaced_job(TEAM, field_selector=selector).items,
        what=f"{name} to be gone",
    )
