"""A job whose earlier run died is steered hard to a larger card, and so are its pods."""

from __future__ import annotations

import asyncio
from copy import deepcopy
from typing import Any

import jsonpatch
import pytest

from admission.codes import Action, Operation, Verdict
from admission.estimates import AskingPool, EstimatePool
from admission.floor import Floor
from admission.handling.asked import Asked, NoBooks
from admission.handling.judging import Judging
from admission.handling.mutating import Mutating
from admission.handling.policies import Policies
from admission.learning.deaths import Death
from admission.learning.fingerprint import fingerprint
from admission.learning.floors import Learnt
from admission.learning.lesson import Lesson
from admission.policy_settings import PolicySettings, SteeringSettings
from admission.reader import ReviewReader
from admission.review import Review
from admission.steer.terms import RECORD
from admission.values import Json, Judgement
from admission.workloads import read_workload
from estimator.units import GIB
from tests.admission.controller.dead import affinity
from tests.admission.controller.objects import JOB, job, pod
from tests.admission.controller.scene import SMALL, owner
from tests.admission.steer.scene import A10, T4, nodes
from tests.admission.test_handler import FakeCluster, FakeWorkers

FLOOR = Floor(
    container="train", nbytes=15 * GIB + GIB // 4, gave=14 * GIB, card="Tesla-T4", when="2030"
)


def learnt(obj: Json, *names: str) -> Learnt:
    """Return who knows that *obj*, called *names*, died on a T4."""
    workload = read_workload(obj, api_version=obj["apiVersion"])
    text = fingerprint(workload.units[0], workload)
    death = Death(namespace="team", names=names, fingerprint=text, floor=FLOOR)
    return Learnt((death,))


async def reviewed(
    obj: dict[str, Any],
    known: Learnt,
    *,
    operation: Operation = Operation.CREATE,
    cards: Any = (T4, A10),
    mode: str = "warn",
) -> tuple[Judgement, dict[str, Any]]:
    """Return the judgement of *obj*, and *obj* as `/mutate` leaves it."""
    cluster, clock = FakeCluster(*nodes(cards)), asyncio.get_running_loop().time
    policies = Policies(
        policy=PolicySettings.model_validate({"mode": mode}),
        steering=SteeringSettings(),
        cluster=cluster,
    )
    judging = Judging(reader=ReviewReader(), sources=None, clock=clock, learnt=known)
    mutating = Mutating(judging=judging, policies=policies, metrics=NoBooks())
    review = Review(
        uid="1",
        api_version=obj["apiVersion"],
        kind=obj["kind"],
        resource="",
        operation=operation,
        namespace="team",
        name="train",
        object=obj,
        old_object=obj if operation is Operation.UPDATE else None,
    )
    asked = Asked(
        review=review,
        estimator=AskingPool(EstimatePool(FakeWorkers()), asker="team"),
        classes=cluster.classes,
        started=clock(),
        ends=clock() + 20,
        is_small=True,
        has_record=RECORD in str(obj),
    )
    judgement, patch = await mutating.mutated(asked)
    patched: dict[str, Any] = jsonpatch.apply_patch(deepcopy(obj), [dict(each) for each in patch])
    return judgement, patched


async def test_a_job_that_is_created_again_is_kept_off_such_cards() -> None:
    """Required, in mode warn too; and people hear why."""
    obj = job(SMALL)

    judgement, patched = await reviewed(obj, learnt(obj, "Job.batch/train"))

    (memory,) = affinity(patched)
    assert int(memory["values"][0]) >= 15 * 1024
    assert judgement.verdict is Verdict.FITS
    assert any("an earlier run of the same containers" in text for text in judgement.warnings)


async def test_a_job_that_nobody_knows_is_not_required_to_go_anywhere() -> None:
    """In mode warn it is a preference."""
    _, patched = await reviewed(job(SMALL), Learnt())

    assert affinity(patched) == []


async def test_where_steering_is_off_it_is_only_warned() -> None:
    """By the object's own label."""
    obj = job(SMALL)
    obj["metadata"]["labels"] = {"vramgate.dev/steer": "off"}

    judgement, patched = await reviewed(obj, learnt(obj, "Job.batch/train"))

    assert affinity(patched) == []
    assert judgement.action is Action.WARN


@pytest.mark.parametrize("mode", ["warn", "enforce"])
async def test_it_is_never_denied(mode: str) -> None:
    """There is no larger card, and somebody may have mended it."""
    obj = job(SMALL)

    judgement, _ = await reviewed(obj, learnt(obj, "Job.batch/train"), cards=(T4,), mode=mode)

    assert judgement.verdict is Verdict.TIGHT
    assert judgement.action is Action.WARN


async def test_terms_of_an_earlier_time_give_way() -> None:
    """They led to the card that it died on; the spec is the same as then."""
    obj = job(SMALL, suspend=True)
    _, before = await reviewed(obj, Learnt(), mode="enforce")
    assert affinity(before)

    _, after = await reviewed(
        before, learnt(obj, "Job.batch/train"), operation=Operation.UPDATE, mode="enforce"
    )

    (memory,) = affinity(after)
    assert int(memory["values"][0]) >= 15 * 1024


async def test_a_pod_that_its_controller_makes_is_steered() -> None:
    """Its template cannot change any more; it has what its controller adds."""
    root = job(SMALL)
    made = pod(SMALL, owners=owner("Job", "batch/v1", JOB, "train"))
    made["spec"]["containers"][0]["env"] = [{"name": "RANK", "value": "0"}]

    _, patched = await reviewed(made, learnt(root, "Job.batch/train"))
    _, other = await reviewed(made, learnt(root, "Job.batch/other"))

    assert affinity({"spec": {"template": patched}})
    assert other == made


async def test_an_object_may_bear_its_own_lesson() -> None:
    """As it was exported, with the annotations on it."""
    obj = job(SMALL)
    workload = read_workload(obj, api_version="batch/v1")
    text = fingerprint(workload.units[0], workload)
    obj["metadata"]["annotations"] |= Lesson(floor=FLOOR, fingerprint=text).annotations()

    _, patched = await reviewed(obj, Learnt())

    assert affinity(patched)


async def test_a_jobset_that_is_suspended_gets_a_selector_beside_its_affinity() -> None:
    """JobSet lets no affinity be changed by then: what is there stays."""
    made = job(SMALL)
    jobset = {
        **made,
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "spec": {
            "suspend": True,
            "replicatedJobs": [
                {"name": "workers", "replicas": 2, "template": {"spec": made["spec"]}}
            ],
        },
    }
    _, before = await reviewed(jobset, Learnt(), mode="enforce")
    template = before["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    assert template["spec"]["affinity"]

    known = learnt(jobset, "JobSet.jobset.x-k8s.io/train")
    _, after = await reviewed(before, known, operation=Operation.UPDATE, mode="warn")

    changed = after["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    assert changed["spec"]["affinity"] == template["spec"]["affinity"]
    assert changed["spec"]["nodeSelector"] == {"nvidia.com/gpu.product": A10[0]}
