"""The settings file while it is in use: looked at again and again, taken when it changes.

    file -> Settings -> what may change while running, the names of what may not

A bad file changes nothing. A mounted ConfigMap changes by a symlink that is swapped, so what is
compared is what the path leads to. No file system is asked to tell: not all of them can.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any

import structlog

from admission.config import Settings, load_settings
from admission.errors import SettingsError

POLL_SECONDS = 2.0
"""A change counts at the second look. A kubelet takes up to a minute to bring a changed ConfigMap:
this adds little to it."""

_log = structlog.get_logger()


class Outcome(StrEnum):
    """What became of a change of the file: a metric label too."""

    APPLIED = "applied"
    RESTART = "restart"
    """What can change while running has; the rest waits for a restart."""
    REFUSED = "refused"


def at_work(running: Settings, found: Settings) -> Settings:
    """Return *found* as far as it can replace *running* without a restart.

    Ports, certificates, workers and the nodes file were taken at the start: they stay.
    """
    return found.model_copy(
        update={
            "server": running.server,
            "certificates": running.certificates,
            "workers": running.workers,
            "nodes": found.nodes.model_copy(update={"file": running.nodes.file}),
        }
    )


def changes(before: Settings, after: Settings) -> tuple[str, ...]:
    """Return the paths of the settings that differ, as they are written in the file."""
    paths = list(_differences(_document(before), _document(after), ""))
    mode = "certificates.mode"
    if before.certificate_mode is not after.certificate_mode and mode not in paths:
        paths.append(mode)
    return tuple(sorted(paths))


class SettingsFile:
    """Watches one file for one event loop.

    *take* puts settings to work, all or none of them: it may raise SettingsError before it has
    changed anything. *tell* hears what became of each change.
    """

    def __init__(
        self,
        path: Path,
        *,
        running: Settings,
        take: Callable[[Settings], None],
        tell: Callable[[str], None] = lambda _: None,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        self._path = path
        self._running = running
        self._found = running
        self._take = take
        self._tell = tell
        self._poll_seconds = poll_seconds
        self._seen: tuple[int, ...] | None = None
        """The state of the file that was read last."""
        self._glimpsed: tuple[int, ...] | None = None
        """The state at the last look."""
        self._problems: tuple[str, ...] = ()

    async def run(self) -> None:
        """Look at the file until cancelled; a fault of ours ends nothing."""
        while True:
            try:
                await self.look()
            except Exception:
                _log.exception("settings not taken")
                self._tell(Outcome.REFUSED.value)
            await asyncio.sleep(self._poll_seconds)

    async def look(self) -> Outcome | None:
        """Take up the file if it changed; one that was refused is tried again each time.

        One that is still changing is left for the next look: an editor may have emptied it, and an
        empty file means every default.
        """
        # Before it is read: what is written meanwhile is seen at the next look.
        seen = await asyncio.to_thread(_signature, self._path)
        glimpsed, self._glimpsed = self._glimpsed, seen
        if seen != glimpsed or (seen == self._seen and not self._problems):
            return None
        self._seen = seen
        try:
            found = await asyncio.to_thread(load_settings, self._path)
            if found == self._found and not self._problems:
                return None
            return self._taken(found)
        except SettingsError as error:
            return self._refused(tuple(str(problem) for problem in error.problems))

    def _taken(self, found: Settings) -> Outcome:
        running = at_work(self._running, found)
        self._take(running)
        changed = changes(self._running, running)
        waiting = changes(running, found)
        self._running, self._found, self._problems = running, found, ()
        outcome = Outcome.RESTART if waiting else Outcome.APPLIED
        if waiting:
            _log.warning("settings need a restart", changed=changed, restart=waiting)
        else:
            _log.info("settings changed", changed=changed)
        self._tell(outcome.value)
        return outcome

    def _refused(self, problems: tuple[str, ...]) -> Outcome | None:
        """Keep what is at work; the same problems are told once."""
        if problems == self._problems:
            return None
        self._problems = problems
        _log.error("settings refused", problems=problems)
        self._tell(Outcome.REFUSED.value)
        return Outcome.REFUSED


def _signature(path: Path) -> tuple[int, ...]:
    """Return what tells one state of the file from another; empty while there is none."""
    try:
        found = path.stat()
    except OSError:
        return ()
    return (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size)


def _document(settings: Settings) -> dict[str, Any]:
    return settings.model_dump(mode="json", by_alias=True)


def _differences(before: object, after: object, path: str) -> Iterator[str]:
    if not isinstance(before, dict) or not isinstance(after, dict):
        if before != after:
            yield path
        return
    for key in dict.fromkeys((*before, *after)):
        yield from _differences(
            before.get(key), after.get(key), f"{path}.{key}" if path else str(key)
        )
