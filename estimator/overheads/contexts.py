"""Memory of a CUDA context, and of the kernels and libraries a step brings to the card.

    Architecture, stack of the card, Loading -> context, libraries, cuDNN

All from published readings (data/readings.yaml) by one rule (`ranges.spread`).

Lazy loading: a context keeps a stack for every thread the card can hold, and about as much again
for the driver. So it grows with the multiprocessors: 107 MiB on an RTX 4060 Ti, 555 on an
RTX PRO 6000. Of thirteen contexts twelve lie within 1.84-2.10 stacks. What a process holds
beyond that is 70 MiB on any card, convolutions or not: forty-two readings, 3-155 and one negative.
Eager loading: every kernel of torch and its libraries for the architecture at once, by table.

Not modelled: the driver's version, MPS, several contexts a process, `cudaLimitStackSize` and
kernels that raise it, kernels of extensions (flash-attn, Triton: within the readings' spread).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from estimator.overheads.architectures import Architecture, stack_bytes, stacks_of
from estimator.overheads.loading import Loading
from estimator.overheads.ranges import NOTHING, Range, Spread, mib, span, spread
from estimator.overheads.readings import (
    Holds,
    Reading,
    all_readings,
    beyond,
    machine_of_2024,
    ratio,
)
from estimator.units import MIB

EAGER_LIBRARIES = 50
"""MiB of handles and tables beside kernels that are all loaded already (assumed)."""

MACHINE_WIDTH = 0.1
"""Seventeen readings within 2 %, but of one machine: its upper ends are widened by so much."""

EAGER_ASSUMED: Mapping[tuple[Loading, Architecture], Range] = {
    # between Kepler and Volta, between Kepler and Turing
    (Loading.EAGER_10, Architecture.PASCAL): mib(200, 500, 900),
    (Loading.EAGER_11, Architecture.PASCAL): mib(400, 700, 1200),
    # 1,427-1,443 with libraries, if the machine of 2024 loads eagerly; ends as Ampere
    (Loading.EAGER_11, Architecture.AMPERE_SERVER): mib(1001, 1385, 1560),
    # as Ampere: cards newer than the toolkit run, if at all, on its kernels
    (Loading.EAGER_11, Architecture.ADA): mib(950, 1300, 1560),
    (Loading.EAGER_11, Architecture.HOPPER): mib(950, 1300, 1600),
    (Loading.EAGER_11, Architecture.BLACKWELL): mib(950, 1300, 1600),
}
"""Eager contexts nobody has published a reading of."""

OTHER_FRAMEWORKS: Mapping[str, tuple[Range, Range]] = {
    # "such pools plus 200-300 MiB of context" (theqihao/tfmodels@0d98e2f5, derived); the upper
    # end is the TITAN RTX reading of 1,330, first regions included
    # (huggingface/transformers@05c408e3 benchmarks.md)
    "tensorflow": (mib(200, 300, 700), mib(0, 100, 600)),
    # assumed: eager CUDA 8-10 builds
    "mxnet": (mib(150, 300, 700), mib(0, 60, 300)),
    # assumed: as PyTorch with lazy loading
    "jax": (mib(200, 350, 520), mib(0, 150, 600)),
}
"""Context and libraries of the other frameworks, over all cards."""


def context_of(loading: Loading, architecture: Architecture, stack: int | None) -> Range:
    """Return a context before any work; *stack* None spans the catalog's cards.

    Source: data/readings.yaml; `EAGER_ASSUMED` where nothing was read.
    """
    if loading is not Loading.LAZY:
        return eager_contexts()[_known(loading, architecture), architecture]
    if stack is not None:
        return lazy_context(stack)
    stacks = stacks_of(architecture)
    likely = lazy_context(stacks[len(stacks) // 2])
    return span(map(lazy_context, stacks), expected=likely.expected)


def lazy_context(stack: int) -> Range:
    """Return the context of a card whose threads have *stack* bytes of stack in all."""
    times = stacks_in_a_context()
    return Range(
        low=round(times.low * stack),
        expected=round(times.expected * stack),
        high=round(times.high * stack),
    )


def libraries_of(loading: Loading, architecture: Architecture) -> Range:
    """Return what kernels and libraries add, without cuDNN."""
    any_card = lazy_libraries(Holds.KERNELS)
    if loading is not Loading.LAZY:
        return Range(low=0, expected=EAGER_LIBRARIES * MIB, high=any_card.high)
    if architecture is not Architecture.AMPERE_SERVER:
        return any_card
    context = lazy_context(_machine_stack())
    total = machine_of_2024().kernels
    return Range(
        low=any_card.low,
        expected=round(total.expected * MIB) - context.expected,
        high=round(total.high * (1 + MACHINE_WIDTH) * MIB) - context.high,
    )


def cudnn_of(loading: Loading, architecture: Architecture) -> Range:
    """Return what cuDNN adds to a process that calls it.

    Lazily, nothing that shows: processes that convolve hold as much as those that do not. The
    upper end takes all that those hold for cuDNN's. Eager figures have cuDNN in them, but for
    the A100's.
    """
    if architecture is Architecture.AMPERE_SERVER:
        added = machine_of_2024().cudnn
        return mib(0, added.expected, added.high * (1 + MACHINE_WIDTH))
    if loading is not Loading.LAZY:
        return NOTHING
    without, including = lazy_libraries(Holds.KERNELS), lazy_libraries(Holds.CUDNN)
    more = max(0, including.expected - without.expected)
    return Range(low=0, expected=more, high=max(more, including.high))


@cache
def stacks_in_a_context() -> Spread:
    """Return how many stacks a lazy context takes."""
    return spread([ratio(each, _stack(each)) for each in _lazy(Holds.CONTEXT)])


@cache
def lazy_libraries(holds: Holds) -> Range:
    """Return what readings that hold *holds* have beyond the expected context."""
    rest = spread([beyond(each, lazy_context(_stack(each)).expected) for each in _lazy(holds)])
    return mib(max(0, rest.low), rest.expected, rest.high)


@cache
def eager_contexts() -> Mapping[tuple[Loading, Architecture], Range]:
    """Return contexts that hold all kernels, by table.

    Expected are the fitted readings where there are any; the ends cover them and all others.
    """
    rows: dict[tuple[Loading, Architecture], list[Reading]] = {}
    for reading in all_readings():
        if reading.loading is not Loading.LAZY:
            rows.setdefault((reading.loading, reading.architecture), []).append(reading)
    return {**EAGER_ASSUMED, **{key: _eager(readings) for key, readings in rows.items()}}


def _eager(readings: list[Reading]) -> Range:
    every = spread([_bare(each) for each in readings])
    fitted = [_bare(each) for each in readings if each.fitted]
    likely = spread(fitted) if fitted else every
    return mib(min(every.low, likely.low), likely.expected, max(every.high, likely.high))


def _bare(reading: Reading) -> Spread:
    """Return *reading* without the libraries it holds, if it does."""
    return beyond(reading, 0 if reading.holds is Holds.CONTEXT else EAGER_LIBRARIES * MIB)


def _known(loading: Loading, architecture: Architecture) -> Loading:
    """Return *loading*, or the next newer: a toolkit older than a card does not run on it."""
    newer = list(Loading)[list(Loading).index(loading) :]
    return next(each for each in newer if (each, architecture) in eager_contexts())


def _lazy(holds: Holds) -> list[Reading]:
    return [each for each in all_readings() if each.loading is Loading.LAZY and each.holds is holds]


def _stack(reading: Reading) -> int:
    return stack_bytes(reading.gpu.compute_capability, reading.gpu.multiprocessors)


def _machine_stack() -> int:
    """Return the stack of an A100."""
    return stack_bytes((8, 0), 108)
