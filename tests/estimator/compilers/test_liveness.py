"""The cheap estimate: what XLA would fuse, in what order, and how much is then alive."""

from __future__ import annotations

import pytest

from estimator.compilers.fusing import fuse
from estimator.compilers.hlo import Reader
from estimator.compilers.liveness import outline_of
from tests.estimator.compilers import jax_children as children
from tests.estimator.frontends.jax_server import InChild
from tests.sweeping import spread

SIZE = 1 << 20
ARRAY = f"f32[{SIZE}]{{0}}"


def module(*lines: str, results: str) -> str:
    """Return a module whose entry has one large argument, `x`."""
    body = "\n".join(f"  {line}" for line in lines)
    return (
        "HloModule m, entry_computation_layout={}\n\n"
        f"ENTRY %main (x: f32[{SIZE}]) -> f32[] {{\n  %x = {ARRAY} parameter(0)\n{body}\n"
        f"  ROOT %out = {results}\n}}\n"
    )


def test_a_chain_of_cheap_operators_is_one_kernel() -> None:
    """Only its end is written."""
    text = module(
        f"%a = {ARRAY} negate(%x)",
        f"%b = {ARRAY} multiply(%a, %a)",
        f"%c = {ARRAY} sort(%b)",
        results=f"{ARRAY} sort(%c)",
    )

    graph = Reader(text).read()
    operators = [graph.nodes[number].operator for number in sorted(fuse(graph).reads)]

    assert operators == ["parameter", "multiply", "sort", "sort"]


def test_a_cheap_value_with_two_readers_is_computed_twice() -> None:
    """Rather than written and read: both readers have its operand in hand."""
    text = module(
        f"%a = {ARRAY} negate(%x)",
        f"%b = {ARRAY} multiply(%a, %x)",
        f"%c = {ARRAY} subtract(%a, %x)",
        f"%d = {ARRAY} sort(%b)",
        f"%e = {ARRAY} sort(%c)",
        results=f"({ARRAY}, {ARRAY}) tuple(%d, %e)",
    )

    graph = Reader(text).read()

    assert "negate" not in {graph.nodes[number].operator for number in fuse(graph).reads}


def test_an_expensive_value_with_two_readers_is_written() -> None:
    """A hyperbolic tangent takes longer to compute again than to read."""
    text = module(
        f"%a = {ARRAY} tanh(%x)",
        f"%b = {ARRAY} multiply(%a, %x)",
        f"%c = {ARRAY} subtract(%a, %x)",
        f"%d = {ARRAY} sort(%b)",
        f"%e = {ARRAY} sort(%c)",
        results=f"({ARRAY}, {ARRAY}) tuple(%d, %e)",
    )

    graph = Reader(text).read()

    assert "tanh" in {graph.nodes[number].operator for number in fuse(graph).reads}


def test_a_value_is_written_over_an_operand_that_dies() -> None:
    """A loop over equal sizes needs no second buffer."""
    text = module(
        f"%a = {ARRAY} sort(%x)",
        f"%b = {ARRAY} tanh(%a)",
        results=f"{ARRAY} sort(%b)",
    )

    outline = outline_of(text)

    assert outline.temporary == 4 * SIZE
    assert outline.outputs == 4 * SIZE
    assert outline.arguments == (4 * SIZE,)


@pytest.mark.jax
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "optimizer"),
    spread(
        [
            ("MobileNet", "adam"),
            ("ResNet50V2", "adamw"),
            ("VGG19", "sgd"),
            ("EfficientNetV2B0", "sgd"),
        ],
        of=[("MobileNet", "adam"), ("VGG19", "sgd")],
    ),
)
def test_it_is_within_15_percent_of_the_compile(
    in_jax_child: InChild, name: str, optimizer: str
) -> None:
    """On models it was not made with."""
    about, compiled = in_jax_child(children.outlined, name, optimizer)

    assert abs(about / compiled - 1) < 0.15
