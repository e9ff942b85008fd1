"""One question to the estimator, and what its answer means for classes of nodes.

    Question, Estimator, Deadline -> Answer; NodeClasses, estimates -> ClassVerdicts

What the estimator may say (`EstimatorError`) becomes findings; a fault of our own does not.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from admission.decision import budget_of, class_verdict
from admission.floor import Floor
from admission.judge.deadline import Deadline, Late
from admission.learning.corrections import Corrections
from admission.learning.floors import raised
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


class Remembering(ABC):
    """An estimator that can tell what it has answered before, without waiting."""

    @abstractmethod
    def remembered(self, digest: str, devices: Sequence[Device]) -> tuple[Estimate, ...] | None:
        """Return the estimates of the spec with *digest*, one a device in order.

        None unless each of them is remembered.
        """


def remembered_answer(question: Question, digest: str, estimator: Estimator) -> Answer | None:
    """Return what *estimator* remembers of *question*, None if it has to be asked.

    *digest* is of the job's spec.
    """
    if not isinstance(estimator, Remembering):
        return None
    estimates = estimator.remembered(digest, question.devices)
    if estimates is None:
        return None
    return Answer(estimates=dict(zip(question.devices, estimates, strict=True)))


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


def corrected(answer: Answer, corrections: Corrections) -> Answer:
    """Return *answer* as what was measured of other jobs has it."""
    estimates = {card: corrections.corrected(each) for card, each in answer.estimates.items()}
    return Answer(estimates=estimates, findings=answer.findings)


def devices_of(classes: Iterable[NodeClass]) -> tuple[Device, ...]:
    """Return the distinct cards of known capacity."""
    known = (node_class.device for node_class in classes if budget_of(node_class) is not None)
    return tuple(dict.fromkeys(device for device in known if device is not None))


def class_verdicts(
    classes: Iterable[NodeClass],
    estimates: Mapping[Device, Estimate],
    *,
    floor: Floor | None = None,
) -> tuple[ClassVerdict, ...]:
    """Return the verdict on each class; unknown where its card was not estimated.

    *floor* is what an earlier run taught of the same unit.
    """
    if floor is not None:
        estimates = {device: raised(estimate, floor) for device, estimate in estimates.items()}
    return tuple(
        class_verdict(node_class, estimates.get(node_class.device) if node_class.device else None)
        for node_class in classes
    )
