"""Hand-made traces, one rule each, with the segments they must leave.

Derived from pytorch/pytorch@001074d25084fdb87a799823e395a50f5ec044d3
c10/cuda/CUDACachingAllocator.cpp, and `test_against_pytorch.py` runs them on PyTorch's own code.
"""

from __future__ import annotations

from estimator.units import KIB, MIB
from tests.estimator.allocators.traces import (
    EMPTY,
    GRAPH,
    OTHER_GRAPH,
    SYNCHRONIZE,
    Case,
    alloc,
    free,
    refused,
    release,
    use,
)

EXPANDABLE = "expandable_segments:True"

SIZES = (
    Case(
        rule="blocks are multiples of 512 and small ones share 2 MiB",
        events=(alloc("a", 1), alloc("b", 513), alloc("c", MIB)),
        segments=((512, 2 * 512, MIB, -(2 * MIB - 3 * 512 - MIB)),),
        most=2 * MIB,
    ),
    Case(
        rule="a rest of 512 bytes is split off in the small pool",
        events=(alloc("a", MIB), alloc("b", MIB - 512)),
        segments=((MIB, MIB - 512, -512),),
        most=2 * MIB,
    ),
    Case(
        rule="a full small segment is followed by another",
        events=(alloc("a", MIB), alloc("b", MIB), alloc("c", 1)),
        segments=((MIB, MIB), (512, -(2 * MIB - 512))),
        most=2 * MIB + 2 * MIB,
    ),
    Case(
        rule="one byte over 1 MiB is large and opens 20 MiB",
        events=(alloc("a", MIB + 1),),
        segments=((MIB + 512, -(20 * MIB - MIB - 512)),),
        most=20 * MIB,
    ),
    Case(
        rule="middle requests share 20 MiB",
        events=(alloc("a", 9 * MIB), alloc("b", 9 * MIB), alloc("c", 9 * MIB)),
        segments=((9 * MIB, 9 * MIB, -2 * MIB), (9 * MIB, -11 * MIB)),
        most=20 * MIB + 20 * MIB,
    ),
    Case(
        rule="one block under 10 MiB still opens 20 MiB",
        events=(alloc("a", 10 * MIB - 512),),
        segments=((10 * MIB - 512, -(10 * MIB + 512)),),
        most=20 * MIB,
    ),
    Case(
        rule="10 MiB get a segment of their own",
        events=(alloc("a", 10 * MIB),),
        segments=((10 * MIB,),),
        most=10 * MIB,
    ),
    Case(
        rule="own segments are multiples of 2 MiB, more than 1 MiB is split off",
        events=(alloc("a", 10 * MIB + 1),),
        segments=((10 * MIB + 512, -(2 * MIB - 512)),),
        most=12 * MIB,
    ),
    Case(
        rule="a rest of 1 MiB stays with a large block",
        events=(alloc("a", 19 * MIB),),
        segments=((20 * MIB,),),
        most=20 * MIB,
    ),
    Case(
        rule="rounding to 4 divisions of 32 MiB: steps of 8",
        settings="roundup_power2_divisions:4",
        events=(alloc("a", 33 * MIB),),
        segments=((40 * MIB,),),
        most=40 * MIB,
    ),
    Case(
        rule="divisions of under 512 bytes a step are not used",
        settings="roundup_power2_divisions:8",
        events=(alloc("a", 8 * 512 - 1), alloc("b", 8 * 512 + 1)),
        segments=((8 * 512, 9 * 512, -(2 * MIB - 17 * 512)),),
        most=2 * MIB,
    ),
    Case(
        rule="a division can lift a request over 1 MiB into the large pool",
        settings="roundup_power2_divisions:1",
        events=(alloc("a", MIB), alloc("b", MIB + 1)),
        segments=((MIB, -MIB), (MIB + 512, -(19 * MIB - 512))),
        most=2 * MIB + 20 * MIB,
    ),
    Case(
        rule="large_segment_size_mb moves the segments of middle requests only",
        settings="large_segment_size_mb:64",
        events=(*(alloc(name, 9 * MIB) for name in "abcdef"), alloc("g", 12 * MIB)),
        segments=((*[9 * MIB] * 6, -10 * MIB), (12 * MIB,)),
        most=64 * MIB + 12 * MIB,
    ),
)

