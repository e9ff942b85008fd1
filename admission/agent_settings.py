"""The settings of `vramgate agent`.

YAML -> AgentSettings (frozen)
"""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from admission.section import Section


class AgentSettings(Section):
    """What the agent of a GPU node measures, how often, and whom it tells. Read at its start."""

    host: str = "0.0.0.0"  # noqa: S104 (Prometheus and the kubelet reach a pod on its own address)
    """Address of `/metrics`, `/healthz` and `/readyz`. The default is every IPv4 address."""

    port: int = Field(default=8081, ge=0, le=65535)
    """Port of those routes, without TLS. 0 takes a free one and logs it."""

    node_name: str | None = Field(default=None, min_length=1, max_length=253)
    """The node it is on. Absent: the variable `NODE_NAME`, which the chart takes from the pod."""

    proc_path: Path = Path("/proc")
    """Where the host's processes are shown: with hostPID `/proc`, else a mount of the host's."""

    interval_seconds: float = Field(default=1.0, ge=0.1, le=60)
    """Time between two looks at the cards. A peak that is over sooner may not be seen."""

    annotate: bool = True
    """Whether a pod's peaks are written on it, as `vramgate.dev/peak-bytes`."""

    annotation_growth: float = Field(default=0.05, ge=0, le=1)
    """How much larger a peak is than the one that is written before it is written again."""

    annotation_seconds: float = Field(default=60.0, ge=1, le=3600)
    """The least time between two writes to one pod. Its last peaks are written as it ends."""
