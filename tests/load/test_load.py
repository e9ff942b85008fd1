"""A short load with every fault once: each review is answered, rightly, and nothing is left."""

from __future__ import annotations

import pytest

from tests.load import faults
from tests.load.figures import figures, lines
from tests.load.running import run
from tests.load.sending import Plan

pytestmark = pytest.mark.e2e

PLAN = Plan(
    reviews=2000,
    seed=11,
    rate=150.0,
    clients=8,
    unseen=0.02,
    uses_torch=False,
    timeout_seconds=30,
)
"""The longest timeout there is: nothing here depends on how fast the machine is."""


async def test_every_review_is_answered_rightly_while_things_break() -> None:
    """Real server, real TLS, workers killed, nodes coming and going, a Hub that hangs."""
    outcome = await run(PLAN, kinds=faults.SHORT, each=1, say=print)

    broken = [
        f"{figure.name}: {figure.measured}" for figure in figures(outcome) if not figure.holds
    ]
    assert not broken, "\n".join((*broken, *lines(outcome)))
    assert set(outcome.scene.injected) == {fault.__name__ for fault in faults.SHORT}
