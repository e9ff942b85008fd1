"""Settings are put to work while reviews are being answered, all of them or none."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import structlog
import yaml

from admission.codes import Mode
from admission.commands.live import Live
from admission.config import LogLevel, Settings, parse_settings
from admission.errors import SettingsError
from admission.inventory import Inventory
from admission.review import Route
from admission.sources.setup import fetcher_of
from tests.admission.test_handler import FITS, TOO_LARGE, Bench, job, review_of
from tests.admission.test_server import Served, post, session_for, until
from tests.builders import node

POOL = "nodes: {pools: [{name: big, product: a100-sxm4-80gb}]}"


class Running:
    """A handler on an inventory of one T4, as `serve` puts them together."""

    def __init__(self, text: str = "policy: {mode: enforce}") -> None:
        self.bench = Bench()
        self.inventory = Inventory(keep_seconds=0, namespaces_expected=False)
        settings = parse_settings(text)
        self.live = Live(
            running=settings,
            handler=self.bench.handler,
            pool=self.bench.pool,
            inventory=self.inventory,
            metrics=self.bench.metrics,
            sources=fetcher_of(settings.sources, client=None),
        )
        self.live.take(settings)

    def take(self, text: str) -> Settings:
        """Take the settings *text* and return them."""
        settings = parse_settings(text)
        self.live.take(settings)
        return settings

    async def is_allowed(self, obj: dict[str, Any]) -> bool:
        """Return whether a review lets *obj* pass."""
        return bool((await self.bench.response(review_of(obj)))["allowed"])


async def test_policy_counts_from_the_next_review_on() -> None:
    """Mode and switch, there and back, and the metric shows the switch."""
    running = Running()
    large = job(batch_size=TOO_LARGE)
    enabled = []

    allowed = [await running.is_allowed(large)]
    for text in ("policy: {mode: warn}", "policy: {enabled: false}", "policy: {mode: enforce}"):
        running.take(text)
        allowed.append(await running.is_allowed(large))
        enabled.append(b"\nvramgate_policy_enabled 1.0\n" in running.bench.metrics.text())

    assert allowed == [False, True, True, False]
    assert enabled == [True, False, True]


async def test_review_on_its_way_keeps_the_settings_that_it_began_with() -> None:
    """Half a review under one policy and half under another would be neither."""
    running = Running()
    running.bench.workers.may_answer.clear()

    asked = asyncio.create_task(running.bench.response(review_of(job(batch_size=TOO_LARGE))))
    await until(lambda: running.bench.workers.num_asked == 1)
    running.take("policy: {mode: warn}")
    running.bench.workers.may_answer.set()

    assert (await asked)["allowed"] is False


async def test_steering_is_taken_up() -> None:
    """What is left alone from now on is not patched any more."""
    running = Running()
    review = review_of(job(batch_size=FITS))

    before = await running.bench.response(review, route=Route.MUTATE)
    running.take("steering: {terminationMessages: false}")
    after = await running.bench.response(review, route=Route.MUTATE)

    assert before["patch"] != after["patch"]


async def test_pools_become_cards_and_are_gone_again() -> None:
    """The classes are computed again without a change of any node."""
    running = Running()
    running.inventory.set_nodes({"t4": node("t4")})
    await running.inventory.refresh()
    task = asyncio.create_task(running.inventory.run())

    try:
        running.take(POOL)
        await until(lambda: len(running.inventory.classes) == 2)
        running.take("nodes: {keepDays: 1}")
        await until(lambda: len(running.inventory.classes) == 1)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_kinds_of_the_settings_are_read_from_now_on() -> None:
    """A job of a kind that nobody knew is judged."""
    running = Running()
    review = review_of(job(batch_size=TOO_LARGE))
    review["request"]["kind"] = {"group": "example.com", "version": "v1", "kind": "Run"}
    review["request"]["object"] |= {"apiVersion": "example.com/v1", "kind": "Run"}
    kinds = "[{group: example.com, kind: Run, templates: [{path: spec.template}]}]"

    before = await running.bench.response(review)
    running.take(f"policy: {{mode: enforce}}\nworkloads: {{kinds: {kinds}}}")
    after = await running.bench.response(review)

    assert (before["allowed"], after["allowed"]) == (True, False)


async def test_smaller_cache_is_smaller_at_once() -> None:
    """Of two jobs that were known the older is asked about again."""
    running = Running()
    for batch_size in (7, 8):
        await running.is_allowed(job(batch_size=batch_size))

    running.take("cache: {entries: 1}")
    for batch_size in (8, 7):
        await running.is_allowed(job(batch_size=batch_size))

    assert running.bench.workers.num_asked == 3


@pytest.mark.parametrize(
    "text",
    [
        "sources: {hub: {tokenFile: /nowhere/token}}",
        "workloads: {kinds: [{group: batch, kind: Job, templates: [{path: spec.template}]}]}",
    ],
)
async def test_what_cannot_be_put_to_work_changes_nothing(text: str) -> None:
    """Not half of it either: the mode beside it stays as it was."""
    running = Running()

    with pytest.raises(SettingsError):
        running.take("policy: {mode: warn}\n" + text)

    assert not await running.is_allowed(job(batch_size=TOO_LARGE))
    assert running.live.running.policy.mode is Mode.ENFORCE


@pytest.fixture
def own_logs() -> Iterator[None]:
    """Give the process its logs back."""
    root, ours = logging.getLogger(), logging.getLogger("estimator")
    before = (root.handlers[:], root.level, ours.level)
    yield
    structlog.reset_defaults()
    root.handlers[:] = before[0]
    root.setLevel(before[1])
    ours.setLevel(before[2])


@pytest.mark.usefixtures("own_logs")
def test_level_of_the_command_line_counts_before_that_of_the_settings(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Whoever typed it wants it, whatever the file says next."""
    running = Running()

    running.take("logs: {level: error}")
    structlog.get_logger().warning("unheard")
    running.live.log_level = LogLevel.DEBUG
    running.take("logs: {level: warning}")
    structlog.get_logger().debug("heard")

    said = capsys.readouterr().err.splitlines()
    assert [orjson.loads(line)["event"] for line in said] == ["heard"]


