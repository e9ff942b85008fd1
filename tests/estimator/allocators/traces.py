"""A small language of requests, and what an allocator holds after them.

    events, settings, limits -> answers, segments, most reserved

A `Case` is a hand-made trace with the segments PyTorch's rules give. Live blocks are positive,
cached ones negative, in the order of their addresses; a block that waits for a stream is live.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from estimator.allocators.caching import CachingAllocator
from estimator.allocators.pytorch import pytorch_allocator
from estimator.allocators.settings import caching_settings
from estimator.trace import FIRST_PRIVATE_POOL
from tests.estimator.allocators.real_allocator import RealAllocator

TOTAL = 1 << 37
"""Memory of the card the cases run on."""
GRAPH, OTHER_GRAPH = FIRST_PRIVATE_POOL, FIRST_PRIVATE_POOL + 1
"""Private pools of two CUDA graphs."""

Segments = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One line of a trace."""

    verb: str
    tensor: int = 0
    nbytes: int = 0
    stream: int = 0
    fits: bool = True


def alloc(name: str, nbytes: int, *, stream: int = 0) -> Event:
    """Ask for *nbytes*."""
    return Event(verb="alloc", tensor=ord(name), nbytes=nbytes, stream=stream)


def refused(name: str, nbytes: int, *, stream: int = 0) -> Event:
    """Ask for *nbytes*, which do not fit."""
    return Event(verb="alloc", tensor=ord(name), nbytes=nbytes, stream=stream, fits=False)


def free(*names: str) -> tuple[Event, ...]:
    """Drop tensors."""
    return tuple(Event(verb="free", tensor=ord(name)) for name in names)


def use(name: str) -> Event:
    """Use a tensor on a second stream."""
    return Event(verb="use", tensor=ord(name), stream=1)


EMPTY = Event(verb="empty")
SYNCHRONIZE = Event(verb="synchronize")


def release(pool: int) -> Event:
    """Destroy the last graph of a private pool."""
    return Event(verb="release", stream=pool)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Events, what they leave, and the most that was reserved on the way."""

    rule: str
    events: tuple[Event | tuple[Event, ...], ...]
    segments: Segments
    most: int
    settings: str = ""
    capacity: int | None = None
    allowed: int | None = None
    retries: int = 0

    @property
    def flat(self) -> Iterator[Event]:
        """Yield the events one by one."""
        for each in self.events:
            yield from each if isinstance(each, tuple) else (each,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What an allocator did with a trace."""

    answers: tuple[bool, ...]
    """Whether each request was served."""
    books: tuple[tuple[int, int], ...]
    """Reserved and allocated bytes after each event."""
    segments: Segments
    retries: int


def ours(
    events: Iterator[Event],
    *,
    settings: str = "",
    capacity: int | None = None,
    allowed: int | None = None,
) -> Outcome:
    """Return what the model does."""
    options, unknowns = caching_settings({"PYTORCH_CUDA_ALLOC_CONF": settings})
    assert not unknowns
    allocator = pytorch_allocator(options, capacity=capacity, allowed=allowed)
    answers, books = [], []
    for event in events:
        if event.verb == "alloc":
            answers.append(allocator.allocate(event.tensor, event.nbytes, event.stream))
        else:
            _apply(allocator, event)
        books.append((allocator.reserved, allocator.allocated))
    return Outcome(
        answers=tuple(answers),
        books=tuple(books),
        segments=segments_of(allocator),
        retries=allocator.num_retries,
    )


def _apply(allocator: CachingAllocator, event: Event) -> None:
    match event.verb:
        case "free":
            allocator.free(event.tensor)
        case "use":
            allocator.use(event.tensor)
        case "empty":
            allocator.empty_cache()
        case "synchronize":
            allocator.synchronize()
        case _:
            allocator.release_pool(event.stream)


def segments_of(allocator: CachingAllocator) -> Segments:
    """Return the blocks of each unbroken stretch of memory."""
    segments: list[list[int]] = []
    end = -1
    for address, size, is_free in sorted(allocator.blocks()):
        if address != end:
            segments.append([])
        segments[-1].append(-size if is_free else size)
        end = address + size
    return tuple(tuple(segment) for segment in segments)


def theirs(
    real: RealAllocator,
    events: Iterator[Event],
    *,
    settings: str = "",
    capacity: int | None = None,
    allowed: int | None = None,
) -> Outcome:
    """Return what PyTorch's own allocator does.

    A request in a private pool is made while a graph is captured; each capture is one more
    graph of that pool. Events of a second stream are done once the host has synchronised.
    """
    commands = [f"total {TOTAL}", "events 0"]
    if capacity is not None:
        commands.append(f"capacity {capacity}")
    if allowed is not None:
        commands.append(f"fraction {allowed / TOTAL!r}")
    kept: list[tuple[int, bool]] = []
    graphs: dict[int, int] = {}
    for event in events:
        commands += _commands(event, graphs)
        kept.append((_answer(event, len(commands)), event.verb == "alloc"))
    lines = real.ask(
        [*commands, "query"], {"PYTORCH_CUDA_ALLOC_CONF": settings} if settings else {}
    )
    assert lines is not None
    numbers = [tuple(int(part) for part in line.split()) for line in lines[:-1]]
    return Outcome(
        answers=tuple(bool(numbers[index][0]) for index, is_request in kept if is_request),
        books=tuple((numbers[index][1], numbers[index][2]) for index, _ in kept),
        segments=tuple(
            tuple(int(size) for size in segment.split(",") if size) for segment in lines[-1].split()
        ),
        retries=numbers[-1][3],
    )


def _answer(event: Event, end: int) -> int:
    """Return which line answers *event*, whose commands end before line *end*."""
    in_graph = event.verb == "alloc" and event.stream >= FIRST_PRIVATE_POOL
    return end - 3 if in_graph else end - 1


def _commands(event: Event, graphs: dict[int, int]) -> list[str]:
    match event.verb:
        case "alloc":
            request = f"alloc {event.tensor} {event.nbytes} {event.stream}"
            if event.stream < FIRST_PRIVATE_POOL:
                return [request]
            graphs[event.stream] = graphs.get(event.stream, 0) + 1
            pool = event.stream
            return [f"begin {pool}", "mark", request, "unmark", f"end {pool}"]
        case "free":
            return [f"free {event.tensor}"]
        case "use":
            return [f"use {event.tensor} {event.stream}"]
        case "synchronize":
            return ["events 1"]
        case "release":
            return [f"release {event.stream}"] * graphs[event.stream]
        case _:
            return ["empty"]
