"""A job that declares a share of a card is judged by it, and told of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import orjson
import pytest

from admission.capacity.classes import classes_of
from admission.codes import Action, Mode, ReasonCode, Verdict
from admission.decision import Cause, Policy
from admission.judge.judging import judge
from admission.values import Document, Documents, Judgement
from admission.workloads import read_workload
from estimator.device import Device
from estimator.result import Estimate, Fit
from estimator.spec import JobSpec
from estimator.units import GIB, MIB
from estimator.workers.api import Job
from tests.builders import GPU, estimate, fit, node, spec_document

NEED = 5 * GIB
TEMPLATE = "resourceclaimtemplate/gpu"


class Estimator:
    """Every job needs five GiB, and nothing smaller is found."""

    async def estimate(self, _job: Job, devices: Sequence[Device]) -> tuple[Estimate, ...]:
        """Return the same need for each card."""
        return tuple(estimate(least=NEED, card=card) for card in devices)

    async def fit(self, _spec: JobSpec, devices: Sequence[Device]) -> tuple[Fit, ...]:
        """Return a search without success."""
        return tuple(fit() for _ in devices)


async def judged(
    resources: dict[str, Any],
    *,
    annotations: dict[str, str] | None = None,
    documents: Documents | None = None,
    **pod: Any,
) -> Judgement:
    """Return the judgement of a Job of one such container on T4 nodes that enforce."""
    stated = {"vramgate.dev/spec": json.dumps(spec_document()), **(annotations or {})}
    container = {"name": "train", "command": ["python", "train.py"], "resources": resources}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": "team"},
        "spec": {
            "template": {
                "metadata": {"annotations": stated},
                "spec": {"containers": [container], **pod},
            }
        },
    }
    return await judge(
        read_workload(job, documents=documents or {}),
        classes=classes_of([node()]),
        estimator=Estimator(),
        policy=Policy(mode=Mode.ENFORCE),
        documents=documents or {},
    )


async def test_declaration_below_the_need_denies_and_says_what_would_do() -> None:
    """The card is large enough; the message names the declaration, and a larger one."""
    found = await judged({"limits": {GPU: 1, "nvidia.com/gpumem": 3000}})

    assert (found.verdict, found.action, found.reason) == (
        Verdict.OOM,
        Action.DENY,
        Cause.DECLARED,
    )
    assert found.message == (
        "needs at least 5.0 GiB on one GPU; the largest card this job may use (Tesla-T4 ×8) gives "
        "it 2.9 GiB, as it declares with nvidia.com/gpumem: 3000. Parameters are most of it, "
        f"5.0 GiB at the expected peak. It fits with nvidia.com/gpumem: {NEED // MIB}."
    )


@pytest.mark.parametrize(
    ("resources", "annotations", "advice"),
    [
        ({GPU: 1, "nvidia.com/gpumem-percentage": 10}, {}, "nvidia.com/gpumem-percentage: 34"),
        ({}, {"gpu-fraction": "0.1"}, "gpu-fraction: 0.34"),
        ({}, {"gpu-memory": "1000"}, "gpu-memory: 5120"),
    ],
)
async def test_advice_is_written_as_the_declaration_is(
    resources: dict[str, Any], annotations: dict[str, str], advice: str
) -> None:
    """Percent, hundredths, MiB: rounded up."""
    found = await judged({"limits": resources}, annotations=annotations)

    assert found.verdict is Verdict.OOM
    assert found.hints == (f"fits with {advice}",)


@pytest.mark.parametrize("memory", [NEED // MIB, 14000, 100_000])
async def test_declaration_that_holds_the_job_fits(memory: int) -> None:
    """And one beyond the card is the card."""
    found = await judged({"limits": {GPU: 1, "nvidia.com/gpumem": memory}})

    assert (found.verdict, found.action) == (Verdict.FITS, Action.ALLOW)


async def test_declaration_that_cannot_be_read_is_unknown_by_name() -> None:
    """Nothing is denied for it."""
    found = await judged({"limits": {GPU: 1, "nvidia.com/gpumem": "lots"}})

    assert (found.verdict, found.reason) == (Verdict.UNKNOWN, ReasonCode.UNSUPPORTED)
    assert "nvidia.com/gpumem: lots is not a whole number of MiB" in found.message


def claim(**exactly: Any) -> Documents:
    """Return a ResourceClaimTemplate for one device."""
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com", **exactly}}
    template = {"spec": {"spec": {"devices": {"requests": [request]}}}}
    return {TEMPLATE: Document(files={"": orjson.dumps(template).decode()})}


CLAIMS: dict[str, Any] = {"claims": [{"name": "gpu"}]}
POD: dict[str, Any] = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]}


async def test_claim_of_a_whole_device_has_the_card() -> None:
    """The labels of the nodes say what it is."""
    found = await judged(CLAIMS, documents=claim(), **POD)

    assert found.verdict is Verdict.FITS


async def test_claim_of_less_than_the_need_is_warned_about_and_not_denied() -> None:
    """A device that is not shared is had whole."""
    capacity = {"requests": {"gpu.nvidia.com/memory": "4Gi"}}

    found = await judged(CLAIMS, documents=claim(capacity=capacity), **POD)

    assert (found.verdict, found.action, found.reason) == (
        Verdict.TIGHT,
        Action.WARN,
        Cause.DECLARED,
    )
    assert "as it declares with gpu.nvidia.com/memory: 4Gi" in found.message
    assert found.hints == (f"fits with gpu.nvidia.com/memory: {NEED // MIB}Mi",)


async def test_claim_that_nobody_has_read_is_unknown_and_wanted() -> None:
    """The next round brings it."""
    found = await judged(CLAIMS, **POD)

    assert found.verdict is Verdict.UNKNOWN
    assert found.units[0].reading.wanted == (TEMPLATE,)
