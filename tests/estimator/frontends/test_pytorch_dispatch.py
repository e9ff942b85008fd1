"""Which operators the stand-ins run otherwise than a card, asked of the dispatcher itself."""

from __future__ import annotations

import pytest

from estimator.device import Device
from estimator.kernels.rules import RULES
from estimator.kernels.scratch import Scratch
from estimator.trace import Kernel, TensorFacts
from tests.estimator.frontends import children
from tests.estimator.frontends.conftest import InChild

pytestmark = pytest.mark.torch

CARD = Device(
    name="card",
    total_bytes=None,
    reservation_bytes=0,
    budget_bytes=None,
    compute_capability=(8, 0),
)


def test_every_operator_that_only_stand_ins_take_apart_has_a_rule(in_child: InChild) -> None:
    """One kernel on CUDA, several on meta: both such operators of torch 2.15 have a CUDA rule."""
    assert in_child(children.taken_apart_on_meta) == {
        "aten::_fused_rms_norm",
        "aten::mish_backward",
    }


@pytest.mark.parametrize(
    "operator", ["logsumexp", "binary_cross_entropy_with_logits", "_euclidean_dist"]
)
def test_what_a_body_hides_is_what_its_rule_charges(in_child: InChild, operator: str) -> None:
    """Operators of several kernels are one to a dispatch mode: their temporaries are scratch."""
    points = TensorFacts(shape=children.POINTS, dtype="float32")
    kernel = Kernel(operator=f"aten.{operator}", operands=(points, points))

    found = RULES[kernel.operator](kernel, CARD)

    assert isinstance(found, Scratch)
    charged = sum(block.nbytes for block in found.blocks)
    assert charged == pytest.approx(in_child(children.hidden_bytes, operator), rel=0.01)


def test_safe_softmax_holds_a_mask_of_its_scores(in_child: InChild) -> None:
    """One byte a score beside the result in 2.15, and one a row; no second result."""
    rows, columns = children.POINTS

    hidden = in_child(children.hidden_bytes, "_safe_softmax")

    assert rows * columns <= hidden < rows * columns + 4 * rows
