"""The settings of `vramgate controller`.

YAML -> ControllerSettings (frozen)
"""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from admission.section import Section


class Moved(StrEnum):
    """What the controller may move to another card; of everything else it only tells."""

    DEAD = "dead"
    """A job whose pods died of CUDA out-of-memory and that has a retry left."""
    PENDING = "pending"
    """A pod that waits for a card that cannot hold it."""
    RUNNING = "running"
    """A pod that runs on a card that cannot hold it: it is stopped."""


class ControllerSettings(Section):
    """What is done about jobs after they were admitted. Read at the controller's start."""

    host: str = "0.0.0.0"  # noqa: S104 (Prometheus and the kubelet reach a pod on its own address)
    """Address of `/metrics`, `/healthz` and `/readyz`. The default is every IPv4 address."""

    port: int = Field(default=8082, ge=0, le=65535)
    """Port of those routes, without TLS. 0 takes a free one and logs it."""

    lease_name: str = Field(default="vramgate-controller", min_length=1, max_length=253)
    """The Lease in the controller's namespace that says which of several is at work."""

    lease_seconds: float = Field(default=15.0, ge=1, le=600)
    """A controller that was not heard of for so long is taken over from."""

    gate_seconds: float = Field(default=600.0, ge=1, le=86400)
    """How long a pod with the gate `vramgate.dev/estimating` waits for its estimate at most."""

    moves: tuple[Moved, ...] = (Moved.DEAD,)
    """Whose pods are moved to cards that hold them: `dead`, `pending`, `running`; `[]` for none."""

    most_moves: int = Field(default=3, ge=0, le=100)
    """How often one workload is moved at most; then people are told that it was enough."""

    move_pause_seconds: float = Field(default=30.0, ge=0, le=86400)
    """The least time between two moves of one workload, doubled after each."""

    relax_steering: bool = False
    """Whether a pod that our steering keeps waiting is let go to the next smaller class."""

    stuck_seconds: float = Field(default=60.0, ge=1, le=86400)
    """How long a pod must have been unschedulable before anybody is told."""

    kueue: bool = True
    """Whether AdmissionChecks of `vramgate.dev/gpu-memory` are answered, where there is Kueue."""

    calibrate: bool = True
    """Whether measured peaks correct the estimates of `serve` (docs/operations.md)."""

    node_series: bool = False
    """Whether `/metrics` shows each GPU node by name."""
