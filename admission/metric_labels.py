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
    EstimatorUnavailableError,
    MemoryLimitError,
    SpecError,
    TraceError,
    UnsupportedJobError,
)
from estimator.notes import UnknownCode
from estimator.spec import Framework
from estimator.trace import Method

OTHER = "other"
"""The label of everything that is not in its closed set."""
NONE = "none"
FAULT = "fault"
"""The unknown code of a review that failed on our own account."""

_REVIEWED = {kind: read for (_, kind), read in workloads.KINDS.items() if not read.explain_only}
KINDS = (*_REVIEWED, OTHER)
"""Templates that others start jobs from are not sent to us: they are `other` if they ever are."""
JUDGED = (*(kind for kind, read in _REVIEWED.items() if not read.observe_only), OTHER)
"""Kinds that may be warned about, denied and steered; the others are counted only."""
CACHE = ("hit", "miss", "late", NONE)
METHODS = {
    framework: (method.value, Method.FORMULA.value, NONE)
    for framework, method in (
        (Framework.PYTORCH, Method.TRACE),
        (Framework.TENSORFLOW, Method.COMPILE),
        (Framework.JAX, Method.COMPILE),
        (Framework.MXNET, Method.PLAN),
    )
}
"""How a framework's jobs are estimated; `none` where there is no estimate."""
WORKER_STATES = ("starting", "idle-template", "busy", "waiting", "dead")
"""Of templates, but `busy` (forks that estimate) and `waiting` (the length of the queue)."""
OUTCOMES = (
    "ok",
    *(
        kind.kind
        for kind in (
            SpecError,
            UnsupportedJobError,
            TraceError,
            EstimatorUnavailableError,
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


_WARNED = (Verdict.OOM, Verdict.UNKNOWN, Verdict.TIGHT)
_DENIED = (Verdict.OOM, Verdict.UNKNOWN)


def possible_actions(verdict: Verdict, mode: Mode, *, is_judged: bool = True) -> tuple[Action, ...]:
    """Return what a verdict may lead to in a mode."""
    if not is_judged or mode is Mode.OFF or verdict not in _WARNED:
        return (Action.ALLOW,)
    if mode is Mode.ENFORCE and verdict in _DENIED:
        return (Action.ALLOW, Action.WARN, Action.DENY)
    return (Action.ALLOW, Action.WARN)


def closed(value: str, values: Sequence[str], fallback: str = OTHER) -> str:
    """Return *value* if it is one of *values*, else *fallback*."""
    return value if value in values else fallback
