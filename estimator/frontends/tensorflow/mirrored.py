"""Replicas of `tf.distribute.MirroredStrategy`: what summing gradients takes on each card.

Keras optimizer -> the same, its gradients summed over the replicas

Each card holds its own copy of every variable. In a graph all gradients are joined into one
flat tensor, summed in place by a collective, and cut again: while they are joined each exists
twice, and while they are cut too.

Source: tensorflow 2.21 python/distribute/cross_device_utils.py
(`CollectiveReplicaLauncher.batch_all_reduce`); keras 3.15.1 src/backend/tensorflow/optimizer.py
(`_all_reduce_sum_gradients`). Recalled: core/kernels/collective_ops.cc (`CollectiveReduceV2` writes
over its input).
Not modelled: a bound on the size of one pack, and variables of other aggregations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import tensorflow as tf


def sum_gradients(optimizer: Any) -> None:
    """Let *optimizer* join and cut its gradients before it uses them."""
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    update = inner._backend_update_step

    def summed(gradients: Sequence[Any], variables: Sequence[Any], rate: Any) -> Any:
        return update(_summed(gradients), variables, rate)

    inner._backend_update_step = summed


def _summed(gradients: Sequence[Any]) -> list[Any]:
    """Return *gradients* after a collective, one pack a dtype."""
    found = list(gradients)
    for dtype in {each.dtype for each in gradients if each is not None}:
        places = [at for at, each in enumerate(found) if each is not None and each.dtype == dtype]
        pack = [tf.convert_to_tensor(found[at]) for at in places]
        joined = tf.concat([tf.reshape(each, [-1]) for each in pack], axis=0)
        pieces = tf.split(joined, [math.prod(each.shape) for each in pack], axis=0)
        for at, whole, piece in zip(places, pack, pieces, strict=True):
            found[at] = tf.reshape(piece, whole.shape)
    return found
