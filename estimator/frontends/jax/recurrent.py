"""Recurrent layers that Keras gives to cuDNN where JAX sees a card; here it sees none.

keras.Model -> their names

Of Keras' layers only LSTM has such a way on JAX, and only with its usual activations, a bias, no
unrolling and no mask; GRU is a loop of JAX's everywhere, as it is compiled here. A mask is not
looked for: a model that makes one runs the loop that is compiled, and is named all the same.

Source: keras 3.15.1 src/backend/jax/rnn.py (`cudnn_ok`, `lstm`, `bidirectional_lstm`, `gru`),
src/layers/rnn/lstm.py (`use_cudnn`, `recurrent_dropout`).
Not modelled: what cuDNN keeps of each step, its workspace, the flat copy of the weights.
"""

from __future__ import annotations

from typing import Any

import keras

MOST_NAMED = 3
IN_PLACE_OF_CUDNN = "Keras runs it through cuDNN on a card; the loop is compiled in its place"


def run_by_cudnn(model: Any) -> str:
    """Return the names of layers in *model* that a card runs through cuDNN; empty if none."""
    names = [each.name for each in model._flatten_layers() if _is_for_cudnn(each)]
    return ", ".join(names[:MOST_NAMED]) + (", …" if len(names) > MOST_NAMED else "")


def _is_for_cudnn(layer: Any) -> bool:
    if not isinstance(layer, keras.layers.LSTM) or not layer.use_cudnn:
        return False
    cell = layer.cell
    usual = (keras.activations.tanh, keras.activations.sigmoid)
    return (
        (cell.activation, cell.recurrent_activation) == usual
        and cell.use_bias
        and not layer.unroll
        and not layer.recurrent_dropout
    )
