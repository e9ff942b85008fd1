"""Steps that exporters write apart and models of torch run as one: made one again.

    Graph -> Graph

SiLU (`Sigmoid`, `Mul`), GELU by `Erf`, layer norm by means: apart they keep two to four times what
one kernel keeps for backward. Only the last node of such a group is changed; the others are then
taken by nobody and do not run. Not done: attention, GELU by `Tanh`, RMS norm.
Source: exports of torch 2.15.0 and tf2onnx, operator sets 9 to 17.
"""

from __future__ import annotations

from collections import Counter

from estimator.frontends.pytorch.build.onnx.graph import Graph, Node


def simplified(graph: Graph) -> Graph:
    """Return *graph* with known groups of nodes as one node each."""
    groups = _Groups(graph)
    nodes = tuple(groups.changed(node) for node in graph.nodes)
    return graph.model_copy(update={"nodes": nodes})


class _Groups:
    """Finds groups by the node that ends them."""

    def __init__(self, graph: Graph) -> None:
        self.made_by: dict[int, Node] = {}
        count = graph.first_result
        for node in graph.nodes:
            self.made_by[count] = node
            count += node.outputs
        self.uses = Counter(number for node in graph.nodes for number in node.inputs)
        self.uses.update(graph.outputs)
        first = len(graph.inputs)
        self.single = {
            first + index: tensor.values[0]
            for index, tensor in enumerate(graph.tensors)
            if tensor.values is not None and len(tensor.values) == 1
        }
        """Numbers that are known, by the tensor that holds them alone."""
        self.vectors = {
            first + index for index, tensor in enumerate(graph.tensors) if len(tensor.shape) == 1
        }

    def changed(self, node: Node) -> Node:
        """Return the one node in place of the group that *node* ends, or *node*."""
        if len(node.inputs) != 2:
            return node
        if node.op == "Mul":
            source = self._silu(node)
            if source is not None:
                return Node(op="Swish", inputs=(source,))
            source = self._gelu(node)
            if source is not None:
                return Node(op="Gelu", inputs=(source,))
        if node.op == "Add":
            return self._scaled_norm(node) or node
        if node.op == "Div":
            source = self._norm(node)
            if source is not None:
                return Node(op="LayerNormalization", inputs=(source,))
        return node

    def _inputs(self, number: int, *ops: str, times: int = 1) -> tuple[int, ...]:
        """Return what the node that made *number* takes, if it is one of *ops* and not shared."""
        node = self.made_by.get(number)
        if node is None or node.op not in ops or self.uses[number] > times:
            return ()
        return node.inputs

    def _silu(self, node: Node) -> int | None:
        for one, other in (node.inputs, node.inputs[::-1]):
            if self._inputs(other, "Sigmoid") == (one,):
                return one
        return None

    def _factors(self, number: int, depth: int = 3) -> list[int]:
        parts = self._inputs(number, "Mul") if depth else ()
        return [each for part in parts for each in self._factors(part, depth - 1)] or [number]

    def _gelu(self, node: Node) -> int | None:
        """Return x of `x * (1 + erf(x / √2)) / 2`, however the products are nested."""
        factors = [each for part in node.inputs for each in self._factors(part, 2)]
        rest = [each for each in factors if each not in self.single]
        if len(rest) != 2 or len(factors) != 3:
            return None
        for source, added in (rest, rest[::-1]):
            for term in self._inputs(added, "Add"):
                for scaled in self._inputs(term, "Erf"):
                    if source in self._inputs(scaled, "Div", "Mul"):
                        return source
        return None

    def _norm(self, node: Node) -> int | None:
        """Return x of `d / sqrt(mean(d²) + ε)` with `d = x - mean(x)`, over the last axis."""
        centred, deviation = node.inputs
        difference = self._inputs(centred, "Sub", times=3)
        root = self._inputs(deviation, "Sqrt")
        if len(difference) != 2 or not root:
            return None
        source, mean = difference
        terms = self._inputs(root[0], "Add")
        if self._inputs(mean, "ReduceMean")[:1] != (source,):
            return None
        for term in terms:
            for squared in self._inputs(term, "ReduceMean")[:1]:
                if self._is_last_axis(term) and centred in self._inputs(squared, "Pow", "Mul"):
                    return source
        return None

    def _is_last_axis(self, number: int) -> bool:
        node = self.made_by[number]
        axes = node.attributes.get("axes")
        found = [self.single.get(node.inputs[1])] if len(node.inputs) > 1 else axes
        return found == [-1]

    def _scaled_norm(self, node: Node) -> Node | None:
        """Return a layer norm with its weight and bias, if *node* adds the bias."""
        for product, bias in (node.inputs, node.inputs[::-1]):
            for divided, weight in _pairs(self._inputs(product, "Mul")):
                end = self.made_by.get(divided)
                if end is None or len(end.inputs) != 2 or end.op != "Div" or self.uses[divided] > 1:
                    continue
                source = self._norm(end)
                if source is not None and {weight, bias} <= self.vectors:
                    return Node(op="LayerNormalization", inputs=(source, weight, bias))
        return None


def _pairs(inputs: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    return (inputs, inputs[::-1]) if len(inputs) == 2 else ()
