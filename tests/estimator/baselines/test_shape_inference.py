"""The plain sums: what they hold and what they leave out."""

from __future__ import annotations

from estimator.baselines import live_tensor_bytes, shape_inference_bytes

PARTS = {
    "parameters": 100,
    "gradients": 7,
    "optimizer": 200,
    "activations": 1000,
    "temporary": 30,
    "workspace": 50,
    "inputs": 3,
}


def test_training_counts_a_gradient_for_every_weight() -> None:
    assert shape_inference_bytes(PARTS) == 100 + 100 + 200 + 1000


def test_an_adapter_counts_the_gradients_it_has() -> None:
    assert shape_inference_bytes(PARTS, trains_all=False) == 100 + 7 + 200 + 1000


def test_inference_counts_weights_and_activations() -> None:
    assert shape_inference_bytes(PARTS, is_training=False) == 100 + 1000


def test_live_tensors_leave_library_scratch_out() -> None:
    assert live_tensor_bytes(PARTS, allocated=1390) == 1340
