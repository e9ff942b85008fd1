"""Which cards a node gives to pods, as GPU feature discovery labels them.

    Node -> Cards, one a resource

Never guesses a size: a card whose memory is not known says why.
Not modelled: nodes with cards of several kinds (their labels name one), DRA, vGPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from admission.values import Json
from admission.workloads.fields import mapping
from estimator.catalog import device_for_product, product_label, recognise, resolve_device
from estimator.device import ComputeCapability, Device
from estimator.errors import EstimatorError
from estimator.units import GIB, MIB

GPU = "nvidia.com/gpu"
MIG = "nvidia.com/mig-"
SHARED = ".shared"
NOT_MODELLED = ("amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe", "habana.ai/gaudi")

_PRODUCT_LABELS = (
    "nvidia.com/gpu.product",
    "gpu.nvidia.com/model",
    "cloud.google.com/gke-accelerator",
    "k8s.amazonaws.com/accelerator",
)
"""GPU feature discovery, CoreWeave, GKE, EKS."""

_MOST_MIB = 10_000_000
"""Old GPU feature discovery wrote bytes (gpu-feature-discovery#26): larger values are bytes."""

_LEAST_MIB = GIB // MIB
"""No card that trains has less; a label that says so was written in another unit."""

_MOST_DEVIATION_PERCENT = 25
"""How far a label may be from the catalog: drivers, ECC and carve-outs move it by some percent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What one node gives for one unit of one resource."""

    name: str
    product: str
    resource: str
    num_gpus: int
    """How many of them the node has when it is healthy and empty."""
    sharing: str
    device: Device | None
    unknown_reason: str | None = None


def cards_of(node: Json) -> tuple[Card, ...]:
    """Return the cards of *node*, one a resource that pods can ask for; none for a CPU node.

    Raises:
        RequestError: if the Node is malformed.
    """
    labels = _labels(node)
    return tuple(
        _card(resource, num_gpus, labels) for resource, num_gpus in _resources(node, labels).items()
    )


def _labels(node: Json) -> Mapping[str, str]:
    metadata = mapping(node.get("metadata"), "metadata")
    labels = mapping(metadata.get("labels"), "metadata.labels")
    return {str(key): str(value) for key, value in labels.items()}


def _resources(node: Json, labels: Mapping[str, str]) -> dict[str, int]:
    """Return how many GPUs the node has, by resource.

    The larger of capacity and allocatable: unhealthy cards come back. A node that has no device
    plugin yet (booting, or a template of an autoscaler) is taken at its labels' word.
    """
    status = mapping(node.get("status"), "status")
    counts: dict[str, int] = {}
    for key in ("capacity", "allocatable"):
        for resource, amount in mapping(status.get(key), f"status.{key}").items():
            if _is_card(resource):
                counts[resource] = max(counts.get(resource, 0), _whole(amount) or 0)
    present = {resource: count for resource, count in sorted(counts.items()) if count}
    if present:
        return present
    promised = (_whole(labels.get(f"{GPU}.count")) or 0) * max(
        _whole(labels.get(f"{GPU}.replicas")) or 1, 1
    )
    return {GPU: promised} if promised or f"{GPU}.product" in labels else {}


def _is_card(resource: str) -> bool:
    plain = resource.removesuffix(SHARED)
    return plain == GPU or plain.startswith(MIG) or plain in NOT_MODELLED


def _card(resource: str, num_gpus: int, labels: Mapping[str, str]) -> Card:
    prefix = resource.removesuffix(SHARED)
    product = _product(prefix, labels)
    sharing = _sharing(prefix, resource, product, labels)
    card = Card(
        name=product or prefix,
        product=product,
        resource=resource,
        num_gpus=num_gpus,
        sharing=sharing,
        device=None,
    )
    if prefix in NOT_MODELLED:
        return replace(card, unknown_reason=f"cards of {prefix} are not modelled")
    if product.endswith("-MIG-INVALID"):
        return replace(card, unknown_reason="its MIG slices do not agree with the MIG strategy")
    device = _device(prefix, product, labels)
    if isinstance(device, str):
        return replace(card, unknown_reason=device)
    return _share(card, device, _replicas(prefix, num_gpus, labels))


def _product(prefix: str, labels: Mapping[str, str]) -> str:
    if f"{prefix}.product" in labels:
        return labels[f"{prefix}.product"]
    if prefix == GPU:
        return next((labels[key] for key in _PRODUCT_LABELS if key in labels), "")
    parent = labels.get(f"{GPU}.product", "")
    return f"{parent}-MIG-{prefix.removeprefix(MIG)}" if prefix.startswith(MIG) and parent else ""


def _sharing(prefix: str, resource: str, product: str, labels: Mapping[str, str]) -> str:
    """Return how a card is divided: none, mig, mps or time-slicing.

    Without a strategy label (before k8s-device-plugin 0.15) only time-slicing existed.
    """
    strategy = labels.get(f"{prefix}.sharing-strategy", "")
    if strategy and strategy != "none":
        return strategy
    shared = resource.endswith(SHARED) or product.endswith("-SHARED")
    if not strategy and (shared or (_whole(labels.get(f"{prefix}.replicas")) or 1) > 1):
        return "time-slicing"
    return "mig" if prefix.startswith(MIG) or "-MIG-" in product else "none"


def _replicas(prefix: str, num_gpus: int, labels: Mapping[str, str]) -> int:
    """Return among how many clients one card is divided; 0 if the labels do not say."""
    replicas = _whole(labels.get(f"{prefix}.replicas")) or 0
    cards = _whole(labels.get(f"{prefix}.count")) or 0
    return replicas if replicas > 1 else num_gpus // cards if cards else 0


def _device(prefix: str, product: str, labels: Mapping[str, str]) -> Device | str:
    """Return the whole card or slice, or why it is not known."""
    bare = product.removesuffix("-SHARED")
    total_mib = _mib(labels.get(f"{prefix}.memory"))
    if total_mib is None:
        return _known_product(bare, f"{prefix}.memory")
    if (doubt := _doubt(bare, total_mib)) is not None:
        return f"label {prefix}.memory says {labels[f'{prefix}.memory']}, {doubt}"
    capability = _capability(labels)
    if capability is None and recognise(bare) is None:
        return f"no label {GPU}.compute.major, and {bare or 'the card'} is not in the catalog"
    return device_for_product(
        bare, total_mib=total_mib, compute_capability=capability, driver=_driver(labels)
    )


def _doubt(bare: str, total_mib: int) -> str | None:
    """Return why a memory label cannot be true of the card, if it cannot.

    A wrong label would make a card of almost nothing, and deny every job.
    """
    gpu = recognise(bare, total_mib=total_mib)
    is_slice = product_label(bare).profile is not None
    if gpu is not None and not is_slice:
        deviation = 100 * abs(total_mib - gpu.total_mib)
        if deviation > _MOST_DEVIATION_PERCENT * gpu.total_mib:
            return f"and {gpu.product} has {gpu.total_mib} (MiB)"
        return None
    return "which is less than 1 GiB (it counts MiB)" if total_mib < _LEAST_MIB else None


def _known_product(bare: str, label: str) -> Device | str:
    missing = f"no label {label}"
    if not bare:
        return missing
    try:
        return resolve_device(bare)
    except EstimatorError:
        return f"{missing}, and {bare} is not in the catalog"


def _share(card: Card, device: Device, replicas: int) -> Card:
    """Return *card* with the budget of one client."""
    bare = card.product.removesuffix("-SHARED") or device.name
    if card.sharing in ("none", "mig"):
        return replace(card, name=bare, device=device)
    if card.sharing == "time-slicing":
        return replace(card, name=f"{bare}/time-slicing", device=device)
    if card.sharing != "mps":
        return replace(card, unknown_reason=f"sharing strategy {card.sharing!r} is not known")
    usable = device.usable_bytes
    if usable is None or replicas < 1:
        return replace(card, unknown_reason="no label says how many clients share a card")
    share = replace(device, budget_bytes=usable // replicas)
    return replace(card, name=f"{bare}/mps-{replicas}", device=share)


def _mib(text: str | None) -> int | None:
    """Return a memory label in MiB; None if it is missing, zero or no number."""
    value = _whole(text)
    if not value:
        return None
    return value // MIB if value > _MOST_MIB else value


def _capability(labels: Mapping[str, str]) -> ComputeCapability | None:
    major = _whole(labels.get(f"{GPU}.compute.major"))
    minor = _whole(labels.get(f"{GPU}.compute.minor"))
    return (major, minor or 0) if major else None


def _driver(labels: Mapping[str, str]) -> str | None:
    """Return the driver's version; older GPU feature discovery spelled the labels differently."""
    if full := labels.get("nvidia.com/cuda.driver-version.full"):
        return full
    for keys in (
        [f"nvidia.com/cuda.driver-version.{part}" for part in ("major", "minor", "revision")],
        [f"nvidia.com/cuda.driver.{part}" for part in ("major", "minor", "rev")],
    ):
        parts = [labels[key] for key in keys if labels.get(key)]
        if parts:
            return ".".join(parts)
    return None


def _whole(value: object) -> int | None:
    """Return a count written as an integer or its text; None for anything else."""
    text = str(value).strip()
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else None
