"""Questions that have cuDNN load what it loads late.

    Library -> Library, warm

Measured with 9.26: the first question takes 0.15 s and 0.26 GiB, whatever it is. After it others
take 1 to 4 ms, but for the first about sm 100, which takes 0.05 s and another 0.08 GiB.
"""

from __future__ import annotations

from collections.abc import Iterator

from estimator.cudnn.cards import Card, properties_of
from estimator.cudnn.library import Library
from estimator.cudnn.questions import Direction, Question

CARD = Card(compute_capability=(8, 0), multiprocessors=108)
"""An A100: every library has answers for it."""


def warm_up(library: Library) -> None:
    """Ask *library* a few questions.

    Raises:
        LibraryError: if it refuses one: then it is of no use.
    """
    properties = properties_of(CARD)
    assert properties is not None
    for question in _questions():
        library.answer(properties, question)


def _questions() -> Iterator[Question]:
    """Yield a 3x3 convolution in each direction, fp32 contiguous and fp16 channels-last."""
    for direction in Direction:
        for dtype, channels_last in (("float32", False), ("float16", True)):
            yield Question(
                direction=direction,
                dtype=dtype,
                input=(8, 64, 56, 56),
                weight=(64, 64, 3, 3),
                output=(8, 64, 56, 56),
                stride=(1, 1),
                padding=(1, 1),
                dilation=(1, 1),
                channels_last=channels_last,
            )
