"""The text of a module is read as a graph of what has memory of its own."""

from __future__ import annotations

import pytest

from estimator.compilers.hlo import Reader
from estimator.compilers.hlo_text import size_of
from estimator.errors import TraceError

MODULE = """HloModule jit_step, input_output_alias={ {1}: (0, {}, may-alias) }

%relu (x: f32[8,4]) -> f32[8,4] {
  %x = f32[8,4]{1,0} parameter(0)
  %zero = f32[] constant(0)
  %zeros = f32[8,4]{1,0} broadcast(%zero), dimensions={}
  ROOT %max = f32[8,4]{1,0} maximum(%x, %zeros)
}

ENTRY %main (w: f32[4,4], b: f32[8,4]) -> (f32[], f32[4,4]) {
  %w = f32[4,4]{1,0} parameter(0), sharding={replicated}
  %b = f32[8,4]{1,0} parameter(1)
  %marked = f32[4,4]{1,0} custom-call(%w), custom_call_target="xla.sdy.FuncResultSharding"
  %dot = f32[8,4]{1,0} dot(%b, %marked), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %same = f32[8,4]{1,0} dot(%b, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %once = f32[8,4]{1,0} call(%dot), to_apply=%relu
  %again = f32[8,4]{1,0} call(%same), to_apply=%relu
  %sum = f32[8,4]{1,0} add(%once, %again), metadata={op_name="jit(step)/add"}
  %zero.1 = f32[] constant(0)
  %loss = f32[] reduce(%sum, %zero.1), dimensions={0,1}, to_apply=%relu
  ROOT %out = (f32[], /*index=1*/f32[4,4]{1,0}) tuple(%loss, %w)
}
"""


def test_calls_are_inlined_and_equal_operators_are_one() -> None:
    """Marks and aliases are none; what is computed twice alike is computed once."""
    graph = Reader(MODULE).read()

    operators = [node.operator for node in graph.nodes]
    assert operators == [
        "parameter",
        "parameter",
        "dot",
        "constant",
        "broadcast",
        "maximum",
        "add",
        "reduce",
    ]
    assert graph.nodes[6].operands == (5,)
    assert graph.results == [7, 0]
    assert graph.written_over == {1: 0}
    assert graph.arguments == {0: 0, 1: 1}


@pytest.mark.parametrize(
    ("shape", "nbytes", "elements"),
    [
        ("f32[8,4]{1,0}", 128, 32),
        ("bf16[3]", 6, 3),
        ("pred[]", 1, 1),
        ("s4[3]", 2, 3),
        ("f8e4m3fn[10]", 10, 10),
        ("(f32[2]{0}, s32[3]{0})", 20, 5),
        ("token[]", 0, 1),
    ],
)
def test_shapes_have_bytes(shape: str, nbytes: int, elements: int) -> None:
    """Of every type, whole bytes upwards."""
    assert size_of(shape) == (nbytes, elements)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "HloModule x\n",
        "ENTRY %main () -> f32[] {\n  ROOT %a = f32[] call(%b), to_apply=%c\n}\n",
    ],
)
def test_what_is_no_module_is_an_error(text: str) -> None:
    """Not a graph of nothing."""
    with pytest.raises(TraceError, match="HLO module"):
        Reader(text).read()


def test_a_computation_that_calls_itself_is_an_error() -> None:
    """A hostile module does not end the process."""
    text = "ENTRY %m (a: f32[]) -> f32[] {\n  ROOT %a = f32[] call(), to_apply=%m\n}\n"

    with pytest.raises(TraceError, match="HLO module"):
        Reader(text).read()


HEAD = "HloModule m\nENTRY %m (a: f32[4]) -> f32[4] {\n  %a = f32[4] parameter(0)\n"


@pytest.mark.parametrize(
    "line",
    [
        "  %b = ",
        "  %b = f32[4] parameter(x)",
        "  %b = f32[4] get-tuple-element(%a)",
        "  %b = f32[" + "9" * 5_000 + "] add(%a, %a)",
    ],
)
def test_lines_that_nobody_prints_are_one_error(line: str) -> None:
    """Whatever the reading stumbles over, the module is to blame."""
    with pytest.raises(TraceError, match="HLO module"):
        Reader(f"{HEAD}{line}\n}}\n").read()


def test_tuples_that_double_are_refused() -> None:
    """Sixty lines make 2^60 parts and no operator."""
    lines = ["  %t0 = (f32[4]) tuple(%a)"]
    lines += [f"  %t{n} = (f32[4]) tuple(%t{n - 1}, %t{n - 1})" for n in range(1, 60)]

    with pytest.raises(TraceError, match="steps"):
        Reader(HEAD + "\n".join(lines) + "\n}\n").read()


def test_a_filter_is_copied_once_for_every_convolution_that_reads_it() -> None:
    """cuDNN wants its axes in another order; a reversed filter is the same copy."""
    text = """HloModule m
ENTRY %main (x: f32[8,32,32,4], w: f32[3,3,4,4]) -> f32[8,32,32,4] {
  %x = f32[8,32,32,4]{3,2,1,0} parameter(0)
  %w = f32[3,3,4,4]{3,2,1,0} parameter(1)
  %h = f32[8,32,32,4]{3,2,1,0} convolution(%x, %w), window={size=3x3 pad=1_1x1_1}
  %r = f32[3,3,4,4]{3,2,1,0} reverse(%w), dimensions={0,1}
  ROOT %g = f32[8,32,32,4]{3,2,1,0} convolution(%h, %r), window={size=3x3 pad=1_1x1_1}
}
"""

    graph = Reader(text).read()

    copies = [number for number, node in enumerate(graph.nodes) if node.operator == "copy"]
    first, second = (node for node in graph.nodes if node.operator == "convolution")
    assert [graph.nodes[number].nbytes for number in copies] == [8 * 32 * 32 * 4 * 4, 9 * 16 * 4]
    assert set(first.operands) == set(copies)
    assert copies[1] in second.operands


NARROW = """HloModule jit_gelu

ENTRY %main (x: bf16[8,4]) -> (bf16[8,4], f32[8,4], bf16[8,4]) {
  %x = bf16[8,4]{1,0} parameter(0)
  %tanh = bf16[8,4]{1,0} tanh(%x)
  %gate = bf16[8,4]{1,0} multiply(%x, %tanh)
  %most = bf16[8,4]{1,0} maximum(%x, %tanh)
  %wide = f32[8,4]{1,0} convert(%gate)
  ROOT %out = (bf16[8,4], f32[8,4], bf16[8,4]) tuple(%gate, %wide, %most)
}
"""


def test_values_in_bf16_are_kept_as_they_were_before_rounding() -> None:
    """A card computes them in 32 bits, and XLA leaves out a rounding that is taken back."""
    graph = Reader(NARROW).read()

    values = [(node.operator, node.kind, node.operands) for node in graph.nodes]
    x, read, tanh, rounded, gate, result, most = range(7)
    assert values == [
        ("parameter", "bf16", ()),
        ("convert", "f32", (x,)),
        ("tanh", "f32", (read,)),
        ("convert", "bf16", (tanh,)),
        ("multiply", "f32", (read, tanh)),
        ("convert", "bf16", (gate,)),
        ("maximum", "bf16", (x, rounded)),
    ]
    assert [graph.nodes[each].nbytes for each in (x, tanh, rounded)] == [64, 128, 64]
    assert graph.results == [result, gate, most]
