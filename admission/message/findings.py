"""Why there is no verdict, and what would have given one.

EstimatorError | Reach -> Findings
"""

from __future__ import annotations

from collections.abc import Sequence

from admission.capacity.eligibility import Reach, Stage
from admission.codes import ReasonCode, Verdict
from admission.plaintext import plain
from admission.values import ClassVerdict, Finding
from estimator.errors import (
    EstimateTimeoutError,
    EstimatorError,
    EstimatorUnavailableError,
    MemoryLimitError,
    SpecError,
    UnsupportedJobError,
)

FAULT = "its estimate failed, which is our fault"
UNAVAILABLE = "its GPU memory could not be worked out: the estimator could not be asked"
OUT_OF_MEMORY = "its estimate ran out of the estimator's own memory, on the host"
REPORT_HINT = "report it: it is a bug of vramgate, and an annotation cannot help"
AGAIN_HINT = (
    "it was let through unjudged; the controller takes it up again where it runs, "
    "or submit it again"
)
MEMORY_HINT = "report it; an operator can raise workers.memoryBytes in the settings"
_OWN_WORDS = (FAULT, UNAVAILABLE, OUT_OF_MEMORY)
"""Before what our own processes said."""

_OBSTACLE_HINTS = {
    Stage.TAINT: "add a toleration for it, if the job is meant to run there",
    Stage.NAME: "check nodeName",
    Stage.SELECTOR: "check nodeSelector against `kubectl get nodes --show-labels`",
    Stage.AFFINITY: "check nodeAffinity against `kubectl get nodes --show-labels`",
    Stage.COUNT: "ask for fewer GPUs a pod",
}


def late() -> Finding:
    """Return the finding of an estimate that is still being worked out."""
    return Finding(
        code=ReasonCode.LATE,
        path="",
        reason="its GPU memory could not be worked out in time",
        hint="the estimate goes on: ask again in a minute",
    )


def failed(error: EstimatorError) -> tuple[Finding, ...]:
    """Return why the estimator gave no estimate."""
    match error:
        case UnsupportedJobError():
            code, hint = str(error.code), error.hint
            return (Finding(code=code, path=error.path, reason=error.message, hint=hint),)
        case SpecError():
            return tuple(
                Finding(
                    code=ReasonCode.INVALID_SPEC,
                    path=problem.path,
                    reason=problem.message,
                    hint=error.hint,
                )
                for problem in error.problems
            )
        case EstimateTimeoutError():
            return (Finding(code=ReasonCode.LATE, path="", reason=late().reason, hint=error.hint),)
        case EstimatorUnavailableError():
            return (_ours(ReasonCode.ESTIMATOR_UNAVAILABLE, UNAVAILABLE, error, AGAIN_HINT),)
        case MemoryLimitError():
            hint = error.hint or MEMORY_HINT
            return (_ours(ReasonCode.ESTIMATOR_FAILED, OUT_OF_MEMORY, error, hint),)
        case _:
            hint = error.hint or REPORT_HINT
            return (_ours(ReasonCode.ESTIMATOR_FAILED, FAULT, error, hint),)


def _ours(code: ReasonCode, words: str, error: EstimatorError, hint: str) -> Finding:
    """Return *words* with what our own process said, which `told_reason` leaves out again."""
    reason = f"{words}: {plain(error.message, limit=300)}"
    return Finding(code=code, path="", reason=reason, hint=hint)


def is_fault(finding: Finding) -> bool:
    """Return whether our own code, or the lack of a process of it, is the reason."""
    return finding.code in (ReasonCode.ESTIMATOR_FAILED, ReasonCode.ESTIMATOR_UNAVAILABLE)


def told_reason(finding: Finding) -> str:
    """Return the reason as the person who sent the job is told it.

    What our own code said of its failure is for whoever reports it: `explain` shows it. The path,
    which the sentence has already, is not said twice.
    """
    if is_fault(finding):
        return next((it for it in _OWN_WORDS if finding.reason.startswith(it)), FAULT)
    return finding.reason.removeprefix(f"{finding.path}: ") if finding.path else finding.reason


def no_class(classes: Sequence[ClassVerdict], reach: Reach) -> Finding:
    """Return why no node class can decide: none is reachable, or one of unknown memory is."""
    unknown = next((found for found in classes if found.verdict is Verdict.UNKNOWN), None)
    if unknown is not None:
        return Finding(
            code=ReasonCode.NO_CLASS,
            path="",
            reason=f"the memory of {unknown.node_class.name} is not known: {unknown.reason}",
            hint="label its nodes with nvidia.com/gpu.memory (GPU feature discovery does)",
        )
    if reach.obstacle is None:
        reason, hint = "no node with a GPU is known", None
    else:
        reason = f"no GPU node is open to it: {reach.obstacle.text}"
        hint = _OBSTACLE_HINTS.get(reach.obstacle.stage)
    return Finding(code=ReasonCode.NO_CLASS, path="", reason=reason, hint=hint)
