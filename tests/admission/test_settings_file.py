"""The settings file is taken up when it changes, as far as it may, and never when it is bad."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import structlog

from admission.codes import Mode
from admission.config import LogFormat, LogLevel, Settings, load_settings, parse_settings
from admission.errors import SettingsError
from admission.logs import configure_logs
from admission.settings_file import Outcome, SettingsFile, at_work, changes
from estimator.errors import Problem

WAIT_SECONDS = 20.0
WARN, ENFORCE, OFF = (f"policy: {{mode: {mode}}}\n" for mode in ("warn", "enforce", "off"))


class Mounted:
    """A ConfigMap as a kubelet mounts it: a link to a folder that is swapped for another."""

    def __init__(self, directory: Path, text: str) -> None:
        self._directory = directory
        self._number = 0
        self.path = directory / "settings.yaml"
        self.put(text)
        self.path.symlink_to(Path("..data") / "settings.yaml")

    def put(self, text: str) -> None:
        """Swap in a folder with *text*."""
        self._number += 1
        folder = self._directory / f"..{self._number}"
        folder.mkdir()
        (folder / "settings.yaml").write_text(text)
        link = self._directory / "..new"
        link.symlink_to(folder.name)
        link.rename(self._directory / "..data")


class Taker:
    """Takes settings, unless there is a problem with putting them to work."""

    def __init__(self) -> None:
        self.taken: list[Settings] = []
        self.told: list[str] = []
        self.problem: Problem | None = None
        self.fault: Exception | None = None

    def take(self, settings: Settings) -> None:
        """Note *settings*."""
        if self.fault is not None:
            raise self.fault
        if self.problem is not None:
            raise SettingsError([self.problem])
        self.taken.append(settings)


def watched(mounted: Mounted, taker: Taker, **changes: Any) -> SettingsFile:
    """Return who watches what is mounted, started with what is in it."""
    return SettingsFile(
        mounted.path,
        running=load_settings(mounted.path),
        take=taker.take,
        tell=taker.told.append,
        **changes,
    )


async def looked(file: SettingsFile) -> Outcome | None:
    """Return what came of looking at *file* twice: what changed counts at the second look."""
    return await file.look() or await file.look()


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """Return what is logged."""
    stream = io.StringIO()
    configure_logs(LogLevel.INFO, form=LogFormat.JSON, stream=stream)
    yield stream
    structlog.reset_defaults()


def lines(logged: io.StringIO) -> list[dict[str, Any]]:
    """Return the log lines."""
    return [orjson.loads(line) for line in logged.getvalue().splitlines()]


async def test_swapped_config_map_is_taken_and_told(tmp_path: Path, logged: io.StringIO) -> None:
    """Once, by name of what changed; what is as before is taken by nobody."""
    mounted, taker = Mounted(tmp_path, WARN), Taker()
    file = watched(mounted, taker)

    assert await looked(file) is None
    mounted.put(ENFORCE)
    assert await looked(file) is Outcome.APPLIED
    assert await looked(file) is None
    mounted.put("# a comment more\n" + ENFORCE)
    assert await looked(file) is None

    assert [settings.policy.mode for settings in taker.taken] == [Mode.ENFORCE]
    assert taker.told == ["applied"]
    (line,) = lines(logged)
    assert (line["event"], line["changed"]) == ("settings changed", ["policy.mode"])


async def test_change_between_the_start_and_the_first_look_is_not_lost(tmp_path: Path) -> None:
    """The first look reads whatever is there."""
    mounted, taker = Mounted(tmp_path, WARN), Taker()
    file = watched(mounted, taker)
    mounted.put(OFF)

    assert await looked(file) is Outcome.APPLIED
    assert taker.taken[0].policy.mode is Mode.OFF


async def test_bad_file_changes_nothing_and_is_told_once(
    tmp_path: Path, logged: io.StringIO
) -> None:
    """One line with every problem; other problems are another line; a good file ends it."""
    mounted, taker = Mounted(tmp_path, WARN), Taker()
    file = watched(mounted, taker)

    mounted.put("policy: {mode: strict, onLate: deny}\nserver: {prot: 1}\n")
    assert await looked(file) is Outcome.REFUSED
    assert await looked(file) is None
    mounted.put("policy: [")
    assert await looked(file) is Outcome.REFUSED
    mounted.put(WARN)
    assert await looked(file) is Outcome.APPLIED
    assert await looked(file) is None

    assert taker.told == ["refused", "refused", "applied"]
    first = lines(logged)[0]
    assert (first["event"], first["level"]) == ("settings refused", "error")
    starts = [problem.partition(":")[0] for problem in first["problems"]]
    assert starts == ["server.prot", "policy.mode", "policy.onLate"]


async def test_file_that_is_being_written_is_left_until_it_is_whole(tmp_path: Path) -> None:
    """Emptied first, it would mean every default for a moment."""
    path = tmp_path / "settings.yaml"
    path.write_text(ENFORCE)
    taker = Taker()
    file = SettingsFile(path, running=load_settings(path), take=taker.take)

    outcomes = [await file.look(), await file.look()]
    for text in ("", "policy:\n", OFF):
        path.write_text(text)
        outcomes.append(await file.look())
    outcomes.append(await file.look())

    assert outcomes == [None, None, None, None, None, Outcome.APPLIED]
    assert [settings.policy.mode for settings in taker.taken] == [Mode.OFF]


async def test_file_that_is_gone_for_a_moment_changes_nothing(tmp_path: Path) -> None:
    """An editor or a slow mount may take it away; it is taken up when it is back."""
    path = tmp_path / "settings.yaml"
    path.write_text(WARN)
    taker = Taker()
    file = SettingsFile(path, running=load_settings(path), take=taker.take)

    path.unlink()
    assert await looked(file) is Outcome.REFUSED
    path.write_text(ENFORCE)
    assert await looked(file) is Outcome.APPLIED

    assert [settings.policy.mode for settings in taker.taken] == [Mode.ENFORCE]


async def test_what_cannot_be_put_to_work_is_tried_again(tmp_path: Path) -> None:
    """A token's file may come later than the settings that name it."""
    mounted, taker = Mounted(tmp_path, WARN), Taker()
    file = watched(mounted, taker)
    taker.problem = Problem(path="sources.hub.tokenFile", message="no such file")

    mounted.put(ENFORCE)
    assert await looked(file) is Outcome.REFUSED
    assert await looked(file) is None
    taker.problem = None
    assert await looked(file) is Outcome.APPLIED

    assert [settings.policy.mode for settings in taker.taken] == [Mode.ENFORCE]


