"""Ask for the three accounts and write docs/reserved.md.

jobs -> Workers -> accounts -> docs/reserved.md
"""

from __future__ import annotations

from pathlib import Path

from estimator.catalog import resolve_device
from estimator.spec import parse_spec
from estimator.workers.pool import Workers
from tests.bench.reserved.jobs import jobs
from tests.bench.reserved.page import page

PAGE = Path(__file__).parents[3] / "docs" / "reserved.md"


async def write_page() -> None:
    """Account for each job, one after the other, and write the page."""
    workers = Workers(max_concurrent=1)
    found = []
    try:
        for job in jobs():
            (account,) = await workers.account(parse_spec(job.spec), [resolve_device(job.gpu)])
            found.append((job, account))
    finally:
        await workers.close()
    PAGE.write_text(page(found), "utf-8")
