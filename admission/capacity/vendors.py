"""What the labels of clouds say of a node's cards.

    labels -> Named: the cards it may have, how many, and from what this is known

Each cloud has names of its own, and the memory it announces is a nominal one: it only tells two
sizes of one card apart, and the catalog says what is really there.

Sources:

* Karpenter: aws/karpenter-provider-aws 1d927085 `pkg/apis/v1/labels.go`,
  `pkg/providers/instancetype/types.go`; the same names under `eks.amazonaws.com` in EKS Auto Mode
  (EKS user guide, "Create a Node Pool")
* GKE: "Run GPUs in Standard node pools"; `gke-accelerator` as in AI-Hypercomputer/xpk
  `src/xpk/core/system_characteristics.py`
* CoreWeave: "Advanced label selectors"; values in skypilot-org/skypilot#5628 (`vram: 81` of an
  H100 of 80 GB) and coreweave/kubernetes-cloud 67ae991a
* Alibaba: `aliyun.accelerator/nvidia_name`, `_mem`, `_count` (ACK user guide; memory is NVML's)
* EKS: `k8s.amazonaws.com/accelerator`, written by whoever makes the node group: read last
* AKS: `karpenter.azure.com/sku-gpu-name` and `-count` (Azure/karpenter-provider-azure)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from admission.capacity.instances import instance_of
from admission.capacity.labels import whole
from estimator.catalog import Gpu, gpu_named, recognise
from estimator.units import GIB, MIB

MOST_DEVIATION_PERCENT = 25
"""How far a memory label may be from the catalog: drivers, ECC and carve-outs move it by some
percent, and clouds announce nominal sizes."""

GKE_ACCELERATOR = "cloud.google.com/gke-accelerator"
EKS_ACCELERATOR = "k8s.amazonaws.com/accelerator"
COREWEAVE = ("gpu.nvidia.com/model", "gpu.nvidia.com/class")
ALIYUN = "aliyun.accelerator/nvidia_name"
AZURE = "karpenter.azure.com/sku-gpu-name"
_KARPENTER = ("karpenter.k8s.aws/instance-gpu", "eks.amazonaws.com/instance-gpu")

_V100 = ("v100-sxm2-16gb", "v100-sxm2-32gb")
_A100 = ("a100-sxm4-40gb", "a100-sxm4-80gb")

_AWS_NAMES: Mapping[str, tuple[str, ...]] = {
    "v100": _V100,
    "a100": _A100,
    "h100": ("h100-sxm5-80gb",),
    "rtx-pro-server-6000": ("rtx-pro-6000-blackwell",),
}
"""Beside those that are catalog names: t4, a10g, l4, l40s, h200, b200, k80, m60."""

_EKS_NAMES: Mapping[str, tuple[str, ...]] = {
    "nvidia-tesla-k80": ("k80",),
    "nvidia-tesla-m60": ("m60",),
    "nvidia-tesla-v100": _V100,
    "nvidia-tesla-a10": ("a10g",),
    "nvidia-ampere-a10": ("a10g",),
    "nvidia-a10g": ("a10g",),
    "nvidia-tesla-a100": _A100,
    "nvidia-ampere-a100": _A100,
    "nvidia-tesla-a100e": ("a100-sxm4-80gb",),
    "nvidia-ampere-a100e": ("a100-sxm4-80gb",),
    "nvidia-hopper-h100": ("h100-sxm5-80gb",),
}

_GKE_NAMES: Mapping[str, tuple[str, ...]] = {
    "nvidia-tesla-k80": ("k80",),
    "nvidia-tesla-p100": ("p100-pcie-16gb",),
    "nvidia-tesla-v100": ("v100-sxm2-16gb",),
    "nvidia-tesla-a100": ("a100-sxm4-40gb",),
    "nvidia-a100-80gb": ("a100-sxm4-80gb",),
    "nvidia-h100-80gb": ("h100-sxm5-80gb",),
    "nvidia-h100-mega-80gb": ("h100-sxm5-80gb",),
    "nvidia-h200-141gb": ("h200",),
    "nvidia-rtx-pro-6000": ("rtx-pro-6000-blackwell",),
}

_COREWEAVE_NAMES: Mapping[str, tuple[str, ...]] = {
    "a100_nvlink": ("a100-sxm4-40gb",),
    "a100_nvlink_80gb": ("a100-sxm4-80gb",),
    "a100_pcie_40gb": ("a100-pcie-40gb",),
    "a100_pcie_80gb": ("a100-pcie-80gb",),
    "h100_nvlink_80gb": ("h100-sxm5-80gb",),
    "h100_pcie": ("h100-pcie-80gb",),
    "tesla_v100": ("v100-pcie-16gb", "v100-pcie-32gb"),
    "tesla_v100_nvlink": _V100,
    "tesla_v100_nvlink_32gb": ("v100-sxm2-32gb",),
}

_AZURE_NAMES: Mapping[str, tuple[str, ...]] = {
    "v100": ("v100-pcie-16gb", "v100-sxm2-32gb"),
    "a100": ("a100-pcie-80gb", "a100-sxm4-40gb", "a100-sxm4-80gb"),
    "h100": ("h100-sxm5-80gb", "h100-nvl-94gb"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """What a cloud calls the cards of a node."""

    source: str
    """What says so, for messages: `label cloud.google.com/gke-accelerator nvidia-l4`."""
    name: str
    """What the cloud calls them."""
    cards: tuple[Gpu, ...]
    """Cards of the catalog that go by this name; none if it has none."""
    memory_mib: int | None = None
    """As announced, nominal."""
    count: int | None = None
    is_exact: bool = False
    """The memory is what the driver reports."""


def named_cards(labels: Mapping[str, str]) -> Named | None:
    """Return what the first label that names a card says of it; None if there is none."""
    for read in _READERS:
        if (named := read(labels)) is not None:
            return named
    return None


def card_among(named: Named, announced_mib: int | None = None) -> Gpu | str:
    """Return the one card that *named* can be, or why it cannot be told.

    Of two sizes the announced memory tells; without any, nothing is guessed: the smaller one would
    deny jobs that the larger one holds.
    """
    if not named.cards:
        return f"{named.source} is not in the catalog"
    memory = announced_mib or named.memory_mib
    if memory is None:
        sizes = {gpu.total_mib for gpu in named.cards}
        if len(sizes) == 1:
            return named.cards[0]
        return f"{named.source} may be {' or '.join(gpu.name for gpu in named.cards)}"
    nearest = min(named.cards, key=lambda gpu: abs(gpu.total_mib - memory))
    if 100 * abs(nearest.total_mib - memory) > MOST_DEVIATION_PERCENT * nearest.total_mib:
        return f"{named.source} has {nearest.total_mib} (MiB), and {memory} are announced"
    return nearest


def _karpenter(labels: Mapping[str, str]) -> Named | None:
    for prefix in _KARPENTER:
        name = labels.get(f"{prefix}-name")
        if name and labels.get(f"{prefix}-manufacturer", "nvidia") == "nvidia":
            return Named(
                source=f"label {prefix}-name {name}",
                name=name,
                cards=_cards(name, _AWS_NAMES),
                memory_mib=whole(labels.get(f"{prefix}-memory")) or None,
                count=whole(labels.get(f"{prefix}-count")),
            )
    return None


def _coreweave(labels: Mapping[str, str]) -> Named | None:
    key = next((key for key in COREWEAVE if labels.get(key)), None)
    if key is None:
        return None
    vram = whole(labels.get("gpu.nvidia.com/vram"))
    return Named(
        source=f"label {key} {labels[key]}",
        name=labels[key],
        cards=_cards(labels[key], _COREWEAVE_NAMES),
        memory_mib=vram * GIB // MIB if vram else None,
        count=whole(labels.get("gpu.nvidia.com/count")),
    )


def _gke(labels: Mapping[str, str]) -> Named | None:
    name = labels.get(GKE_ACCELERATOR)
    if not name:
        return None
    count = whole(labels.get("cloud.google.com/gke-accelerator-count"))
    instance = instance_of(labels)
    if count is None and instance is not None:
        count = instance[1].count
    return Named(
        source=f"label {GKE_ACCELERATOR} {name}",
        name=name,
        cards=_cards(name, _GKE_NAMES),
        count=count,
    )


def _aliyun(labels: Mapping[str, str]) -> Named | None:
    name = labels.get(ALIYUN)
    if not name:
        return None
    memory = labels.get("aliyun.accelerator/nvidia_mem", "").removesuffix("MiB")
    return Named(
        source=f"label {ALIYUN} {name}",
        name=name,
        cards=_cards(name, {}),
        memory_mib=whole(memory) or None,
        count=whole(labels.get("aliyun.accelerator/nvidia_count")),
        is_exact=True,
    )


def _instance(labels: Mapping[str, str]) -> Named | None:
    found = instance_of(labels)
    if found is None:
        return None
    name, instance = found
    gpu = gpu_named(instance.card)
    return Named(
        source=f"instance type {name}",
        name=gpu.product if gpu else instance.card,
        cards=(gpu,) if gpu else (),
        count=instance.count,
    )


def _azure(labels: Mapping[str, str]) -> Named | None:
    name = labels.get(AZURE)
    if not name:
        return None
    count = whole(labels.get("karpenter.azure.com/sku-gpu-count"))
    cards = _cards(name, _AZURE_NAMES)
    return Named(source=f"label {AZURE} {name}", name=name, cards=cards, count=count)


def _eks(labels: Mapping[str, str]) -> Named | None:
    name = labels.get(EKS_ACCELERATOR)
    if not name:
        return None
    return Named(
        source=f"label {EKS_ACCELERATOR} {name}", name=name, cards=_cards(name, _EKS_NAMES)
    )


def _cards(name: str, table: Mapping[str, tuple[str, ...]]) -> tuple[Gpu, ...]:
    """Return the cards called *name*: by *table*, by the catalog's names, or by its labels."""
    key = name.strip().lower()
    if key in table:
        return tuple(gpu for known in table[key] if (gpu := gpu_named(known)) is not None)
    if (gpu := gpu_named(key) or gpu_named(key.removeprefix("nvidia-"))) is not None:
        return (gpu,)
    return sizes_of(name.replace("_", "-"))


def sizes_of(product: str) -> tuple[Gpu, ...]:
    """Return the cards with this product label: two where one name has two sizes (RTX 3080)."""
    found = (recognise(product, total_mib=0), recognise(product, total_mib=1 << 40))
    return tuple(dict.fromkeys(gpu for gpu in found if gpu is not None))


_READERS: tuple[Callable[[Mapping[str, str]], Named | None], ...] = (
    _karpenter,
    _coreweave,
    _gke,
    _aliyun,
    _instance,
    _azure,
    _eks,
)
"""CoreWeave writes its names under GKE's label too: its own come first."""
