"""The scheduling gate of pods whose estimate is late: put on at their CREATE, taken off later.

    Pod -> Pod

While a gate is on, node affinity and nodeSelector may still be narrowed (KEP-3838). Gates may be
taken off at any time and put on at a pod's CREATE alone (KEP-3521).
Source: kubernetes v1.36.3 `pkg/apis/core/validation/validation.go` (`ValidatePodUpdate`).
"""

from __future__ import annotations

from collections.abc import Mapping

from admission.steer.places import Place, changed, found
from admission.values import Json

GATE = "vramgate.dev/estimating"
PLACE: Place = ("spec", "schedulingGates")


def gates_of(pod: Json) -> tuple[str, ...]:
    """Return the names of the gates that hold *pod*, a whole Pod."""
    gates = found(pod, PLACE)
    if not isinstance(gates, list | tuple):
        return ()
    return tuple(str(gate.get("name")) for gate in gates if isinstance(gate, Mapping))


def is_gated(pod: Json) -> bool:
    """Return whether *pod* is held by our gate."""
    return GATE in gates_of(pod)


def gated(pod: Json) -> Json:
    """Return *pod* with our gate behind others'."""
    if is_gated(pod):
        return pod
    gates = found(pod, PLACE)
    others = list(gates) if isinstance(gates, list | tuple) else []
    return changed(pod, PLACE, [*others, {"name": GATE}])


def ungated(pod: Json) -> Json:
    """Return *pod* without our gate, and without a list of gates that is empty."""
    gates = found(pod, PLACE)
    if not isinstance(gates, list | tuple):
        return pod
    others = [
        gate for gate in gates if not (isinstance(gate, Mapping) and gate.get("name") == GATE)
    ]
    return changed(pod, PLACE, others or None)
