"""Programs for accounts: hand-made ones, and any.

TraceBuilder -> Program; hypothesis -> Programs
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from estimator.allocators.settings import CachingSettings
from estimator.program import Program
from estimator.trace import FIRST_PRIVATE_POOL, Phase, Role, TraceBuilder
from estimator.units import KIB, MIB

SIZES = st.one_of(
    st.integers(min_value=0, max_value=MIB),
    st.integers(min_value=MIB, max_value=12 * MIB),
    st.sampled_from([512, 64 * KIB, MIB, 3 * MIB, 10 * MIB, 19 * MIB, 32 * MIB, 100 * MIB]),
)
STREAMS = (0, 0, 0, 1, FIRST_PRIVATE_POOL)
OPTIONS = st.sampled_from(
    [
        CachingSettings(),
        CachingSettings(max_split_size=32 * MIB, max_non_split_rounding=64 * MIB),
        CachingSettings(roundup_divisions=(4,) * 16),
        CachingSettings(garbage_collection_threshold=0.3),
        CachingSettings(expandable_segments=True),
        CachingSettings(expandable_segments=True, max_split_size=32 * MIB),
    ]
)
CAPS = st.sampled_from([None, None, 64 * MIB, 200 * MIB])


def recorded(
    record: Callable[[TraceBuilder], object], choices: dict[int, tuple[int, ...]] | None = None
) -> Program:
    """Return the program of what *record* does."""
    builder = TraceBuilder(framework="pytorch", framework_version="2.15.0")
    record(builder)
    trace = builder.build()
    return Program(
        sizes=trace.sizes,
        roles=trace.roles,
        streams=trace.streams,
        kinds=trace.kinds,
        ids=trace.ids,
        places=trace.places,
        place_table=trace.place_table,
        choices=choices or {},
    )


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Return a program of allocations, frees, uses and emptyings of the cache over three steps."""
    requests = draw(
        st.lists(
            st.tuples(
                st.sampled_from("aaaaaffffuesg"),
                SIZES,
                st.sampled_from(STREAMS),
                st.integers(0, 1000),
            ),
            max_size=80,
        )
    )
    choices: dict[int, tuple[int, ...]] = {}

    def record(builder: TraceBuilder) -> None:
        live: list[int] = []
        step = 0
        for kind, nbytes, stream, pick in requests:
            if kind == "a":
                tensor = builder.alloc(nbytes, Role(pick % len(Role)), stream=stream)
                live.append(tensor)
                if pick % 5 == 0:
                    choices[tensor] = (nbytes // 2, 0)
            elif kind == "e":
                builder.empty_cache()
            elif kind == "g":
                builder.release_pool(FIRST_PRIVATE_POOL)
            elif kind == "s":
                step += 1
                phase = Phase.FORWARD if pick % 2 else Phase.BACKWARD
                builder.at(step=step, phase=phase, operator="aten.mm", module=f"layer{pick % 3}")
            elif live and kind == "u":
                builder.use(live[pick % len(live)])
            elif live:
                builder.free(live.pop(pick % len(live)))

    return recorded(record, choices)
