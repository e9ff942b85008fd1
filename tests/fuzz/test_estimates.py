"""A few absurd jobs through a real template and its forks: `make soak` has many of each kind."""

from __future__ import annotations

from tests.fuzz.estimates import run


async def test_absurd_jobs_are_answered_or_refused_by_name() -> None:
    """No fault of ours, and nothing over its time."""
    tally = await run(count=8, seed=1, frameworks=["mxnet"])

    assert tally.findings == []
    assert sum(tally.ends.values()) == 8
