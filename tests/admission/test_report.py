"""What enforce would have denied, for those who still only warn."""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest
import structlog

from admission.codes import Action, Mode, Verdict
from admission.config import LogFormat, LogLevel
from admission.handling.withheld import Because, WithheldDenials, because_of
from admission.logs import configure_logs
from admission.policy_settings import PolicySettings
from admission.review import Route
from admission.values import Judgement, Workload, WorkloadRef
from tests.admission.test_handler import FITS, TOO_LARGE, Bench, job, review_of
from tests.admission.test_server import Site, post, running

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """Return what is logged."""
    stream = io.StringIO()
    configure_logs(LogLevel.INFO, form=LogFormat.JSON, stream=stream)
    yield stream
    structlog.reset_defaults()


def report_of(bench: Bench) -> dict[str, Any]:
    """Return the report."""
    found: dict[str, Any] = orjson.loads(bench.handler.report())
    return found


def spared(namespace: str = "team", *, is_spared: bool = True) -> Judgement:
    """Return the judgement of a Job that mode `warn` alone kept from being denied."""
    ref = WorkloadRef(api_version="batch/v1", kind="Job", namespace=namespace, name="")
    workload = Workload(ref=ref, units=(), metadata={}, controlled=False, started=False)
    return Judgement(
        workload=workload,
        verdict=Verdict.OOM,
        action=Action.WARN,
        mode=Mode.WARN,
        units=(),
        reason="too-large",
        message="needs more",
        hints=(),
        warnings=(),
        is_spared=is_spared,
    )


async def test_report_names_what_enforce_would_have_denied() -> None:
    """Once an object, whichever webhooks saw it, with the reason and the time."""
    bench = Bench(PolicySettings(mode=Mode.WARN))
    for batch_size in (TOO_LARGE, FITS):
        for route in Route:
            await bench.response(review_of(job(batch_size=batch_size)), route=route)

    report = report_of(bench)

    (entry,) = report["denials"]
    assert entry.pop("message").startswith("needs at least 25.6 GiB")
    assert entry == {
        "namespace": "team",
        "kind": "Job",
        "name": "train",
        "because": "mode-warn",
        "verdict": "oom",
        "reason": "too-large",
        "first": "2026-06-01T00:00:00Z",
        "last": "2026-06-01T00:00:00Z",
        "times": 1,
    }
    assert report["namespaces"] == {"team": 1}
    assert bench.series("vramgate_would_deny_total") == {'{because="mode-warn",kind="Job"}': 1}


async def test_log_line_says_would_deny(logged: io.StringIO) -> None:
    """With the rest of the decision, for those who keep logs and not reports."""
    bench = Bench(PolicySettings(mode=Mode.WARN))

    await bench.response(review_of(job(batch_size=TOO_LARGE)))
    await bench.response(review_of(job(batch_size=FITS)))

    lines = [orjson.loads(line) for line in logged.getvalue().splitlines()]
    reviewed = [line for line in lines if line["event"] == "reviewed"]
    assert [line.get("would_deny") for line in reviewed] == ["mode-warn", None]


@pytest.mark.parametrize(
    ("mode", "is_dry_run"), [(Mode.ENFORCE, False), (Mode.OFF, False), (Mode.WARN, True)]
)
async def test_what_was_denied_or_never_stored_is_not_reported(
    mode: Mode, is_dry_run: bool
) -> None:
    """A denial was not withheld, mode `off` asks for nothing, a dry run brings no job."""
    bench = Bench(PolicySettings(mode=mode))

    await bench.response(review_of(job(batch_size=TOO_LARGE), dry_run=is_dry_run))

    assert report_of(bench)["denials"] == []
    assert bench.series("vramgate_would_deny_total") == {}


async def test_update_that_enforce_would_let_pass_is_not_reported() -> None:
    """It was as bad before; one that makes it so is reported."""
    bench = Bench(PolicySettings(mode=Mode.WARN))

    await bench.response(review_of(job(batch_size=TOO_LARGE), old=job(batch_size=TOO_LARGE)))
    same = report_of(bench)["denials"]
    await bench.response(review_of(job(batch_size=TOO_LARGE), old=job(batch_size=FITS)))
    grown = report_of(bench)["denials"]

    assert same == []
    assert [entry["reason"] for entry in grown] == ["too-large"]


async def test_report_is_served_on_the_metrics_port(tmp_path: Path) -> None:
    """`curl` is all it takes."""
    site = Site(tmp_path, metrics_port=0)
    site.bench.cluster.modes["team"] = Mode.WARN
    async with running(site) as session:
        await post(session, f"{site.base}/validate", review_of(job(batch_size=TOO_LARGE)))
        url = f"http://127.0.0.1:{site.server.metrics_port}/report"
        async with session.get(url) as answer:
            report = orjson.loads(await answer.read())
            kind = answer.content_type

    assert kind == "application/json"
    assert report["namespaces"] == {"team": 1}


def test_report_keeps_the_newest_and_says_how_many_it_forgot() -> None:
    """It is bounded: who sends jobs without end fills no memory."""
    denials = WithheldDenials(now=lambda: NOW, kept=2)

    for name in ("a", "b", "a", "c"):
        assert denials.add(spared(), name=name) is Because.MODE
    report = orjson.loads(denials.text())

    assert [(entry["name"], entry["times"]) for entry in report["denials"]] == [("c", 1), ("a", 2)]
    assert report["forgotten"] == 1


def test_names_in_the_report_are_plain_text() -> None:
    """Whoever sends an object chooses its name; the API server has not checked it yet."""
    denials = WithheldDenials(now=lambda: NOW)

    denials.add(spared(), name="a\x1b[31m" + "b" * 1000)
    (entry,) = orjson.loads(denials.text())["denials"]

    assert entry["name"].isprintable()
    assert len(entry["name"]) <= 253


def test_what_was_not_spared_is_not_remembered() -> None:
    """Neither a denial nor what passes anyway."""
    denials = WithheldDenials(now=lambda: NOW)

    assert denials.add(spared(is_spared=False), name="a") is None
    assert because_of(spared(is_spared=False)) is None
    assert orjson.loads(denials.text())["denials"] == []
