"""Grappler's constant folding, on a graph this frontend traced from a configuration.

FuncGraph -> Graph

Folding executes operators: it is never done to a graph that a user hands in. Of Grappler's
passes only constant folding and the pruning of nodes are run: layout, remapping and the memory
pass want a card or do not move the peak, and the one in MLIR changes no node. Bodies of loops,
branches and calls are taken as they were traced.

Variables are stated as handles with a shape, or Grappler knows no shape behind them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import tensorflow as tf
from tensorflow.core.protobuf import (
    config_pb2,
    device_properties_pb2,
    meta_graph_pb2,
    rewriter_config_pb2,
)
from tensorflow.python.framework import errors, function_def_to_graph
from tensorflow.python.grappler import cluster as grappler_cluster
from tensorflow.python.grappler import tf_optimizer

from estimator.errors import TraceError
from estimator.frontends.tensorflow.graph import Graph, Shapes, read_graph, shapes_of

OFF = (
    "arithmetic_optimization",
    "auto_mixed_precision",
    "common_subgraph_elimination",
    "debug_stripper",
    "dependency_optimization",
    "function_optimization",
    "implementation_selector",
    "layout_optimizer",
    "loop_optimization",
    "remapping",
    "scoped_allocator_optimization",
    "shape_optimization",
)
CARD = {
    "type": "GPU",
    "frequency": 1410,
    "num_cores": 108,
    "bandwidth": 1_555_000_000,
    "memory_size": 40 << 30,
}
"""A card for Grappler: it asks whether there is one, and folds the same for each."""


def folded(graph: Any) -> Graph:
    """Return the traced *graph* as TensorFlow would run it, constants folded.

    Its arguments are its inputs but for handles of variables: first those of its signature, then
    tensors it captured.
    """
    traced = graph.as_graph_def(add_shapes=True)
    shapes = shapes_of(traced)
    order = [node.name for node in traced.node]
    optimized = definition_of(graph, traced)
    if any(node.name not in shapes and node.op != "Const" for node in optimized.node):
        shapes = {**_inferred(optimized), **shapes}
    return read_graph(
        optimized,
        shapes,
        order=order,
        arguments=[tensor.op.name for tensor in graph.inputs if tensor.dtype != tf.resource],
        fetches=[tensor.name for tensor in graph.outputs],
        controls=[each.name for each in graph.control_outputs],
    )


def definition_of(graph: Any, traced: Any) -> Any:
    """Return the traced *graph*, whose definition is *traced*, as Grappler leaves it."""
    _state_handles(traced, graph)
    fetches = [tensor.op.name for tensor in graph.outputs]
    return _optimized(traced, [*fetches, *(each.name for each in graph.control_outputs)])


def body_of(function: Any, library: Mapping[str, Any]) -> Graph:
    """Return the body of a loop, a branch or a call, a FunctionDef traced in this process.

    *library* holds the functions it may call in turn.
    """
    graph = function_def_to_graph.function_def_to_graph(function)
    definition = graph.as_graph_def(add_shapes=True)
    body = read_graph(
        definition,
        shapes_of(definition),
        order=[node.name for node in definition.node],
        arguments=[tensor.op.name for tensor in graph.inputs],
        fetches=[tensor.name for tensor in graph.outputs],
        controls=[each.name for each in graph.control_outputs],
    )
    body.functions = library
    return body


def handle_data(tensor: Any) -> Any:
    """Return shape and dtype behind a resource *tensor*, None if it is no variable's."""
    data = getattr(tensor, "_handle_data", None)
    return data.shape_and_type[0] if data is not None and data.is_set else None


def _state_handles(definition: Any, graph: Any) -> None:
    """Turn the placeholders of captured variables into handles that state their shape."""
    known = {
        inner.op.name: data
        for outer, inner in graph.captures
        if outer.dtype == tf.resource and (data := handle_data(outer)) is not None
    }
    for node in definition.node:
        data = known.get(node.name)
        if data is not None:
            node.op = "VarHandleOp"
            node.ClearField("attr")
            node.attr["dtype"].type = data.dtype
            node.attr["shape"].shape.CopyFrom(data.shape)
            node.attr["shared_name"].s = node.name.encode()


def _optimized(definition: Any, keep: Sequence[str]) -> Any:
    """Return *definition* after Grappler, with the nodes of *keep* and what they need."""
    meta = meta_graph_pb2.MetaGraphDef()
    meta.graph_def.CopyFrom(definition)
    meta.collection_def["train_op"].node_list.value.extend(keep)
    try:
        return tf_optimizer.OptimizeGraph(_config(), meta, verbose=False, cluster=_cluster())
    except errors.OpError as error:
        raise TraceError(f"model: constants cannot be folded: {error.message}") from error


@cache
def _config() -> Any:
    config = config_pb2.ConfigProto()
    passes = config.graph_options.rewrite_options
    for name in OFF:
        setattr(passes, name, rewriter_config_pb2.RewriterConfig.OFF)
    passes.constant_folding = rewriter_config_pb2.RewriterConfig.ON
    passes.memory_optimization = rewriter_config_pb2.RewriterConfig.NO_MEM_OPT
    passes.meta_optimizer_iterations = rewriter_config_pb2.RewriterConfig.ONE
    passes.disable_tfg_optimizer = True  # it sorts and states shapes, which is done here
    passes.min_graph_nodes = -1
    passes.fail_on_optimizer_errors = True
    return config


@cache
def _cluster() -> Any:
    host = device_properties_pb2.NamedDevice(name="/device:CPU:0")
    host.properties.type = "CPU"
    card = device_properties_pb2.NamedDevice(name="/device:GPU:0")
    for key, value in CARD.items():
        setattr(card.properties, key, value)
    card.properties.environment["architecture"] = "8.0"
    return grappler_cluster.Cluster(devices=[host, card])


def _inferred(definition: Any) -> Shapes:
    """Return the shapes TensorFlow infers when it imports *definition*."""
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(definition, name="")
        return shapes_of(graph.as_graph_def(add_shapes=True))
