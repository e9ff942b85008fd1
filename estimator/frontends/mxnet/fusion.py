"""Chains of element-wise operators that a GPU runs as one (MXNet 1.6 and later).

    Bound -> Bound

What lies between the operators of a chain needs no memory, and a chain may write where any of its
inputs lies. Forward and backward are fused apart. Source: apache/mxnet@1.9.1
`src/executor/pointwise_fusion_pass.cc`, `simple_partition_pass.h` (`GetCompatibleSubsets`),
`src/operator/fusion/fused_op-inl.h` (`ops_desc`), `fused_op.cc` (`FInplaceOption`).
Not compared with MXNet: the oracle is a CPU build, which has no fusion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from estimator.frontends.mxnet.bound import Bound
from estimator.frontends.mxnet.graph import NOTHING_SHARED, Entry, Node, Sharing, in_order

FUSED = "_FusedOp"
VARIABLE = "MXNET_USE_FUSION"
FORWARD = frozenset(
    {
        "Activation", "Cast", "Flatten", "Reshape", "_copy", "identity", "_div_scalar", "_hypot",
        "_hypot_scalar", "_identity_with_attr_like_rhs", "_maximum", "_minimum", "_minus_scalar",
        "_mul_scalar", "_ones", "_plus_scalar", "_power", "_power_scalar", "_rdiv_scalar",
        "_rminus_scalar", "_rpower_scalar", "_zeros", "abs", "amp_cast", "arccos", "arccosh",
        "arcsin", "arcsinh", "arctan", "arctanh", "cbrt", "ceil", "clip", "cos", "cosh",
        "degrees", "elemwise_add", "elemwise_div", "elemwise_mul", "elemwise_sub", "erf",
        "erfinv", "exp", "expand_dims", "expm1", "fix", "floor", "gamma", "gammaln", "log",
        "log10", "log1p", "log2", "negative", "ones_like", "radians", "rcbrt", "reciprocal",
        "relu", "rint", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "smooth_l1",
        "softsign", "sqrt", "square", "squeeze", "tan", "tanh", "trunc", "zeros_like", "add_n",
        "amp_multicast", "_mul",
    }
)  # fmt: skip
BACKWARD = frozenset(
    f"_backward_{name}"
    for name in (
        "abs", "amp_cast", "amp_multicast", "arccos", "arccosh", "arcsin", "arcsinh", "arctan",
        "arctanh", "cast", "cbrt", "clip", "cos", "cosh", "degrees", "div", "div_scalar", "erf",
        "erfinv", "expm1", "hypot", "hypot_scalar", "log", "log10", "log1p", "log2", "maximum",
        "minimum", "mul", "mul_scalar", "power", "power_scalar", "radians", "rcbrt",
        "rdiv_scalar", "reciprocal", "relu", "reshape", "rpower_scalar", "rsqrt", "sigmoid",
        "sign", "sin", "sinh", "smooth_l1", "sqrt", "square", "sub", "tan", "tanh", "Activation",
    )
)  # fmt: skip
MAX_NODES = 10_000
"""Larger graphs are left as they are: what a node may not join takes their number squared."""
MAX_PAIRS = 65_536
FIRST_ONLY = frozenset({"slice", "slice_axis", "slice_like", "broadcast_like"})
"""Operators that a chain may start with; what they read is not part of it."""
LEAKY = ("LeakyReLU", "_backward_LeakyReLU")


def is_fused(environment: Mapping[str, str]) -> bool:
    """Return whether a job's environment leaves fusion on."""
    return environment.get(VARIABLE, "1").lower() not in ("0", "false")


def fused(bound: Bound) -> Bound:
    """Return a graph in which every chain of two operators or more is one."""
    chains = _chains(bound) if len(bound.order) <= MAX_NODES else []
    if not chains:
        return bound
    made = _Rewrite(bound, chains)
    heads, gradients = made.entries(bound.heads), made.entries(bound.gradients)
    forward = in_order(heads)
    return Bound(
        heads=heads,
        gradients=gradients,
        order=in_order(gradients, after=forward),
        num_forward=len(forward),
        trained=bound.trained,
        states=bound.states,
    )


