"""Which card a node has, and how large it is.

    Offer -> (product, Device or why it is not known)

GPU feature discovery's labels come first, then what the device plugin of a sharing scheduler wrote
down, then the cloud's labels and the type of the machine. Never guesses a size.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from admission.capacity.labels import GPU, capability_of, driver_of, mebibytes, whole
from admission.capacity.offers import Offer
from admission.capacity.sharing import GKE_PARTITION, MIG, SHARED
from admission.capacity.vendors import (
    MOST_DEVIATION_PERCENT,
    Named,
    card_among,
    sizes_of,
)
from estimator.catalog import Gpu, device_for_product, product_label, recognise, resolve_device
from estimator.device import Device
from estimator.errors import EstimatorError
from estimator.units import GIB, MIB

KOORDINATOR_MODEL = "node.koordinator.sh/gpu-model"
_MACHINE = f"{GPU}.machine"
_LEAST_MIB = GIB // MIB
"""No card that trains has less; a label that says so was written in another unit."""
_UNIFIED = re.compile(
    r"(nvidia-)?(gb10|thor|jetson|agx|(tegra )?orin|xavier|igpu)([ _-].*|\(.*)?", re.IGNORECASE
)
"""Products whose memory is the machine's. NVML says `Not Supported` of it, and GPU feature
discovery then writes no memory label (NVIDIA/k8s-device-plugin 1b826acc `internal/lm/resource.go`;
kubernetes-sigs/dra-driver-nvidia-gpu#1073, #1115 for GB10)."""


def product_of(offer: Offer) -> str:
    """Return what the card is called, empty if nothing says."""
    prefix, labels = offer.resource.removesuffix(SHARED), offer.labels
    if f"{prefix}.product" in labels:
        return labels[f"{prefix}.product"]
    if prefix.startswith(MIG):
        parent = labels.get(f"{GPU}.product", "") or _cloud_product(offer.named)
        return f"{parent}-MIG-{prefix.removeprefix(MIG)}" if parent else ""
    if prefix.startswith("amd.com/"):
        return _first(labels, "amd.com/gpu.product-name", "beta.amd.com/gpu.product-name")
    found = labels.get(f"{GPU}.product", "") if offer.scheduler else ""
    if not found and offer.registered is not None and len(offer.registered.kinds) == 1:
        found = offer.registered.kinds[0][0]
    found = found or labels.get(KOORDINATOR_MODEL, "")
    if found or offer.named is None:
        return found
    partition = labels.get(GKE_PARTITION, "")
    return f"{offer.named.name}-MIG-{partition}" if partition else offer.named.name


def identify(offer: Offer, product: str) -> Device | str:
    """Return the whole card or slice behind *offer*, or why it is not known."""
    prefix, labels = offer.resource.removesuffix(SHARED), offer.labels
    if product.endswith("-MIG-INVALID"):
        return "its MIG slices do not agree with the MIG strategy"
    if _is_unified(product) or _is_unified(labels.get(_MACHINE, "")):
        return (
            f"{product or labels.get(_MACHINE, '')} has no memory of its own: it is the machine's"
        )
    if offer.registered is not None and len({name for name, _ in offer.registered.kinds}) > 1:
        names = " and ".join(name for name, _ in offer.registered.kinds)
        return f"the node has cards of several kinds: {names:.200}"
    if (doubt := _other_count(offer)) is not None:
        return doubt
    source = prefix if prefix.startswith(MIG) else GPU
    bare = product.removesuffix("-SHARED")
    label = f"{source}.memory"
    total_mib = mebibytes(labels.get(label))
    if total_mib is not None:
        return _by_memory(bare, total_mib, label, labels)
    if f"{source}.product" in labels or prefix.startswith(MIG):
        return _by_product(bare, label)
    return _by_others(offer, bare, label)


def _by_memory(bare: str, total_mib: int, label: str, labels: Mapping[str, str]) -> Device | str:
    if (doubt := _doubt(bare, total_mib)) is not None:
        return f"label {label} says {labels[label]}, {doubt}"
    capability = capability_of(labels)
    if capability is None and recognise(bare) is None:
        return f"no label {GPU}.compute.major, and {bare or 'the card'} is not in the catalog"
    return device_for_product(
        bare, total_mib=total_mib, compute_capability=capability, driver=driver_of(labels)
    )


def _doubt(bare: str, total_mib: int) -> str | None:
    """Return why a memory label cannot be true of the card, if it cannot.

    A wrong label would make a card of almost nothing, and deny every job.
    """
    gpu = recognise(bare, total_mib=total_mib)
    label = product_label(bare)
    if gpu is not None and label.profile is None:
        deviation = 100 * abs(total_mib - gpu.total_mib)
        if deviation > MOST_DEVIATION_PERCENT * gpu.total_mib:
            return f"and {gpu.product} has {gpu.total_mib} (MiB)"
        return None
    profile = gpu.profile(label.profile) if gpu is not None and label.profile else None
    if profile is not None:
        deviation = 100 * abs(total_mib - profile.memory_mib)
        if deviation > MOST_DEVIATION_PERCENT * profile.memory_mib:
            return f"and {bare} has {profile.memory_mib} (MiB)"
    return "which is less than 1 GiB (it counts MiB)" if total_mib < _LEAST_MIB else None


def _by_product(bare: str, label: str) -> Device | str:
    missing = f"no label {label}"
    if not bare:
        return missing
    if product_label(bare).profile is None and len(sizes := sizes_of(bare)) > 1:
        return f"{missing}, and {bare} may have {' or '.join(str(gpu.total_mib) for gpu in sizes)}"
    try:
        return resolve_device(bare)
    except EstimatorError:
        return f"{missing}, and {bare} is not in the catalog"


def _by_others(offer: Offer, bare: str, label: str) -> Device | str:
    """Return the card by what a sharing scheduler or a cloud says of it."""
    of_scheduler = bare if offer.scheduler and sizes_of(bare) else ""
    named = offer.named
    if of_scheduler:
        named = Named(source=f"{offer.scheduler}: {bare}", name=bare, cards=sizes_of(bare))
    if named is None:
        return f"no label {label}" + (f", and {bare} is not in the catalog" if bare else "")
    gpu = card_among(named, _announced(offer, named))
    if isinstance(gpu, str):
        return f"no label {label}, and {gpu}"
    profile = offer.labels.get(GKE_PARTITION)
    if profile:
        return _slice(gpu, profile)
    if named.is_exact and named.memory_mib:
        return device_for_product(gpu.product, total_mib=named.memory_mib)
    return resolve_device(gpu.name)


def _announced(offer: Offer, named: Named) -> int | None:
    """Return the memory that tells two sizes apart; overcommitted memory tells nothing."""
    memory = offer.announced_mib
    if memory is None and offer.registered is not None:
        memory = max(memory for _, memory in offer.registered.kinds)
    if memory is None:
        return None
    return min(memory, max((gpu.total_mib for gpu in named.cards), default=memory))


def _slice(gpu: Gpu, profile: str) -> Device | str:
    try:
        return resolve_device(f"{gpu.name}/{profile}")
    except EstimatorError as error:
        return str(error.message)[:200]


def _other_count(offer: Offer) -> str | None:
    """Return why the labels cannot be about every card of the node, if they cannot.

    GPU feature discovery labels one kind of card and counts that one; of several kinds it is now
    one and now another (k8s-device-plugin#731, gpu-feature-discovery#27, #66).
    """
    prefix, labels = offer.resource.removesuffix(SHARED), offer.labels
    if prefix != GPU or offer.scheduler or "-MIG-" in labels.get(f"{GPU}.product", ""):
        return None
    count = whole(labels.get(f"{GPU}.count"))
    replicas = max(whole(labels.get(f"{GPU}.replicas")) or 1, 1)
    if not count and f"{GPU}.product" not in labels and offer.named is not None:
        count = offer.named.count
        clients = labels.get("cloud.google.com/gke-max-shared-clients-per-gpu")
        replicas = max(whole(clients) or 1, 1)
        if GKE_PARTITION in labels:
            return None
    if not count or offer.num_gpus <= count * replicas:
        return None
    return (
        f"the node offers {offer.num_gpus} GPUs and its labels describe {count * replicas}: "
        "cards of several kinds, or divided"
    )


def _is_unified(name: str) -> bool:
    return _UNIFIED.fullmatch(name.strip()) is not None


def _cloud_product(named: Named | None) -> str:
    return named.cards[0].product if named and len(named.cards) == 1 else ""


def _first(labels: Mapping[str, str], *keys: str) -> str:
    return next((labels[key] for key in keys if labels.get(key)), "")
