"""Keras variables without values: a shape and a dtype, to be mapped to a tracer.

    nothing -> a context in which Keras on JAX creates such variables

Initialising ResNet-50 takes 6 s and 100 MB. Scalars that are given a value (a learning rate) keep
it. A model that reads a weight while it is built gets fresh initial values, as Keras does itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from keras.src.backend.jax.core import JaxVariable


@contextmanager
def weightless() -> Iterator[None]:
    """Let Keras create variables without values."""
    original = JaxVariable._initialize_with_initializer

    def postpone(variable: Any, initializer: Any) -> None:
        variable._value = None
        variable._initializer = initializer

    JaxVariable._initialize_with_initializer = postpone
    try:
        yield
    finally:
        JaxVariable._initialize_with_initializer = original