def _may_fuse(node: Node) -> bool:
    operator = node.operator
    if operator in LEAKY:
        owner = node.forward if node.is_backward and node.forward is not None else node
        return owner.attributes.get("act_type", "leaky") == "gelu"
    return operator in FORWARD or operator in BACKWARD


def _may_start(node: Node) -> bool:
    step = node.attributes.get("step", "()")
    return node.operator in FIRST_ONLY and step in ("()", "[]")


class _Sets:
    """Chains while they grow, and which of them a node may not join.

    A node must not join a chain that it also reaches through a node outside of it: that would
    make a cycle. Groups of sets are bits of a number.
    """

    def __init__(self) -> None:
        self.parent: list[int] = []
        self.members: list[int] = []
        """The sets that were merged into each."""
        self.excluded: list[int] = []
        self.first: list[int] = []
        """Place of the first node of each."""
        self.assigned: dict[Node, int] = {}
        """Set of a node, as it was when the node joined."""
        self.barred: dict[Node, int] = {}
        """Sets that a node may not join, and nothing after it either."""

    def find(self, number: int) -> int:
        """Return the set a number belongs to now."""
        while self.parent[number] != number:
            number = self.parent[number]
        return number

    def new(self, barred: int, first: int) -> int:
        """Return a new set."""
        number = len(self.parent)
        self.parent.append(number)
        self.members.append(1 << number)
        self.excluded.append(barred)
        self.first.append(first)
        return number

    def merge(self, number: int, other: int) -> None:
        """Let a set take in another."""
        self.members[number] |= self.members[other]
        self.parent[other] = number
        self.first[number] = min(self.first[number], self.first[other])

    def exclude(self, number: int, more: int, before: Sequence[Node]) -> None:
        """Let a set exclude *more*, and with it all that comes after one of its members."""
        whole = self.excluded[number] | more
        if whole == self.excluded[number]:
            return
        self.excluded[number] = whole
        members = self.members[number]
        for node in before[self.first[number] :]:
            own = self.assigned.get(node)
            if members & self.barred[node] or (own is not None and members >> own & 1):
                self.barred[node] |= whole


def _chains(bound: Bound) -> list[list[Node]]:
    """Return the chains of a graph, each with its operators in order."""
    sets = _Sets()
    before: list[Node] = []
    for node in bound.order:
        _place(sets, node, before)
        before.append(node)
    found: dict[int, list[Node]] = {}
    for node in bound.order:
        if node in sets.assigned:
            found.setdefault(sets.find(sets.assigned[node]), []).append(node)
    return [nodes for nodes in found.values() if len(nodes) > 1]


def _place(sets: _Sets, node: Node, before: Sequence[Node]) -> None:
    """Let a node join the chains of what it reads, or start one, or stand apart."""
    barred = 0
    for entry in node.inputs:
        barred |= sets.barred[entry.node]
    sources = [
        (entry.node, sets.assigned[entry.node])
        for entry in node.inputs
        if entry.node in sets.assigned
    ]
    if not _may_fuse(node):
        for _, number in sources:
            barred |= 1 << sets.find(number)
        sets.barred[node] = barred
        if _may_start(node):
            sets.assigned[node] = sets.new(barred, len(before))
        return
    sets.barred[node] = barred
    joined = -1
    for source, raw in sources:
        number = sets.find(raw)
        is_same_pass = source.is_backward == node.is_backward
        if number == joined or not is_same_pass or sets.members[number] & barred:
            continue
        if joined < 0:
            joined = number
            sets.exclude(number, barred, before)
        else:
            more = sets.excluded[number]
            sets.merge(joined, number)
            sets.exclude(joined, more, before)
    sets.assigned[node] = joined if joined >= 0 else sets.new(barred, len(before))


