"""Symbol JSON, as MXNet has written it since 0.8, into a graph.

    document (dict) -> heads

Three spellings of attributes have been published: `attrs` (1.0 and later), `attr` (0.9 to 0.12)
and `param` beside `attr` (0.8 and earlier). Nothing of a symbol is evaluated.
Source: apache/mxnet@1.9.1 `src/nnvm/legacy_json_util.cc`;
apache/tvm@d10918be220527e28c80239ba42053a4d159881d `nnvm/src/pass/saveload_json.cc` (MXNet 1.9.1
holds tvm@9bd2c7b44208ed992061f8c2688e1137357f1db1 as `3rdparty/tvm`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from estimator.frontends.mxnet.attributes import Attributes
from estimator.frontends.mxnet.errors import invalid, unsupported
from estimator.frontends.mxnet.graph import ITEM_BYTES, VARIABLE, Entry, Node
from estimator.frontends.mxnet.operators.base import Operator
from estimator.frontends.mxnet.operators.table import PLAIN, canonical, operator_named

MAX_NODES = 50_000
MAX_INPUTS = 20_000
MAX_OUTPUTS = 4_096
MAX_ATTRIBUTES = 64
MAX_TEXT = 4_096
PATH = "model.config"
_MX_DTYPES = {
    "0": "float32", "1": "float64", "2": "float16", "3": "uint8", "4": "int32", "5": "int8",
    "6": "int64", "7": "bool",
}  # fmt: skip


def read_symbol(document: Mapping[str, Any], *, has_onednn: bool = True) -> list[Entry]:
    """Return the heads of a symbol, unknown shapes throughout.

    *has_onednn*: for a build with oneDNN, in which some operators keep more.

    Raises:
        SpecError: if it is not a symbol, is larger than any, or a node needs a later one.
        UnsupportedJobError: if an operator has no rules.
    """
    raw_nodes, raw_heads = document.get("nodes"), document.get("heads")
    if not isinstance(raw_nodes, list) or not isinstance(raw_heads, list):
        raise invalid("not a symbol: a mapping with the lists 'nodes' and 'heads'", path=PATH)
    if not 1 <= len(raw_nodes) <= MAX_NODES or not 1 <= len(raw_heads) <= MAX_INPUTS:
        raise invalid(
            f"a symbol of {len(raw_nodes)} nodes and {len(raw_heads)} heads; "
            f"1 to {MAX_NODES} nodes are accepted",
            path=PATH,
        )
    nodes: list[Node] = []
    for index, raw in enumerate(raw_nodes):
        nodes.append(_node(raw, index, nodes, has_onednn=has_onednn))
    return [_entry(raw, nodes, "heads") for raw in raw_heads]


def _node(raw: object, index: int, nodes: Sequence[Node], *, has_onednn: bool) -> Node:
    """Return node *index*, whose inputs are among those before it.

    Source: `saveload_json.cc` writes nodes in the order of a depth first walk, so an input always
    comes first; one that does not is a cycle or no symbol.
    """
    place = f"nodes[{index}]"
    if not isinstance(raw, Mapping):
        raise invalid(f"{place} is not a mapping", path=PATH)
    name, kind = raw.get("name"), raw.get("op")
    if not isinstance(name, str) or not isinstance(kind, str) or len(name) > MAX_TEXT:
        raise invalid(f"{place} has no 'op' and 'name' of text", path=PATH)
    raw_inputs = raw.get("inputs", [])
    if not isinstance(raw_inputs, list) or len(raw_inputs) > MAX_INPUTS:
        raise invalid(f"{place} has no list of at most {MAX_INPUTS} 'inputs'", path=PATH)
    if "subgraphs" in raw:
        raise unsupported(f"node '{name[:128]}' ({kind[:128]}) holds graphs of its own")
    attributes = _attributes(raw, place)
    if kind == VARIABLE:
        return Node(VARIABLE, name, attributes=attributes, dtypes=[_dtype(attributes)])
    operator_name = canonical(kind)
    if not has_onednn:
        operator_name = PLAIN.get(operator_name, operator_name)
    operator = operator_named(operator_name, name)
    inputs = [_entry(each, nodes, f"{place}.inputs") for each in raw_inputs]
    return call(operator_name, name, attributes, inputs, operator)


def call(
    operator_name: str,
    name: str,
    attributes: dict[str, str],
    inputs: list[Entry],
    operator: Operator | None = None,
) -> Node:
    """Return a node that calls an operator; *attributes* and *inputs* become its own.

    Raises:
        UnsupportedJobError: if it has no rules.
        SpecError: if its attributes do not say how many outputs it has.
    """
    rules = operator or operator_named(operator_name, name)
    read = Attributes(name, attributes)
    outputs = rules.outputs(read)
    if not 1 <= outputs <= MAX_OUTPUTS:
        raise invalid(f"node '{name[:128]}' has {outputs} outputs", path=PATH)
    return Node(
        operator_name,
        name,
        attributes=attributes,
        inputs=inputs,
        shapes=[None] * outputs,
        dtypes=[None] * outputs,
        sharing=rules.sharing_of(read),
    )


def _attributes(raw: Mapping[str, Any], place: str) -> dict[str, str]:
    merged: dict[str, str] = {}
    for key in ("attr", "param", "attrs"):
        found = raw.get(key)
        if found is None:
            continue
        if not isinstance(found, Mapping) or len(found) > MAX_ATTRIBUTES:
            raise invalid(f"{place}.{key} is not a mapping of at most {MAX_ATTRIBUTES}", path=PATH)
        for name, value in found.items():
            if not isinstance(value, str) or len(value) > MAX_TEXT:
                raise invalid(f"{place}.{key}.{str(name)[:64]} is not a text", path=PATH)
            merged[str(name)] = value
    return merged


def _entry(raw: object, nodes: Sequence[Node], place: str) -> Entry:
    """Return the entry `[node, output, version]`, where the last may be absent."""
    if not isinstance(raw, list) or not 1 <= len(raw) <= 3:
        raise invalid(f"{place}: an entry is a list of node and output", path=PATH)
    node, index = raw[0], raw[1] if len(raw) > 1 else 0
    if not _is_index(node) or not _is_index(index):
        raise invalid(f"{place}: an entry holds whole numbers", path=PATH)
    if node >= len(nodes):
        raise invalid(f"{place}: node {node} comes later, which makes a cycle", path=PATH)
    if index >= nodes[node].num_outputs:
        raise invalid(f"{place}: node {node} has no output {index}", path=PATH)
    return Entry(nodes[node], index)


def _is_index(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _dtype(attributes: Mapping[str, str]) -> str | None:
    written = attributes.get("__dtype__")
    if written in (None, "None", "-1"):
        return None
    name = _MX_DTYPES.get(str(written), str(written))
    if name not in ITEM_BYTES:
        raise invalid(f"a variable of type '{name[:32]}'", path=PATH)
    return name
