"""What MXNet's optimizers keep for each parameter.

    Optimizer, parameter -> bytes

Source: apache/mxnet@1.9.1 `python/mxnet/optimizer/optimizer.py` (`create_state`,
`create_state_multi_precision`).
Not modelled: arrays that optimizers without an operator of their own make for a moment, sparse
gradients.
"""

from __future__ import annotations

from estimator.errors import UnsupportedJobError
from estimator.frontends.mxnet.graph import ITEM_BYTES, Entry
from estimator.notes import UnknownCode
from estimator.spec.training import Optimizer

FIXED = {
    "adam": 2,
    "adamw": 2,
    "adamax": 2,
    "nadam": 2,
    "adagrad": 1,
    "adadelta": 2,
    "ftrl": 2,
    "ftml": 3,
    "lamb": 2,
    "sgld": 0,
}
"""Arrays of the weight's shape, whatever the settings."""
WITH_MOMENTUM = ("sgd", "nag", "signum", "lars", "lbsgd")
"""One array if there is momentum."""


def num_states(optimizer: Optimizer) -> int:
    """Return how many arrays of a weight's shape are kept for it.

    Raises:
        UnsupportedJobError: if it is not an optimizer of MXNet, or a variant it does not have.
    """
    name = optimizer.name.lower()
    if optimizer.bits != 32 or optimizer.paged or optimizer.amsgrad or optimizer.fused:
        raise _unknown(f"{name} of 8 or 16 bits, paged, amsgrad or fused is not one of MXNet's")
    if name == "rmsprop":
        return 3 if optimizer.centered else 1
    if name in WITH_MOMENTUM:
        return 1 if optimizer.momentum > 0 else 0
    if name not in FIXED:
        known = ", ".join(sorted((*FIXED, *WITH_MOMENTUM, "rmsprop")))
        raise _unknown(f"'{optimizer.name}' is not modelled for MXNet; known: {known}")
    return FIXED[name]


def state_bytes(optimizer: Optimizer, weight: Entry, *, has_master: bool) -> list[int]:
    """Return the sizes of what is kept for one weight.

    *has_master* (`multi_precision`): a half-precision weight has a copy in single precision, and
    its states are in single precision too.
    """
    is_half = ITEM_BYTES[weight.dtype] == 2
    wide = has_master and is_half
    size = weight.elements * 4 if wide else weight.nbytes
    return [size] * (num_states(optimizer) + wide)


def _unknown(reason: str) -> UnsupportedJobError:
    return UnsupportedJobError(
        f"training.optimizer: {reason}",
        code=UnknownCode.OPTIMIZER,
        path="training.optimizer",
    )
