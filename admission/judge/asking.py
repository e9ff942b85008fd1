"""One question to the estimator, and what its answer means for classes of nodes.

    Question, Estimator, Deadline -> Answer; NodeClasses, estimates -> ClassVerdicts

What the estimator may say (`EstimatorError`) becomes findings; a fault of our own does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from admission.decision import budget_of, class_verdict
from admission.judge.deadline import Deadline, Late
from admission.message.findings import failed, late
from admission.values import ClassVerdict, Finding, NodeClass
from estimator.device import Device
from estimator.errors import EstimatorError
from estimator.workers.api import Estimator, Job

if TYPE_CHECKING:
    from estimator.result import Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One job and the cards it is to be estimated for: equal units ask once."""

    job: Job
    devices: tuple[Device, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Estimates by card, or why there are none."""

    estimates: Mapping[Device, Estimate]
    findings: tuple[Finding, ...] = ()


async def answer_of(question: Question, estimator: Estimator, deadline: Deadline) -> Answer:
    """Return what *estimator* says of *question*, or why it says nothing before the deadline."""
    try:
        estimates = await deadline.of(_estimate(question, estimator))
    except Late:
        return Answer(estimates={}, findings=(late(),))
    except EstimatorError as error:
        return Answer(estimates={}, findings=failed(error))
    return Answer(estimates=estimates)


async def _estimate(question: Question, estimator: Estimator) -> dict[Device, Estimate]:
    estimates = await estimator.estimate(question.job, question.devices)
    return dict(zip(question.devices, estimates, strict=True))


def devices_of(classes: Iterable[NodeClass]) -> tuple[Device, ...]:
    """Return the distinct cards of known capacity."""
    known = (node_class.device for node_class in classes if budget_of(node_class) is not None)
    return tuple(dict.fromkeys(device for device in known if device is not None))


def class_verdicts(
    classes: Iterable[NodeClass], estimates: Mapping[Device, Estimate]
) -> tuple[ClassVerdict, ...]:
    """Return the verdict on each class; unknown where its card was not estimated."""
    return tuple(
        class_verdict(node_class, estimates.get(node_class.device) if node_class.device else None)
        for node_class in classes
    )
