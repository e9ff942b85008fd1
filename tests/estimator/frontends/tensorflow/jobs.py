"""Specs of TensorFlow jobs for the tests, and Keras documents written by hand."""

from __future__ import annotations

from typing import Any

UNCOMPILED = {"compile": False}


def layer(kind: str, **config: Any) -> dict[str, Any]:
    """Return one layer of a document."""
    return {"module": "keras.layers", "class_name": kind, "config": config}


def sequential(shape: list[int], *layers: dict[str, Any]) -> dict[str, Any]:
    """Return the document of a sequence of layers on inputs of *shape*."""
    first = layer("InputLayer", batch_shape=[None, *shape], dtype="float32", name="input")
    return {
        "module": "keras",
        "class_name": "Sequential",
        "config": {"name": "small", "layers": [first, *layers]},
    }


def perceptron(*widths: int) -> dict[str, Any]:
    """Return the document of dense layers of *widths*, relu between them."""
    first, *rest = widths
    made = [
        layer("Dense", units=width, activation="relu", name=f"dense_{number}")
        for number, width in enumerate(rest[:-1])
    ]
    return sequential([first], *made, layer("Dense", units=rest[-1], name="logits"))


def mixed() -> dict[str, Any]:
    """Return the document of dense layers with a normalisation and two activations."""
    return sequential(
        [64],
        layer("Dense", units=256, activation="relu", name="first"),
        layer("Dense", units=512, activation="tanh", name="second"),
        layer("LayerNormalization", name="norm"),
        layer("Dense", units=10, name="logits"),
    )


def convolutions() -> dict[str, Any]:
    """Return the document of a filter of nine pixels and one of one pixel."""
    return sequential(
        [32, 32, 16],
        layer("Conv2D", filters=32, kernel_size=3, padding="same", name="nine"),
        layer("Conv2D", filters=64, kernel_size=1, name="one"),
        layer("GlobalAveragePooling2D", name="pool"),
        layer("Dense", units=10, name="logits"),
    )


def recurrent() -> dict[str, Any]:
    """Return the document of two recurrent layers that run as loops."""
    return sequential(
        [20, 8],
        layer("LSTM", units=64, return_sequences=True, use_cudnn=False, name="lstm"),
        layer("GRU", units=32, use_cudnn=False, name="gru"),
        layer("Dense", units=10, name="logits"),
    )


def job(model: dict[str, Any] | str, batch: int = 32, **rest: Any) -> dict[str, Any]:
    """Return a spec of *model*: a zoo's name, or a document. Not compiled unless it says so."""
    given = {"name": model} if isinstance(model, str) else {"name": "small", "config": model}
    training = {**UNCOMPILED, **rest.pop("training", {})}
    return {
        "framework": "tensorflow",
        "model": {"source": "keras", **given},
        "input": {"batchSize": batch, **rest.pop("input", {})},
        "training": training,
        **rest,
    }
