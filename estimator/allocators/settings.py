"""Settings of PyTorch's caching allocator, read as PyTorch reads them.

    environment of the job -> CachingSettings, unknowns

A key or value PyTorch would refuse, and every option that is not modelled, is a named unknown.
Never reads our own process's environment.

Not modelled: text after a number (`64x` is 64 to PyTorch), `roundup_bypass_threshold_mb` of
torch 1.12 and 1.13, options that are newer than the job's torch (PyTorch refuses those).

Source: torch 2.15.0 (d0f2af8b) include/c10/core/AllocatorConfig.h, c10/cuda/CUDAAllocatorConfig.h
(keys, defaults, order of the variables, tokens) and its lib/libc10.so, whose parser answers in
`test_settings_real.py`; pytorch/pytorch@0ac716637f3258efcaf7fdfb851bdd520c9c1441
c10/core/AllocatorConfig.cpp (limits, lists); pytorch/pytorch#172056 (`large_segment_size_mb`).
torch before 2.9: MetaX-MACA/mcPytorch@2ee4c34194937f3329cb7ecd27427927dfa3299e
c10/cuda/CUDAAllocatorConfig.cpp, a copy of torch 2.8's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from estimator.allocators.rounding import LARGE_REQUEST, LARGE_SEGMENT, NUM_INTERVALS
from estimator.notes import Unknown, UnknownCode
from estimator.units import MIB

OLD_NAME = "PYTORCH_CUDA_ALLOC_CONF"
NEW_NAME = "PYTORCH_ALLOC_CONF"
"""Read only if the old name is not set."""
UNCACHED = "PYTORCH_NO_CUDA_MEMORY_CACHING"

Version = tuple[int, int]
SHARED_PARSER: Version = (2, 9)
"""From here on all accelerators share one parser, which also looks for the new name."""
READS_NEW_NAME: Version = (2, 12)
"""From here on the new name works for CUDA. Source: pytorch/pytorch#183387."""
NEWEST: Version = (99, 0)
FIRST_KEY = "large_segment_size_mb"
SET_OLD = f"only {OLD_NAME} is read in full"


@dataclass(frozen=True, slots=True, kw_only=True)
class CachingSettings:
    """Options of `PYTORCH_CUDA_ALLOC_CONF` that move device memory, with PyTorch's defaults."""

    max_split_size: int | None = None
    """Larger blocks are never split and serve only requests at least this large. None: no limit."""
    max_non_split_rounding: int = LARGE_SEGMENT
    """How much larger than such a request a block may be; by default the large segment's size."""
    roundup_divisions: tuple[int, ...] | None = None
    """Steps between two powers of two, one entry an interval (1, 2, 4 MiB, …). None: off."""
    garbage_collection_threshold: float = 0.0
    """Share of the allowed memory above which old cached blocks are freed; needs a fraction."""
    large_segment_size: int = LARGE_SEGMENT
    """Segment of requests between 1 and 10 MiB, and page of expandable segments."""
    expandable_segments: bool = False
    """One growing address range a stream and pool, mapped page by page."""
    memory_fraction: float = 1.0
    """Share of the card's total the allocator may hold; 1 sets no cap of its own."""


Reader = Callable[[CachingSettings, str], CachingSettings]


def caching_settings(
    environment: Mapping[str, str], *, version: Version = NEWEST
) -> tuple[CachingSettings, tuple[Unknown, ...]]:
    """Return the settings *environment* asks for in torch *version*, and what is not modelled.

    PyTorch stops with an error at a key or value it does not accept. Here it is an unknown,
    the option keeps its default, and reading goes on. The size of large segments is read
    before all else, because it bounds two other options.
    """
    unknowns: list[Unknown] = []
    if UNCACHED in environment:
        unknowns.append(_unknown(UNCACHED, "memory without a cache is not modelled"))
    variable = OLD_NAME if OLD_NAME in environment else NEW_NAME
    settings = CachingSettings()
    if variable not in environment:
        return settings, tuple(unknowns)
    if variable == NEW_NAME and version < READS_NEW_NAME:
        if version >= SHARED_PARSER:
            unknowns.append(_unknown(variable, f"torch 2.9 to 2.11 reads part of it: {SET_OLD}"))
        return settings, tuple(unknowns)
    readers = READERS if version >= SHARED_PARSER else READERS | OLD_READERS
    pairs = _pairs(environment[variable])
    for key, value in sorted(pairs, key=lambda pair: pair[0] != FIRST_KEY):
        try:
            settings = _read(settings, key, value, readers)
        except ValueError as error:
            unknowns.append(_unknown(variable, f"{key}:{value}: {error}"))
    return settings, tuple(unknowns)


def _unknown(variable: str, reason: str) -> Unknown:
    return Unknown(code=UnknownCode.ALLOCATOR, path=f"runtime.env.{variable}", reason=reason)


def _pairs(text: str) -> list[tuple[str, str]]:
    """Return the key and value texts of a setting; commas inside brackets do not separate."""
    packed = re.sub(r"\s", "", text)
    parts = re.findall(r"(?:\[[^\]]*\]?|[^,\[])+", packed)
    return [(key, value) for key, _, value in (part.partition(":") for part in parts)]


def _read(
    settings: CachingSettings, key: str, value: str, readers: Mapping[str, Reader]
) -> CachingSettings:
    """Return *settings* with one option read.

    Raises:
        ValueError: if the key or value is not accepted or not modelled.
    """
    if key in WITHOUT_EFFECT:
        return settings
    reader = readers.get(key)
    if reader is None:
        raise ValueError("PyTorch knows no such option")
    return reader(settings, value)


