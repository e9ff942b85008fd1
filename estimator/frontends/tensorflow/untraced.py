"""Operations that do not remember which lines of Python made them.

    nothing -> a context in which TensorFlow makes operations without tracebacks

TensorFlow walks Python's stack for each operation it adds to a graph, for its own messages about
that operation. A step has thousands of them, made dozens of calls deep, and this frontend says
what went wrong in words of its own.
Source: tensorflow 2.21 python/framework/ops.py (`_create_c_op`, its `extract_traceback`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from tensorflow.python.framework import ops


@contextmanager
def untraced() -> Iterator[None]:
    """Let TensorFlow make operations without looking at the stack."""
    original = ops._create_c_op
    ops._create_c_op = partial(original, extract_traceback=False)
    try:
        yield
    finally:
        ops._create_c_op = original
