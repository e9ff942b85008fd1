"""Devices that are claimed (DRA): nothing is patched, the selector is told, and written beside."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from admission.codes import Operation, Steer, Verdict
from admission.steer.claims import claim_advice, claim_templates, selector
from admission.steer.permission import ALL, permission_of
from admission.steer.plan import Steering, plans_of
from admission.values import ClassVerdict, Document, Documents, UnitJudgement
from admission.workloads.resources import CLAIM
from estimator.units import GIB, MIB
from tests.builders import device, judged, node_class, unit, verdict_on, workload

PRODUCT = "cloud.google.com/gke-accelerator"


def claimed(*totals: int, need: int) -> UnitJudgement:
    """Return a unit that claims a device, judged on cards of these totals; 1 GiB is reserved."""
    classes: list[ClassVerdict] = []
    for total in totals:
        found = replace(
            node_class(f"card-{total // GIB}", labels={PRODUCT: f"card-{total // GIB}"}),
            device=device(budget=total - GIB, total=total),
        )
        classes.append(verdict_on(found, least=need))
    return judged(Verdict.TIGHT, *classes, reason="small-card", of=unit(gpu_resource=CLAIM))


def test_selector_is_told_where_a_device_may_be_too_small() -> None:
    """By the card's total: the need and what the driver keeps, rounded up to MiB."""
    (line,) = claim_advice([claimed(16 * GIB, 24 * GIB, need=20 * GIB + 1)])

    need = 20 * GIB // MIB + 1 + GIB // MIB
    assert line == (
        "hint: select a device that holds it: device.capacity['gpu.nvidia.com'].memory"
        f".compareTo(quantity('{need}Mi')) >= 0"
    )
    assert len(line) <= 250


def test_nothing_is_told_where_every_device_holds_it_or_none_is_claimed() -> None:
    """Advice is for those who need it."""
    whole = replace(claimed(16 * GIB, 24 * GIB, need=20 * GIB), unit=unit())

    assert claim_advice([claimed(24 * GIB, need=20 * GIB), whole]) == ()


def test_selector_rounds_up() -> None:
    """A byte more than a MiB is two."""
    assert selector(MIB + 1) == (
        "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('2Mi')) >= 0"
    )


def test_claimed_devices_are_not_patched() -> None:
    """The claim's template is another object: no node label says what a device of it has."""
    one = claimed(16 * GIB, 24 * GIB, need=20 * GIB)
    job = workload(one.unit)
    obj = {"spec": {"template": {"metadata": {}, "spec": dict(one.unit.pod)}}}

    (plan,) = plans_of(obj, job, [one], Steering(steer=Steer.REQUIRED, permission=ALL, classes=()))

    assert permission_of(job, Operation.CREATE, stored=None) == ALL
    assert not plan.terms


def taking(judged: UnitJudgement, claim: str = "gpu", request: str = "") -> UnitJudgement:
    """Return *judged* as a container that takes *claim*, made from the template `one-gpu`."""
    taken = {"name": claim, **({"request": request} if request else {})}
    pod = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]}
    container = {"resources": {"claims": [taken]}}
    return replace(judged, unit=replace(judged.unit, pod=pod, container_spec=container))


def template(*requests: Any, version: str = "resource.k8s.io/v1") -> Documents:
    """Return the documents beside a job: the template `one-gpu` with these requests."""
    spec = {"spec": {"devices": {"requests": list(requests)}}}
    body = {
        "apiVersion": version,
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "one-gpu"},
        "spec": spec,
    }
    return {"resourceclaimtemplate/one-gpu": Document(files={"": json.dumps(body)})}


def requests_of(documents: Documents, *units: UnitJudgement) -> list[Any]:
    """Return the requests of the one changed template; none if none is changed."""
    changed = claim_templates(units, documents)
    return [one for each in changed for one in each["spec"]["spec"]["devices"]["requests"]]


NEED = 20 * GIB // MIB + GIB // MIB
WRITTEN = {"cel": {"expression": selector(NEED * MIB)}}
GPU_CLASS = {"deviceClassName": "gpu.nvidia.com"}
ONE = taking(claimed(16 * GIB, 24 * GIB, need=20 * GIB))


@pytest.mark.parametrize(
    ("request_", "written", "version"),
    [
        (
            {"name": "gpu", "exactly": GPU_CLASS},
            {"name": "gpu", "exactly": {**GPU_CLASS, "selectors": [WRITTEN]}},
            "resource.k8s.io/v1",
        ),
        (
            {"name": "gpu", "exactly": {**GPU_CLASS, "selectors": [{"cel": {"expression": "a"}}]}},
            {
                "name": "gpu",
                "exactly": {**GPU_CLASS, "selectors": [{"cel": {"expression": "a"}}, WRITTEN]},
            },
            "resource.k8s.io/v1",
        ),
        (
            {"name": "gpu", "firstAvailable": [{"name": "a", **GPU_CLASS}, {"name": "b"}]},
            {
                "name": "gpu",
                "firstAvailable": [
                    {"name": "a", **GPU_CLASS, "selectors": [WRITTEN]},
                    {"name": "b"},
                ],
            },
            "resource.k8s.io/v1",
        ),
        (
            {"name": "gpu", **GPU_CLASS, "selectors": None},
            {"name": "gpu", **GPU_CLASS, "selectors": [WRITTEN]},
            "resource.k8s.io/v1beta1",
        ),
    ],
    ids=["exactly", "beside another", "alternatives", "flat"],
)
def test_selector_is_written_into_the_template_beside_the_job(
    request_: Any, written: Any, version: str
) -> None:
    """Whatever else it asks stays; in each version's own place."""
    assert requests_of(template(request_, version=version), ONE) == [written]


@pytest.mark.parametrize(
    "request_",
    [
        {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}},
        {
            "name": "gpu",
            "exactly": {
                **GPU_CLASS,
                "selectors": [
                    {
                        "cel": {
                            "expression": "device.capacity['gpu.nvidia.com'].memory.isLessThan(x)"
                        }
                    }
                ],
            },
        },
    ],
    ids=["another driver", "their own"],
)
def test_what_is_not_ours_to_write_stays(request_: Any) -> None:
    """Other drivers' devices have other capacities; a person's word on memory is theirs."""
    assert requests_of(template(request_), ONE) == []


def test_only_the_request_that_is_taken_is_changed() -> None:
    """A template may claim several devices; of two containers the larger need counts."""
    documents = template({"name": "a", "exactly": GPU_CLASS}, {"name": "b", "exactly": GPU_CLASS})
    larger = taking(claimed(16 * GIB, 24 * GIB, need=22 * GIB), request="b")
    smaller = taking(claimed(16 * GIB, 24 * GIB, need=20 * GIB), request="b")

    first, second = requests_of(documents, smaller, larger)

    assert first == {"name": "a", "exactly": GPU_CLASS}
    assert second["exactly"]["selectors"] == [{"cel": {"expression": selector(23 * GIB)}}]


def test_template_that_is_not_beside_the_job_is_not_made_up() -> None:
    """Nor one of a version that selects in another way, nor where every device holds the job."""
    asked = {"name": "gpu", "exactly": GPU_CLASS}

    assert claim_templates([ONE], {}) == ()
    assert requests_of(template(asked, version="resource.k8s.io/v1alpha2"), ONE) == []
    assert requests_of(template(asked), taking(claimed(24 * GIB, need=20 * GIB))) == []
    assert requests_of(template(asked), taking(ONE, claim="nic")) == []
