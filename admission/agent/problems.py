"""What keeps the agent from measuring, told once and again when it is over.

problems of a look -> one log line each at the start and at the end, and a metric

None of them ends the agent: it goes on with what it can see, and tries again.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import structlog

_log = structlog.get_logger()


class AgentProblem(StrEnum):
    """Labels of `vramgate_agent_problems`."""

    NVML_MISSING = "nvml-missing"
    """There is no `libnvidia-ml.so.1`: no driver, or a container without the NVIDIA runtime."""
    NVML_REFUSED = "nvml-refused"
    """The library is there and does not start: the driver is not loaded, say."""
    NVML_MISMATCH = "nvml-mismatch"
    """The driver was replaced under us: the library of another is loaded for good."""
    NVML_OLD = "nvml-old"
    """A driver that lacks a call we need."""
    CARD_LOST = "card-lost"
    """A card fell off the bus, or waits for a reset. The others are measured."""
    CARD_UNREADABLE = "card-unreadable"
    """A card answers with another error. The others are measured."""
    PROCESSES_UNKNOWN = "processes-unknown"
    """The driver tells no processes of a card, or not their memory."""
    OTHER_PIDS = "other-pids"
    """The driver names processes that are not in our process namespace: hostPID is missing."""
    PODS_UNKNOWN = "pods-unknown"
    """The pods of this node are not listed yet: nothing can be said of whom memory is."""
    ANNOTATION_FORBIDDEN = "annotation-forbidden"
    """401 or 403: the role does not let us write on pods."""
    ANNOTATION_REFUSED = "annotation-refused"
    """Another status, or no answer."""


Found = Mapping[AgentProblem, str]
"""What is wrong, and why."""


class Problems:
    """Remembers what was wrong, so that each is told once. For one thread."""

    def __init__(self) -> None:
        self.now: Found = {}
        """What is wrong now, and why. Replaced, never changed: others may read it."""

    def settle(self, found: Found) -> None:
        """Take *found* for all that is wrong from now on."""
        for problem, reason in found.items():
            if problem not in self.now:
                _log.warning("agent problem", problem=problem.value, reason=reason)
        for problem in self.now.keys() - found.keys():
            _log.info("agent problem over", problem=problem.value)
        self.now = dict(found)