REUSE = (
    Case(
        rule="the smallest block that fits is taken",
        events=(alloc("a", 64 * MIB), alloc("b", 32 * MIB), free("a", "b"), alloc("c", 30 * MIB)),
        segments=((-64 * MIB,), (30 * MIB, -2 * MIB)),
        most=64 * MIB + 32 * MIB,
    ),
    Case(
        rule="of equal blocks the lowest address is taken",
        events=(alloc("a", 32 * MIB), alloc("b", 32 * MIB), free("b", "a"), alloc("c", 32 * MIB)),
        segments=((32 * MIB,), (-32 * MIB,)),
        most=32 * MIB + 32 * MIB,
    ),
    Case(
        rule="a freed block merges with both neighbours",
        events=(
            *(alloc(name, 4 * MIB) for name in "abc"),
            free("a", "c", "b"),
            alloc("d", 12 * MIB),
        ),
        segments=((12 * MIB, -8 * MIB),),
        most=20 * MIB,
    ),
    Case(
        rule="the large pool does not serve small requests",
        events=(alloc("a", 9 * MIB), free("a"), alloc("b", KIB)),
        segments=((-20 * MIB,), (KIB, -(2 * MIB - KIB))),
        most=20 * MIB + 2 * MIB,
    ),
    Case(
        rule="the small pool does not serve large requests",
        events=(alloc("a", MIB), free("a"), alloc("b", MIB + 1)),
        segments=((-2 * MIB,), (MIB + 512, -(19 * MIB - 512))),
        most=2 * MIB + 20 * MIB,
    ),
    Case(
        rule="streams do not lend to each other",
        events=(alloc("a", 30 * MIB), free("a"), alloc("b", 30 * MIB, stream=1)),
        segments=((-30 * MIB,), (30 * MIB,)),
        most=30 * MIB + 30 * MIB,
    ),
    Case(
        rule="a large cached block is split without a limit",
        events=(alloc("a", 530 * MIB), free("a"), alloc("b", 270 * MIB)),
        segments=((270 * MIB, -260 * MIB),),
        most=530 * MIB,
    ),
)

SECOND_STREAM = (
    Case(
        rule="a block used on a second stream is not reused before a synchronisation",
        events=(alloc("a", 32 * MIB), use("a"), free("a"), alloc("b", 32 * MIB)),
        segments=((32 * MIB,), (32 * MIB,)),
        most=32 * MIB + 32 * MIB,
    ),
    Case(
        rule="it is reused after one",
        events=(alloc("a", 32 * MIB), use("a"), free("a"), SYNCHRONIZE, alloc("b", 32 * MIB)),
        segments=((32 * MIB,),),
        most=32 * MIB,
    ),
    Case(
        rule="memory short waits for the second stream",
        capacity=40 * MIB,
        events=(alloc("a", 32 * MIB), use("a"), free("a"), alloc("b", 40 * MIB)),
        segments=((40 * MIB,),),
        most=40 * MIB,
        retries=1,
    ),
    Case(
        rule="emptying the cache waits for the second stream",
        events=(alloc("a", 32 * MIB), use("a"), free("a"), EMPTY),
        segments=(),
        most=32 * MIB,
    ),
)

PRESSURE = (
    Case(
        rule="emptying the cache keeps segments with a live block",
        events=(
            alloc("a", 4 * MIB),
            alloc("b", 4 * MIB),
            alloc("c", 32 * MIB),
            free("b", "c"),
            EMPTY,
        ),
        segments=((4 * MIB, -16 * MIB),),
        most=20 * MIB + 32 * MIB,
    ),
    Case(
        rule="memory short returns cached segments, then asks again",
        capacity=64 * MIB,
        events=(alloc("a", 32 * MIB), free("a"), alloc("b", 40 * MIB)),
        segments=((40 * MIB,),),
        most=40 * MIB,
        retries=1,
    ),
    Case(
        rule="the cached segments of other streams and pools go back too",
        capacity=64 * MIB,
        events=(
            alloc("a", 32 * MIB, stream=1),
            alloc("b", KIB),
            free("a", "b"),
            alloc("c", 64 * MIB),
        ),
        segments=((64 * MIB,),),
        most=64 * MIB,
        retries=1,
    ),
    Case(
        rule="a refused request leaves the cache empty and may be made smaller",
        capacity=64 * MIB,
        events=(
            alloc("a", 4 * MIB),
            alloc("b", 32 * MIB),
            free("b"),
            refused("c", 50 * MIB),
            alloc("c", 44 * MIB),
        ),
        segments=((4 * MIB, -16 * MIB), (44 * MIB,)),
        most=20 * MIB + 44 * MIB,
        retries=1,
    ),
    Case(
        rule="a process cap refuses what the card could still give",
        capacity=100 * MIB,
        allowed=60 * MIB,
        events=(alloc("a", 30 * MIB), alloc("b", 20 * MIB), refused("c", 20 * MIB)),
        segments=((30 * MIB,), (20 * MIB,)),
        most=30 * MIB + 20 * MIB,
        retries=1,
    ),
)

