"""The closed lists of words in verdicts, used as metric labels too."""

from __future__ import annotations

from enum import StrEnum


class Verdict(StrEnum):
    """How a workload relates to the cards it may go to. Worst first: see `ORDER`."""

    OOM = "oom"
    UNKNOWN = "unknown"
    TIGHT = "tight"
    FITS = "fits"
    SKIPPED = "skipped"


ORDER = (Verdict.OOM, Verdict.UNKNOWN, Verdict.TIGHT, Verdict.FITS, Verdict.SKIPPED)
"""A workload's verdict is the first of these that one of its units has."""


class Action(StrEnum):
    """What the API server is told."""

    ALLOW = "allow"
    WARN = "warn"
    DENY = "deny"


class Mode(StrEnum):
    """How far an install or a namespace lets us go."""

    ENFORCE = "enforce"
    WARN = "warn"
    OFF = "off"


class ReasonCode(StrEnum):
    """Why a verdict is `unknown` or `skipped`, beside the estimator's own unknown codes."""

    NO_MODEL = "no-model"
    NO_BATCH = "no-batch"
    NO_COMMAND = "no-command"
    UNRESOLVED_VARIABLE = "unresolved-variable"
    TEMPLATE = "template-not-rendered"
    INVALID_SPEC = "invalid-spec"
    UNSUPPORTED = "unsupported"
    NO_CLASS = "no-class"
    LATE = "late"
    ESTIMATOR_FAILED = "estimator-failed"
    ESTIMATOR_UNAVAILABLE = "estimator-unavailable"
    """No process of the estimator could be asked: nothing is known of the job."""
    KIND = "kind"
    NO_GPU = "no-gpu"
    NO_TRAINING = "no-training"
    NO_JOB = "no-job"
    DOCUMENT = "document"
    """A ConfigMap, a model's files or another object could not be read."""
    DISABLED = "disabled"
    """Nothing was looked at: `policy.enabled` is false."""


NOT_YET = (ReasonCode.LATE, ReasonCode.ESTIMATOR_UNAVAILABLE)
"""Reasons that say nothing of the job: asked again it may be estimated. """
OURS = (*NOT_YET, ReasonCode.ESTIMATOR_FAILED)
"""Reasons that lie with us: nobody is denied for them, whatever `policy.onUnknown` says."""


class Steer(StrEnum):
    """How hard pods are steered to cards that hold them."""

    REQUIRED = "required"
    PREFERRED = "preferred"
    OFF = "off"


class Operation(StrEnum):
    """What is being done to the object."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"