async def test_what_needs_a_restart_is_named_and_the_rest_is_taken(
    tmp_path: Path, logged: io.StringIO
) -> None:
    """Ports, certificates, workers and the nodes file; taken back, nothing waits any more."""
    mounted, taker = Mounted(tmp_path, WARN), Taker()
    file = watched(mounted, taker)

    mounted.put(
        ENFORCE
        + "server: {port: 9443, drainSeconds: 1}\nworkers: {maxConcurrent: 4}\n"
        + "nodes: {file: nodes.json, keepDays: 1}\ncertificates: {mode: files}\n"
    )
    assert await looked(file) is Outcome.RESTART
    mounted.put(ENFORCE)
    assert await looked(file) is Outcome.APPLIED

    taken = taker.taken[0]
    assert (taken.policy.mode, taken.nodes.keep_days) == (Mode.ENFORCE, 1)
    assert (taken.server.port, taken.workers.max_concurrent) == (8443, 2)
    assert taken.nodes.file is None
    first, _ = lines(logged)
    assert (first["event"], first["level"]) == ("settings need a restart", "warning")
    assert first["restart"] == [
        "certificates.mode",
        "nodes.file",
        "server.drainSeconds",
        "server.port",
        "workers.maxConcurrent",
    ]
    assert first["changed"] == ["nodes.keepDays", "policy.mode"]


def test_naming_certificate_files_changes_who_makes_them() -> None:
    """The default path written down is another setting: it needs a restart."""
    running = Settings()
    found = parse_settings("server: {certFile: /etc/vramgate/tls/tls.crt}")

    assert changes(at_work(running, found), found) == ("certificates.mode",)


async def test_file_is_looked_at_until_cancelled(tmp_path: Path) -> None:
    """In a task of its own, every few seconds."""
    mounted, taker = Mounted(tmp_path, WARN), Taker()
    task = asyncio.create_task(watched(mounted, taker, poll_seconds=0.01).run())

    mounted.put(ENFORCE)
    async with asyncio.timeout(WAIT_SECONDS):
        while not taker.taken:  # noqa: ASYNC110 (a thread reads the file)
            await asyncio.sleep(0.005)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert taker.told == ["applied"]


async def test_fault_of_ours_ends_nothing(tmp_path: Path, logged: io.StringIO) -> None:
    """It is told once, with its traceback; the next change is taken."""
    mounted, taker = Mounted(tmp_path, WARN), Taker()
    taker.fault = RuntimeError("a bug")
    task = asyncio.create_task(watched(mounted, taker, poll_seconds=0.001).run())

    async with asyncio.timeout(WAIT_SECONDS):
        mounted.put(ENFORCE)
        while not taker.told:  # noqa: ASYNC110 (a thread reads the file)
            await asyncio.sleep(0.005)
        taker.fault = None
        mounted.put(OFF)
        while not taker.taken:  # noqa: ASYNC110 (a thread reads the file)
            await asyncio.sleep(0.005)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert taker.told == ["refused", "applied"]
    assert [settings.policy.mode for settings in taker.taken] == [Mode.OFF]
    first = lines(logged)[0]
    assert first["event"] == "settings not taken"
    assert "RuntimeError: a bug" in first["exception"]
