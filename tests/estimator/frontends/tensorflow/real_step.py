"""A step as this project folds it, really run by TensorFlow's executor on the CPU.

    python real_step.py SPEC.json -> one JSON document on standard output

The session runs every kernel in one thread, in the order the executor's queue gives, as it does
for kernels of a card, and its allocator is BFC: what it allocates and frees is the oracle of
`estimator.frontends.tensorflow.executor`.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[4]


def run(document: dict[str, Any], steps: int) -> list[list[dict[str, Any]]]:
    """Run the step of *document* and return what the allocator did in the last one, by thread."""
    sys.path.insert(0, str(ROOT))
    from tests.estimator.frontends.tensorflow.real_run import ENVIRONMENT, lines_of

    os.environ.update(ENVIRONMENT)
    import numpy
    import tensorflow as tf

    from estimator.frontends import load
    from estimator.frontends.notebook import Notebook
    from estimator.spec import parse_spec

    load("tensorflow")
    from estimator.frontends.tensorflow.build import build_job
    from estimator.frontends.tensorflow.folding import definition_of
    from estimator.frontends.tensorflow.step import train_step
    from estimator.frontends.tensorflow.weightless import weightless

    spec = parse_spec(document)
    with weightless():
        graph = train_step(build_job(spec, Notebook()), spec).concrete().graph
    traced = graph.as_graph_def(add_shapes=True)
    order = {node.name: place for place, node in enumerate(traced.node)}
    definition = definition_of(graph, traced)
    nodes = sorted(definition.node, key=lambda each: (order.get(each.name, len(order)), each.name))
    del definition.node[:]
    definition.node.extend(nodes)
    v1 = tf.compat.v1
    with tf.Graph().as_default() as real:
        tf.import_graph_def(definition, name="")
        config = v1.ConfigProto(inter_op_parallelism_threads=-1, intra_op_parallelism_threads=1)
        config.graph_options.optimizer_options.opt_level = v1.OptimizerOptions.L0
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        begun = [
            tf.raw_ops.AssignVariableOp(
                resource=operation.outputs[0],
                value=tf.zeros(
                    tf.TensorShape(operation.get_attr("shape")),
                    tf.as_dtype(operation.get_attr("dtype")),
                ),
            )
            for operation in real.get_operations()
            if operation.type == "VarHandleOp"
        ]
        fed = {
            tensor.name: numpy.zeros(tensor.shape.as_list(), tensor.dtype.as_numpy_dtype)
            for tensor in graph.inputs
            if tensor.dtype != tf.resource
        }
        fetched = [each.name for each in (*graph.outputs, *graph.control_outputs)]
        with tempfile.TemporaryDirectory() as folder, v1.Session(config=config) as session:
            session.run(begun)
            for _ in range(steps - 1):
                session.run(fetched, fed)
            tf.profiler.experimental.start(folder)
            session.run(fetched, fed)
            tf.profiler.experimental.stop()
            (path,) = Path(folder).rglob("*.xplane.pb")
            return lines_of(path.read_bytes())


if __name__ == "__main__":
    print(json.dumps(run(json.loads(Path(sys.argv[1]).read_text()), steps=3)))
