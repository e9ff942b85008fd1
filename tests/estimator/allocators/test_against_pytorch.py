"""PyTorch's own allocator, on a fake driver, does what the model does."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from estimator.allocators.settings import caching_settings
from estimator.trace import FIRST_PRIVATE_POOL
from estimator.units import KIB, MIB
from tests.estimator.allocators.cases import CASES
from tests.estimator.allocators.real_allocator import RealAllocator, build, missing
from tests.estimator.allocators.traces import EMPTY, Case, Event, ours, release, theirs

REASON = missing()
pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(REASON is not None, reason=REASON or "nothing is missing"),
]

SETTINGS = (
    "",
    "max_split_size_mb:20",
    "max_split_size_mb:32,max_non_split_rounding_mb:64",
    "roundup_power2_divisions:4",
    "roundup_power2_divisions:[1:8,16:2,>:4]",
    "large_segment_size_mb:64",
    "max_split_size_mb:64,large_segment_size_mb:64",
    "garbage_collection_threshold:0.3",
    "garbage_collection_threshold:0.7",
    "garbage_collection_threshold:0.5,max_split_size_mb:40",
    "expandable_segments:True",
    "expandable_segments:True,max_split_size_mb:32",
    "expandable_segments:True,large_segment_size_mb:64",
    "expandable_segments:True,garbage_collection_threshold:0.4",
)


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> RealAllocator:
    """Return PyTorch's allocator, built once."""
    return build(tmp_path_factory.mktemp("real"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_hand_made_trace_leaves_the_same_segments(case: Case, real: RealAllocator) -> None:
    """The segments derived by hand are PyTorch's."""
    events = tuple(case.flat)

    outcome = theirs(
        real,
        iter(events),
        settings=case.settings,
        capacity=case.capacity,
        allowed=case.allowed,
    )

    assert outcome.answers == tuple(each.fits for each in events if each.verb == "alloc")
    if not fails_in_capture(events):
        assert outcome.segments == case.segments
        assert max(reserved for reserved, _ in outcome.books) == case.most
        assert outcome.retries == case.retries


def fails_in_capture(events: tuple[Event, ...]) -> bool:
    """Return whether a capture runs out of memory, which a job does not survive.

    What PyTorch frees then is of no interest, and on a card it breaks the capture:
    pytorch/pytorch#159594.
    """
    return any(not each.fits and each.stream >= FIRST_PRIVATE_POOL for each in events)


@pytest.mark.parametrize("settings", SETTINGS)
def test_random_traces_are_the_same_at_every_event(settings: str, real: RealAllocator) -> None:
    """Answers, reserved, allocated and retries agree after every event, and the segments at last.

    60 traces of up to 120 events: sizes of every class, two streams, graphs, caps.
    """
    for seed in range(60):
        chance = random.Random(f"{settings} {seed}")
        capacity = chance.choice([None, 64 * MIB, 200 * MIB, 400 * MIB])
        shares = [None, 300 * MIB, 150 * MIB]
        allowed = chance.choice(shares[1:] if "garbage" in settings else shares)
        limits = {"capacity": capacity, "allowed": allowed}
        events = survived(tuple(some_events(chance)), settings, limits)

        model = ours(iter(events), settings=settings, **limits)
        truth = theirs(real, iter(events), settings=settings, **limits)

        assert model == truth, f"trace {seed}"


def survived(
    events: tuple[Event, ...], settings: str, limits: dict[str, int | None]
) -> tuple[Event, ...]:
    """Return *events* as far as no capture runs out of memory, without frees of what is not."""
    kept: list[Event] = []
    live: set[int] = set()
    for event in events:
        if event.verb == "free" and event.tensor not in live:
            continue
        kept.append(event)
        live.discard(event.tensor)
        if event.verb == "alloc":
            if ours(iter(kept), settings=settings, **limits).answers[-1]:
                live.add(event.tensor)
            elif event.stream >= FIRST_PRIVATE_POOL:
                return tuple(kept[:-1])
    return tuple(kept)


def some_events(chance: random.Random) -> Iterator[Event]:
    """Yield a random trace; a tensor may be freed that could not be allocated."""
    live: list[int] = []
    pools: list[int] = []
    for tensor in range(chance.randint(10, 120)):
        kind = chance.random()
        if kind < 0.55 or not live:
            stream = chance.choice([0, 0, 0, 1])
            if chance.random() < 0.15:
                stream = FIRST_PRIVATE_POOL + chance.randint(0, 2)
                if stream not in pools:
                    pools.append(stream)
            yield Event(verb="alloc", tensor=tensor, nbytes=some_bytes(chance), stream=stream)
            live.append(tensor)
        elif kind < 0.96:
            yield Event(verb="free", tensor=live.pop(chance.randrange(len(live))))
        elif kind < 0.99 or not pools:
            yield EMPTY
        elif pools[0] >= FIRST_PRIVATE_POOL:
            yield release(pools[0])
            return


def some_bytes(chance: random.Random) -> int:
    """Return a size of some class, or one at the edge of two."""
    return chance.choice(
        [
            chance.randint(1, MIB),
            chance.randint(MIB, 12 * MIB),
            chance.randint(12 * MIB, 90 * MIB),
            chance.choice([512, 64 * KIB, MIB, 3 * MIB, 10 * MIB, 19 * MIB, 32 * MIB, 100 * MIB]),
        ]
    )


TEXTS = (
    "max_split_size_mb:20",
    "max_split_size_mb:19",
    "max_split_size_mb:128, expandable_segments: True",
    "max_split_size_mb:64,max_split_size_mb:128",
    "max_split_size_mb:64,",
    "max_split_size_mb",
    "max_split_size_mb:many",
    "max_split_size_mb:32,large_segment_size_mb:64",
    "max_split_size_mb:64,large_segment_size_mb:64",
    "max_non_split_rounding_mb:32,large_segment_size_mb:64",
    "max_non_split_rounding_mb:30",
    "large_segment_size_mb:10",
    "large_segment_size_mb:11",
    "large_segment_size_mb:64",
    "garbage_collection_threshold:0.5",
    "garbage_collection_threshold:1.0",
    "garbage_collection_threshold:1.2",
    "expandable_segments:true",
    "per_process_memory_fraction:0.5",
    "per_process_memory_fraction:2",
    "roundup_power2_divisions:4",
    "roundup_power2_divisions:0",
    "roundup_power2_divisions:3",
    "roundup_power2_divisions:[256:1,512:2,>:4]",
    "roundup_power2_divisions:[128:1,256:0,512:4]",
    "roundup_power2_divisions:[64:8,128:2,256:4,512:2,1024:4,>:1]",
    "roundup_power2_divisions:[>:4]",
    "roundup_power2_divisions:[65536:4]",
    "roundup_power2_divisions:[256:1",
    "foo:1,bar:2",
    "pinned_use_background_threads:True",
    "throw_on_cudamalloc_oom:True",
    "backend:native",
    "backend:mine",
)


@pytest.mark.parametrize("text", TEXTS)
def test_a_setting_is_read_as_pytorch_reads_it(text: str, real: RealAllocator) -> None:
    """The options arrive with PyTorch's values, and what PyTorch refuses is an unknown."""
    answer = real.ask(["config"], {"PYTORCH_CUDA_ALLOC_CONF": text})
    settings, unknowns = caching_settings({"PYTORCH_CUDA_ALLOC_CONF": text})

    assert (answer is None) == bool(unknowns)
    if answer is not None:
        large, split, near, threshold, expandable, fraction, *divisions = answer[0].split()
        assert int(large) == settings.large_segment_size
        assert int(split) == (settings.max_split_size or (1 << 64) - 1)
        assert int(near) == settings.max_non_split_rounding
        assert float(threshold) == settings.garbage_collection_threshold
        assert bool(int(expandable)) == settings.expandable_segments
        assert float(fraction) == settings.memory_fraction
        assert tuple(map(int, divisions)) == (settings.roundup_divisions or (0,) * 16)


def test_the_old_variable_hides_the_new_one(real: RealAllocator) -> None:
    """Of two variables PyTorch 2.15 reads PYTORCH_CUDA_ALLOC_CONF."""
    answer = real.ask(
        ["config"],
        {
            "PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:64",
            "PYTORCH_ALLOC_CONF": "max_split_size_mb:128,expandable_segments:True",
        },
    )

    assert answer is not None
    assert answer[0].split()[1] == str(64 * MIB)
