"""Convolutions to ask about, and where the library is."""

from __future__ import annotations

import sys

from estimator.cudnn import Card, Direction, Question
from estimator.cudnn.folders import library_folders

FOLDER = library_folders(sys.path, {})[0]
"""The wheel that PyTorch brings."""
RELEASE = 92600
"""Its version: answers below are this version's."""

A100 = Card(compute_capability=(8, 0), multiprocessors=108)
H100 = Card(compute_capability=(9, 0), multiprocessors=132)
T4 = Card(compute_capability=(7, 5), multiprocessors=40)
RTX_PRO_6000 = Card(compute_capability=(12, 0), multiprocessors=188)
V100 = Card(compute_capability=(7, 0), multiprocessors=80)


def convolution(
    direction: Direction = Direction.FORWARD,
    *,
    batch: int = 32,
    channels: tuple[int, int] = (64, 64),
    size: int = 56,
    window: int = 3,
    stride: int = 1,
    groups: int = 1,
    dtype: str = "float32",
    channels_last: bool = False,
    spatial: int = 2,
) -> Question:
    """Return a square (or cubic) convolution padded by half its *window*."""
    source, target = channels
    padding = window // 2
    output = (size + 2 * padding - window) // stride + 1
    return Question(
        direction=direction,
        dtype=dtype,
        input=(batch, source, *(size,) * spatial),
        weight=(target, source // groups, *(window,) * spatial),
        output=(batch, target, *(output,) * spatial),
        stride=(stride,) * spatial,
        padding=(padding,) * spatial,
        dilation=(1,) * spatial,
        channels_last=channels_last,
    )


CRASHING = Question(
    direction=Direction.DATA,
    dtype="float16",
    input=(1, 6, 56, 1 << 30),
    weight=(2000, 6, 7, 3),
    output=(1, 2000, 56, 1 << 30),
    stride=(1, 1),
    padding=(3, 1),
    dilation=(1, 1),
    channels_last=True,
)
"""cuDNN 9.26 ends by a signal when asked this about sm 120."""
