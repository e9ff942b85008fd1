"""The measurement behind the allowance for a last smaller batch (tests/bench)."""

from __future__ import annotations

import pytest

from tests.estimator.frontends import children
from tests.estimator.frontends.conftest import InChild
from tests.estimator.frontends.reading import job, layers

pytestmark = pytest.mark.torch

WIDTH = 4096
BATCH = 4096
OUTPUTS = 4 * WIDTH * BATCH
"""Bytes of the outputs of a full batch: 64 MiB."""


@pytest.mark.parametrize(("keeps", "handed"), [(True, OUTPUTS), (False, OUTPUTS // 4)])
def test_the_third_batch_is_smaller_and_leaves_what_the_loop_keeps(
    in_child: InChild, keeps: bool, handed: int
) -> None:
    """Nine, five and one tenth; none allocates more. A loop always keeps its batch."""
    document = job(
        layers(WIDTH // 4, WIDTH),
        batch=BATCH,
        training={"optimizer": {"name": "sgd"}, "keepOutputs": keeps},
    )

    rows = in_child(children.last_batches, document)

    assert [last for last, *_ in rows] == [BATCH * 9 // 10, BATCH // 2, BATCH // 10]
    assert len({reserved for _, reserved, *_ in rows}) == 1
    assert [more for _, _, more, _ in rows] == [0, 0, 0]
    assert [kept for *_, kept in rows] == [handed] * 3
