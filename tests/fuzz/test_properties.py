"""Objects and texts with something odd in them, a few in every run: the soak gives many."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz import cluster_agent, cluster_notes, cluster_objects, cluster_reviews
from tests.fuzz.target import Target

QUICK = {
    target.name: target
    for module in (cluster_reviews, cluster_objects, cluster_notes, cluster_agent)
    for target in module.TARGETS
}


@pytest.mark.parametrize("target", QUICK.values(), ids=QUICK)
@settings(max_examples=25, database=None)
@given(data=st.binary(max_size=120))
def test_whatever_comes_is_read_or_refused(target: Target, data: bytes) -> None:
    """No exception but the documented ones, and no answer with characters that are not seen."""
    target.run(data)
