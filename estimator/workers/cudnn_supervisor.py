"""Keep the process of one cuDNN library running.

    folder -> a connection for each fork, or none

Started on demand, restarted like a template. A question it ended or hung on is refused by its
successors. Never raises and never waits: who gets no connection goes on without.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from pathlib import Path

from estimator.cudnn.support import Release
from estimator.workers.cudnn_process import CudnnProcess, CudnnReadiness
from estimator.workers.limits import Limits
from estimator.workers.restarts import Restarts

MAX_REFUSED = 64
"""Questions kept from successors; the oldest is forgotten."""

_log = logging.getLogger(__name__)


class CudnnSupervisor:
    """The cuDNN process of one library, whichever that is at the moment."""

    def __init__(self, folder: Path, *, limits: Limits) -> None:
        self._folder = folder
        self._limits = limits
        self._process: CudnnProcess | None = None
        self.release: Release | None = None
        """Which library it is, once it was loaded."""
        self._refused: dict[str, None] = {}
        self._restarts = Restarts()

    @property
    def process(self) -> CudnnProcess | None:
        """Return the running process, if there is one."""
        alive = self._process is not None and self._process.is_alive
        return self._process if alive else None

    def start(self) -> CudnnProcess | None:
        """Return the running process, started if that is possible now."""
        if (process := self.process) is not None:
            return process
        loop = asyncio.get_running_loop()
        is_unusable = self._process is not None and self._process.is_unusable
        if is_unusable or self._restarts.pause(loop.time()) > 0:
            return None
        try:
            process = CudnnProcess(
                self._folder,
                limits=self._limits,
                refused=self._refused,
                note_served=self._restarts.note_answer,
                note_ended=self._note_ended,
            )
        except OSError as error:
            self._restarts.note_end(loop.time())
            failure = {"library": str(self._folder), "error": error.strerror}
            _log.error("cudnn failed", extra=failure)
            return None
        process.ready.add_done_callback(self._note_ready)
        self._process = process
        return process

    def connect(self) -> socket.socket | None:
        """Return a fork's end of a new connection, None if there is no process."""
        process = self.start()
        return None if process is None else process.connect()

    async def close(self) -> None:
        """End the process, and wait for that."""
        if self._process is not None:
            await self._process.close()

    def _note_ready(self, ready: asyncio.Future[CudnnReadiness]) -> None:
        error = ready.exception()
        if error is None:
            facts = ready.result()
            self.release = Release(version=facts.version, cuda=facts.cuda)
            self._log_readiness(facts)
        else:
            failure = {"library": str(self._folder), "error": str(error)}
            _log.error("cudnn failed", extra=failure)

    def _note_ended(self, status: int, asked: str | None) -> None:
        self._restarts.note_end(asyncio.get_running_loop().time())
        if asked is not None:
            self._refused[asked] = None
            if len(self._refused) > MAX_REFUSED:
                self._refused.pop(next(iter(self._refused)))
        facts = {"library": str(self._folder), "status": status, "asked": asked}
        _log.info("cudnn ended", extra=facts)

    def _log_readiness(self, readiness: CudnnReadiness) -> None:
        facts = {
            "library": str(self._folder),
            "version": readiness.version,
            "seconds": round(readiness.seconds, 2),
            "rss_bytes": readiness.rss_bytes,
        }
        _log.info("cudnn ready", extra=facts)
        if not readiness.confined:
            _log.warning("cudnn may open sockets", extra=facts)
