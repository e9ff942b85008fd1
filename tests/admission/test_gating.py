"""`/mutate` holds a Pod whose estimate is late, where the settings want it; and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import pytest

from admission.codes import Mode
from admission.errors import PatchError
from admission.policy_settings import PolicySettings, SteeringSettings
from admission.review import Route
from admission.steer.checking import checked
from admission.steer.gates import GATE, gated, gates_of, ungated
from admission.steer.notes import VERDICT
from admission.steer.terms import RECORD
from tests.admission.controller.objects import JOB, job, pod
from tests.admission.controller.scene import MIDDLE, owner
from tests.admission.steer.scene import A10, T4, nodes
from tests.admission.test_handler import Bench, review_of
from tests.admission.test_mutating import patched

BY_JOB = owner("Job", "batch/v1", JOB, "train")
WORKFLOW = owner("Workflow", "argoproj.io/v1alpha1", "/w", "w")


def bench(*, gate: bool = True, policy: PolicySettings | None = None, late: bool = True) -> Bench:
    """Return a handler whose estimates do not come."""
    where = Bench(policy, nodes=nodes((T4, A10)), steering=SteeringSettings(gate=gate))
    if late:
        where.workers.may_answer.clear()
    return where


def asked(obj: Mapping[str, Any], *, namespace: str = "team", old: Any = None) -> dict[str, Any]:
    """Return the review of a Pod."""
    review = review_of(obj, old=old)
    review["request"]["kind"] = {"group": "", "version": "v1", "kind": "Pod"}
    return review | {"request": {**review["request"], "namespace": namespace}}


async def mutated(where: Bench, obj: Mapping[str, Any], **review: Any) -> dict[str, Any]:
    """Return *obj* as `/mutate` leaves it."""
    response = await where.response(asked(obj, **review), route=Route.MUTATE, timeout_text="600ms")
    assert response["allowed"] is True
    return patched(obj, response)


@pytest.mark.parametrize("mode", [Mode.ENFORCE, Mode.WARN])
async def test_a_late_pod_waits_and_says_that_nothing_is_known(mode: Mode) -> None:
    """Behind the gates that it has."""
    obj = await mutated(
        bench(policy=PolicySettings(mode=mode)), pod(MIDDLE, schedulingGates=[{"name": "other"}])
    )

    assert gates_of(obj) == ("other", GATE)
    assert obj["metadata"]["annotations"][VERDICT] == "unknown"


@pytest.mark.parametrize("owners", [BY_JOB, WORKFLOW], ids=["job", "workflow"])
async def test_a_controllers_pod_waits_and_keeps_its_notes(owners: Any) -> None:
    """The gate is all that is added: what its owner was told stays on it."""
    made = pod(MIDDLE, owners=owners)

    obj = await mutated(bench(), made)

    assert gates_of(obj) == (GATE,)
    assert ungated(obj) == made


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"nodeName": "tesla-t4"}, "bound"),
        ({}, "kube-system"),
        ({}, "in time"),
        ({}, "not wanted"),
        ({}, "mode off"),
        ({}, "steered"),
        ({}, "queued"),
        ({}, "serves"),
        ({}, "steer off"),
        ({}, "update"),
        ({}, "unreadable"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_no_other_pod_waits(changes: Mapping[str, Any], why: str) -> None:
    """Each of these either must not be held, or has nothing to wait for."""
    made = pod(None if why == "unreadable" else MIDDLE, **changes)
    metadata = made["metadata"]
    labels = {"queued": {"kueue.x-k8s.io/queue-name": "main"}}
    labels["steer off"] = {"vramgate.dev/steer": "off"}
    metadata["labels"] = labels.get(why, {})
    if why == "serves":
        metadata["ownerReferences"] = owner("ReplicaSet", "apps/v1", "/r", "r")
    if why == "steered":
        metadata["annotations"][RECORD] = '{"selector":{"a":"b"}}'
    where = bench(
        gate=why != "not wanted",
        policy=PolicySettings(mode=Mode.OFF) if why == "mode off" else None,
        late=why != "in time",
    )

    obj = await mutated(
        where,
        made,
        namespace="kube-system" if why == "kube-system" else "team",
        old=deepcopy(made) if why == "update" else None,
    )

    assert gates_of(obj) == ()


async def test_other_kinds_are_never_held() -> None:
    """A Job has no gates: its pods will."""
    where = bench()
    made = job(MIDDLE)

    response = await where.response(review_of(made), route=Route.MUTATE, timeout_text="600ms")

    assert "schedulingGates" not in str(patched(made, response))


def _checked(received: Mapping[str, Any], patch: Sequence[Any], *, gate: bool) -> Any:
    return checked(received, patch, templates=((),), containers=(), gate=gate)


ADDED = ({"op": "add", "path": "/spec/schedulingGates", "value": [{"name": GATE}]},)


def test_a_patch_may_add_our_gate_where_it_is_meant_to() -> None:
    """And nothing that only looks like it."""
    made = pod(MIDDLE)

    assert _checked(made, ADDED, gate=True) == gated(made)
    with pytest.raises(PatchError):
        _checked(made, ADDED, gate=False)


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "add", "path": "/spec/schedulingGates/-", "value": {"name": "theirs"}},
        {"op": "remove", "path": "/spec/schedulingGates/0"},
        {"op": "remove", "path": "/spec/schedulingGates"},
    ],
    ids=["another", "less", "none"],
)
def test_a_patch_touches_no_other_gate(operation: Mapping[str, Any]) -> None:
    """Others' gates are others' to take off."""
    made = pod(MIDDLE, schedulingGates=[{"name": "other"}])

    with pytest.raises(PatchError):
        _checked(made, (operation,), gate=True)


def test_a_gate_is_put_on_once_and_taken_off_whole() -> None:
    """A pod without others' gates is as before."""
    made = pod(MIDDLE)

    assert gated(gated(made)) == gated(made)
    assert ungated(gated(made)) == made
    assert gates_of({"spec": {"schedulingGates": "x"}}) == ()