MAX_SPLIT = (
    Case(
        rule="an oversize block is not split for a smaller request",
        settings="max_split_size_mb:64",
        events=(alloc("a", 128 * MIB), free("a"), alloc("b", 32 * MIB)),
        segments=((-128 * MIB,), (32 * MIB,)),
        most=128 * MIB + 32 * MIB,
    ),
    Case(
        rule="an oversize block serves, unsplit, a request that is near in size",
        settings="max_split_size_mb:64",
        events=(alloc("a", 128 * MIB), free("a"), alloc("b", 108 * MIB + 512)),
        segments=((128 * MIB,),),
        most=128 * MIB,
    ),
    Case(
        rule="20 MiB larger is not near",
        settings="max_split_size_mb:64",
        events=(alloc("a", 128 * MIB), free("a"), alloc("b", 108 * MIB)),
        segments=((-128 * MIB,), (108 * MIB,)),
        most=128 * MIB + 108 * MIB,
    ),
    Case(
        rule="max_non_split_rounding_mb says what is near",
        settings="max_split_size_mb:64,max_non_split_rounding_mb:64",
        events=(alloc("a", 128 * MIB), free("a"), alloc("b", 65 * MIB)),
        segments=((128 * MIB,),),
        most=128 * MIB,
    ),
    Case(
        rule="large_segment_size_mb says it where max_non_split_rounding_mb does not",
        settings="max_split_size_mb:64,large_segment_size_mb:64",
        events=(alloc("a", 128 * MIB), free("a"), alloc("b", 65 * MIB)),
        segments=((128 * MIB,),),
        most=128 * MIB,
    ),
    Case(
        rule="memory short frees one oversize block that is large enough, nothing else",
        settings="max_split_size_mb:64",
        capacity=300 * MIB,
        events=(
            alloc("a", 160 * MIB),
            alloc("b", 100 * MIB),
            alloc("c", 40 * MIB),
            free("a", "c"),
            alloc("d", 130 * MIB),
        ),
        segments=((100 * MIB,), (-40 * MIB,), (130 * MIB,)),
        most=160 * MIB + 100 * MIB + 40 * MIB,
    ),
    Case(
        rule="or several, the largest first, until their sum is enough",
        settings="max_split_size_mb:64",
        capacity=300 * MIB,
        events=(
            alloc("a", 80 * MIB),
            alloc("b", 90 * MIB),
            alloc("c", 70 * MIB),
            alloc("d", 40 * MIB),
            free("a", "b", "c", "d"),
            alloc("e", 150 * MIB),
        ),
        segments=((-70 * MIB,), (-40 * MIB,), (150 * MIB,)),
        most=80 * MIB + 90 * MIB + 70 * MIB + 40 * MIB,
    ),
    Case(
        rule="not enough of them: everything cached goes back",
        settings="max_split_size_mb:64",
        capacity=200 * MIB,
        events=(
            alloc("a", 80 * MIB),
            alloc("b", 40 * MIB),
            alloc("c", 30 * MIB),
            free("a", "b"),
            alloc("d", 150 * MIB),
        ),
        segments=((30 * MIB,), (150 * MIB,)),
        most=30 * MIB + 150 * MIB,
        retries=1,
    ),
)

GARBAGE = (
    Case(
        rule="above the threshold the segment cached longest goes before a new one comes",
        settings="garbage_collection_threshold:0.5",
        allowed=400 * MIB,
        events=(
            alloc("a", 64 * MIB),
            alloc("b", 48 * MIB),
            free("b"),
            alloc("c", 60 * MIB),
            free("a"),
            alloc("d", 70 * MIB),
            alloc("e", 72 * MIB),
        ),
        segments=((-64 * MIB,), (60 * MIB,), (70 * MIB,), (72 * MIB,)),
        most=64 * MIB + 60 * MIB + 70 * MIB + 72 * MIB,
    ),
    Case(
        rule="small requests do not age large blocks: equally old ones go together",
        settings="garbage_collection_threshold:0.5",
        allowed=200 * MIB,
        events=(
            alloc("s", 1),
            alloc("a", 64 * MIB),
            alloc("b", 48 * MIB),
            free("a"),
            alloc("t", 1),
            free("b"),
            alloc("c", 80 * MIB),
        ),
        segments=((512, 512, -(2 * MIB - 2 * 512)), (80 * MIB,)),
        most=2 * MIB + 64 * MIB + 48 * MIB,
    ),
    Case(
        rule="without a process cap the threshold does nothing",
        settings="garbage_collection_threshold:0.1",
        capacity=200 * MIB,
        events=(alloc("a", 64 * MIB), free("a"), alloc("b", 80 * MIB)),
        segments=((-64 * MIB,), (80 * MIB,)),
        most=64 * MIB + 80 * MIB,
    ),
    Case(
        rule="segments with a live block and expandable ones are no garbage",
        settings=f"garbage_collection_threshold:0.1,{EXPANDABLE}",
        allowed=200 * MIB,
        events=(alloc("a", 64 * MIB), free("a"), alloc("b", 81 * MIB)),
        segments=((81 * MIB, -19 * MIB),),
        most=80 * MIB + 20 * MIB,
    ),
)

