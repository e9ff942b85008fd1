"""Kueue's objects as they are read, of both versions, and the nodes behind flavors."""

from __future__ import annotations

from typing import Any

import pytest

from admission.controller.kueue.checks import answers, check_of
from admission.controller.kueue.flavors import Flavor, behind, flavor_of, is_given, queue_of
from admission.controller.kueue.known import Known, cut_check, cut_workload
from admission.controller.kueue.templates import open_to, released
from admission.controller.kueue.workloads import queued_of, waiting_of
from admission.values import NodeClass
from estimator.units import GIB
from tests.admission.controller.kueue.scene import API
from tests.builders import GPU, node_class, verdict_on

OLD = "kueue.x-k8s.io/v1beta1"
TAINT = {"key": "spot", "value": "true", "effect": "NoSchedule"}
TOLERATION = {"key": "spot", "operator": "Exists"}


def workload(*conditions: str, checks: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    """Return a Workload of one pod set with these true conditions."""
    states = {"gpu-memory": "Pending"} if checks is None else checks
    return {
        "metadata": {"name": "w", "namespace": "team", "uid": "1"},
        "spec": {"podSets": [{"name": "main", "count": 2, "template": {}}], **spec},
        "status": {
            "admission": {
                "clusterQueue": "q",
                "podSetAssignments": [{"name": "main", "flavors": {GPU: "t4", "cpu": "any"}}],
            },
            "conditions": [
                {"type": each, "status": "True", "lastTransitionTime": "2030-01-01T00:00:00Z"}
                for each in conditions
            ],
            "admissionChecks": [{"name": key, "state": state} for key, state in states.items()],
        },
    }


def known(*, checks: bool = True) -> Known:
    """Return what is known once our check was listed."""
    made = Known()
    if checks:
        check = {
            "metadata": {"name": "gpu-memory"},
            "spec": {"controllerName": "vramgate.dev/gpu-memory"},
        }
        made.take_checks({"gpu-memory": cut_check(check, API)})
    return made


@pytest.mark.parametrize(
    ("obj", "is_asked"),
    [
        (workload("QuotaReserved"), True),
        (workload(), False),
        (workload("QuotaReserved", "Evicted"), False),
        (workload("QuotaReserved", "Finished"), False),
        (workload("QuotaReserved", active=False), False),
        (workload("QuotaReserved", checks={"gpu-memory": "Ready"}), False),
        (workload("QuotaReserved", checks={"other": "Pending"}), False),
    ],
)
def test_only_what_has_quota_and_a_pending_check_of_ours_is_asked(
    obj: dict[str, Any], is_asked: bool
) -> None:
    """Nothing that is over, and nothing of others' checks."""
    found = known()
    found.take_workloads({"team/w": cut_workload(obj, API)})

    assert [each.key for each in found.asked()] == (["team/w"] if is_asked else [])
    assert not list(known(checks=False).asked())


def test_a_job_is_found_by_its_owner_while_it_has_a_workload() -> None:
    """One that is gone is forgotten."""
    obj = workload("QuotaReserved")
    obj["metadata"]["ownerReferences"] = [
        {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "job-1", "controller": True}
    ]
    found = known()
    found.take_workloads({"team/w": cut_workload(obj, API)})
    assert found.workload_of("job-1") is not None

    found.take_workloads({"team/w": None})

    assert found.workload_of("job-1") is None


@pytest.mark.parametrize("version", [API, OLD])
def test_both_versions_are_read_alike(version: str) -> None:
    """What is read is called the same; the version is kept, to write to the same."""
    obj = workload("QuotaReserved")
    queued = queued_of(obj, api_version=version)

    waiting = waiting_of(obj, queued)

    assert queued.ref.api_version == version
    assert waiting.cluster_queue == "q"
    (pod_set,) = waiting.pod_sets
    assert pod_set.flavors == {GPU: "t4", "cpu": "any"}
    assert pod_set.count == 2


@pytest.mark.parametrize("cohort", ["cohort", "cohortName"])
def test_a_queue_of_a_cohort_may_have_more_than_its_own(cohort: str) -> None:
    """The field has another name in each version."""
    flavors = [{"name": "t4", "resources": [{"name": GPU, "nominalQuota": "1"}]}]
    spec: dict[str, Any] = {"resourceGroups": [{"coveredResources": [GPU], "flavors": flavors}]}

    alone = queue_of({"metadata": {"name": "q"}, "spec": spec})
    lends = queue_of({"metadata": {"name": "q"}, "spec": {**spec, cohort: "all"}})

    assert alone.may_hold("t4", GPU, number=1)
    assert not alone.may_hold("t4", GPU, number=2)
    assert lends.may_hold("t4", GPU, number=2)


def behind_names(classes: list[NodeClass], *flavors: Flavor, pod: Any = None) -> list[str]:
    """Return the classes behind *flavors* for a small job."""
    verdicts = [verdict_on(each, least=GIB) for each in classes]
    found = behind(verdicts, flavors, pod=pod or {}, resource=GPU)
    return [each.node_class.name for each in found]


def test_the_nodes_behind_flavors_bear_all_their_labels() -> None:
    """Those of the CPU's flavor too: Kueue writes them all."""
    cards = [node_class("T4", labels={"zone": "a"}), node_class("A10", labels={"zone": "b"})]
    product = Flavor(name="t4", labels={f"{GPU}.product": "T4"})

    assert behind_names(cards, product) == ["T4"]
    assert behind_names(cards, product, Flavor(name="cpu", labels={"zone": "b"})) == []
    assert behind_names(cards, Flavor(name="any")) == ["T4", "A10"]


def test_taints_close_nodes_unless_pod_or_flavor_tolerates_them() -> None:
    """A flavor's tolerations are added to its pods."""
    cards = [node_class("T4", taints=[TAINT])]

    assert behind_names(cards, Flavor(name="any")) == []
    assert behind_names(cards, Flavor(name="spot", tolerations=(TOLERATION,))) == ["T4"]
    assert behind_names(cards, Flavor(name="any"), pod={"tolerations": [TOLERATION]}) == ["T4"]


def test_kueue_gives_no_flavor_whose_taints_nobody_tolerates() -> None:
    """So that one is no way out."""
    spec = {"nodeTaints": [TAINT]}
    closed = flavor_of({"metadata": {"name": "spot"}, "spec": spec})
    opened = flavor_of(
        {"metadata": {"name": "spot"}, "spec": {**spec, "tolerations": [TOLERATION]}}
    )

    assert not is_given(closed, pod={})
    assert is_given(closed, pod={"tolerations": [TOLERATION]})
    assert is_given(opened, pod={})


def test_a_check_of_another_generation_is_not_active() -> None:
    """Its condition is of what it was."""
    active = {"type": "Active", "status": "True", "observedGeneration": 1}
    check = {
        "metadata": {"name": "gpu-memory", "generation": 2},
        "spec": {"controllerName": "vramgate.dev/gpu-memory"},
        "status": {"conditions": [active, {"type": "Other", "status": "True"}]},
    }

    found = check_of(check, api_version=API)

    assert found is not None
    assert not found.is_active
    assert [each["type"] for each in found.others] == ["Other"]
    assert check_of({**check, "spec": {"controllerName": "x"}}, api_version=API) is None


def test_no_answer_without_a_check_in_that_state() -> None:
    """Somebody answered meanwhile."""
    obj = workload("QuotaReserved", checks={"gpu-memory": "Ready"})
    queued = queued_of(obj, api_version=API)
    now = waiting_of(obj, queued).reserved
    assert now is not None

    patch = answers(
        waiting_of(obj, queued),
        frozenset({"gpu-memory"}),
        before="Pending",
        state="Ready",
        message="",
        now=now,
    )

    assert patch == ()


def test_a_started_job_is_freed_of_its_flavor_alone() -> None:
    """What the person selects stays, though it be the flavor's label too."""
    obj = workload("QuotaReserved")
    own = {"spec": {"nodeSelector": {"zone": "a"}}}
    obj["spec"]["podSets"][0]["template"] = own
    waiting = waiting_of(obj, queued_of(obj, api_version=API))
    flavors = {"t4": Flavor(name="t4", labels={"zone": "a", "pool": "t4"})}
    selector = {"zone": "a", "pool": "t4", "other": "x"}
    job = {"spec": {"template": {"spec": {"containers": [], "nodeSelector": selector}}}}

    freed = released(job, waiting, flavors)

    spec = freed["spec"]["template"]["spec"]
    assert spec["nodeSelector"] == {"zone": "a", "other": "x"}
    assert job["spec"]["template"]["spec"]["nodeSelector"] == selector


def test_every_pod_spec_is_opened_wherever_it_stands() -> None:
    """A JobSet has several, deep inside."""
    pod = {"containers": [{"name": "train"}]}
    jobs = [{"template": {"spec": {"template": {"spec": pod}}}} for _ in range(2)]

    opened = open_to(
        {"spec": {"replicatedJobs": jobs}}, [Flavor(name="spot", tolerations=(TOLERATION,))]
    )

    for each in opened["spec"]["replicatedJobs"]:
        assert each["template"]["spec"]["template"]["spec"]["tolerations"] == [TOLERATION]
