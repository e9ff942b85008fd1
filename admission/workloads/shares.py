"""What a container declares of a card: memory, or a part, in its scheduler's words.

    container, annotations -> (resource, cards), Share

Names, units and which of two declarations counts are those of each scheduler:

* HAMi 4707fb02 `pkg/device/nvidia/device.go` (`GenerateResourceRequests`,
  `validateMemoryPercentage`, `mutateContainerResource`; memory before percentage, zero is none)
* Volcano ed72c7c8 `pkg/scheduler/api/devices/util.go` (`ExtractResourceRequest`),
  `nvidia/vgpu/utils.go` (percentage before memory), `docs/user-guide/how_to_use_gpu_sharing.md`
* Koordinator a7a1b76b `pkg/scheduler/plugins/deviceshare/devicehandler_gpu.go`
  (`calcDesiredRequestsAndCountForGPU`: the container's amounts are divided among its cards)
* aliyun gpushare-scheduler-extender c0b6141 `docs/userguide.md` and `samples/4.yaml` (GiB or MiB)
* tencent gpu-manager 8cd842ed `README.md` (100 cores are a card, one unit of memory is 256 MiB)

Not modelled: factors that schedulers' settings put on memory (`memoryFactor`, `defaultMemory`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from admission.share import Share
from admission.values import Json
from admission.workloads.fields import is_unrendered, mapping
from admission.workloads.quantities import whole_quantity
from estimator.deferred import Deferred
from estimator.units import GIB, MIB

if TYPE_CHECKING:
    import fractions
else:
    fractions = Deferred("fractions")

HAMI = "nvidia.com/gpu"
VOLCANO = "volcano.sh/vgpu-number"
VOLCANO_SHARED = "volcano.sh/gpu-memory"
KOORDINATOR = "koordinator.sh/gpu"
ALIYUN = "aliyun.com/gpu-mem"
TENCENT = "tencent.com/vcuda-core"
"""What a node offers where the scheduler of that name shares its cards."""

SHARED_RESOURCES = (VOLCANO, VOLCANO_SHARED, KOORDINATOR, ALIYUN, TENCENT)

MOST_CARDS = 1024
MOST_GIB_UNITS = 1024
"""No card has 1024 GiB: from here on a number of aliyun's counts MiB."""
TENCENT_UNIT = 256 * MIB

_FAMILIES: Mapping[str, tuple[str, ...]] = {
    HAMI: ("nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores"),
    VOLCANO: (
        VOLCANO,
        "volcano.sh/vgpu-memory",
        "volcano.sh/vgpu-memory-percentage",
        "volcano.sh/vgpu-cores",
    ),
    VOLCANO_SHARED: (VOLCANO_SHARED, "volcano.sh/gpu-number"),
    KOORDINATOR: (
        KOORDINATOR,
        "koordinator.sh/gpu.shared",
        "koordinator.sh/gpu-memory",
        "koordinator.sh/gpu-memory-ratio",
        "koordinator.sh/gpu-core",
    ),
    ALIYUN: (ALIYUN, "aliyun.com/gpu-count"),
    TENCENT: (TENCENT, "tencent.com/vcuda-memory"),
}
"""Names that ask for a card or a part of one, by what the node offers."""


def shared_request(amounts: Json) -> tuple[str, int] | None:
    """Return the resource and the number of cards that *amounts* declare shares of.

    A number that cannot be read is one card: `share_of` names it.
    """
    for resource, names in _FAMILIES.items():
        if any(amounts.get(name) is not None for name in names):
            return resource, _cards(resource, amounts)
    return None


def share_of(container: Json, resource: str, path: str) -> Share | None:
    """Return what *container*, found at *path*, may use of each card of *resource*.

    None: of the whole card. A share that cannot be read says why in `problem`.

    Raises:
        RequestError: if resources are not what Kubernetes accepts.
    """
    where = f"{path}.resources"
    resources = mapping(container.get("resources"), where)
    amounts = {
        name: value
        for key in ("requests", "limits")
        for name, value in mapping(resources.get(key), f"{where}.{key}").items()
        if value is not None
    }
    read = _READERS.get(resource)
    return read(_Amounts(amounts, where)) if read else None


class _Amounts:
    """The amounts of one container; limits count where a name is in both."""

    def __init__(self, amounts: Json, path: str) -> None:
        self._amounts = amounts
        self._path = path

    def __contains__(self, name: str) -> bool:
        return name in self._amounts

    def number(self, name: str) -> int | None:
        """Return a whole number, None if it is absent or is none."""
        return whole_quantity(self._amounts.get(name))

    def share(
        self,
        name: str,
        *,
        nbytes: int | None = None,
        part: fractions.Fraction | None = None,
        unit: int = MIB,
    ) -> Share:
        """Return the share that *name* declares."""
        text = f"{name}: {self._amounts[name]!s:.60}"
        return Share(
            text=text, key=name, path=self._path, nbytes=nbytes, part=part, unit_bytes=unit
        )

    def unread(self, name: str, accepted: str) -> Share:
        """Return a share that names what could not be read."""
        value = self._amounts[name]
        why = "is not resolved" if is_unrendered(value) else f"is not {accepted}"
        text = f"{name}: {value!s:.60}"
        return Share(text=text, key=name, path=self._path, problem=f"{text} {why}")


