"""The text of an HLO module as a graph without calls, aliases and repetitions.

    text -> Graph

Only what a memory plan follows from is kept: shapes, operators, who reads whom, which results are
written over which arguments. Bodies of loops stay apart: what they hold is theirs while they run.
Source: the grammar of openxla/xla@4336d12e xla/hlo/parser/hlo_parser.cc.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from estimator.compilers.hlo_text import Line, read_hlo, size_of
from estimator.compilers.narrow import NARROW, WIDE
from estimator.errors import TraceError

MAX_NODES = 400_000
MAX_STEPS = 4_000_000
"""Lines that are read, those of inlined calls each time, and parts of the tuples they make: a tuple
of two tuples, line by line, doubles without a single operator."""
_BROKEN = (IndexError, KeyError, RecursionError, TypeError, ValueError)
"""What text that is no module makes of its reading."""
SAME = frozenset(
    {
        "bitcast",
        "bitcast-convert",
        "copy",
        "get-tuple-element",
        "opt-barrier",
        "optimization-barrier",
        "reshape",
        "tuple",
        "after-all",
        "add-dependency",
    }
)
"""Operators whose result is the memory of what they are given."""
MARKS = ("Sharding", "xla.sdy", "SPMD", "annotate_device_placement")
"""Custom calls that only mark a value."""

_TARGET = re.compile(r'custom_call_target="([^"]*)"')
_CALLED = re.compile(r"(?:to_apply|body|condition|calls)=%?([\w.\-]+)")
_BRANCHES = re.compile(
    r"(?:branch_computations=\{([^}]*)\}|(?:true|false)_computation=%?([\w.\-]+))"
)
_NOTES = re.compile(r",? *(?:metadata|sharding|frontend_attributes|backend_config)=.*$")


@dataclass(slots=True)
class Node:
    """One operator with memory of its own."""

    operator: str
    nbytes: int
    elements: int
    operands: tuple[int, ...]
    """Distinct nodes it reads."""
    kind: str = ""
    """Type of its elements: `f32`."""
    inner: int = 0
    """What a loop's body holds beside its own arguments."""


@dataclass(slots=True)
class Graph:
    """Nodes in the order of the program: operands come first."""

    nodes: list[Node] = field(default_factory=list)
    results: list[int] = field(default_factory=list)
    """The node of each result."""
    written_over: dict[int, int] = field(default_factory=dict)
    """Result -> number of the argument it is written over."""
    arguments: dict[int, int] = field(default_factory=dict)
    """Node of an argument -> its number."""


