"""Ask NVIDIA's cards, through NVML.

libnvidia-ml.so.1 -> Reading

The only importer of pynvml. Nothing that the library answers is raised: an error of the library
closes it and it is opened again later; one of a card costs that card alone.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pynvml

from admission.agent.problems import AgentProblem, Found
from admission.agent.reading import Card, Reading, Use
from admission.plaintext import plain

RELIST_SECONDS = (5.0, 30.0)
"""How often cards and instances are listed anew while something is wrong with one, and else: an
administrator may have cut a card."""
REOPEN_SECONDS = (1.0, 30.0)
"""The first pause after an error of the library, and the longest: twice as long each time."""

MOST_CARDS, MOST_INSTANCES = 64, 16
"""Of a node, and of a card that is cut: a library that says more is not to be believed."""

_LOST = (
    pynvml.NVML_ERROR_GPU_IS_LOST,
    pynvml.NVML_ERROR_RESET_REQUIRED,
    pynvml.NVML_ERROR_GPU_NOT_FOUND,
)
_OVER = (pynvml.NVML_ERROR_UNINITIALIZED, pynvml.NVML_ERROR_DRIVER_NOT_LOADED)
"""What a card answers although it is the library that is wrong."""
_ABSENT = (pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
"""The driver has no such call, or this card no such thing."""
_OF_LIBRARY = {
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: AgentProblem.NVML_MISSING,
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: AgentProblem.NVML_MISMATCH,
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND: AgentProblem.NVML_OLD,
}

_COMPUTING = (
    pynvml.nvmlDeviceGetComputeRunningProcesses_v3,
    pynvml.nvmlDeviceGetComputeRunningProcesses_v2,
)
_SHARING = (
    pynvml.nvmlDeviceGetMPSComputeRunningProcesses_v3,
    pynvml.nvmlDeviceGetMPSComputeRunningProcesses_v2,
)
"""Clients of MPS are listed apart. Each by the newest call and the one before it (before R510)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Device:
    """A card or an instance as NVML knows it."""

    handle: Any
    card: Card
    """What does not change: its sizes are 0."""


@dataclass(slots=True)
class _Look:
    """What one look has found so far."""

    cards: list[Card] = field(default_factory=list)
    uses: list[Use] = field(default_factory=list)
    problems: dict[AgentProblem, str] = field(default_factory=dict)

    def failed(self, what: str, error: pynvml.NVMLError) -> None:
        """Note what *error* means for the card *what*.

        Raises:
            NVMLError: the same, if it is the library's.
        """
        if error.value in _OVER:
            raise error
        is_lost = error.value in _LOST
        problem = AgentProblem.CARD_LOST if is_lost else AgentProblem.CARD_UNREADABLE
        self.note(problem, f"{what}: {_said(error)}")

    def note(self, problem: AgentProblem, text: str) -> None:
        """Keep *text* if it is the first of *problem*; it may hold names that a card tells."""
        self.problems.setdefault(problem, plain(text))