def _cards(resource: str, amounts: Json) -> int:
    counts = {
        VOLCANO: (VOLCANO,),
        VOLCANO_SHARED: ("volcano.sh/gpu-number",),
        ALIYUN: ("aliyun.com/gpu-count",),
        KOORDINATOR: ("koordinator.sh/gpu.shared",),
    }
    number = next(
        (
            found
            for name in counts.get(resource, ())
            if (found := whole_quantity(amounts.get(name)))
        ),
        None,
    )
    if number is None and resource == TENCENT:
        number = (whole_quantity(amounts.get(TENCENT)) or 0) // 100
    if number is None and resource == KOORDINATOR:
        ratio = amounts.get("koordinator.sh/gpu-memory-ratio", amounts.get(KOORDINATOR))
        number = (whole_quantity(ratio) or 0) // 100
    return min(max(number or 1, 1), MOST_CARDS)


def _hami(amounts: _Amounts) -> Share | None:
    memory, percentage = "nvidia.com/gpumem", "nvidia.com/gpumem-percentage"
    if memory in amounts:
        number = amounts.number(memory)
        if number is None:
            return amounts.unread(memory, "a whole number of MiB")
        if number:
            return amounts.share(memory, nbytes=number * MIB)
    return _percentage(amounts, percentage)


def _volcano(amounts: _Amounts) -> Share | None:
    percentage = _percentage(amounts, "volcano.sh/vgpu-memory-percentage")
    return percentage or _mebibytes(amounts, "volcano.sh/vgpu-memory")


def _volcano_shared(amounts: _Amounts) -> Share | None:
    return _mebibytes(amounts, VOLCANO_SHARED)


def _koordinator(amounts: _Amounts) -> Share | None:
    """Return the share of one card: ratio before memory, each divided among the cards."""
    ratio, memory = "koordinator.sh/gpu-memory-ratio", "koordinator.sh/gpu-memory"
    cards = amounts.number("koordinator.sh/gpu.shared") or 0
    for name in (ratio, KOORDINATOR):
        if name not in amounts:
            continue
        number = amounts.number(name)
        if not number:
            return amounts.unread(name, "a percentage above zero")
        part = fractions.Fraction(number, 100 * (cards or max(1, number // 100)))
        return amounts.share(name, part=part) if part < 1 else None
    if memory not in amounts:
        return None
    number = amounts.number(memory)
    if not number:
        return amounts.unread(memory, "an amount of memory")
    return amounts.share(memory, nbytes=number // max(1, cards), unit=max(1, cards))


def _aliyun(amounts: _Amounts) -> Share | None:
    if ALIYUN not in amounts:
        return None
    number = amounts.number(ALIYUN)
    if not number:
        return amounts.unread(ALIYUN, "a whole number of GiB or MiB")
    unit = GIB if number < MOST_GIB_UNITS else MIB
    return amounts.share(ALIYUN, nbytes=number * unit, unit=unit)


def _tencent(amounts: _Amounts) -> Share | None:
    """Return the memory of a part of a card; whole cards (100 cores each) have all of theirs."""
    memory = "tencent.com/vcuda-memory"
    if (amounts.number(TENCENT) or 0) >= 100 or memory not in amounts:
        return None
    number = amounts.number(memory)
    if not number:
        return amounts.unread(memory, "a whole number of 256 MiB")
    return amounts.share(memory, nbytes=number * TENCENT_UNIT, unit=TENCENT_UNIT)


def _mebibytes(amounts: _Amounts, name: str) -> Share | None:
    if name not in amounts:
        return None
    number = amounts.number(name)
    if number is None:
        return amounts.unread(name, "a whole number of MiB")
    return amounts.share(name, nbytes=number * MIB) if number else None


def _percentage(amounts: _Amounts, name: str) -> Share | None:
    if name not in amounts:
        return None
    number = amounts.number(name)
    if number is None or number > 100:
        return amounts.unread(name, "a percentage from 0 to 100")
    return amounts.share(name, part=fractions.Fraction(number, 100)) if 0 < number < 100 else None


_READERS: Mapping[str, Callable[[_Amounts], Share | None]] = {
    HAMI: _hami,
    VOLCANO: _volcano,
    VOLCANO_SHARED: _volcano_shared,
    KOORDINATOR: _koordinator,
    ALIYUN: _aliyun,
    TENCENT: _tencent,
}
