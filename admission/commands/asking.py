"""Run what asks for estimates, on an event loop, with workers that start at the first question.

    question(estimator), question(estimator, artist) -> answer

Imported once there is a question: the event loop alone takes longer to import than a job to read.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from admission.commands.drawing import Drawing
from admission.commands.parts import LazyWorkers
from admission.estimates import EstimatePool
from estimator.workers.api import Estimator

T = TypeVar("T")


def answered(question: Callable[[Estimator], Coroutine[Any, Any, T]]) -> T:
    """Return the answer to *question*; it may ask for one estimate as often as it likes."""
    return asyncio.run(_answered(lambda estimator, _: question(estimator)))


def answered_drawn(question: Callable[[Estimator, Drawing], Coroutine[Any, Any, T]]) -> T:
    """Return the answer to *question*, which may have runs drawn by the same workers."""
    return asyncio.run(_answered(question))


async def _answered(question: Callable[[Estimator, Drawing], Coroutine[Any, Any, T]]) -> T:
    # A worker that fails becomes a finding here; the log is for `serve`.
    logging.getLogger("estimator.workers").addHandler(logging.NullHandler())
    workers = LazyWorkers()
    try:
        return await question(EstimatePool(workers), workers)
    finally:
        await workers.close()
