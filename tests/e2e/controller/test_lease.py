"""One controller at work, another in wait, on the real API server."""

from __future__ import annotations

import pytest

from tests.e2e.controller.conftest import Start
from tests.e2e.processes import poll_until

pytestmark = pytest.mark.e2e


def test_one_of_two_works_and_the_other_takes_over(start_controller: Start) -> None:
    """Also from one that was killed: its Lease runs out."""
    first = start_controller()
    poll_until(first.leads, what="the first to lead")
    second = start_controller()
    assert not second.leads()

    first.kill()
    poll_until(second.leads, what="the second to take over from one that was killed")
    first.start()
    second.stop()

    poll_until(first.leads, what="the first to take over from one that stopped")


def test_a_controller_follows_pods_and_kinds(start_controller: Start) -> None:
    """It works once all that the API server serves is listed, and says so by its queue."""
    controller = start_controller()

    poll_until(controller.leads, what="to lead")
    poll_until(lambda: '"leading"' in controller.log, what="its log to say so")
    assert "Traceback" not in controller.log
    assert controller.value("vramgate_watch_interrupted") == 0
