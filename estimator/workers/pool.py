"""The pool of worker processes: implements `api.Estimator` for an event loop.

    spec, devices -> fork of a template -> Estimates | EstimatorError

One template process a framework, one fork a request, at most so many forks at once. This process
never imports a framework or the pipeline.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from estimator.catalog.stacks import cudnn_of
from estimator.cudnn.folders import library_folders
from estimator.device import Device
from estimator.errors import EstimatorUnavailableError
from estimator.processes.frames import frame
from estimator.processes.jail import Isolation
from estimator.report.drawing import JobDrawing
from estimator.report.records import JobAccount
from estimator.result import Estimate, Fit
from estimator.spec import Framework, JobSpec
from estimator.tracefile import Recording, job_digest
from estimator.workers import wire
from estimator.workers.api import Job
from estimator.workers.exchange import ask_fork
from estimator.workers.keeping import Keeping
from estimator.workers.libraries import Libraries
from estimator.workers.limits import Limits
from estimator.workers.outcome import Ended, end_error, unavailable
from estimator.workers.process import Fork, Readiness, TemplateProcess
from estimator.workers.slots import Slots
from estimator.workers.spare import Spare
from estimator.workers.supervisor import Supervisor, TemplateState

PREPARE = "estimator.workers.answer:prepare"
"""Runs in the template: imports the framework and returns what a fork answers with."""

USES_CUDNN = frozenset({Framework.PYTORCH, Framework.TENSORFLOW})
"""Frameworks whose convolutions are asked of cuDNN."""


class Workers:
    """Estimates in limited processes. Use within one event loop, and `close` it."""

    def __init__(
        self,
        limits: Limits | None = None,
        *,
        max_concurrent: int | None = None,
        preload: Sequence[Framework] = (),
        prepare: str = PREPARE,
        cudnn: Sequence[Path] | None = None,
    ) -> None:
        """Ask the cuDNN libraries in the folders *cudnn*, by default those that are installed."""
        self._limits = limits or Limits()
        self.max_concurrent = max_concurrent or os.cpu_count() or 1
        self._slots = Slots(self.max_concurrent)
        self._preload = tuple(preload)
        self._supervisors = {
            framework: Supervisor(framework.value, prepare=prepare, limits=self._limits)
            for framework in Framework
        }
        self._replaying = Supervisor(wire.NO_FRAMEWORK, prepare=prepare, limits=self._limits)
        folders = library_folders(sys.path, os.environ) if cudnn is None else cudnn
        self._libraries = Libraries(folders, limits=self._limits)
        self._keeping = Keeping()
        self._spare = Spare(self._keeping)
        self._tasks: set[asyncio.Task[bytes]] = set()
        self._is_closed = False

    async def start(self) -> None:
        """Start the templates to preload, without waiting for them."""
        for framework in self._preload:
            self._supervisors[framework].start()
        if any(framework in USES_CUDNN for framework in self._preload):
            self._libraries.start()

    async def ready(self, framework: Framework) -> Readiness:
        """Return what the template of *framework* says of itself, once it has imported it.

        Raises:
            EstimatorError: if it cannot.
        """
        self._check_open()
        process = await self._supervisors[framework].ready()
        return process.ready.result()

    async def estimate(self, job: Job, devices: Sequence[Device]) -> tuple[Estimate, ...]:
        """Return one estimate a device, in order; of a recording without any framework.

        Raises:
            EstimatorError: of the kind that says why there is none.
        """
        return wire.decode_estimates(await self._ask(wire.Operation.ESTIMATE, job, devices))

    async def fit(self, spec: JobSpec, devices: Sequence[Device]) -> tuple[Fit, ...]:
        """Return what would fit each device, in order.

        Raises:
            EstimatorError: of the kind that says why there is none.
        """
        return wire.decode_fits(await self._ask(wire.Operation.FIT, spec, devices))

    async def grid(
        self, spec: JobSpec, devices: Sequence[Device], batches: Sequence[int]
    ) -> tuple[Estimate, ...]:
        """Return the estimates of *spec* at each of *batches* on each device, batch by batch.

        Raises:
            EstimatorError: of the kind that says why there is none.
        """
        asked = self._ask(wire.Operation.GRID, spec, devices, batches=tuple(batches))
        return wire.decode_estimates(await asked)

    async def account(
        self, spec: JobSpec | Recording, devices: Sequence[Device]
    ) -> tuple[JobAccount, ...]:
        """Return where the reserved memory of *spec* comes from on each device, in order.

        Raises:
            EstimatorError: of the kind that says why there is none.
        """
        return wire.decode_accounts(await self._ask(wire.Operation.ACCOUNT, spec, devices))

    async def draw(self, job: Job, devices: Sequence[Device]) -> JobDrawing:
        """Return the estimates of *job* on *devices*, and its run on one of them.

        Raises:
            EstimatorError: of the kind that says why there is none.
        """
        return wire.decode_drawing(await self._ask(wire.Operation.DRAW, job, devices))

    async def close(self) -> None:
        """End every process this pool started, and wait for that. What waits for them fails."""
        self._is_closed = True
        self._spare.drop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        closing = [supervisor.close() for supervisor in self._all()]
        await asyncio.gather(*closing, self._libraries.close(), self._spare.close())

    def isolation(self) -> Isolation | None:
        """Return what isolates forks on this kernel, None before a template is ready."""
        found = (supervisor.isolation for supervisor in self._all())
        return next((each for each in found if each is not None), None)

    def states(self) -> Mapping[str, int]:
        """Return how many templates and forks there are in each state, for metrics.

        `dead` counts templates that have ended and were not started again.
        """
        templates = [supervisor.state for supervisor in self._all()]
        idle = sum(supervisor.is_idle for supervisor in self._all())
        return {
            "starting": templates.count(TemplateState.STARTING),
            "idle-template": idle,
            "busy": self._slots.busy,
            "waiting": self._slots.waiting,
            "dead": templates.count(TemplateState.DEAD),
        }

    @property
    def traces_ahead(self) -> bool:
        """Return whether a fork that has answered traces its job at another batch."""
        return self._spare.is_at_work

    def pids(self) -> tuple[int, ...]:
        """Return the process ids of all templates, forks and cuDNN processes."""
        processes = [supervisor.process for supervisor in self._all()]
        alive = [process for process in processes if process is not None]
        forks = [pid for process in alive for pid in process.fork_pids()]
        return (*(process.pid for process in alive), *forks, *self._libraries.pids())

    def _all(self) -> tuple[Supervisor, ...]:
        return (*self._supervisors.values(), self._replaying)

    async def _ask(
        self,
        operation: wire.Operation,
        job: JobSpec | Recording,
        devices: Sequence[Device],
        *,
        batches: tuple[int, ...] = (),
    ) -> bytes:
        """Return a fork's answer. It goes on to its own limit if the caller is cancelled."""
        self._check_open()
        spec, content = (job, None) if isinstance(job, JobSpec) else (job.spec, job.content)
        ask = wire.Ask(
            operation=operation,
            spec=spec,
            devices=tuple(devices),
            content=content,
            batches=batches,
            kept=self._keeping.of(job_digest(spec)),
        )
        payload = frame(wire.encode_ask(ask))
        task = asyncio.create_task(self._answer(ask, payload))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if self._is_closed and task.cancelled():
                raise EstimatorUnavailableError("the estimator is shutting down") from None
            raise

    async def _answer(self, ask: wire.Ask, payload: bytes) -> bytes:
        """Return the answer of a fork, of a second one if the template of the first ended."""
        is_recorded = ask.content is not None
        supervisor = self._replaying if is_recorded else self._supervisors[ask.spec.framework]
        ended = Ended(status=None)
        for _ in range(2):
            fork = await self._fork(supervisor, ask)
            answer = await self._exchange(fork, payload, job_digest(ask.spec))
            if answer is not None:
                supervisor.note_answer()
                return answer
            ended = await asyncio.shield(fork.ended)
            if ended.status is not None or ended.overdue:
                break
        raise end_error(ended, self._limits)

    async def _exchange(self, fork: Fork, payload: bytes, job: str) -> bytes | None:
        """Return the answer of *fork*, keep what it traced, and let it go on if nobody minds."""
        with ExitStack() as closing:
            closing.enter_context(fork.request)
            answer = await ask_fork(fork.request, payload)
            if answer is None:
                return None
            leavings = wire.decode_leavings(answer)
            self._keeping.add(job, leavings.kept)
            if leavings.may_go_on and not self._is_closed and self._slots.let_go(fork):
                closing.pop_all()
                self._spare.take(fork, job)
            return answer

    async def _fork(self, supervisor: Supervisor, ask: wire.Ask) -> Fork:
        """Return a new fork, once there is a template and a free slot, which it gives back."""
        self._slots.waiting += 1
        self._spare.drop()
        if ask.spec.framework in USES_CUDNN:
            self._libraries.start()
        try:
            while True:
                process = await supervisor.ready()
                await self._slots.acquire()
                fork = None
                try:
                    fork = self._try_fork(process, ask)
                finally:
                    if fork is None:
                        self._slots.release()
                if fork is not None:
                    break
                await asyncio.shield(process.ended)
        finally:
            self._slots.waiting -= 1
        self._slots.hold(fork)
        return fork

    def _try_fork(self, process: TemplateProcess, ask: wire.Ask) -> Fork | None:
        """Return a new fork, or None if the template ended meanwhile.

        Raises:
            EstimatorUnavailableError: if this process is at a limit: the template is as it was.
        """
        if not process.is_alive:
            return None
        cudnn = self._connect(ask)
        try:
            return process.fork(cudnn)
        except (ConnectionError, BlockingIOError):
            process.kill()
            return None
        except OSError as error:
            raise unavailable(error) from error
        finally:
            if cudnn is not None:
                cudnn.close()

    def _connect(self, ask: wire.Ask) -> socket.socket | None:
        """Return a connection to the cuDNN that suits *ask* best, None if there is none."""
        if ask.spec.framework not in USES_CUDNN:
            return None
        spec = ask.spec
        wanted = cudnn_of(spec.framework, spec.framework_version, spec.runtime.cudnn)
        return self._libraries.connect(ask.devices, wanted=wanted)

    def _check_open(self) -> None:
        if self._is_closed:
            raise EstimatorUnavailableError("the estimator is shutting down")