PAGES = (
    Case(
        rule="large requests map pages of 20 MiB",
        settings=EXPANDABLE,
        events=(alloc("a", 33 * MIB),),
        segments=((33 * MIB, -7 * MIB),),
        most=2 * 20 * MIB,
    ),
    Case(
        rule="small requests map pages of 2 MiB",
        settings=EXPANDABLE,
        events=(alloc("a", MIB), alloc("b", MIB), alloc("c", 1)),
        segments=((MIB, MIB, 512, -(2 * MIB - 512)),),
        most=2 * 2 * MIB,
    ),
    Case(
        rule="large_segment_size_mb is the page",
        settings=f"{EXPANDABLE},large_segment_size_mb:64",
        events=(alloc("a", 65 * MIB),),
        segments=((65 * MIB, -63 * MIB),),
        most=2 * 64 * MIB,
    ),
    Case(
        rule="a rest of 512 bytes is split off in the large pool too",
        settings=EXPANDABLE,
        events=(alloc("a", 20 * MIB - 512),),
        segments=((20 * MIB - 512, -512),),
        most=20 * MIB,
    ),
    Case(
        rule="oversize blocks are split all the same",
        settings=f"{EXPANDABLE},max_split_size_mb:32",
        events=(alloc("a", 65 * MIB),),
        segments=((65 * MIB, -15 * MIB),),
        most=4 * 20 * MIB,
    ),
    Case(
        rule="the range grows from its free end",
        settings=EXPANDABLE,
        events=(alloc("a", 33 * MIB), alloc("b", 10 * MIB)),
        segments=((33 * MIB, 10 * MIB, -17 * MIB),),
        most=3 * 20 * MIB,
    ),
    Case(
        rule="the growing end counts as the largest block",
        settings=EXPANDABLE,
        events=(
            alloc("a", 30 * MIB),
            alloc("b", 5 * MIB),
            alloc("c", 5 * MIB),
            alloc("d", 1 * MIB + 512),
            free("a"),
            alloc("e", 4 * MIB),
        ),
        segments=((4 * MIB, -26 * MIB, 5 * MIB, 5 * MIB, MIB + 512, -(19 * MIB - 512)),),
        most=3 * 20 * MIB,
    ),
    Case(
        rule="only whole pages inside a free stretch are unmapped",
        settings=EXPANDABLE,
        events=(alloc("a", 10 * MIB), alloc("b", 40 * MIB), alloc("c", 10 * MIB), free("b"), EMPTY),
        segments=((10 * MIB, -10 * MIB), (-10 * MIB, 10 * MIB)),
        most=3 * 20 * MIB,
    ),
    Case(
        rule="new pages fill the lowest hole",
        settings=EXPANDABLE,
        events=(
            alloc("a", 10 * MIB),
            alloc("b", 40 * MIB),
            alloc("c", 10 * MIB),
            free("b"),
            EMPTY,
            alloc("d", 25 * MIB),
        ),
        segments=((10 * MIB, 25 * MIB, -15 * MIB, 10 * MIB),),
        most=3 * 20 * MIB,
    ),
    Case(
        rule="memory short unmaps free pages of another stream",
        settings=EXPANDABLE,
        capacity=60 * MIB,
        events=(alloc("a", 40 * MIB, stream=1), free("a"), alloc("b", 60 * MIB)),
        segments=((60 * MIB,),),
        most=60 * MIB,
        retries=1,
    ),
    Case(
        rule="a card too small for a page is out of memory",
        settings=EXPANDABLE,
        capacity=39 * MIB,
        events=(refused("a", 30 * MIB), alloc("a", 20 * MIB)),
        segments=((20 * MIB,),),
        most=20 * MIB,
        retries=1,
    ),
    Case(
        rule="the process cap counts 2 MiB steps, so pages can exceed it",
        settings=EXPANDABLE,
        allowed=35 * MIB,
        events=(alloc("a", 33 * MIB),),
        segments=((33 * MIB, -7 * MIB),),
        most=40 * MIB,
    ),
)

