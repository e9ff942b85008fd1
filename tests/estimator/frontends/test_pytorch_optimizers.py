"""The optimizers whose step reads values or takes some parameters only."""

from __future__ import annotations

from typing import Any

import pytest

from estimator.trace import Phase, Role
from tests.estimator.frontends import children
from tests.estimator.frontends.conftest import InChild
from tests.estimator.frontends.reading import (
    allocated_by,
    by_role,
    fault,
    job,
    layers,
    peak,
    sizes_in,
)

pytestmark = pytest.mark.torch

MATRIX, BIAS = 4 * 1000 * 2000, 4 * 2000
"""Bytes of a linear layer of 1,000 by 2,000."""
WEIGHTS = MATRIX + BIAS
MODEL = layers(1000, 2000)


def training(name: str, **more: Any) -> dict[str, Any]:
    """Return the training part of a job with the optimizer *name*."""
    return {"optimizer": {"name": name, **more}}


@pytest.mark.parametrize(
    ("optimizer", "state"),
    [
        ("muon", MATRIX + 2 * BIAS),
        ("asgd", WEIGHTS + 2 * 3 * 4),
        ("lbfgs", (2 * 100 + 3) * WEIGHTS),
    ],
)
def test_state_has_the_size_torch_makes(in_child: InChild, optimizer: str, state: int) -> None:
    """Muon: one momentum, two of Adam; ASGD: one average, three numbers; L-BFGS: its history."""
    trace = in_child(children.trace, job(MODEL, training=training(optimizer)))

    assert fault(trace) is None
    assert by_role(trace)[Role.OPTIMIZER] == state


def test_muon_makes_one_matrix_orthogonal_at_a_time_in_bf16(in_child: InChild) -> None:
    """The update in fp32, a bf16 copy, then five rounds of two products and a new copy."""
    document = job(MODEL, training=training("muon", fused=True))

    trace = in_child(children.trace, document)

    copy, gram = MATRIX // 2, 2 * 1000 * 1000
    steps, rounds = 2, 5
    assert allocated_by(trace, "aten.lerp", Phase.OPTIMIZER) == [MATRIX] * steps
    assert allocated_by(trace, "aten._to_copy", Phase.OPTIMIZER) == [copy] * steps
    assert allocated_by(trace, "aten.mm", Phase.OPTIMIZER) == [gram] * rounds * steps
    assert allocated_by(trace, "aten.addmm", Phase.OPTIMIZER) == [gram, copy] * rounds * steps


def test_the_peak_of_muon_is_in_the_largest_matrix(in_child: InChild) -> None:
    """Weights, gradients, state; the update, two copies and two products; the last batch."""
    trace = in_child(children.trace, job(MODEL, training=training("muon", fused=True)))

    held = 2 * WEIGHTS + MATRIX + 2 * BIAS
    meanwhile = MATRIX + 2 * MATRIX // 2 + 2 * 2 * 1000 * 1000
    assert 0 <= peak(trace) - held - meanwhile < 100_000


def test_muon_says_who_gets_what(in_child: InChild) -> None:
    """No field of a spec divides the parameters, so the division is an assumption."""
    trace = in_child(children.trace, job(MODEL, training=training("muon"), frameworkVersion="2.4"))

    note = next(n for n in trace.assumptions if n.path == "training.optimizer.name")
    assert "AdamW" in note.reason
    assert "torch 2.4 has no Muon of its own" in note.reason


def test_a_model_without_matrices_is_adamw_alone(in_child: InChild) -> None:
    """Convolutions have four dimensions: torch's Muon would refuse them."""
    config = {
        "inputShape": [3, 8, 8],
        "layers": [{"type": "conv", "in": 3, "out": 8, "kernel": 3}],
    }
    model = {"source": "layers", "name": "cnn", "config": config}

    trace = in_child(children.trace, job(model, training=training("muon")))

    assert by_role(trace)[Role.OPTIMIZER] == 2 * 4 * (8 * 3 * 3 * 3 + 8)


@pytest.mark.parametrize(
    ("more", "copies"),
    [({"foreach": True}, 2), ({"foreach": False}, 0), ({"version": "2.1"}, 0)],
    ids=str,
)
def test_asgd_copies_all_parameters_twice_in_turn_in_its_foreach_form(
    in_child: InChild, more: dict[str, Any], copies: int
) -> None:
    """The older form and the loop work in place."""
    version = more.pop("version", "2.8")
    document = job(MODEL, training=training("asgd", **more), frameworkVersion=version)

    trace = in_child(children.trace, document)

    made = sizes_in(trace, Phase.OPTIMIZER)
    assert made.count(MATRIX) == 1 + 2 * copies


def test_sparse_adam_is_refused_with_the_reason(in_child: InChild) -> None:
    """It raises at the first dense gradient, so no estimate is better than one."""
    refusal = in_child(children.refusal, job(MODEL, training=training("SparseAdam")))

    assert (refusal.code, refusal.path) == ("optimizer", "training.optimizer.name")
    assert "sparse gradients only" in refusal.message