class Reader:
    """Builds a graph: calls are inlined, equal operators are one, marks and aliases are none."""

    def __init__(self, text: str) -> None:
        """Read the lines of *text*.

        Raises:
            TraceError: if it is not the text of a module.
        """
        try:
            self.computations, self.entry, self.aliases = read_hlo(text)
        except _BROKEN as error:
            raise TraceError("not the text of an HLO module") from error
        self.graph = Graph()
        self._num_steps = 0
        self._wide: dict[int, int] = {}
        """Values in bf16 -> the same, before they were rounded to it."""
        self._known: dict[tuple[object, ...], tuple[int, ...]] = {}

    def read(self) -> Graph:
        """Return the graph of the entry.

        Raises:
            TraceError: if the module refers to what it does not have, or is too large.
        """
        try:
            values = self._inline(self.entry, None)
        except _BROKEN as error:
            raise TraceError("an HLO module that refers to what it does not have") from error
        self.graph.results = list(values)
        self.graph.written_over = dict(self.aliases)
        return self.graph

    def _inline(self, name: str, given: list[tuple[int, ...]] | None) -> tuple[int, ...]:
        """Return the nodes of the results of a computation, one a part of a tuple."""
        values: dict[str, tuple[int, ...]] = {}
        last: tuple[int, ...] = ()
        for line in self.computations[name]:
            values[line.name] = last_value = self._value(line, values, given)
            self._num_steps += 1 + len(last_value)
            if self._num_steps > MAX_STEPS:
                raise TraceError(f"an HLO module that takes more than {MAX_STEPS} steps to read")
            if line.is_root:
                last = last_value
        return last

    def _value(
        self, line: Line, values: dict[str, tuple[int, ...]], given: list[tuple[int, ...]] | None
    ) -> tuple[int, ...]:
        operator = line.operator
        if operator == "parameter":
            number = int(line.rest.partition(",")[0].strip() or line.operands[0] or 0)
            if given is not None:
                return given[number]
            node = self._node("parameter", line.shape, ())
            self.graph.arguments[node] = number
            return (node,)
        operands = [values[each] for each in line.operands if each in values]
        if operator == "get-tuple-element":
            index = int(re.search(r"index=(\d+)", line.rest)[1])  # type: ignore[index]
            parts = operands[0]
            return (parts[index],) if index < len(parts) else parts
        if operator == "tuple":
            return tuple(part for parts in operands for part in parts)
        if operator in SAME or (operator == "custom-call" and self._is_mark(line)):
            return operands[0] if operands else (self._node(operator, line.shape, ()),)
        if operator in ("call", "fusion"):
            called = _CALLED.search(line.rest)
            if called is not None:
                return self._inline(called[1], operands)
        flat = tuple(dict.fromkeys(part for parts in operands for part in parts))
        return self._own(line, flat)

    def _own(self, line: Line, operands: tuple[int, ...]) -> tuple[int, ...]:
        """Return the nodes of an operator that has memory of its own."""
        notes = _NOTES.sub("", line.rest)
        key = (line.operator, line.shape, operands, notes)
        if line.operator not in ("rng", "custom-call", "while") and key in self._known:
            return self._known[key]
        if line.operator == "while":
            nodes = operands  # its state is changed in place
            body = _CALLED.findall(line.rest)
            self._node("while", "", operands, inner=max(map(self._held, body), default=0))
        elif line.operator == "conditional":
            inner = max(map(self._held, self._branches(line.rest)), default=0)
            nodes = (self._node("conditional", line.shape, operands, inner=inner),)
        elif line.operator == "convolution":
            laid_out = tuple(dict.fromkeys(self._laid_out(each) for each in operands))
            nodes = (self._node(line.operator, line.shape, laid_out),)
        elif line.operator == "select-and-scatter" and len(operands) > 1:
            nodes = (self._scattered(line.shape, operands),)
        elif line.operator == "convert" and len(operands) == 1:
            nodes = (self._converted(line.shape, operands[0]),)
        elif line.shape.startswith(NARROW) and self._is_wide(line):
            nodes = (self._widened(line, operands),)
        else:
            nodes = (self._node(line.operator, line.shape, operands),)
        self._known[key] = nodes
        return nodes

    def _converted(self, shape: str, source: int) -> int:
        """Return a value in another type: one rounded to bf16 and back was never rounded.

        Source: xla/hlo/transforms/simplifiers/simplify_fp_conversions.cc, which JAX's excess
        precision (on by default) lets run.
        """
        if source in self._wide and shape.startswith("f32["):
            return self._wide[source]
        found = self._node("convert", shape, (source,))
        if shape.startswith(NARROW) and self.graph.nodes[source].kind == "f32":
            self._wide[found] = source
        return found

    def _is_wide(self, line: Line) -> bool:
        """Return whether a value in bf16 is computed in 32 bits: a reduction as its body is."""
        if line.operator != "reduce":
            return line.operator in WIDE
        body = _CALLED.search(line.rest)
        return body is not None and any(
            each.operator in WIDE for each in self.computations[body[1]]
        )

    def _widened(self, line: Line, operands: tuple[int, ...]) -> int:
        """Return an operator's value rounded to bf16, of operands that were not where they can be.

        Source: xla/service/float_normalization.cc (where it lay in 2024).
        """
        wide = tuple(dict.fromkeys(self._before_rounding(each) for each in operands))
        found = self._node(line.operator, line.shape.replace(NARROW, "f32[", 1), wide)
        return self._converted(line.shape, found)

    def _before_rounding(self, number: int) -> int:
        node = self.graph.nodes[number]
        if number in self._wide or node.kind != "bf16":
            return self._wide.get(number, number)
        key = ("wide", number)
        if key not in self._known:
            wide = replace(
                node, operator="convert", kind="f32", nbytes=2 * node.nbytes, operands=(number,)
            )
            self.graph.nodes.append(wide)
            self._known[key] = (len(self.graph.nodes) - 1,)
        return self._known[key][0]

    def _laid_out(self, number: int) -> int:
        """Return an operand of a convolution in cuDNN's order of axes: arguments are copied.

        A filter that is reversed for a gradient is the filter itself: cuDNN does that on the way.
        Source: xla/backends/gpu/transforms/conv_rewriter.cc, layout_assignment.cc.
        """
        node = self.graph.nodes[number]
        if node.operator == "reverse":
            return self._laid_out(node.operands[0])
        if node.operator != "parameter":
            return number
        key = ("layout", number)
        if key not in self._known:
            self.graph.nodes.append(replace(node, operator="copy", operands=(number,)))
            self._known[key] = (len(self.graph.nodes) - 1,)
        return self._known[key][0]

    def _scattered(self, shape: str, operands: tuple[int, ...]) -> int:
        """Return the scatter that a pooling's gradient becomes: onto zeros, at computed places.

        Source: openxla/xla xla/service/select_and_scatter_expander.cc (where it lay in 2024).
        """
        source = self.graph.nodes[operands[1]]
        zeros = self._repeated("broadcast", shape, operands[2:])
        places = self._node("reduce-window", "s32[0]", operands[:1])
        self.graph.nodes[places].nbytes = 4 * source.elements
        self.graph.nodes[places].elements = source.elements
        return self._node("scatter", shape, (zeros, places, operands[1]))

    def _repeated(self, operator: str, shape: str, operands: tuple[int, ...]) -> int:
        """Return the node that fills *shape* with a number, which may be there already."""
        key = (operator, shape, operands, ", dimensions={}")
        if key not in self._known:
            self._known[key] = (self._node(operator, shape, operands),)
        return self._known[key][0]

    def _branches(self, rest: str) -> Iterator[str]:
        for several, one in _BRANCHES.findall(rest):
            yield from (each.strip().lstrip("%") for each in (several or one).split(","))

    def _held(self, name: str) -> int:
        """Return about what a body holds at once: its two largest values."""
        sizes = sorted(
            (
                size_of(line.shape)[0]
                for line in self.computations[name]
                if line.operator not in ("parameter", *SAME)
            ),
            reverse=True,
        )
        return sum(sizes[:2])

    def _is_mark(self, line: Line) -> bool:
        target = _TARGET.search(line.rest)
        return target is not None and target[1].startswith(MARKS)

    def _node(self, operator: str, shape: str, operands: tuple[int, ...], *, inner: int = 0) -> int:
        nbytes, elements = size_of(shape)
        kind = shape.lstrip("(").partition("[")[0]
        self.graph.nodes.append(Node(operator, nbytes, elements, operands, kind, inner))
        if len(self.graph.nodes) > MAX_NODES:
            raise TraceError(f"an HLO module of more than {MAX_NODES} operators")
        return len(self.graph.nodes) - 1
