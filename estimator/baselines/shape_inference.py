"""Plain sums over the tensors of a job.

    breakdown of an Estimate, what of the model is trained -> bytes

Shape inference is what the article behind this project compares itself with: Gao et al.,
"Estimating GPU memory consumption of deep learning models" (ESEC/FSE 2020), section 4. Sizes that
shapes tell, without lifetimes of temporaries, library scratch, the allocator and the context.
How that article summed is not published; this is the most it can have known.
"""

from __future__ import annotations

from collections.abc import Mapping


def shape_inference_bytes(
    parts: Mapping[str, int], *, is_training: bool = True, trains_all: bool = True
) -> int:
    """Return what shapes alone tell: parameters, as many gradients, states and activations.

    *parts* are the roles of an estimate's breakdown. Of an adapter's or a quantised model's
    gradients (not *trains_all*) those are taken that the trace has. Not in it: temporaries, inputs,
    the allocator, libraries, the context.
    """
    if not is_training:
        return parts["parameters"] + parts["activations"]
    gradients = parts["parameters"] if trains_all else parts["gradients"]
    return parts["parameters"] + gradients + parts["optimizer"] + parts["activations"]


def live_tensor_bytes(parts: Mapping[str, int], *, allocated: int) -> int:
    """Return the bytes of all tensors alive at the peak: *allocated* less library scratch."""
    return allocated - parts["workspace"]
