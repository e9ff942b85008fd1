"""Two small traces give a long one only where they prove it; without a framework."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from estimator.layering.depth import MAX_LAYERS, depth_of
from estimator.layering.extending import FEW, SOME, extended
from estimator.spec import parse_spec
from estimator.trace import Phase, Role, Trace, TraceBuilder
from tests.estimator.frontends.reading import job, llama

DEEP = 12


def stack(num_layers: int, size_of: Callable[[int], int] = lambda _: 100) -> Trace:
    """Return a step of so many layers; layer *n* keeps `size_of(n)` bytes until backward."""
    builder = TraceBuilder(framework="pytorch", framework_version="2.15.0")
    names = [f"layers.{number}" for number in range(num_layers)]
    for name in names:
        builder.at(step=0, phase=Phase.LOAD, operator="", module=name)
        builder.alloc(1000, Role.PARAMETER)
    kept = []
    for number, name in enumerate(names):
        builder.at(step=1, phase=Phase.FORWARD, operator="mm", module=name)
        kept.append(builder.alloc(size_of(number), Role.ACTIVATION))
    builder.at(step=1, phase=Phase.FORWARD, operator="stack", module="")
    everything = builder.alloc(8 + 4 * num_layers, Role.TEMPORARY)
    gradients = []
    for name in reversed(names):
        builder.at(step=1, phase=Phase.BACKWARD, operator="mm", module=name)
        gradients.append(builder.alloc(1000, Role.GRADIENT))
        builder.free(kept.pop())
    builder.at(step=1, phase=Phase.OPTIMIZER, operator="adam", module="")
    builder.free(everything)
    for gradient in gradients:
        builder.free(gradient)
    return builder.build(parameters=500 * num_layers)


def long(size_of: Callable[[int], int] = lambda _: 100) -> Trace | None:
    """Return the trace of `DEEP` layers from those of few."""
    return extended(stack(FEW, size_of), stack(SOME, size_of), DEEP)


def test_the_long_trace_is_the_one_in_full() -> None:
    """Layers, what backward frees of the mirrored one, and a size that grows with the depth."""
    found, full = long(), stack(DEEP)

    assert found is not None
    assert (found.kinds, found.ids, found.roles) == (full.kinds, full.ids, full.roles)
    assert (found.sizes, found.parameters) == (full.sizes, full.parameters)
    places = [[each.place_table[place] for place in each.places] for each in (found, full)]
    assert places[0] == places[1]
    assert found.facts["layersTraced"] == "4 of 12"


def test_a_first_and_a_last_layer_may_be_special() -> None:
    """Only what lies between is repeated."""
    assert long(lambda number: 300 if number == 0 else 100) is not None


@pytest.mark.parametrize(
    "size_of",
    [lambda number: 100 + number, lambda number: 100 + number % 2],
    ids=["growing", "alternating"],
)
def test_layers_that_differ_are_not_repeated(size_of: Callable[[int], int]) -> None:
    """Two middle layers of other sizes prove nothing."""
    assert long(size_of) is None


def test_traces_of_other_jobs_are_not_extended() -> None:
    """The shorter trace must be the longer one without a layer."""
    assert extended(stack(FEW, lambda _: 200), stack(SOME), DEEP) is None


def test_a_few_layers_are_traced_in_full() -> None:
    """Two small traces would take longer."""
    assert extended(stack(FEW), stack(SOME), 6) is None


@pytest.mark.parametrize("layers", [MAX_LAYERS + 1, 10**6, 1 << 62])
def test_a_model_without_end_is_not_extended(layers: int) -> None:
    """Its trace would be as long as it is deep: the frontend refuses it before it is built."""
    assert depth_of(parse_spec(job(llama(num_hidden_layers=MAX_LAYERS)))) == MAX_LAYERS
    assert depth_of(parse_spec(job(llama(num_hidden_layers=layers)))) is None
