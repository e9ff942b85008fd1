"""A Job in memory whose pods die, its controller played as far as moves need it.

Scene, duties -> a job that died on a card, suspended, idle, resumed
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from admission.controller.acts import Look
from admission.controller.duties.deaths import Deaths
from admission.controller.duties.moves import Moves
from admission.controller.duties.wrong_card import WrongCard
from admission.controller.duty import Add, Duty
from admission.controller.pods import PodView
from admission.controller.tracked import Tracked
from tests.admission.controller.objects import JOB, POD, container, job, pod
from tests.admission.controller.scene import Scene, owner

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
T4_NODE, A10_NODE = "tesla-t4", "nvidia-a10"


class Together:
    """Several duties as one."""

    name = "together"

    def __init__(self, *duties: Duty) -> None:
        self._duties = {each.name: each for each in duties}

    def pod_changed(self, pod: PodView, add: Add) -> None:
        """Tell each."""
        for name, each in self._duties.items():
            each.pod_changed(pod, _named(name, add))

    def workload_changed(self, workload: Tracked, add: Add) -> None:
        """Tell each."""
        for name, each in self._duties.items():
            each.workload_changed(workload, _named(name, add))

    def classes_changed(self, add: Add) -> None:
        """Tell each."""
        for name, each in self._duties.items():
            each.classes_changed(_named(name, add))

    async def look(self, key: str) -> Look:
        """Ask whose key it is."""
        name, _, rest = key.partition(" ")
        return await self._duties[name].look(rest)


def _named(name: str, add: Add) -> Add:
    return lambda key, after: add(f"{name} {key}", after)


def began(**settings: Any) -> Scene:
    """Return a scene with all three duties at work."""
    scene = Scene(**settings)
    restart(scene)
    return scene


def restart(scene: Scene) -> None:
    """Have a new controller."""
    scene.begin(Together(Deaths(scene.parts), Moves(scene.parts), WrongCard(scene.parts)))


def running_job(batch_size: int | None, **spec: Any) -> dict[str, Any]:
    """Return a Job that has started."""
    made = job(batch_size, **spec)
    made["status"] = {"startTime": "2030-01-01T00:00:00Z", "active": 1}
    made["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    return dict(made)


def dead_pod(
    *,
    node: str = T4_NODE,
    message: str = OOM,
    code: int = 1,
    finished: str = "2030-01-01T00:00:00Z",
    owners: Sequence[dict[str, Any]] | None = None,
    name: str = "train-0",
    notes: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return a pod of the Job that ended on *node*."""
    made = pod(owners=owner("Job", "batch/v1", JOB, "train") if owners is None else owners)
    ended = {"exitCode": code, "reason": "Error", "message": message, "finishedAt": finished}
    status = {"name": "train", "restartCount": 0, "state": {"terminated": ended}}
    made["metadata"]["name"] = name
    made["metadata"]["annotations"] = dict(notes or {})
    made["spec"] = {"containers": [container()], "nodeName": node, "restartPolicy": "Never"}
    made["status"] = {"phase": "Failed", "containerStatuses": [status]}
    return dict(made)


def died(scene: Scene, batch_size: int | None, **spec: Any) -> None:
    """Have a Job whose pod died on a T4."""
    scene.cluster.put(JOB, running_job(batch_size, **spec))
    scene.cluster.put(POD, dead_pod())


def ended(scene: Scene) -> None:
    """Do as the Job controller does once a suspended Job has no active pod."""
    obj = scene.cluster.objects.get(JOB, {"spec": {}})
    if obj["spec"].get("suspend"):
        conditions = [{"type": "Suspended", "status": "True"}]
        scene.cluster.put(JOB, {**obj, "status": {"conditions": conditions}})


def affinity(obj: dict[str, Any]) -> list[Any]:
    """Return the required expressions of a Job's pod template."""
    nodes = obj["spec"]["template"]["spec"].get("affinity", {}).get("nodeAffinity", {})
    terms = nodes.get("requiredDuringSchedulingIgnoredDuringExecution", {})
    return [
        each for term in terms.get("nodeSelectorTerms", ()) for each in term["matchExpressions"]
    ]
