"""Our FSDP2 against torch's own, run on fake tensors over a fake process group."""

from __future__ import annotations

import pytest

from tests.estimator.frontends.conftest import InChild
from tests.estimator.sharding import children

pytestmark = pytest.mark.torch
TOLERANCE = 0.003
"""What CUDA's rules round and keep otherwise than the CPU path torch's tracker sees. One layer's
weights are 10 % of the figures."""


@pytest.mark.parametrize("mixed", [False, True], ids=["bf16", "fp32-shards"])
def test_each_phase_peaks_where_torch_says(in_child: InChild, mixed: bool) -> None:
    """Gathered buffers, whole weights, whole gradients and reductions come and go together."""
    expected = in_child(children.peaks_of_torch, mixed)

    found = in_child(children.peaks_of_ours, mixed)

    assert found == {name: pytest.approx(peak, rel=TOLERANCE) for name, peak in expected.items()}
