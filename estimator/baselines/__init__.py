"""What simpler ways of estimating would say of a job: to compare with, never to decide with."""

from __future__ import annotations

from estimator.baselines.shape_inference import live_tensor_bytes, shape_inference_bytes

__all__ = ["live_tensor_bytes", "shape_inference_bytes"]
