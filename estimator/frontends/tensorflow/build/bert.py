"""BERT-like encoders of the Hub in Keras layers, as transformers' TensorFlow models compute them.

Hub config.json -> Keras model

transformers 4 and older hold the originals (`TFBertModel`); from 5 on there are none. Layers are
one for one: separate query, key and value, scores and probabilities as tensors of their own,
gelu by the error function, a pooler behind the first token unless the head is a masked one.

Source: huggingface/transformers@05c408e3 src/transformers/modeling_tf_bert.py.
Not modelled: attention masks given by the caller (without one the model makes it of ones, as
here), cross attention, relative positions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
from keras import layers, ops

from estimator.errors import Problem, SpecError, UnsupportedJobError
from estimator.frontends.notebook import Notebook
from estimator.notes import AssumptionCode, UnknownCode
from estimator.spec import JobPhase, JobSpec, Task

FAMILIES = frozenset({"bert"})
ACTIVATIONS = ("gelu", "relu", "silu", "swish", "gelu_new")
MAX_LAYERS = 512
MAX_SIZE = 1 << 24
MASKED = -10000.0
"""What transformers adds to the scores of masked tokens."""
HEADS = frozenset({Task.FEATURE_EXTRACTION, Task.MASKED_LM, Task.SEQUENCE_CLASSIFICATION})

SIZES = {
    "hidden_size": 768,
    "intermediate_size": 3072,
    "max_position_embeddings": 512,
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "type_vocab_size": 2,
    "vocab_size": 30522,
}
"""Keys of a configuration, and what transformers takes where they are absent."""


class Scaled(layers.Layer):  # type: ignore[misc]
    """Probabilities of attention, and the values they weigh."""

    def __init__(self, heads: int, rate: float, **options: Any) -> None:
        super().__init__(**options)
        self.heads = heads
        self.dropout = layers.Dropout(rate)

    def call(self, query: Any, key: Any, value: Any, mask: Any, training: Any = None) -> Any:
        """Return the weighted values, heads joined again."""
        batch, length, width = query.shape
        split = (batch, length, self.heads, width // self.heads)
        query, key, value = (
            ops.transpose(ops.reshape(each, split), (0, 2, 1, 3)) for each in (query, key, value)
        )
        scores = ops.matmul(query, ops.transpose(key, (0, 1, 3, 2)))
        scores = scores / (split[-1] ** 0.5)
        scores = scores + mask
        probabilities = self.dropout(ops.softmax(scores, axis=-1), training=training)
        weighed = ops.transpose(ops.matmul(probabilities, value), (0, 2, 1, 3))
        return ops.reshape(weighed, (batch, length, width))


class Embedded(layers.Layer):  # type: ignore[misc]
    """Words, positions and kinds of tokens, added up; the mask in the form scores take."""

    def __init__(self, sizes: Mapping[str, int], rate: float, **options: Any) -> None:
        super().__init__(**options)
        width = sizes["hidden_size"]
        self.words = layers.Embedding(sizes["vocab_size"], width)
        self.positions = layers.Embedding(sizes["max_position_embeddings"], width)
        self.kinds = layers.Embedding(sizes["type_vocab_size"], width)
        self.norm = layers.LayerNormalization(epsilon=1e-12)
        self.dropout = layers.Dropout(rate)

    def build(self, shape: Any) -> None:
        """Create the tables."""
        for table in (self.words, self.positions, self.kinds):
            table.build(shape)
        self.norm.build((*shape, self.words.output_dim))
        super().build(shape)

    def call(self, tokens: Any, training: Any = None) -> Any:
        """Return the embedded tokens and the mask."""
        places = ops.expand_dims(ops.arange(tokens.shape[1]), 0)
        total = self.words(tokens) + self.positions(places) + self.kinds(ops.zeros_like(tokens))
        mask = ops.cast(ops.ones_like(tokens), total.dtype)
        mask = (1.0 - ops.reshape(mask, (tokens.shape[0], 1, 1, tokens.shape[1]))) * MASKED
        return self.dropout(self.norm(total), training=training), mask


def build_bert(spec: JobSpec, notebook: Notebook) -> Any:
    """Return the encoder of *spec* with its head.

    Raises:
        SpecError: for sizes that are none.
        UnsupportedJobError: for another family, activation or head.
    """
    config = spec.model.config
    family = config.get("model_type")
    if family not in FAMILIES:
        raise UnsupportedJobError(
            f"model.config.model_type: '{family!s:.40}' is not modelled for tensorflow; "
            f"known: {', '.join(sorted(FAMILIES))}",
            code=UnknownCode.MODEL,
            path="model.config.model_type",
        )
    task = spec.model.task or Task.FEATURE_EXTRACTION
    if task not in HEADS or (task is Task.FEATURE_EXTRACTION and spec.phase is not JobPhase.INFER):
        raise UnsupportedJobError(
            f"model.task: '{task}' is not modelled for tensorflow",
            code=UnknownCode.TASK,
            path="model.task",
        )
    sizes = _sizes(config)
    activation = config.get("hidden_act", "gelu")
    if activation not in ACTIVATIONS:
        raise SpecError(
            [
                Problem(
                    path="model.config.hidden_act",
                    message=f"'{activation!s:.40}' is not one of {', '.join(ACTIVATIONS)}",
                )
            ]
        )
    length = spec.input.sequence_length
    if length is None:
        length = min(512, sizes["max_position_embeddings"])
        notebook.assume(
            AssumptionCode.LENGTH, "input.sequenceLength", length, "absent: the model's longest"
        )
    rates = [_rate(config, key) for key in ("hidden_dropout_prob", "attention_probs_dropout_prob")]
    tokens = keras.Input((length,), batch_size=spec.input.batch_size, dtype="int32", name="tokens")
    hidden, mask = Embedded(sizes, rates[0], name="embeddings")(tokens)
    for number in range(sizes["num_hidden_layers"]):
        hidden = _block(hidden, mask, sizes, activation, rates, f"layer_{number}")
    return keras.Model(tokens, _head(hidden, task, spec, sizes, rates[0]), name="bert")


def _block(
    hidden: Any, mask: Any, sizes: Mapping[str, int], act: str, rates: list[float], name: str
) -> Any:
    """Return *hidden* behind one layer: attention, then two products."""
    width = sizes["hidden_size"]
    query, key, value = (
        layers.Dense(width, name=f"{name}_{each}")(hidden) for each in ("query", "key", "value")
    )
    weighed = Scaled(sizes["num_attention_heads"], rates[1], name=f"{name}_attention")(
        query, key, value, mask
    )
    joined = layers.Dropout(rates[0])(layers.Dense(width, name=f"{name}_output")(weighed))
    hidden = layers.LayerNormalization(epsilon=1e-12)(joined + hidden)
    wide = layers.Dense(sizes["intermediate_size"], name=f"{name}_intermediate")(hidden)
    narrow = layers.Dense(width, name=f"{name}_narrow")(_activated(wide, act))
    return layers.LayerNormalization(epsilon=1e-12)(layers.Dropout(rates[0])(narrow) + hidden)


def _activated(wide: Any, name: str) -> Any:
    if name == "gelu":  # x * (1 + erf(x / sqrt(2))) / 2, operator by operator
        return wide * (0.5 * (1.0 + ops.erf(wide / 2**0.5)))
    return layers.Activation("gelu" if name == "gelu_new" else name)(wide)


def _head(hidden: Any, task: Task, spec: JobSpec, sizes: Mapping[str, int], rate: float) -> Any:
    if task is Task.MASKED_LM:
        changed = layers.Dense(sizes["hidden_size"], activation="gelu", name="transform")(hidden)
        changed = layers.LayerNormalization(epsilon=1e-12)(changed)
        return layers.Dense(sizes["vocab_size"], name="predictions")(changed)
    pooled = layers.Dense(sizes["hidden_size"], activation="tanh", name="pooler")(hidden[:, 0])
    if task is Task.FEATURE_EXTRACTION:
        return [hidden, pooled]
    labels = spec.model.num_labels or 2
    return layers.Dense(labels, name="classifier")(layers.Dropout(rate)(pooled))


def _sizes(config: Mapping[str, Any]) -> dict[str, int]:
    problems = []
    sizes = {}
    for key, default in SIZES.items():
        value = config.get(key, default)
        most = MAX_LAYERS if key == "num_hidden_layers" else MAX_SIZE
        if type(value) is not int or not 1 <= value <= most:
            message = f"{value!s:.40} is not a whole number from 1 to {most}"
            problems.append(Problem(path=f"model.config.{key}", message=message))
            value = default
        sizes[key] = value
    if not problems and sizes["hidden_size"] % sizes["num_attention_heads"]:
        message = f"{sizes['num_attention_heads']} does not divide hidden_size"
        problems.append(Problem(path="model.config.num_attention_heads", message=message))
    if problems:
        raise SpecError(problems)
    return sizes


def _rate(config: Mapping[str, Any], key: str) -> float:
    value = config.get(key, 0.1)
    if isinstance(value, int | float) and 0 <= value < 1:
        return float(value)
    message = f"{value!s:.40} is not a number from 0 to 1"
    raise SpecError([Problem(path=f"model.config.{key}", message=message)])
