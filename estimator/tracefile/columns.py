"""The columns of a Trace file, from a trace and back.

    Trace -> JSON types; TracePart -> Trace

Every number that refers to something is checked, so that replaying what was read cannot fail.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator
from dataclasses import asdict
from operator import sub
from typing import Any

from estimator.errors import Problem, TraceError
from estimator.notes import Assumption, Unknown
from estimator.trace import (
    AT_MOST,
    FIRST_PRIVATE_POOL,
    MAX_STREAM,
    EventKind,
    Kernel,
    Place,
    TensorFacts,
    Trace,
)
from estimator.tracefile.document import MAX_ELEMENTS, KernelPart, TracePart

ALLOC, FREE, USE, KERNEL, EMPTY_CACHE, RELEASE_POOL = (kind.value for kind in EventKind)


class BrokenColumnError(ValueError):
    """Columns that contradict each other. Becomes a `SpecError` with the path."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(message)
        self.problem = Problem(path=f"trace.{path}", message=message)


def columns_of(trace: Trace) -> dict[str, Any]:
    """Return *trace* as columns, JSON types. Facts for people and benches are left out.

    Raises:
        TraceError: if its tensors are not numbered in the order of their allocation.
    """
    words: dict[str, int] = {}

    def word(text: str) -> int:
        return words.setdefault(text, len(words))

    table = [
        {
            "step": place.step,
            "phase": place.phase.value,
            "operator": word(place.operator),
            "module": word(place.module),
        }
        for place in trace.place_table
    ]
    at_most = trace.facts.get(AT_MOST)
    return {
        "frameworkVersion": trace.framework_version,
        "parameters": trace.parameters,
        "tensors": {
            "sizes": trace.sizes.tolist(),
            "roles": list(trace.roles),
            "streams": list(trace.streams),
        },
        "events": {
            "kinds": list(trace.kinds),
            "ids": list(_relative_ids(trace)),
            "places": list(map(sub, trace.places, (0, *trace.places[:-1]))),
        },
        "words": list(words),
        "placeTable": table,
        "kernels": [_kernel_part(kernel) for kernel in trace.kernels],
        "assumptions": [asdict(each) for each in trace.assumptions],
        "unknowns": [asdict(each) for each in trace.unknowns],
        "warnings": list(trace.warnings),
        **({} if at_most is None else {"atMost": at_most}),
    }


def trace_of(part: TracePart, *, framework: str) -> Trace:
    """Return the trace in *part*.

    Raises:
        BrokenColumnError: at the first number that refers to nothing.
    """
    tensors, events = part.tensors, part.events
    for name, column in (("roles", tensors.roles), ("streams", tensors.streams)):
        _same_length(f"tensors.{name}", column, len(tensors.sizes))
    _same_length("events.places", events.places, len(events.kinds))
    return Trace(
        sizes=array("q", tensors.sizes),
        roles=bytes(tensors.roles),
        streams=bytes(tensors.streams),
        kinds=bytes(events.kinds),
        ids=array("q", _Ids(part).absolute()),
        places=array("q", _absolute_places(part)),
        place_table=tuple(_places(part)),
        kernels=tuple(_kernel(each, index) for index, each in enumerate(part.kernels)),
        framework=framework,
        framework_version=part.framework_version,
        parameters=part.parameters,
        assumptions=tuple(
            Assumption(code=each.code, path=each.path, value=each.value, reason=each.reason)
            for each in part.assumptions
        ),
        unknowns=tuple(
            Unknown(code=each.code, path=each.path, reason=each.reason) for each in part.unknowns
        ),
        warnings=tuple(part.warnings),
        facts={} if part.at_most is None else {AT_MOST: part.at_most},
    )


def _relative_ids(trace: Trace) -> Iterator[int]:
    newest, kernel = -1, 0
    for kind, identifier in zip(trace.kinds, trace.ids, strict=True):
        if kind == ALLOC:
            newest += 1
            if identifier != newest:
                raise TraceError(f"tensor {identifier} is allocated as number {newest}")
        elif kind in (FREE, USE):
            yield newest - identifier
        elif kind == KERNEL:
            yield identifier - kernel
            kernel = identifier
        else:
            yield identifier


