"""Jobs that succeeded and were measured: told on the job, and kept once."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from admission.controller.duties.calibration import OLD_SECONDS, SETTLE_SECONDS, Calibration
from admission.controller.learning import Learning
from admission.learning import residuals_text
from admission.learning.residuals import Sample
from estimator.units import GIB
from tests.admission.controller.objects import JOB, POD, job, pod
from tests.admission.controller.scene import MIDDLE, NAMESPACE, SMALL, Scene, owner

OTHER = "/api/v1/namespaces/team/pods/train-1"
LEARNED = f"/api/v1/namespaces/{NAMESPACE}/configmaps/vramgate-learned"
NODE = "a10-0"


def began() -> Scene:
    """Return a scene with the duty at work, and a Job of 10 GiB."""
    made = Scene()
    objects: Any = made.cluster
    made.acting._remember = Learning(objects, namespace=NAMESPACE).remember
    made._duty = Calibration(made.parts)
    made.cluster.put(JOB, job(SMALL))
    return made


def ended(
    scene: Scene,
    peak: int | None,
    *,
    path: str = POD,
    phase: str = "Succeeded",
    node: str = "",
    ago: float = 0.0,
) -> None:
    """Have a pod of the Job that has ended on an A10 with *peak* on one card."""
    name = path.rpartition("/")[2]
    made = pod(owners=owner("Job", "batch/v1", JOB, "train"), nodeName=node or _a10(scene))
    made["metadata"]["name"] = name
    if peak is not None:
        text = orjson.dumps({"train": {"GPU-1": peak, "GPU-2": peak // 2}}).decode()
        made["metadata"]["annotations"]["vramgate.dev/peak-bytes"] = text
    finished = scene.cluster.now.timestamp() - ago
    moment = scene.cluster.now.fromtimestamp(finished, tz=scene.cluster.now.tzinfo).isoformat()
    state = {"terminated": {"exitCode": 0, "finishedAt": moment}}
    made["status"] = {"phase": phase, "containerStatuses": [{"name": "train", "state": state}]}
    scene.cluster.put(path, made)


def _a10(scene: Scene) -> str:
    return next(
        node for each in scene.cards.classes if "A10" in each.product for node in each.nodes
    )


def kept(scene: Scene) -> list[Sample]:
    """Return what is kept, of all groups."""
    data = scene.cluster.objects.get(LEARNED, {}).get("data", {})
    found = residuals_text.read(data.get(residuals_text.KEY))
    return [each for samples in found.values() for each in samples]


async def test_a_job_that_succeeded_teaches_what_it_took() -> None:
    """Its owner reads it beside the estimate."""
    scene = began()
    ended(scene, 9 * GIB)
    await scene.work(SETTLE_SECONDS)

    assert scene.said == [("train", "GpuMemoryMeasured")]
    assert "9.0 GiB" in scene.cluster.events[0]["message"]
    assert "estimated 10.0 GiB" in scene.cluster.events[0]["message"]
    (sample,) = kept(scene)
    assert sample.ratio == pytest.approx(0.9)
    assert "team" not in sample.namespace


async def test_ranks_are_one_job_and_its_largest_counts() -> None:
    """Taken once the last of them has ended."""
    scene = began()
    ended(scene, 9 * GIB)
    ended(scene, None, path=OTHER, phase="Running")
    await scene.work(10 * SETTLE_SECONDS)
    assert kept(scene) == []
    ended(scene, 11 * GIB, path=OTHER)
    await scene.work(SETTLE_SECONDS)

    (sample,) = kept(scene)
    assert sample.ratio == pytest.approx(1.1)


async def test_it_is_kept_and_told_once() -> None:
    """Also by a controller that was started again."""
    scene = began()
    ended(scene, 9 * GIB)
    await scene.work(SETTLE_SECONDS)
    writes = list(scene.writes)
    again = Calibration(scene.parts)
    scene._duty, scene._due, scene._seen = again, {}, {}
    await scene.work(SETTLE_SECONDS)

    assert len(scene.said) == 1
    assert scene.writes == writes


@pytest.mark.parametrize(
    "change",
    [
        {"phase": "Failed"},
        {"ago": OLD_SECONDS + 1},
        {"peak": None},
        {"node": "gone"},
        {"peak": 90 * GIB},
    ],
    ids=["failed", "old", "unmeasured", "unknown-node", "more-than-the-card"],
)
async def test_what_is_no_measurement_teaches_nothing(change: dict[str, Any]) -> None:
    """How far a failed job came, what no card can hold, what nobody measured."""
    scene = began()
    ended(scene, **{"peak": 9 * GIB, **change})
    await scene.work(SETTLE_SECONDS)

    assert kept(scene) == []
    assert scene.said == []


async def test_a_peak_out_of_all_proportion_is_told_and_not_kept() -> None:
    """A job that ended before it trained took a tenth of what it would have."""
    scene = began()
    ended(scene, GIB)
    await scene.work(SETTLE_SECONDS)

    assert scene.said == [("train", "GpuMemoryMeasured")]
    assert kept(scene) == []


async def test_what_was_learnt_of_deaths_stays() -> None:
    """Each has a key of its own."""
    scene = began()
    scene.cluster.put(LEARNED, {"metadata": {"name": "x"}, "data": {"deaths.json": "{}"}})
    scene.cluster.put(JOB, job(MIDDLE))
    ended(scene, 18 * GIB)
    await scene.work(SETTLE_SECONDS)

    assert scene.cluster.objects[LEARNED]["data"]["deaths.json"] == "{}"
    assert len(kept(scene)) == 1
