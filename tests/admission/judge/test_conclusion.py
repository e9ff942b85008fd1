"""What is said of workloads whose pods are not there to be judged."""

from __future__ import annotations

from dataclasses import replace

import pytest

from admission.codes import Action, Mode, ReasonCode, Verdict
from admission.decision import Change, Policy
from admission.judge.conclusion import conclude
from admission.values import Finding, Workload
from tests.builders import workload

PROBLEM = Finding(
    code=ReasonCode.DOCUMENT,
    path="spec.runtimeRef.name",
    reason="clustertrainingruntime torch is not there",
    hint="make it first",
)


@pytest.mark.parametrize(
    ("on_unknown", "action"),
    [(Action.ALLOW, Action.ALLOW), (Action.WARN, Action.WARN), (Action.DENY, Action.DENY)],
)
def test_pods_that_cannot_be_read_are_unknown(on_unknown: Action, action: Action) -> None:
    """Not skipped: they may ask for GPUs. What to do about it is the policy's."""
    policy = Policy(mode=Mode.ENFORCE, on_unknown=on_unknown)
    submitted = replace(workload(kind="TrainJob"), problems=(PROBLEM,))

    judgement = conclude(submitted, (), policy=policy, change=Change())

    assert (judgement.verdict, judgement.action) == (Verdict.UNKNOWN, action)
    assert judgement.reason == ReasonCode.DOCUMENT
    assert "spec.runtimeRef.name: clustertrainingruntime torch is not there" in judgement.message
    assert judgement.hints == ("make it first",)


@pytest.mark.parametrize(
    ("submitted", "text"),
    [
        (replace(workload(), skip=ReasonCode.NO_JOB), "holds no job"),
        (replace(workload(), skip=ReasonCode.DOCUMENT), "described by another object"),
        (replace(workload(), skip=ReasonCode.KIND), "this kind of object is not read yet"),
        (workload(), "asks for no GPU"),
    ],
)
def test_why_nothing_is_judged(submitted: Workload, text: str) -> None:
    """In one line, and it passes in silence."""
    policy = Policy(mode=Mode.ENFORCE, on_unknown=Action.DENY)

    judgement = conclude(submitted, (), policy=policy, change=Change())

    assert (judgement.verdict, judgement.action) == (Verdict.SKIPPED, Action.ALLOW)
    assert text in judgement.message
