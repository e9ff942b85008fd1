"""Controllers that are killed at random points, while jobs die: nothing is lost, nothing doubled.

`VRAMGATE_KILLS=50 pytest -m e2e tests/e2e/controller/deaths/test_kills.py` is the long run.
"""

from __future__ import annotations

import json
import os
import random
import time

import pytest
from kubernetes import client

from tests.e2e.controller.conftest import Start
from tests.e2e.controller.deaths.conftest import TEAM
from tests.e2e.controller.deaths.dying import Document, dying_job, ending, events, landed, notes_on
from tests.e2e.controller.process import Controller
from tests.e2e.processes import poll_until
from tests.e2e.rest import ApiServer

pytestmark = pytest.mark.e2e

KILLS = int(os.environ.get("VRAMGATE_KILLS", "2"))
LONGEST_LIFE_SECONDS = 12.0
OOM = "GpuOutOfMemory"


def test_killed_again_and_again_every_job_ends_and_no_step_is_taken_twice(
    api: ApiServer, core: client.CoreV1Api, alone: None, start_controller: Start
) -> None:
    """Each job dies on a T4 while controllers come and go."""
    chance = random.Random(KILLS)
    killed = start_controller()
    jobs: list[Document] = []

    for number in range(KILLS):
        job = dying_job(retries=100, policy=("Never", "OnFailure")[number % 2])
        assert api.create(job).status == 201
        jobs.append(job)
        # At what moment of which step it ends is up to chance: that is what is tried.
        time.sleep(chance.uniform(0.0, LONGEST_LIFE_SECONDS))
        killed.kill()
        killed.start()

    for job in jobs:
        name = job["metadata"]["name"]
        poll_until(lambda job=job: ending(api, job) == "Complete", what=name, seconds=300)  # type: ignore[misc]
        poll_until(lambda job=job: has_settled(api, job), what=f"{name}'s move")  # type: ignore[misc]
    for job in jobs:
        moves = job_events(core, job)
        told = [message for reason, message in events(core, job) if reason == OOM]
        # Killed between what is told and what is written it tells of the next death, if there is
        # one by then; never twice of one.
        assert 1 <= len(told) <= 2, events(core, job)
        assert moves["Suspended"] <= 1, events(core, job)
        assert not api.get(job).body["spec"].get("suspend")
        assert all(name.startswith("node-a10") for name in landed(core, job))


def test_of_two_controllers_one_acts(
    api: ApiServer, core: client.CoreV1Api, controller: Controller, start_controller: Start
) -> None:
    """What is told and moved is so once; the other waits for the Lease."""
    other = start_controller()
    job = dying_job(retries=6)

    assert api.create(job).status == 201

    poll_until(lambda: ending(api, job) == "Complete", what="the job to end")
    assert [reason for reason, _ in events(core, job)].count(OOM) == 1
    assert controller.leads()
    assert not other.leads()
    assert other.value("vramgate_controller_acts_total") == 0


def has_settled(api: ApiServer, job: Document) -> bool:
    """Return whether no move of *job* is under way."""
    text = notes_on(api, job).get("vramgate.dev/moving")
    return text is None or json.loads(text)["step"] == "done"


def job_events(core: client.CoreV1Api, job: Document) -> dict[str, int]:
    """Return how often the Job controller says that it suspended and resumed *job*."""
    name = job["metadata"]["name"]
    found = core.list_namespaced_event(TEAM, field_selector=f"involvedObject.name={name}").items
    return {
        reason: sum(each.count or 1 for each in found if each.reason == reason)
        for reason in ("Suspended", "Resumed")
    }
