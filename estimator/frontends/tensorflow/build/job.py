"""A job's model and what it is fed, and how errors of Keras are told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from estimator.errors import EstimatorError, UnsupportedJobError
from estimator.frontends.keras.reasons import reason_of
from estimator.notes import UnknownCode

MAX_TEXT = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A Keras model, with the specs (`tf.TensorSpec`) of one batch."""

    model: Any
    inputs: Any
    """What the model is called with: one spec, or a list of them."""
    labels: Any = None
    """One spec, or a list of them; None: the model has no labels of its own."""
    loss: Any = None
    """A loss, or a list with one for each output."""


def unbuildable(reason: str, *, path: str = "model") -> UnsupportedJobError:
    """Return the error of a model that cannot be built, for a reason Keras gives."""
    return UnsupportedJobError(
        f"{path}: cannot be built: {reason}", code=UnknownCode.MODEL_CONFIG, path=path
    )


@contextmanager
def in_words_of_keras() -> Iterator[None]:
    """Tell what Keras and TensorFlow raise at a step of the job: sizes, types, names of its layers.

    Raises:
        UnsupportedJobError: in place of what they raise.
        MemoryError: if it is host memory that they did not get.
    """
    try:
        yield
    except (EstimatorError, MemoryError):
        raise
    except tf.errors.ResourceExhaustedError as error:
        raise MemoryError(short(error)) from error
    except Exception as error:
        raise UnsupportedJobError(
            f"model: its step cannot be traced: {short(error)}",
            code=UnknownCode.MODEL_CONFIG,
            path="model",
        ) from error


def short(error: BaseException) -> str:
    """Return the kind of *error* and what it says, on one line, with the layer it was raised in."""
    said, kind = reason_of(error), type(error).__name__
    return said if kind in said else f"{kind}: {said}"[:MAX_TEXT]
