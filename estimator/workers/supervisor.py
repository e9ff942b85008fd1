"""Keep one framework's template running.

    dead | starting | ready, time -> a ready TemplateProcess | EstimatorError

Started on demand. After an end the next request starts it again; after repeated ends it is left
alone for a while, twice as long each time. A framework that is not there is not tried again.
"""

from __future__ import annotations

import asyncio
import logging
from enum import StrEnum

from estimator.errors import EstimatorError, EstimatorUnavailableError, UnsupportedJobError
from estimator.processes.jail import Isolation
from estimator.workers.limits import Limits
from estimator.workers.outcome import unavailable
from estimator.workers.process import Readiness, TemplateProcess
from estimator.workers.restarts import Restarts

_log = logging.getLogger(__name__)


class TemplateState(StrEnum):
    """Where a template is in its life."""

    ABSENT = "absent"
    """Never asked for, or not installed."""
    STARTING = "starting"
    READY = "ready"
    DEAD = "dead"


class Supervisor:
    """The template of one framework, whichever process that is at the moment."""

    def __init__(self, framework: str, *, prepare: str, limits: Limits) -> None:
        self._framework = framework
        self._prepare = prepare
        self._limits = limits
        self._process: TemplateProcess | None = None
        self._refusal: UnsupportedJobError | None = None
        self._restarts = Restarts()

    @property
    def process(self) -> TemplateProcess | None:
        """Return the running template, if there is one."""
        alive = self._process is not None and self._process.is_alive
        return self._process if alive else None

    @property
    def state(self) -> TemplateState:
        """Return where the template is in its life."""
        process = self.process
        if process is None:
            absent = self._process is None or self._refusal is not None
            return TemplateState.ABSENT if absent else TemplateState.DEAD
        return TemplateState.READY if process.ready.done() else TemplateState.STARTING

    @property
    def isolation(self) -> Isolation | None:
        """Return what isolates the forks of the running template, None before it is ready."""
        process = self.process
        if process is None or not process.ready.done() or process.ready.exception():
            return None
        return process.ready.result().isolation

    @property
    def is_idle(self) -> bool:
        """Return whether the template is ready and has no forks."""
        process = self.process
        return process is not None and process.ready.done() and process.num_forks == 0

    def start(self) -> TemplateProcess:
        """Return the running template, started if necessary.

        Raises:
            EstimatorError: if it cannot run, or has ended too often to be tried now.
        """
        if self._refusal is not None:
            raise self._refusal.with_traceback(None)
        if (process := self.process) is not None:
            return process
        pause = self._restarts.pause(asyncio.get_running_loop().time())
        if pause > 0:
            raise EstimatorUnavailableError(
                f"the {self._framework} estimator process keeps ending; "
                f"it is started again in {pause:.0f} s at the earliest"
            )
        try:
            process = TemplateProcess(self._framework, prepare=self._prepare, limits=self._limits)
        except OSError as error:
            self._restarts.note_end(asyncio.get_running_loop().time())
            raise unavailable(error) from error
        process.ready.add_done_callback(self._note_ready)
        process.ended.add_done_callback(self._note_ended)
        self._process = process
        return process

    async def ready(self) -> TemplateProcess:
        """Return the template once it has imported its framework.

        Raises:
            EstimatorError: if it cannot.
        """
        process = self.start()
        await asyncio.shield(process.ready)
        return process

    async def close(self) -> None:
        """End the template, its forks, and wait for that."""
        if self._process is not None:
            await self._process.close()

    def _note_ready(self, ready: asyncio.Future[Readiness]) -> None:
        match ready.exception():
            case None:
                self._log_readiness(ready.result())
            case EstimatorError() as error:
                if isinstance(error, UnsupportedJobError):
                    self._refusal = error
                facts = {"framework": self._framework, "error": error.message}
                _log.error("template failed", extra=facts)

    def _note_ended(self, ended: asyncio.Future[int]) -> None:
        self._restarts.note_end(asyncio.get_running_loop().time())
        facts = {"framework": self._framework, "status": ended.result()}
        _log.info("template ended", extra=facts)

    def note_answer(self) -> None:
        """Forget earlier ends: the template works."""
        self._restarts.note_answer()

    def _log_readiness(self, readiness: Readiness) -> None:
        facts = {
            "framework": self._framework,
            "seconds": round(readiness.import_seconds, 2),
            "rss_bytes": readiness.rss_bytes,
        }
        _log.info("template ready", extra=facts)
        if lacks := readiness.isolation.missing:
            required = self._limits.isolation_required
            missing = {**facts, "lacks": list(lacks), "required": required}
            _log.warning("estimator workers are not isolated", extra=missing)
        if readiness.num_threads != 1:
            threads = {**facts, "num_threads": readiness.num_threads}
            _log.warning("estimator template has threads", extra=threads)
