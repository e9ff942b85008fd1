"""A real training run on the CPU under TensorFlow's own BFC allocator, watched by its profiler.

    python real_run.py JOB.json -> one JSON document on standard output

Executed in a process of its own: the allocator is chosen by the environment before the import.
The document is every allocation and free of the process from before its first operation, a list
for each thread (`allocation_order.py` makes one of them).
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

ENVIRONMENT = {
    "TF_CPU_ALLOCATOR_USE_BFC": "1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "TF_ENABLE_ONEDNN_OPTS": "0",
    "CUDA_VISIBLE_DEVICES": "",
    "KERAS_BACKEND": "tensorflow",
}
OFF = (
    "arithmetic_optimization",
    "dependency_optimization",
    "function_optimization",
    "implementation_selector",
    "layout_optimizer",
    "loop_optimization",
    "remapping",
    "scoped_allocator_optimization",
    "shape_optimization",
)


def run(job: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """Train *job* for a few steps and return what the allocator did."""
    os.environ.update(ENVIRONMENT)
    import keras
    import tensorflow as tf

    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    passes: dict[str, Any] = dict.fromkeys(OFF, False)
    tf.config.optimizer.set_experimental_options({**passes, "constant_folding": True})
    with tempfile.TemporaryDirectory() as folder:
        tf.profiler.experimental.start(folder)
        model = keras.saving.deserialize_keras_object(job["config"], safe_mode=True)
        model.compile(
            optimizer=keras.optimizers.get(job["optimizer"]),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            jit_compile=False,
        )
        model.optimizer.build(model.trainable_variables)
        step = tf.function(lambda x, y: model.train_step((x, y)), autograph=False)
        inputs = tf.zeros(job["inputs"])
        labels = tf.zeros(job["labels"], tf.int32)
        for _ in range(job["steps"]):
            step(inputs, labels)
        tf.profiler.experimental.stop()
        (path,) = Path(folder).rglob("*.xplane.pb")
        return lines_of(path.read_bytes())


def lines_of(content: bytes) -> list[list[dict[str, Any]]]:
    """Return the allocator's own records, as each thread wrote them down one after the other."""
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    space = xplane_pb2.XSpace.FromString(content)
    lines = []
    for plane in space.planes:
        names = {key: value.name for key, value in plane.event_metadata.items()}
        stats = {key: value.name for key, value in plane.stat_metadata.items()}
        for line in plane.lines:
            found = []
            for event in line.events:
                name = names[event.metadata_id]
                if name not in ("MemoryAllocation", "MemoryDeallocation"):
                    continue
                record: dict[str, Any] = {
                    "is_free": name == "MemoryDeallocation",
                    "time": line.timestamp_ns * 1000 + event.offset_ps,
                }
                for stat in event.stats:
                    kind = stat.WhichOneof("value")
                    value = getattr(stat, kind)
                    key = stats[stat.metadata_id]
                    record[key] = stats[value] if kind == "ref_value" else value
                found.append(record)
            if found:
                lines.append(found)
    return lines


if __name__ == "__main__":
    print(json.dumps(run(json.loads(Path(sys.argv[1]).read_text()))))