def _whole(value: str) -> int:
    if not value.isascii() or not value.isdigit():
        raise ValueError("a whole number is expected")
    return int(value)


def _at_least_a_segment(settings: CachingSettings, value: str) -> int:
    nbytes = _whole(value) * MIB
    if nbytes < settings.large_segment_size:
        raise ValueError(f"must be at least {settings.large_segment_size // MIB}")
    return nbytes


def _truth(value: str) -> bool:
    if value not in ("True", "False"):
        raise ValueError("True or False is expected")
    return value == "True"


def _max_split_size(settings: CachingSettings, value: str) -> CachingSettings:
    return replace(settings, max_split_size=_at_least_a_segment(settings, value))


def _old_max_split_size(settings: CachingSettings, value: str) -> CachingSettings:
    if _whole(value) * MIB <= LARGE_SEGMENT:
        raise ValueError(f"must be more than {LARGE_SEGMENT // MIB}")
    return _max_split_size(settings, value)


def _max_non_split_rounding(settings: CachingSettings, value: str) -> CachingSettings:
    return replace(settings, max_non_split_rounding=_at_least_a_segment(settings, value))


def _large_segment_size(settings: CachingSettings, value: str) -> CachingSettings:
    nbytes = _whole(value) * MIB
    if nbytes <= LARGE_REQUEST:
        raise ValueError(f"must be more than {LARGE_REQUEST // MIB}")
    return replace(settings, large_segment_size=nbytes, max_non_split_rounding=nbytes)


def _garbage_collection(settings: CachingSettings, value: str) -> CachingSettings:
    threshold = float(value)
    if not 0.0 < threshold < 1.0:
        raise ValueError("must be between 0 and 1")
    return replace(settings, garbage_collection_threshold=threshold)


def _expandable(settings: CachingSettings, value: str) -> CachingSettings:
    return replace(settings, expandable_segments=_truth(value))


def _fraction(settings: CachingSettings, value: str) -> CachingSettings:
    fraction = float(value)
    if not 0.0 <= fraction <= 1.0:
        raise ValueError("must be between 0 and 1")
    return replace(settings, memory_fraction=fraction)


def _backend(settings: CachingSettings, value: str) -> CachingSettings:
    if value == "native":
        return settings
    if value == "cudaMallocAsync":
        raise ValueError("the driver's own pool is not modelled; native rules are used instead")
    raise ValueError("native or cudaMallocAsync is expected")


def _divisions(
    settings: CachingSettings, value: str, *, above: Callable[[int], int] = lambda last: last + 1
) -> CachingSettings:
    if value.startswith("["):
        if not value.endswith("]"):
            raise ValueError("a closing bracket is expected")
        return replace(settings, roundup_divisions=_division_list(value[1:-1], above))
    return replace(settings, roundup_divisions=(_power_of_two(value),) * NUM_INTERVALS)


def _old_divisions(settings: CachingSettings, value: str) -> CachingSettings:
    """Before torch 2.9 `>` also overwrites the last interval that was named."""
    return _divisions(settings, value, above=lambda last: last)


def _power_of_two(value: str, *, or_zero: bool = False) -> int:
    number = _whole(value)
    if number == 0 and or_zero:
        return 0
    if number < 1 or number & (number - 1):
        raise ValueError("a power of two is expected")
    return number


def _division_list(text: str, above: Callable[[int], int]) -> tuple[int, ...]:
    """Return one entry an interval from `256:1,512:2,>:4` (MiB of the interval's start: steps).

    The first entry also serves everything below it, `>` everything *above* the last one;
    intervals that are not named stay off.
    """
    divisions = [0] * NUM_INTERVALS
    last = 0
    for position, part in enumerate(text.split(",")):
        start, colon, steps = part.partition(":")
        if not colon:
            raise ValueError("size:divisions is expected")
        count = _power_of_two(steps, or_zero=True)
        if start == ">":
            divisions[above(last) :] = [count] * (NUM_INTERVALS - above(last))
            continue
        index = min(_power_of_two(start).bit_length() - 1, NUM_INTERVALS - 1)
        if position == 0:
            divisions[:index] = [count] * index
        divisions[index] = count
        last = index
    return tuple(divisions)


READERS: dict[str, Reader] = {
    "backend": _backend,
    "expandable_segments": _expandable,
    "garbage_collection_threshold": _garbage_collection,
    "large_segment_size_mb": _large_segment_size,
    "max_non_split_rounding_mb": _max_non_split_rounding,
    "max_split_size_mb": _max_split_size,
    "per_process_memory_fraction": _fraction,
    "roundup_power2_divisions": _divisions,
}
"""Options that move device memory."""
OLD_READERS: dict[str, Reader] = {
    "max_split_size_mb": _old_max_split_size,
    "roundup_power2_divisions": _old_divisions,
}
"""What torch read differently before 2.9."""

WITHOUT_EFFECT = frozenset(
    {
        "expandable_segments_reserve",
        "expandable_segments_reserve_by_class",
        "graph_capture_record_stream_reuse",
        "pinned_free_catch_all",
        "pinned_max_cached_size_mb",
        "pinned_max_round_threshold_mb",
        "pinned_num_register_threads",
        "pinned_reserve_segment_size_mb",
        "pinned_use_background_threads",
        "pinned_use_cuda_host_register",
        "pinned_use_hip_host_register",
        "release_lock_on_cudamalloc",
        "release_lock_on_hipmalloc",
        "throw_on_cudamalloc_oom",
    }
)
"""Options about pinned host memory, locks, address ranges and when an error is raised."""
