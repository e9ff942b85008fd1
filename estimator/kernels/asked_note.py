"""What the workspaces of convolutions rest on, in words.

Answers, wanted version -> Assumption
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from estimator.cudnn import Answer, Question, version_text
from estimator.kernels.choosing import ASKABLE_SINCE
from estimator.notes import Assumption, AssumptionCode


def asked_note(
    answers: Mapping[Question, Answer],
    *,
    asked: int,
    wanted: int | None,
    own: str,
    why: str | None,
) -> Assumption:
    """Return which versions of cuDNN gave *answers*, for how many of those *asked*.

    *wanted* is the version of the job's *own* library, in words; *why* is why some have no answer.
    """
    counts = Counter(answer.version for answer in answers.values())
    texts = [_shares(counts, asked), *_own(counts, wanted, own)]
    if why and wanted is not None and wanted not in counts and len(answers) == asked:
        texts.append(why)
    if missing := asked - len(answers):
        texts.append(f"{missing} had no answer and are bounded by mechanism ({why})")
    return Assumption(
        code=AssumptionCode.KERNEL_WORKSPACE,
        path="runtime.cudnn",
        value=f"cuDNN {' and '.join(version_text(version) for version in sorted(counts))}",
        reason="; ".join(texts),
    )


def older_note(framework: str, version: str) -> Assumption:
    """Return what is said of a job whose framework uses cuDNN's older interface."""
    own = f"{'torch' if framework == 'pytorch' else framework} {version}"
    return Assumption(
        code=AssumptionCode.KERNEL_WORKSPACE,
        path="runtime.cudnn",
        value="no workspace, perhaps",
        reason=f"cuDNN was not asked ({own} uses its older interface): each convolution "
        "is charged nothing, and at the high end the largest of what such algorithms may hold",
    )


def _shares(counts: Counter[int], asked: int) -> str:
    """Return how many shapes each version answered for; of one that answered for all, that."""
    first, *others = sorted(counts)
    if counts[first] == asked:
        return f"cuDNN {version_text(first)} was asked for each convolution's plans"
    text = f"cuDNN {version_text(first)} was asked for the plans of {counts[first]} of {asked}"
    shares = (f", cuDNN {version_text(each)} of {counts[each]}" for each in others)
    return f"{text} shapes{''.join(shares)}"


def _own(counts: Counter[int], wanted: int | None, own: str) -> Iterator[str]:
    """Yield what the job's own version has to do with those that were asked."""
    if wanted is None:
        yield f"{own} is not known to be what the job runs on: its cuDNN may be another release"
    elif wanted < ASKABLE_SINCE:
        yield (
            f"the job's own ({own}) is an older one, which cannot be asked: "
            "1x1 filters are taken to need no workspace"
        )
    elif set(counts) != {wanted}:
        yield f"the job's own ({own}) is {version_text(wanted)}"