@pytest.mark.usefixtures("own_logs")
async def test_lines_of_reviews_are_by_the_level_of_now(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Louder or quieter, from the next review on."""
    running = Running()
    heard = []

    for level in ("error", "info", "error"):
        running.take(f"logs: {{level: {level}}}")
        await running.is_allowed(job(batch_size=FITS))
        heard.append("reviewed" in capsys.readouterr().err)

    assert heard == [False, True, False]


async def test_serve_takes_up_its_file_and_says_what_waits_for_a_restart(tmp_path: Path) -> None:
    """A process of its own, over HTTPS: the policy at once, the port with a word in the log."""
    served = Served(tmp_path)
    switched_off = yaml.safe_load(served.settings.read_text())
    switched_off |= {"policy": {"enabled": False}, "workers": {"preload": [], "maxConcurrent": 1}}
    async with served.running(), session_for(served.authority) as session:
        base = f"https://localhost:{served.port}"
        served.settings.write_text("policy: [")
        await until(lambda: any(line["event"] == "settings refused" for line in served.lines))
        fresh = tmp_path / "fresh.yaml"
        fresh.write_text(yaml.safe_dump(switched_off))
        fresh.rename(served.settings)
        await until(lambda: any("restart" in line for line in served.lines))
        _, body = await post(session, f"{base}/validate", review_of(job()))
        async with session.get(f"{base}/metrics") as answer:
            metrics = (await answer.read()).decode()
        async with session.get(f"{base}/report") as answer:
            report = orjson.loads(await answer.read())

    (line,) = (line for line in served.lines if "restart" in line)
    assert line["restart"] == ["workers.maxConcurrent"]
    assert "policy.enabled" in line["changed"]
    assert orjson.loads(body)["response"]["auditAnnotations"]["reason"] == "disabled"
    assert 'vramgate_settings_reloads_total{outcome="refused"} 1.0' in metrics
    assert 'vramgate_settings_reloads_total{outcome="restart"} 1.0' in metrics
    assert "vramgate_policy_enabled 0.0" in metrics
    assert 'vramgate_estimator_workers{state="idle-template"} 0.0' in metrics
    assert report["denials"] == []
