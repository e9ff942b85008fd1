"""Devices that are claimed (DRA): nothing is patched, the selector is told."""

from __future__ import annotations

from dataclasses import replace

from admission.codes import Steer, Verdict
from admission.review import Operation
from admission.steer.claims import claim_advice, selector
from admission.steer.permission import ALL, permission_of
from admission.steer.plan import Steering, plans_of
from admission.values import ClassVerdict, UnitJudgement
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
