"""Variables without storage: a handle that knows shape and dtype, and no bytes behind it.

    nothing -> a context in which Keras creates such variables, and what it saw

Small variables stay real, because layers read some while they are built (normalisation
statistics, seeds, a learning rate). A model that reads a large one while it is built cannot be
built this way, and says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import tensorflow as tf
from keras import initializers
from keras.src.backend.tensorflow.core import Variable
from tensorflow.python.ops import resource_variable_ops

from estimator.errors import UnsupportedJobError
from estimator.notes import UnknownCode

MOST_REAL = 64
"""Elements of the largest variable that is created with its values."""
MAX_ELEMENTS = 1 << 40
"""Of one variable: more than any model has, and far from what overflows a shape."""
HANDLE = "weight"
"""Name of every handle. TensorFlow builds a kernel for each new name and shape: with one name,
weights of a shape share it. Nothing reads the name: a Keras variable has its own.
Source: tensorflow 2.21 python/ops/resource_variable_ops.py (`debug_name` of `VarHandleOp`)."""


CONSTANTS = (initializers.Constant, initializers.Ones, initializers.Zeros)


class Seen:
    """Which variables begin with random values."""

    def __init__(self) -> None:
        self._random: set[int] = set()

    def note(self, variable: Any, initializer: Any) -> None:
        """Remember how *variable* begins."""
        kind = getattr(initializer, "__self__", initializer)
        if not isinstance(kind, CONSTANTS):
            self._random.add(id(variable))

    def is_random(self, variable: Any) -> bool:
        """Return whether *variable* begins with random values."""
        return id(variable) in self._random


@contextmanager
def weightless() -> Iterator[Seen]:
    """Let Keras create large variables as handles only."""
    original = Variable._initialize_with_initializer
    seen = Seen()

    def initialise(variable: Any, initializer: Any) -> None:
        shape = tuple(variable._shape)
        elements = math.prod(shape)
        seen.note(variable, initializer)
        if elements > MAX_ELEMENTS:
            raise UnsupportedJobError(
                f"model: the weight '{variable.path}' has {elements} elements; "
                f"at most {MAX_ELEMENTS} are accepted",
                code=UnknownCode.MODEL_CONFIG,
                path="model",
            )
        if elements <= MOST_REAL:
            original(variable, initializer)
        else:
            variable._value = resource_variable_ops.UninitializedVariable(
                trainable=variable.trainable,
                shape=tf.TensorShape(shape),
                dtype=tf.as_dtype(variable._dtype),
                name=HANDLE,
            )

    Variable._initialize_with_initializer = initialise
    try:
        yield seen
    finally:
        Variable._initialize_with_initializer = original
