"""The closed sets that labels of metrics come from.

    codes, kinds, errors -> label values

What is not in its set counts as `other`: nobody's text becomes a series.
"""

from __future__ import annotations

from collections.abc import Sequence

from admission import workloads
from admission.codes import Action, Mode, ReasonCode, Verdict
from estimator.errors import (
    EstimateTimeoutError,
    MemoryLimitError,
    SpecError,
    TraceError,
    UnsupportedJobError,
)
from estimator.notes import UnknownCode
from estimator.result import Method

OTHER = "other"
"""The label of everything that is not in its closed set."""
NONE = "none"
FAULT = "fault"
"""The unknown code of a review that failed on our own account."""

KINDS = (*dict.fromkeys(kind for _, kind in workloads.KINDS), OTHER)
CACHE = ("hit", "miss", "late", NONE)
METHODS = (*(method.value for method in Method), NONE)
OUTCOMES = (
    "ok",
    *(
        kind.kind
        for kind in (
            SpecError,
            UnsupportedJobError,
            TraceError,
            EstimateTimeoutError,
            MemoryLimitError,
        )
    ),
)
SOURCE_MARKS = {
    "annotation": "annotation",
    ".args": "args",
    ".command": "args",
    "configmap": "config",
    "env ": "env",
    "recipe": "registry",
    "default": "default",
}
SOURCES = (*dict.fromkeys(SOURCE_MARKS.values()), OTHER)
CODES = (
    *dict.fromkeys((*(code.value for code in ReasonCode), *(code.value for code in UnknownCode))),
    FAULT,
    OTHER,
)
WITHHELD = ("mode-warn", "exempt")
"""What kept an object from being denied."""
RELOADS = ("applied", "restart", "refused")
"""A change of the settings file is in force; in part, the rest at a restart; or not at all."""
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Seconds: from a cached review to the longest webhook timeout anybody uses."""

_WARNED = (Verdict.OOM, Verdict.UNKNOWN, Verdict.TIGHT)
_DENIED = (Verdict.OOM, Verdict.UNKNOWN)


def possible_actions(verdict: Verdict, mode: Mode) -> tuple[Action, ...]:
    """Return what a verdict may lead to in a mode."""
    if mode is Mode.OFF or verdict not in _WARNED:
        return (Action.ALLOW,)
    if mode is Mode.ENFORCE and verdict in _DENIED:
        return (Action.ALLOW, Action.WARN, Action.DENY)
    return (Action.ALLOW, Action.WARN)


def closed(value: str, values: Sequence[str], fallback: str = OTHER) -> str:
    """Return *value* if it is one of *values*, else *fallback*."""
    return value if value in values else fallback
