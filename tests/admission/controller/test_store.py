"""What is kept of pods and workloads, and who is told of it."""

from __future__ import annotations

import asyncio
from typing import Any

from admission.controller.devices import devices_of
from admission.controller.pods import PODS, PodView, cut_pod
from admission.controller.store import Store
from admission.controller.tracked import Tracked, tracked_resource
from admission.values import Json

JOBS = "/apis/batch/v1/jobs"


def pod(name: str = "train-0", *, gpus: int = 1, **status: Any) -> dict[str, Any]:
    """Return a pod of Job `train` as the API server has it."""
    resources = {"limits": {"nvidia.com/gpu": gpus}} if gpus else {}
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "job-uid"}
    return {
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": f"uid-{name}",
            "creationTimestamp": "2030-01-01T00:00:00Z",
            "ownerReferences": [{**owner, "controller": True}],
        },
        "spec": {"containers": [{"name": "train", "resources": resources}]},
        "status": {"phase": "Pending", **status},
    }


def job(**changes: Any) -> dict[str, Any]:
    """Return a Job as an item of a list."""
    metadata = {"name": "train", "namespace": "team", "uid": "job-uid", "annotations": {}}
    return {"metadata": metadata, "spec": {"suspend": True}, "status": {}, **changes}


class Heard:
    """A listener that remembers."""

    def __init__(self) -> None:
        self.pods: list[str] = []
        self.workloads: list[str] = []

    def pod_changed(self, pod: PodView) -> None:
        """Remember a pod."""
        self.pods.append(pod.key)

    def workload_changed(self, workload: Tracked) -> None:
        """Remember a workload."""
        self.workloads.append(workload.key)

    def classes_changed(self) -> None:
        """Remember nothing."""


def kept(obj: Json) -> Json:
    """Return what is kept of a pod."""
    found = cut_pod(obj)
    assert found is not None
    return found


def test_pods_without_devices_are_not_kept() -> None:
    """Unless they are ours to look after: gated, or annotated by us."""
    assert cut_pod(pod(gpus=0)) is None
    gated = pod(gpus=0)
    gated["spec"]["schedulingGates"] = [{"name": "vramgate.dev/estimating"}]
    assert PodView(kept(gated)).is_gated
    claimed = pod(gpus=0)
    claimed["spec"]["resourceClaims"] = [{"name": "gpu"}]
    assert cut_pod(claimed) is not None
    shared = pod(gpus=0)
    shared["metadata"]["annotations"] = {"gpu-memory": "4096"}
    assert cut_pod(shared) is not None


def test_an_ending_is_named_by_its_container_and_restart() -> None:
    """Also one after which the container was started again: its message is in `lastState`."""
    status = {
        "name": "train",
        "restartCount": 2,
        "state": {"running": {}},
        "lastState": {
            "terminated": {"exitCode": 1, "reason": "Error", "message": "CUDA out of memory"}
        },
    }
    view = PodView(kept(pod(containerStatuses=[status])))

    (ending,) = view.endings
    assert (ending.container, ending.restarts, ending.is_current) == ("train", 1, False)
    assert ending.message == "CUDA out of memory"


def test_an_end_without_an_error_is_none() -> None:
    """Exit status 0 is no death."""
    status = {"name": "train", "restartCount": 0, "state": {"terminated": {"exitCode": 0}}}

    assert PodView(kept(pod(containerStatuses=[status]))).endings == ()


def test_pods_are_found_by_their_controller_as_long_as_they_are_there() -> None:
    """Also one whose owner changed."""
    store, heard = Store(), Heard()
    store.tell(heard)
    store.take_pods(PODS.path, {"team/a": kept(pod("a")), "team/b": kept(pod("b"))})
    assert [each.key for each in store.pods_of("job-uid")] == ["team/a", "team/b"]

    orphan = pod("b")
    del orphan["metadata"]["ownerReferences"]
    store.take_pods(PODS.path, {"team/a": None, "team/b": kept(orphan)})

    assert store.pods_of("job-uid") == []
    assert [each.key for each in store.pods()] == ["team/b"]
    assert heard.pods == ["team/a", "team/b", "team/b"]


def test_workloads_are_found_by_key_and_by_uid() -> None:
    """One that was made anew under its name has another UID."""
    store, heard = Store(), Heard()
    store.tell(heard)
    resource = tracked_resource("batch/v1", "Job", JOBS)
    assert resource.key(job()) == "team/train"
    store.take_workloads(JOBS, ("batch", "Job"), {"team/train": resource.cut(job())})

    found = store.workload("Job.batch/team/train")
    assert found is not None
    assert found.suspended
    assert store.workload_of_uid("job-uid") is found
    anew = job(metadata={"name": "train", "namespace": "team", "uid": "other"})
    store.take_workloads(JOBS, ("batch", "Job"), {"team/train": resource.cut(anew)})
    assert store.workload_of_uid("job-uid") is None
    store.take_workloads(JOBS, ("batch", "Job"), {"team/train": None})
    assert store.workloads() == []
    assert heard.workloads == ["Job.batch/team/train"] * 2


async def test_everything_is_listed_once_each_kind_was() -> None:
    """An empty list is a list; and what is found later does not count."""
    store = Store()
    store.expect(PODS.path)
    store.take_pods(PODS.path, {})
    waiting = asyncio.create_task(store.listed())
    await asyncio.sleep(0)
    assert not waiting.done()
    store.expect(JOBS)
    store.expect_no_more()
    await asyncio.sleep(0)
    assert not waiting.done()

    store.take_workloads(JOBS, ("batch", "Job"), {})

    await asyncio.wait_for(waiting, 5)


def test_devices_of_a_pod_are_counted_as_the_scheduler_does() -> None:
    """The most at one time: containers and sidecars together, or one that starts before them."""
    gpu = {"resources": {"limits": {"nvidia.com/gpu": "2", "cpu": "1"}}}
    big = {"resources": {"limits": {"nvidia.com/gpu": 4}}}
    sidecar = {"restartPolicy": "Always", "resources": {"requests": {"nvidia.com/mig-1g.10gb": 1}}}

    assert devices_of({"containers": [gpu, gpu]}) == (("nvidia.com/gpu", 4),)
    assert devices_of({"initContainers": [big], "containers": [gpu]}) == (("nvidia.com/gpu", 4),)
    assert devices_of({"initContainers": [sidecar, big], "containers": [gpu]}) == (
        ("nvidia.com/gpu", 4),
        ("nvidia.com/mig-1g.10gb", 1),
    )
    assert devices_of({"containers": [{"resources": {"limits": {"a/b": "x"}}}]}) == ()
