"""How the cards of a node are divided among pods, and what one pod gets.

    labels -> Division; Device, Division -> Device with the budget of one client

Source: NVIDIA/k8s-device-plugin 1b826acc `internal/lm/resource.go` (labels; `-SHARED`),
`cmd/mps-control-daemon/mps/daemon.go` (a client may pin total ÷ replicas; the driver's own part
comes off first here); GKE's labels: "GPU sharing strategies in GKE".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from admission.capacity.labels import GPU, whole
from estimator.device import Device

MIG = "nvidia.com/mig-"
SHARED = ".shared"
GKE_PARTITION = "cloud.google.com/gke-gpu-partition-size"
_GKE_STRATEGY = "cloud.google.com/gke-gpu-sharing-strategy"
_GKE_CLIENTS = "cloud.google.com/gke-max-shared-clients-per-gpu"
_GKE_STRATEGIES = {"time-sharing": "time-slicing", "mps": "mps"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Division:
    """How one card is divided."""

    sharing: str
    """none, mig, mps, time-slicing, or a strategy nobody has heard of."""
    replicas: int
    """Among how many clients; 0 if the labels do not say."""


def division_of(resource: str, product: str, num_gpus: int, labels: Mapping[str, str]) -> Division:
    """Return how the cards behind *resource* are divided.

    Without a strategy label (before k8s-device-plugin 0.15) only time-slicing existed.
    """
    prefix = resource.removesuffix(SHARED)
    if (gke := _of_gke(prefix, labels)) is not None:
        return gke
    replicas = _replicas(prefix, num_gpus, labels)
    strategy = labels.get(f"{prefix}.sharing-strategy", "")
    if strategy and strategy != "none":
        return Division(sharing=strategy, replicas=replicas)
    shared = resource.endswith(SHARED) or product.endswith("-SHARED")
    if not strategy and (shared or (whole(labels.get(f"{prefix}.replicas")) or 1) > 1):
        return Division(sharing="time-slicing", replicas=replicas)
    is_slice = prefix.startswith(MIG) or "-MIG-" in product
    return Division(sharing="mig" if is_slice else "none", replicas=1)


def client_device(device: Device, division: Division) -> Device | str:
    """Return what one client has of *device*, or why that is not known."""
    if division.sharing in ("none", "mig", "time-slicing"):
        return device
    if division.sharing != "mps":
        return f"sharing strategy {division.sharing!r:.60} is not known"
    usable = device.usable_bytes
    if usable is None or division.replicas < 1:
        return "no label says how many clients share a card"
    return replace(device, budget_bytes=usable // division.replicas)


def suffix_of(division: Division) -> str:
    """Return what tells the class from that of the whole card."""
    match division.sharing:
        case "time-slicing":
            return "/time-slicing"
        case "mps":
            return f"/mps-{division.replicas}"
        case _:
            return ""


def _of_gke(prefix: str, labels: Mapping[str, str]) -> Division | None:
    """Return GKE's own sharing; a partition that is time-shared counts as time-sliced."""
    if prefix != GPU:
        return None
    strategy = labels.get(_GKE_STRATEGY, "")
    clients = whole(labels.get(_GKE_CLIENTS)) or 0
    if not strategy:
        return None
    return Division(sharing=_GKE_STRATEGIES.get(strategy, strategy), replicas=clients)


def _replicas(prefix: str, num_gpus: int, labels: Mapping[str, str]) -> int:
    replicas = whole(labels.get(f"{prefix}.replicas")) or 0
    cards = whole(labels.get(f"{prefix}.count")) or 0
    return replicas if replicas > 1 else num_gpus // cards if cards else 0