class _Ids:
    """Which tensor, kernel or pool each event is about."""

    def __init__(self, part: TracePart) -> None:
        self.kinds = part.events.kinds
        self.written = part.events.ids
        self.num_tensors = len(part.tensors.sizes)
        self.num_kernels = len(part.kernels)
        self.is_alive = bytearray(self.num_tensors)

    def absolute(self) -> Iterator[int]:
        """Yield the id of each event.

        Raises:
            BrokenColumnError: if it is none, or of a tensor that is not alive then.
        """
        written = iter(self.written)
        newest, kernel = -1, 0
        for event, kind in enumerate(self.kinds):
            if kind == ALLOC:
                newest += 1
                if newest == self.num_tensors:
                    raise self.broken(event, f"more allocations than the {newest} tensors")
                self.is_alive[newest] = 1
                yield newest
                continue
            value = next(written, None)
            if value is None:
                raise BrokenColumnError(
                    "events.ids", f"{len(self.written)} entries, one is missing for event {event}"
                )
            if kind in (FREE, USE):
                yield self.tensor(event, kind, newest - value, newest)
            elif kind == KERNEL:
                kernel += value
                if not 0 <= kernel < self.num_kernels:
                    raise self.broken(event, f"kernel {kernel} is not one of {self.num_kernels}")
                yield kernel
            else:
                yield self.other(event, kind, value)
        if newest + 1 != self.num_tensors or next(written, None) is not None:
            raise BrokenColumnError("events", "fewer events than tensors and ids")

    def tensor(self, event: int, kind: int, tensor: int, newest: int) -> int:
        """Return *tensor*, which is alive."""
        if not 0 <= tensor <= newest or not self.is_alive[tensor]:
            verb = "freed" if kind == FREE else "used"
            raise self.broken(event, f"tensor {tensor} is {verb} but not alive")
        self.is_alive[tensor] = kind != FREE
        return tensor

    def other(self, event: int, kind: int, value: int) -> int:
        """Return the pool of a release, or the 0 of an emptied cache."""
        first, last = (FIRST_PRIVATE_POOL, MAX_STREAM) if kind == RELEASE_POOL else (0, 0)
        if not first <= value <= last:
            raise self.broken(event, f"{value} is not within {first} and {last}")
        return value

    def broken(self, event: int, message: str) -> BrokenColumnError:
        return BrokenColumnError(f"events[{event}]", message)


def _absolute_places(part: TracePart) -> Iterator[int]:
    place = 0
    for event, step in enumerate(part.events.places):
        place += step
        if not 0 <= place < len(part.place_table):
            raise BrokenColumnError(
                f"events.places[{event}]", f"{place} is not one of {len(part.place_table)}"
            )
        yield place


def _places(part: TracePart) -> Iterator[Place]:
    words = part.words
    for index, each in enumerate(part.place_table):
        if max(each.operator, each.module) >= len(words):
            raise BrokenColumnError(f"placeTable[{index}]", f"not one of the {len(words)} words")
        yield Place(
            step=each.step,
            phase=each.phase,
            operator=words[each.operator],
            module=words[each.module],
        )


def _same_length(path: str, column: list[int], length: int) -> None:
    if len(column) != length:
        raise BrokenColumnError(path, f"{len(column)} entries, {length} are accepted")


def _kernel_part(kernel: Kernel) -> dict[str, Any]:
    return {
        "operator": kernel.operator,
        "operands": [
            {
                "shape": list(each.shape),
                "dtype": each.dtype,
                **({"channelsLast": True} if each.channels_last else {}),
            }
            for each in kernel.operands
        ],
        "attributes": {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in kernel.attributes
        },
    }


def _kernel(part: KernelPart, index: int) -> Kernel:
    for number, operand in enumerate(part.operands):
        if math.prod(operand.shape) > MAX_ELEMENTS:
            raise BrokenColumnError(
                f"kernels[{index}].operands[{number}].shape", f"more than {MAX_ELEMENTS} elements"
            )
    return Kernel(
        operator=part.operator,
        operands=tuple(
            TensorFacts(shape=tuple(each.shape), dtype=each.dtype, channels_last=each.channels_last)
            for each in part.operands
        ),
        attributes=tuple(
            (name, tuple(value) if isinstance(value, list) else value)
            for name, value in part.attributes.items()
        ),
    )