class Nvml:
    """Every card of this node. For one thread."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._devices: tuple[_Device, ...] = ()
        self._unlisted: Found = {}
        """What was wrong with cards as they were listed."""
        self._is_open = False
        self._is_well = True
        """Whether the last look had no problem with a card."""
        self._listed = 0.0
        self._pause = REOPEN_SECONDS[0]
        self._failed: tuple[float, Found] | None = None
        """Until when the library is left alone, and why."""

    def read(self) -> Reading:
        """Return every card and the processes on it."""
        now = self._clock()
        if self._failed is not None and now < self._failed[0]:
            return Reading(problems=self._failed[1])
        try:
            self._prepare(now)
            look = self._look()
        except pynvml.NVMLError as error:
            return self._give_up(now, error)
        self._failed, self._pause = None, REOPEN_SECONDS[0]
        return Reading(cards=tuple(look.cards), uses=tuple(look.uses), problems=look.problems)

    def close(self) -> None:
        """Let go of the library: a card that is held open cannot be reset."""
        if self._is_open:
            with contextlib.suppress(pynvml.NVMLError):
                pynvml.nvmlShutdown()
        self._is_open, self._devices = False, ()

    def _give_up(self, now: float, error: pynvml.NVMLError) -> Reading:
        """Close the library, and leave it alone for a while."""
        self.close()
        problem = _OF_LIBRARY.get(error.value, AgentProblem.NVML_REFUSED)
        found = {problem: plain(_said(error))}
        self._failed = (now + self._pause, found)
        self._pause = min(2 * self._pause, REOPEN_SECONDS[1])
        return Reading(problems=found)

    def _prepare(self, now: float) -> None:
        """Open the library if it is closed, and list the cards if that was long ago.

        A card that was lost comes back to a library that is opened anew, and to no other.
        """
        is_due = now >= self._listed + RELIST_SECONDS[self._is_well]
        if is_due and not self._is_well:
            self.close()
        if not self._is_open:
            pynvml.nvmlInit()
            self._is_open = is_due = True
        if is_due:
            listing = _Look()
            self._devices = tuple(_listed(listing))
            self._unlisted, self._listed = listing.problems, now

    def _look(self) -> _Look:
        look = _Look(problems=dict(self._unlisted))
        for device in self._devices:
            try:
                look.cards.append(_measured(device))
            except pynvml.NVMLError as error:
                look.failed(device.card.gpu, error)
                continue
            _add_uses(device, look)
        wrong = (AgentProblem.CARD_LOST, AgentProblem.CARD_UNREADABLE)
        self._is_well = not any(each in look.problems for each in wrong)
        return look


def _listed(look: _Look) -> Iterator[_Device]:
    """Yield every card there is, and of one that is cut its instances instead."""
    for index in range(min(pynvml.nvmlDeviceGetCount(), MOST_CARDS)):
        try:
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            whole = _device(handle, index=str(index))
            slices = tuple(_instances(handle, index=str(index)))
        except pynvml.NVMLError as error:
            look.failed(f"card {index}", error)
            continue
        yield from slices or (whole,)


def _instances(handle: Any, *, index: str) -> Iterator[_Device]:
    """Yield the MIG instances of a card; nothing if it is not cut or cannot be."""
    try:
        if pynvml.nvmlDeviceGetMigMode(handle)[0] != pynvml.NVML_DEVICE_MIG_ENABLE:
            return
        most = pynvml.nvmlDeviceGetMaxMigDeviceCount(handle)
    except pynvml.NVMLError as error:
        if error.value in _ABSENT:
            return
        raise
    for number in range(min(most, MOST_INSTANCES)):
        try:
            found = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, number)
        except pynvml.NVMLError as error:
            if error.value == pynvml.NVML_ERROR_NOT_FOUND:
                continue
            raise
        yield _device(found, index=index, instance=str(pynvml.nvmlDeviceGetGpuInstanceId(found)))


def _device(handle: Any, *, index: str, instance: str = "") -> _Device:
    card = Card(
        gpu=_text(pynvml.nvmlDeviceGetUUID, handle),
        index=index,
        instance=instance,
        product=_text(pynvml.nvmlDeviceGetName, handle),
        total=0,
        used=0,
    )
    return _Device(handle=handle, card=card)


def _text(call: Callable[[Any], str], handle: Any) -> str:
    """Return the text that *call* answers; one that is no UTF-8 is an error of that card."""
    try:
        return call(handle)
    except UnicodeDecodeError as error:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_UNKNOWN) from error


def _said(error: pynvml.NVMLError) -> str:
    """Return what the library calls *error*; for one that we do not know it is asked."""
    try:
        return str(error)
    except UnicodeDecodeError:
        return f"error {error.value}"


def _measured(device: _Device) -> Card:
    """Return the card with its sizes. Drivers before R510 count their reservation as used."""
    try:
        memory = pynvml.nvmlDeviceGetMemoryInfo(device.handle, version=pynvml.nvmlMemory_v2)
        reserved = int(memory.reserved)
    except pynvml.NVMLError as error:
        if error.value not in _ABSENT:
            raise
        memory, reserved = pynvml.nvmlDeviceGetMemoryInfo(device.handle), None
    return replace(device.card, total=int(memory.total), used=int(memory.used), reserved=reserved)


def _add_uses(device: _Device, look: _Look) -> None:
    """Add the processes on *device* to *look*. A process is in one of the two lists, or in both."""
    gpu = device.card.gpu
    try:
        computing = _called(_COMPUTING, device.handle)
        sharing = _called(_SHARING, device.handle)
    except pynvml.NVMLError as error:
        look.failed(gpu, error)
        return
    if computing is None:
        look.note(AgentProblem.PROCESSES_UNKNOWN, f"{gpu}: the driver tells no processes")
    held = {each.pid: each.usedGpuMemory for each in (*(sharing or ()), *(computing or ()))}
    if None in held.values():
        reason = f"{gpu}: the driver does not tell what a process holds"
        look.note(AgentProblem.PROCESSES_UNKNOWN, reason)
    look.uses += [Use(pid=pid, gpu=gpu, nbytes=nbytes) for pid, nbytes in held.items()]


def _called(calls: tuple[Any, ...], handle: Any) -> list[Any] | None:
    """Return what the first of *calls* that the driver has answers; None if it has none."""
    for call in calls:
        try:
            found: list[Any] = call(handle)
        except pynvml.NVMLError as error:
            if error.value not in _ABSENT:
                raise
            continue
        return found
    return None
