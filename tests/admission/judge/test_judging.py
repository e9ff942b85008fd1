"""The whole way from a workload to a verdict, with an estimator that answers as it is told."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from admission.codes import Action, Mode, Operation, ReasonCode, Verdict
from admission.decision import Cause, Change, Policy
from admission.judge.judging import judge
from admission.values import Finding, Judgement, NodeClass, Unit, Workload
from estimator.device import Device
from estimator.errors import (
    EstimateTimeoutError,
    EstimatorError,
    EstimatorUnavailableError,
    MemoryLimitError,
    Problem,
    SpecError,
    TraceError,
    UnsupportedJobError,
)
from estimator.notes import UnknownCode
from estimator.result import Estimate, Fit
from estimator.spec import JobSpec
from estimator.units import GIB
from estimator.workers.api import Job, spec_of
from tests.builders import (
    device,
    estimate,
    fit,
    node_class,
    spec_document,
    unit,
    workload,
)

T4 = node_class("Tesla-T4", budget=14 * GIB)
A100 = node_class("NVIDIA-A100-SXM4-40GB", budget=39 * GIB)
TEAM_TAINT = {"key": "team", "value": "a", "effect": "NoSchedule"}
CLOSED_A100 = node_class("NVIDIA-A100-SXM4-40GB", budget=39 * GIB, taints=[TEAM_TAINT])
ENFORCE = Policy(mode=Mode.ENFORCE)


def linear(spec: JobSpec) -> int:
    """Return a need of 0.1 GiB a sample."""
    return spec.input.batch_size * GIB // 10


@dataclass
class FakeEstimator:
    """Needs what `need` says, fails with `error`, answers once `gate` is open."""

    need: Callable[[JobSpec], int] = linear
    error: EstimatorError | None = None
    fit_error: EstimatorError | None = None
    gate: asyncio.Event | asyncio.Barrier | None = None
    fit_gate: asyncio.Event | None = None
    found: Fit = field(default_factory=lambda: fit(largest_batch=139))
    asked: list[tuple[int, tuple[Device, ...]]] = field(default_factory=list)
    searched: list[tuple[int, tuple[Device, ...]]] = field(default_factory=list)
    answered: int = 0

    async def estimate(self, job: Job, devices: Sequence[Device]) -> tuple[Estimate, ...]:
        spec = spec_of(job)
        self.asked.append((spec.input.batch_size, tuple(devices)))
        if self.gate is not None:
            await self.gate.wait()
        if self.error is not None:
            raise self.error
        self.answered += 1
        return tuple(estimate(least=self.need(spec), card=card, spec=spec) for card in devices)

    async def fit(self, spec: JobSpec, devices: Sequence[Device]) -> tuple[Fit, ...]:
        self.searched.append((spec.input.batch_size, tuple(devices)))
        if self.fit_gate is not None:
            await self.fit_gate.wait()
        if self.fit_error is not None:
            raise self.fit_error
        return tuple(self.found for _ in devices)


def training(*, batch_size: int = 256, role: str = "main", **spec: Any) -> Unit:
    """Return a unit whose annotation says what it trains."""
    document = json.dumps(spec_document(batch_size=batch_size))
    return unit(role=role, annotations={"vramgate.dev/spec": document}, **spec)


async def judged(
    *units: Unit,
    classes: Sequence[NodeClass] = (T4,),
    estimator: FakeEstimator | None = None,
    policy: Policy = ENFORCE,
    submitted: Workload | None = None,
    deadline_seconds: float | None = None,
) -> Judgement:
    """Return the judgement of a Job with these units in an enforcing namespace."""
    return await judge(
        submitted or workload(*units),
        classes=classes,
        estimator=estimator or FakeEstimator(),
        policy=policy,
        deadline_seconds=deadline_seconds,
    )


async def test_job_that_fits_is_allowed_without_a_word() -> None:
    """The only question is the estimate; nothing is searched."""
    estimator = FakeEstimator()

    found = await judged(training(batch_size=100), estimator=estimator)

    assert (found.verdict, found.action, found.warnings) == (Verdict.FITS, Action.ALLOW, ())
    assert (len(estimator.asked), estimator.searched) == (1, [])


async def test_job_that_cannot_fit_is_denied_with_what_would_fit() -> None:
    """25.6 GiB on a card of 14: the largest batch, and the card it may not use today."""
    unit = training(batch_size=256, nodeSelector={"nvidia.com/gpu.product": "Tesla-T4"})

    found = await judged(unit, classes=[A100, T4])

    assert (found.verdict, found.action, found.reason) == (
        Verdict.OOM,
        Action.DENY,
        Cause.TOO_LARGE,
    )
    assert found.message == (
        "needs at least 25.6 GiB on one GPU; the largest card this job may use (Tesla-T4 ×8) gives "
        "it 14.0 GiB. Parameters are most of it, 25.6 GiB at the expected peak. It fits with batch "
        "size 139, or on the node with an NVIDIA-A100-SXM4-40GB."
    )
    assert found.hints == (
        "fits with batch size 139",
        "fits on the node with an NVIDIA-A100-SXM4-40GB",
    )


async def test_search_is_for_the_largest_card_the_job_may_use() -> None:
    """What would fit the best card is the smallest change."""
    estimator = FakeEstimator()
    small = node_class("small", budget=GIB)

    await judged(training(), classes=[small, T4], estimator=estimator)

    assert estimator.searched == [(256, (device("Tesla-T4", budget=14 * GIB),))]


async def test_smaller_cards_elsewhere_are_not_asked_about() -> None:
    """A card that is no larger than the best one holds it no better."""
    estimator = FakeEstimator()
    small = node_class("small", budget=GIB)
    unit = training(nodeSelector={"nvidia.com/gpu.product": "Tesla-T4"})

    await judged(unit, classes=[T4, small], estimator=estimator)

    assert len(estimator.asked) == 1


async def test_mode_warn_says_it_in_warnings_and_admits() -> None:
    """A new install denies nothing."""
    found = await judged(training(), policy=Policy(mode=Mode.WARN))

    assert (found.verdict, found.action) == (Verdict.OOM, Action.WARN)
    assert found.warnings == (
        "needs at least 25.6 GiB on one GPU; the largest card this job may use (Tesla-T4 ×8) gives "
        "it 14.0 GiB",
        "parameters are most of it, 25.6 GiB at the expected peak",
        "hint: it fits with batch size 139",
    )


async def test_mode_off_is_silent() -> None:
    """The verdict is there to be counted."""
    found = await judged(training(), policy=Policy(mode=Mode.OFF))

    assert (found.verdict, found.action, found.warnings) == (Verdict.OOM, Action.ALLOW, ())


async def test_update_of_a_started_job_is_not_denied() -> None:
    """The change reaches the decision."""
    submitted = workload(training(), started=True)

    found = await judge(
        submitted,
        classes=[T4],
        estimator=FakeEstimator(),
        policy=ENFORCE,
        change=Change(operation=Operation.UPDATE),
    )

    assert (found.verdict, found.action) == (Verdict.OOM, Action.WARN)


async def test_roles_with_the_same_spec_are_estimated_once_for_all_their_cards() -> None:
    """Master and Worker are one question, over the cards of both, each card once."""
    estimator = FakeEstimator()
    twin = node_class("Tesla-T4", budget=14 * GIB, gpus=4)
    master = training(role="Master", batch_size=100, nodeSelector={"zone": "a"})
    worker = training(role="Worker", batch_size=100)
    here = node_class("NVIDIA-A100-SXM4-40GB", budget=39 * GIB, labels={"zone": "a"})

    found = await judged(master, worker, classes=[here, T4, twin], estimator=estimator)

    cards = (here.device, T4.device)
    assert estimator.asked == [(100, cards)]
    assert [each.verdict for each in found.units] == [Verdict.FITS, Verdict.FITS]


async def test_roles_with_other_specs_are_asked_side_by_side() -> None:
    """One slow estimate does not hold up the other."""
    estimator = FakeEstimator(gate=asyncio.Barrier(2))

    found = await judged(
        training(batch_size=1),
        training(batch_size=2),
        estimator=estimator,
        deadline_seconds=5,
    )

    assert found.verdict is Verdict.FITS


async def test_worst_unit_decides_and_is_named() -> None:
    """A job of several roles is as bad as its worst, and the message says which that is."""
    master = training(role="Master", batch_size=100)
    worker = training(role="Worker", batch_size=256)

    found = await judged(master, worker)

    assert found.verdict is Verdict.OOM
    assert found.message.startswith("Worker: needs at least 25.6 GiB")


async def test_roles_with_the_same_message_say_it_once() -> None:
    """Both are named before it."""
    found = await judged(training(role="Master"), training(role="Worker"))

    assert found.message.startswith("Master, Worker: needs at least 25.6 GiB")
    assert "\n" not in found.message


async def test_late_estimate_is_unknown_and_runs_on() -> None:
    """The review answers at its deadline; the estimate is not cancelled and fills the cache."""
    gate = asyncio.Event()
    estimator = FakeEstimator(gate=gate)

    found = await judged(training(), estimator=estimator, deadline_seconds=0.01)

    assert (found.verdict, found.reason) == (Verdict.UNKNOWN, ReasonCode.LATE)
    assert (found.action, found.cache) == (Action.WARN, "late")
    assert found.message == (
        "its GPU memory could not be worked out in time. Hint: the estimate goes on: ask again in "
        "a minute."
    )
    gate.set()
    await asyncio.sleep(0.01)
    assert estimator.answered == 1


async def test_late_estimate_that_fails_afterwards_is_nobodys_failure() -> None:
    """asyncio does not complain about an exception that no review waited for."""
    told: list[str] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: told.append(context["message"]))
    gate = asyncio.Event()
    estimator = FakeEstimator(gate=gate, error=TraceError("broke"))

    await judged(training(), estimator=estimator, deadline_seconds=0.01)
    gate.set()
    await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()})
    gc.collect()  # it complains where nobody has heard of a failure when it is taken away

    assert (len(estimator.asked), estimator.answered, told) == (1, 0, [])


async def test_late_policy_may_allow_in_silence() -> None:
    """`onLate: allow` admits without a warning."""
    policy = Policy(mode=Mode.ENFORCE, on_unknown=Action.DENY, on_late=Action.ALLOW)
    estimator = FakeEstimator(gate=asyncio.Event())

    found = await judged(training(), estimator=estimator, policy=policy, deadline_seconds=0.01)

    assert (found.action, found.warnings) == (Action.ALLOW, ())


async def test_late_hints_are_left_out() -> None:
    """The verdict does not wait for them."""
    estimator = FakeEstimator(fit_gate=asyncio.Event())

    found = await judged(training(), estimator=estimator, deadline_seconds=0.1)

    assert (found.verdict, found.action, found.hints) == (Verdict.OOM, Action.DENY, ())


async def test_failing_search_leaves_the_verdict() -> None:
    """A hint that cannot be found is no reason to let the job pass."""
    estimator = FakeEstimator(fit_error=TraceError("broke"))

    found = await judged(training(), estimator=estimator)

    assert (found.verdict, found.hints) == (Verdict.OOM, ())


@pytest.mark.parametrize(
    ("error", "code", "path", "reason"),
    [
        (
            UnsupportedJobError(
                "optimizer 'adafactor' is not modelled",
                code=UnknownCode.OPTIMIZER,
                path="training.optimizer.name",
                hint="known: adamw, sgd",
            ),
            "optimizer",
            "training.optimizer.name",
            "optimizer 'adafactor' is not modelled",
        ),
        (
            SpecError([Problem(path="model.name", message="'resnet5' is not known")]),
            ReasonCode.INVALID_SPEC,
            "model.name",
            "'resnet5' is not known",
        ),
        (
            TraceError("tensor 3 is freed twice"),
            ReasonCode.ESTIMATOR_FAILED,
            "",
            "its estimate failed, which is our fault: tensor 3 is freed twice",
        ),
        (
            MemoryLimitError("ended at 3 GiB"),
            ReasonCode.ESTIMATOR_FAILED,
            "",
            "its estimate ran out of the estimator's own memory, on the host: ended at 3 GiB",
        ),
        (
            EstimatorUnavailableError("no estimator worker could be started (no pids)"),
            ReasonCode.ESTIMATOR_UNAVAILABLE,
            "",
            "its GPU memory could not be worked out: the estimator could not be asked: "
            "no estimator worker could be started (no pids)",
        ),
        (
            EstimateTimeoutError("ended after 60 s"),
            ReasonCode.LATE,
            "",
            "its GPU memory could not be worked out in time",
        ),
    ],
)
async def test_estimator_that_cannot_answer_makes_unknown_with_the_reason(
    error: EstimatorError, code: str, path: str, reason: str
) -> None:
    """What it said is kept as a finding; the message shows nothing of ours."""
    found = await judged(training(), estimator=FakeEstimator(error=error))

    (finding,) = found.units[0].findings
    assert found.verdict is Verdict.UNKNOWN
    assert found.reason == code
    assert (finding.code, finding.path, finding.reason) == (code, path, reason)
    assert not any(own in found.message for own in ("tensor 3", "3 GiB", "no pids"))
    if error.hint:
        assert finding.hint == error.hint


@pytest.mark.parametrize(
    "error",
    [
        EstimatorUnavailableError("the estimator process ended before it answered"),
        MemoryLimitError("ended at 3 GiB"),
        TraceError("tensor 3 is freed twice"),
    ],
)
async def test_nobody_is_denied_for_what_is_broken_on_our_side(error: EstimatorError) -> None:
    """Not even where jobs that cannot be read are: it says nothing of the job."""
    policy = Policy(mode=Mode.ENFORCE, on_unknown=Action.DENY)

    found = await judged(training(), estimator=FakeEstimator(error=error), policy=policy)

    assert (found.verdict, found.action, found.is_spared) == (Verdict.UNKNOWN, Action.WARN, False)


async def test_estimator_that_could_not_be_asked_is_told_as_that() -> None:
    """What was not done, what became of the job, and what comes next; nothing of our processes."""
    error = EstimatorUnavailableError("the pytorch estimator process keeps ending")

    found = await judged(training(), estimator=FakeEstimator(error=error))

    assert (found.reason, found.cache) == ("estimator-unavailable", "late")
    assert found.warnings == (
        "its GPU memory could not be worked out: the estimator could not be asked",
        "hint: it was let through unjudged; the controller takes it up again where it runs, "
        "or submit it again",
    )


async def test_jobs_that_nobody_could_be_asked_about_pass_as_late_ones_do() -> None:
    """In silence, where settings say so of late ones."""
    policy = Policy(mode=Mode.ENFORCE, on_unknown=Action.DENY, on_late=Action.ALLOW)
    estimator = FakeEstimator(error=EstimatorUnavailableError("no process"))

    found = await judged(training(), estimator=estimator, policy=policy)

    assert (found.action, found.warnings) == (Action.ALLOW, ())


async def test_fault_of_ours_is_to_be_reported() -> None:
    """No annotation makes our own bug go away."""
    found = await judged(training(), estimator=FakeEstimator(error=TraceError("two\nlines")))

    (finding,) = found.units[0].findings
    assert finding.reason == "its estimate failed, which is our fault: two lines"
    assert finding.hint == "report it: it is a bug of vramgate, and an annotation cannot help"


@pytest.mark.parametrize("classes", [(T4, CLOSED_A100), (CLOSED_A100,)])
async def test_template_that_a_card_behind_a_taint_would_hold_is_warned_and_not_denied(
    classes: tuple[NodeClass, ...],
) -> None:
    """Runtime classes, queues and other webhooks may add the toleration to its pods."""
    found = await judged(training(), classes=classes)

    assert (found.verdict, found.action) == (Verdict.TIGHT, Action.WARN)
    assert found.reason == Cause.TAINTED_CARD
    assert "NVIDIA-A100-SXM4-40GB ×8, if the pod tolerates taint team=a:NoSchedule" in found.message
    assert found.units[0].estimate is not None


async def test_pod_that_only_a_card_behind_a_taint_would_hold_is_denied() -> None:
    """Nobody adds to it any more; the card is named as elsewhere."""
    pod = replace(unit(), template="")
    annotations = {"vramgate.dev/spec": json.dumps(spec_document(batch_size=256))}
    submitted = replace(workload(pod, kind="Pod"), metadata={"annotations": annotations})

    found = await judged(submitted=submitted, classes=[T4, CLOSED_A100])

    assert (found.verdict, found.action) == (Verdict.OOM, Action.DENY)
    assert "fits on the node with an NVIDIA-A100-SXM4-40GB" in found.hints


async def test_cards_behind_taints_are_not_asked_about_if_another_holds_the_job() -> None:
    """The verdict would be the same, later."""
    estimator = FakeEstimator()

    await judged(training(batch_size=100), classes=[T4, CLOSED_A100], estimator=estimator)

    assert estimator.asked == [(100, (T4.device,))]


async def test_card_of_unknown_memory_behind_a_taint_is_no_reason_to_deny() -> None:
    """It might hold the job."""
    unheard = node_class("Z900", budget=None, unknown_reason="no label x", taints=[TEAM_TAINT])

    found = await judged(training(), classes=[T4, unheard])

    assert (found.verdict, found.reason) == (Verdict.UNKNOWN, ReasonCode.NO_CLASS)
    assert "the memory of Z900 is not known: no label x" in found.message


async def test_card_behind_a_taint_that_cannot_be_asked_in_time_is_no_reason_to_deny() -> None:
    """Nothing is refused on half an answer."""

    class SlowElsewhere(FakeEstimator):
        async def estimate(self, job: Job, devices: Sequence[Device]) -> tuple[Estimate, ...]:
            if T4.device not in devices:
                await asyncio.Event().wait()
            return await super().estimate(job, devices)

    found = await judged(
        training(), classes=[T4, CLOSED_A100], estimator=SlowElsewhere(), deadline_seconds=0.1
    )

    assert (found.verdict, found.reason) == (Verdict.UNKNOWN, ReasonCode.LATE)
    assert found.action is Action.WARN


async def test_fault_of_ours_is_not_hidden_here() -> None:
    """Only `handler.py` catches what we did not foresee."""

    def broken(spec: JobSpec) -> int:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await judged(training(), estimator=FakeEstimator(need=broken))


async def test_unreadable_unit_asks_nothing_of_the_estimator() -> None:
    """There is no spec: the finding says what would have helped."""
    estimator = FakeEstimator()

    found = await judged(unit(), estimator=estimator)

    assert (found.verdict, found.action) == (Verdict.UNKNOWN, Action.WARN)
    assert estimator.asked == []
    assert found.units[0].findings
    assert len(found.warnings) >= 1


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        ((), "cannot tell whether it fits: no node with a GPU is known."),
        (
            (node_class(budget=GIB, taints=[TEAM_TAINT]),),
            "cannot tell whether it fits: no GPU node is open to it: taint team=a:NoSchedule is "
            "not tolerated. Hint: add a toleration for it, if the job is meant to run there.",
        ),
        (
            (node_class("Z900", budget=None, unknown_reason="no label x"),),
            "cannot tell whether it fits: the memory of Z900 is not known: no label x. Hint: label "
            "its nodes with nvidia.com/gpu.memory (GPU feature discovery does).",
        ),
    ],
)
async def test_job_without_a_class_is_unknown_never_oom(
    classes: tuple[NodeClass, ...], message: str
) -> None:
    """No card that could be compared is no proof of anything."""
    estimator = FakeEstimator()

    found = await judged(training(), classes=classes, estimator=estimator)

    assert (found.verdict, found.reason) == (Verdict.UNKNOWN, ReasonCode.NO_CLASS)
    assert found.message == message
    assert T4.device not in [device for _, devices in estimator.asked for device in devices]


async def test_workload_with_nothing_to_judge_is_skipped() -> None:
    """A job without GPUs passes, with the reason for whoever asks."""
    submitted = replace(workload(), skip=ReasonCode.NO_GPU)

    found = await judged(submitted=submitted)

    assert (found.verdict, found.action, found.reason) == (
        Verdict.SKIPPED,
        Action.ALLOW,
        ReasonCode.NO_GPU,
    )
    assert found.message == "not judged: asks for no GPU."


async def test_finding_of_a_late_unit_beside_an_unreadable_one_follows_on_unknown() -> None:
    """A job that can never be read is not excused by being slow as well."""
    policy = Policy(mode=Mode.ENFORCE, on_unknown=Action.DENY)
    estimator = FakeEstimator(gate=asyncio.Event())

    found = await judged(
        training(role="a"),
        unit(role="b"),
        estimator=estimator,
        policy=policy,
        deadline_seconds=0.01,
    )

    assert found.action is Action.DENY
    assert isinstance(found.units[1].findings[0], Finding)
