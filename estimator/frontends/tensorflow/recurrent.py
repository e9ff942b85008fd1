"""Recurrent layers that Keras gives to cuDNN where it sees a card; here it sees none.

keras.Model -> their names

The machine that estimates runs them as a loop, which keeps more of each step for backward.
Source: keras 3.15.1 src/layers/rnn/lstm.py, src/layers/rnn/gru.py, src/backend/tensorflow/rnn.py
(`cudnn_ok`). Not modelled: what cuDNN keeps, and that a model with such a layer is not compiled.
"""

from __future__ import annotations

from typing import Any

import keras
from keras.src.backend.tensorflow.rnn import (
    _do_gru_arguments_support_cudnn,
    _do_lstm_arguments_support_cudnn,
)

NOT_CUDNN = "Keras runs it through cuDNN on a card; taken as the loop, which needs more"
MOST_NAMED = 3


def run_by_cudnn(model: Any) -> str:
    """Return the names of layers in *model* that a card runs through cuDNN; empty if none."""
    names = [each.name for each in model._flatten_layers() if _is_for_cudnn(each)]
    return ", ".join(names[:MOST_NAMED]) + (", …" if len(names) > MOST_NAMED else "")


def _is_for_cudnn(layer: Any) -> bool:
    if not isinstance(layer, keras.layers.LSTM | keras.layers.GRU):
        return False
    if not layer.use_cudnn or layer.recurrent_dropout:
        return False
    cell = layer.cell
    given = (cell.activation, cell.recurrent_activation, layer.unroll, cell.use_bias)
    if isinstance(layer, keras.layers.LSTM):
        return bool(_do_lstm_arguments_support_cudnn(*given))
    return bool(_do_gru_arguments_support_cudnn(*given, cell.reset_after))
