"""Whether a job may pass although its verdict would deny it.

    Review, settings, now -> Exemption, or a remark why there is none

Pure. An annotation counts only where workloads may loosen their own check.
"""

from __future__ import annotations

from datetime import datetime
from fnmatch import fnmatchcase

from admission.exemption import Exemption, moment_of, moment_text
from admission.plaintext import plain
from admission.policy_settings import ExemptionSettings, PolicySettings
from admission.review import Review

ANNOTATION = "vramgate.dev/exempt-until"


def exemption_of(
    review: Review, settings: PolicySettings, *, now: datetime
) -> tuple[Exemption | None, str]:
    """Return the exemption that lasts longest, and what to say where one does not count."""
    own, remark = _annotated(review, settings, now=now)
    given = [
        Exemption(until=each.until, source="settings", reason=each.reason)
        for each in settings.exemptions
        if _is_meant(each, review)
    ]
    valid = [each for each in (*given, *own) if each.until > now]
    if valid:
        return max(valid, key=lambda each: each.until), ""
    if given and not remark:
        remark = f"its exemption ended at {max(given, key=lambda each: each.until).until_text}"
    return None, remark


def says_exempt(review: Review) -> bool:
    """Return whether the object says that it is exempt."""
    return ANNOTATION in review.annotations


def _annotated(
    review: Review, settings: PolicySettings, *, now: datetime
) -> tuple[tuple[Exemption, ...], str]:
    text = review.annotations.get(ANNOTATION)
    if text is None:
        return (), ""
    if not settings.workloads_may_loosen:
        return (), f"{ANNOTATION} does not count here: policy.workloadsMayLoosen is off"
    until = moment_of(text) if isinstance(text, str) else None
    if until is None:
        seen = plain(str(text), limit=40)
        return (), f"{ANNOTATION}: {seen!r} is no moment like 2026-12-31T00:00:00Z"
    if until <= now:
        return (), f"its exemption ended at {moment_text(until)}"
    return (Exemption(until=until, source=ANNOTATION),), ""


def _is_meant(exemption: ExemptionSettings, review: Review) -> bool:
    return (
        exemption.namespace == review.namespace
        and exemption.kind in (None, review.kind)
        and fnmatchcase(review.title, exemption.name)
    )