class _Rewrite:
    """A copy of a graph with one node for each chain."""

    def __init__(self, bound: Bound, chains: Sequence[Sequence[Node]]) -> None:
        self.chain_of = {node: number for number, chain in enumerate(chains) for node in chain}
        self.nodes: list[Node] = []
        self.outputs: list[dict[Entry, int]] = [{} for _ in chains]
        """Place of each entry of a chain that others read, in the order they are met."""
        self.copies: dict[Node, Node] = {}
        self.moved: dict[Entry, Entry] = {}
        """Entries of the graph, and the same in the copy."""
        for node in bound.order:
            reader = self.chain_of.get(node)
            for entry in node.inputs:
                self._meet(entry, reader)
        for entry in (*bound.heads, *bound.gradients):
            self._meet(entry, None)
        for number, chain in enumerate(chains):
            self.nodes.append(_merged(chain, list(self.outputs[number]), number))
        for node in bound.order:
            if node not in self.chain_of and not node.is_variable:
                self.copies[node] = _copied(node)
        for node, copy in self.copies.items():
            copy.inputs = self.entries(node.inputs)
            copy.controls = [self._control(each) for each in node.controls]
            if node.forward is not None:
                copy.forward = self.copies.get(node.forward, node.forward)
        for number, chain in enumerate(chains):
            inner = {node for node in chain}
            read = _read_by(list(self.outputs[number]), inner)
            self.nodes[number].inputs = _distinct(self.entries(read))
            self.nodes[number].sharing = _anywhere(self.nodes[number])

    def entries(self, entries: Sequence[Entry]) -> list[Entry]:
        """Return the same entries in the copy."""
        return [self.moved.get(entry) or self._entry(entry) for entry in entries]

    def _entry(self, entry: Entry) -> Entry:
        number = self.chain_of.get(entry.node)
        if number is not None:
            moved = Entry(self.nodes[number], self.outputs[number][entry])
        else:
            copy = self.copies.get(entry.node)
            moved = entry if copy is None else Entry(copy, entry.output)
        self.moved[entry] = moved
        return moved

    def _control(self, node: Node) -> Node:
        number = self.chain_of.get(node)
        return self.copies.get(node, node) if number is None else self.nodes[number]

    def _meet(self, entry: Entry, reader: int | None) -> None:
        number = self.chain_of.get(entry.node)
        if number is not None and number != reader:
            self.outputs[number].setdefault(entry, len(self.outputs[number]))


def _anywhere(node: Node) -> Sharing:
    """Return that any output may lie where any input lies, of a chain that is not absurdly wide."""
    sources, targets = len(node.inputs), node.num_outputs
    if sources * targets > MAX_PAIRS:
        return NOTHING_SHARED
    return Sharing(pairs=tuple((a, b) for a in range(sources) for b in range(targets)))


def _read_by(outputs: Sequence[Entry], inner: set[Node]) -> list[Entry]:
    """Return what a chain reads from outside, as a walk from its outputs meets it."""
    found: list[Entry] = []
    seen: set[Node] = set()
    stack = list(reversed(outputs))
    while stack:
        entry = stack.pop()
        if entry.node not in inner:
            found.append(entry)
        elif entry.node not in seen:
            seen.add(entry.node)
            stack.extend(reversed(entry.node.inputs))
    return found


def _distinct(entries: Sequence[Entry]) -> list[Entry]:
    found: dict[Entry, Entry] = {}
    for entry in entries:
        found.setdefault(entry, entry)
    return list(found.values())


def _merged(chain: Sequence[Node], outputs: Sequence[Entry], number: int) -> Node:
    return Node(
        FUSED,
        "+".join(node.name for node in chain[:3]) or f"fused_{number}",
        shapes=[entry.shape for entry in outputs],
        dtypes=[entry.dtype for entry in outputs],
        is_backward=chain[0].is_backward,
        forward=chain[0].forward,
    )


def _copied(node: Node) -> Node:
    return Node(
        node.operator,
        node.name,
        attributes=node.attributes,
        shapes=list(node.shapes),
        dtypes=list(node.dtypes),
        sharing=node.sharing,
        is_backward=node.is_backward,
        forward=node.forward,
    )
