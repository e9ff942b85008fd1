"""GPUs that a pod asks for by annotations alone: KAI's (and Run:ai's) fractions of a card.

    annotations, container -> GpuRequest, Share

One container of the pod gets the share: the first, or the one that is named.
Source: NVIDIA/KAI-Scheduler 72de64fc `pkg/common/constants/constants.go`,
`pkg/binder/plugins/gpusharing/gpu-request/gpu_request_validator.go`,
`pkg/binder/common/gpu_access.go` (`GetFractionContainerRef`). Memory is MiB, as the node label is
(`pkg/scheduler/api/node_info/node_info.go`). KAI does not keep a pod within its share.
"""

from __future__ import annotations

from decimal import Decimal, DecimalException
from typing import TYPE_CHECKING

from admission.share import Share
from admission.values import Json
from admission.workloads.fields import is_unrendered, mapping, sequence
from admission.workloads.quantities import whole_quantity
from admission.workloads.resources import GPU, GpuRequest
from admission.workloads.shares import MOST_CARDS
from estimator.deferred import Deferred
from estimator.units import MIB

if TYPE_CHECKING:
    import fractions
else:
    fractions = Deferred("fractions")

FRACTION = "gpu-fraction"
MEMORY = "gpu-memory"
CONTAINER = "gpu-fraction-container-name"
DEVICES = "gpu-fraction-num-devices"
_SCHEDULERS = ("kai", "runai")


def annotated_request(
    metadata: Json, pod: Json, path: str, *, key: str, index: int, name: object
) -> GpuRequest | None:
    """Return the GPUs that the annotations of the pod at *path* give one of its containers.

    Raises:
        RequestError: if annotations are no mapping.
    """
    annotations = _annotations(metadata, path)
    if FRACTION not in annotations and MEMORY not in annotations:
        return None
    if not _is_meant(annotations, pod, key=key, index=index, name=name):
        return None
    devices = whole_quantity(annotations.get(DEVICES)) or 1
    return GpuRequest(resource=GPU, count=min(devices, MOST_CARDS))


def annotated_share(
    metadata: Json, pod: Json, path: str, *, key: str, index: int, name: object, whole: bool
) -> Share | None:
    """Return the share that annotations give this container; None if they give it none.

    *whole*: it asks for whole cards too, which KAI refuses, and which others know nothing of.

    Raises:
        RequestError: if annotations are no mapping.
    """
    annotations = _annotations(metadata, path)
    found = next((kind for kind in (FRACTION, MEMORY) if kind in annotations), None)
    if found is None or (whole and not _is_kai(pod)):
        return None
    if not whole and not _is_meant(annotations, pod, key=key, index=index, name=name):
        return None
    value = annotations[found]
    text = f"{found}: {value!s:.60}"
    share = Share(text=text, key=found, path=f"{_where(path)}[{found}]")
    if whole:
        return share.unread(f"{text} stands beside whole GPUs, which KAI refuses")
    if FRACTION in annotations and MEMORY in annotations:
        return share.unread(f"{FRACTION} and {MEMORY} stand together, which KAI refuses")
    if is_unrendered(value):
        return share.unread(f"{text} is not resolved")
    if found == MEMORY:
        number = whole_quantity(value) if str(value).isdecimal() else None
        if not number:
            return share.unread(f"{text} is not a whole number of MiB above zero")
        return Share(text=text, key=found, path=share.path, nbytes=number * MIB, unit_bytes=MIB)
    part = _part(value)
    if part is None:
        return share.unread(f"{text} is not a number between 0 and 1")
    return Share(text=text, key=found, path=share.path, part=part)


def _annotations(metadata: Json, path: str) -> Json:
    return mapping(metadata.get("annotations"), _where(path))


def _where(path: str) -> str:
    return f"{path}.metadata.annotations".lstrip(".")


def _is_kai(pod: Json) -> bool:
    return str(pod.get("schedulerName") or "").startswith(_SCHEDULERS)


def _is_meant(annotations: Json, pod: Json, *, key: str, index: int, name: object) -> bool:
    wanted = annotations.get(CONTAINER)
    if wanted is None:
        return key == "containers" and index == 0
    if name != wanted:
        return False
    # A name is looked for among init containers first.
    starters = sequence(pod.get("initContainers"), "initContainers")
    is_starter = any(isinstance(item, dict) and item.get("name") == wanted for item in starters)
    return key == "initContainers" or not is_starter


def _part(value: object) -> fractions.Fraction | None:
    text = str(value).strip()
    if len(text) > 32:
        return None
    try:
        number = Decimal(text)
        part = (
            fractions.Fraction(number)
            if number.is_finite() and abs(number.adjusted()) < 32
            else None
        )
    except (DecimalException, ValueError):
        return None
    return part if part is not None and 0 < part < 1 else None