GRAPHS = (
    Case(
        rule="a graph does not take what is cached outside",
        events=(alloc("a", 30 * MIB), free("a"), alloc("p", 30 * MIB, stream=GRAPH)),
        segments=((-30 * MIB,), (30 * MIB,)),
        most=30 * MIB + 30 * MIB,
    ),
    Case(
        rule="a graph does not lend, and emptying the cache leaves it alone",
        events=(
            alloc("p", 30 * MIB, stream=GRAPH),
            free("p"),
            alloc("a", 30 * MIB),
            free("a"),
            EMPTY,
        ),
        segments=((-30 * MIB,),),
        most=30 * MIB + 30 * MIB,
    ),
    Case(
        rule="inside its pool a graph reuses",
        events=(
            alloc("p", 30 * MIB, stream=GRAPH),
            alloc("q", 5 * MIB, stream=GRAPH),
            free("p", "q"),
            alloc("r", 28 * MIB, stream=GRAPH),
            alloc("s", 18 * MIB, stream=GRAPH),
        ),
        segments=((28 * MIB, -2 * MIB), (18 * MIB, -2 * MIB)),
        most=30 * MIB + 20 * MIB,
    ),
    Case(
        rule="two pools do not share",
        events=(
            alloc("p", 30 * MIB, stream=GRAPH),
            free("p"),
            alloc("q", 30 * MIB, stream=OTHER_GRAPH),
        ),
        segments=((-30 * MIB,), (30 * MIB,)),
        most=30 * MIB + 30 * MIB,
    ),
    Case(
        rule="memory short does not free the pool of a living graph",
        capacity=64 * MIB,
        events=(alloc("p", 40 * MIB, stream=GRAPH), free("p"), refused("a", 30 * MIB)),
        segments=((-40 * MIB,),),
        most=40 * MIB,
        retries=1,
    ),
    Case(
        rule="it frees the pool of a dead one",
        capacity=64 * MIB,
        events=(
            alloc("p", 40 * MIB, stream=GRAPH),
            free("p"),
            release(GRAPH),
            alloc("a", 30 * MIB),
        ),
        segments=((30 * MIB,),),
        most=40 * MIB,
        retries=1,
    ),
    Case(
        rule="an output that outlives its graph keeps its segment",
        events=(
            alloc("p", 4 * MIB, stream=GRAPH),
            alloc("q", 4 * MIB, stream=GRAPH),
            alloc("r", 30 * MIB, stream=GRAPH),
            free("p", "r"),
            release(GRAPH),
            EMPTY,
        ),
        segments=((-4 * MIB, 4 * MIB, -12 * MIB),),
        most=20 * MIB + 30 * MIB,
    ),
    Case(
        rule="a capture that is short of memory frees nothing",
        capacity=64 * MIB,
        events=(
            alloc("p", 40 * MIB, stream=GRAPH),
            free("p"),
            refused("q", 44 * MIB, stream=GRAPH),
        ),
        segments=((-40 * MIB,),),
        most=40 * MIB,
    ),
    Case(
        rule="expandable pools of graphs are kept too",
        settings=EXPANDABLE,
        events=(alloc("p", 33 * MIB, stream=GRAPH), free("p"), EMPTY, alloc("a", 20 * MIB)),
        segments=((-40 * MIB,), (20 * MIB,)),
        most=2 * 20 * MIB + 20 * MIB,
    ),
    Case(
        rule="and unmapped once the graph is dead",
        settings=EXPANDABLE,
        events=(
            alloc("p", 33 * MIB, stream=GRAPH),
            alloc("q", 10 * MIB, stream=GRAPH),
            free("p"),
            release(GRAPH),
            EMPTY,
        ),
        segments=((-13 * MIB, 10 * MIB, -17 * MIB),),
        most=3 * 20 * MIB,
    ),
    Case(
        rule="pools of graphs are no garbage and do not age others",
        settings="garbage_collection_threshold:0.5",
        allowed=200 * MIB,
        events=(
            alloc("p", 64 * MIB, stream=GRAPH),
            free("p"),
            alloc("a", 50 * MIB),
            alloc("b", 60 * MIB),
        ),
        segments=((-64 * MIB,), (50 * MIB,), (60 * MIB,)),
        most=64 * MIB + 50 * MIB + 60 * MIB,
    ),
)

CASES = (
    *SIZES,
    *REUSE,
    *SECOND_STREAM,
    *PRESSURE,
    *MAX_SPLIT,
    *GARBAGE,
    *PAGES,
    *GRAPHS,
)
