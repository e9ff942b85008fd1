"""TensorFlow and Keras, imported once, in the one order that is safe.

nothing -> modules imported

Keras reads its backend while it is imported: a process that has it on another backend cannot
trace for TensorFlow.
"""

from __future__ import annotations

import os
from importlib import import_module

from estimator.errors import TraceError

BACKEND = "tensorflow"
ENVIRONMENT = {
    "KERAS_BACKEND": BACKEND,
    # A card in this machine must not change the answer, nor a compiler make its own.
    "CUDA_VISIBLE_DEVICES": "",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "TF_ENABLE_ONEDNN_OPTS": "0",
}


def import_all() -> None:
    """Import TensorFlow and Keras on it; no operation runs.

    Raises:
        TraceError: if this process has imported Keras on another backend.
    """
    os.environ.update(ENVIRONMENT)
    import_module("tensorflow")
    keras = import_module("keras")
    if keras.config.backend() != BACKEND:
        raise TraceError(f"keras is on the backend '{keras.config.backend()}' in this process")
    import_module("keras.src.backend.tensorflow.rnn")
    import_module("tensorflow.python.grappler.tf_optimizer")
    import_module("tensorflow.python.framework.function_def_to_graph")
