"""Read an object under review, what it refers to, and judge it before the deadline.

Asked, object -> Workload, Views -> Judgement
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from admission.codes import Action, Operation, ReasonCode, Verdict
from admission.decision import Change, Policy, action_of
from admission.handling.asked import Asked
from admission.judge.conclusion import conclude
from admission.judge.judging import judge_views, judged_late
from admission.judge.rounds import TimedFetching, in_rounds
from admission.judge.views import Views
from admission.learning.floors import Learnt
from admission.reader import ReviewReader
from admission.review import Review
from admission.steer.permission import is_queued, is_suspended
from admission.values import Document, Documents, Json, Judgement, Workload
from admission.workloads import read_workload

GRACE_SECONDS = 0.25
"""A judgement that overruns its deadline by more than this is given up, and late."""
UNREAD = "this job could not be read in time; it was let through"

Read = tuple[Workload, Views]


class Judging:
    """Judges reviews with what their cards, documents and the estimator say."""

    def __init__(
        self,
        *,
        reader: ReviewReader,
        sources: TimedFetching | None,
        clock: Callable[[], float],
        learnt: Learnt | None = None,
    ) -> None:
        self._reader = reader
        self._sources = sources
        self._clock = clock
        self._learnt = learnt

    async def read(self, asked: Asked, obj: Json) -> Read | None:
        """Return *obj* as it was understood with what it refers to, None if not in time."""

        async def read(documents: Documents) -> Read | None:
            return await self._reader.read(
                asked.review,
                obj,
                classes=asked.classes,
                seconds=asked.ends - self._clock(),
                is_small=asked.is_small,
                expands=asked.expands,
                documents=documents,
            )

        async def fetch(wanted: tuple[str, ...], namespace: str) -> Documents:
            asked.passing.update(wanted)  # whoever owns them may change them
            if self._sources is None:
                return {name: Document(problem="is not read here") for name in wanted}
            seconds = max(0.0, (asked.ends - self._clock()) / 2)
            asked.missing.update(wanted)
            # The request's namespace is where the object will be; its own word may be anything.
            had = await self._sources.fetch(
                wanted, namespace=asked.review.namespace or namespace, seconds=seconds
            )
            asked.missing.difference_update(name for name in had if not had[name].problem)
            return had

        if self._sources is None:
            return await in_rounds(read, fetch)
        return await in_rounds(read, fetch, seconds=self._sources.seconds)

    async def judged(self, asked: Asked, read: Read | None, policy: Policy) -> Judgement:
        """Return the judgement of what was read, as if it were created."""
        if read is None:
            return _unread(asked.review, policy)
        workload, views = read
        seconds = max(0.0, asked.ends - self._clock())
        grace = asyncio.timeout(seconds + GRACE_SECONDS)
        try:
            async with grace:
                return await judge_views(
                    workload,
                    views,
                    estimator=asked.estimator,
                    policy=policy,
                    deadline_seconds=seconds,
                    learnt=self._learnt,
                )
        except TimeoutError:
            if not grace.expired():
                raise
            # A loop that was held up comes to both moments at once: no fault of the judgement's.
            return judged_late(workload, views, policy=policy)

    def has_learnt(self, workload: Workload) -> bool:
        """Return whether an earlier run of one of its containers died of too little memory."""
        return self._learnt is not None and any(self._learnt.floors(workload))

    async def answered(self, asked: Asked, judgement: Judgement, policy: Policy) -> Judgement:
        """Return *judgement*; before an update is denied, that of what is stored counts too.

        And before it is reported that mode `enforce` would have denied it.
        """
        is_denied = judgement.action is Action.DENY
        is_grave = is_denied or judgement.is_spared
        if not is_grave or asked.review.operation is Operation.CREATE:
            return judgement
        change = await self._change(asked, judgement.workload, policy)
        again = conclude(judgement.workload, judgement.units, policy=policy, change=change)
        # What no change of an update could deny is not said to be exempt from it.
        return again if is_denied or judgement.exemption else _spared_as(judgement, again)

    async def _change(self, asked: Asked, workload: Workload, policy: Policy) -> Change:
        """Return what an update changes. What is stored and cannot be judged in time was `oom`."""
        stored = asked.review.old_object
        if stored is None:
            return Change(operation=Operation.UPDATE)
        read = await self.read(asked, stored)
        # What it refers to may come too late, after all that was done for the new one.
        if read is None or (read[0].problems and not workload.problems):
            return Change(operation=Operation.UPDATE, was_oom=True)
        # Kueue says where a TrainJob goes first, and takes it up by a second update.
        is_taken_up = is_queued(workload.metadata) or not is_suspended(asked.review.object)
        is_same = _containers(read[0]) == _containers(workload)
        if is_suspended(stored) and is_taken_up and is_same:
            return Change(operation=Operation.UPDATE, resumes=True)
        was = await self.judged(asked, read, policy)
        was_oom = was.verdict is Verdict.OOM or was.cache == "late"
        return Change(operation=Operation.UPDATE, was_oom=was_oom)


def _spared_as(judgement: Judgement, again: Judgement) -> Judgement:
    """Return *judgement* with what *again* says of its being spared; its warnings stay."""
    return replace(judgement, is_spared=again.is_spared, exemption=again.exemption)


def _unread(review: Review, policy: Policy) -> Judgement:
    """Return the judgement of what could not be read in time: late, whatever is in it."""
    # No such version has a reader: of the object its metadata alone is read.
    outline = {"apiVersion": "", "kind": review.kind, "metadata": review.object.get("metadata")}
    workload = read_workload(outline, api_version="unread")
    action = action_of(Verdict.UNKNOWN, workload, policy=policy, change=Change(), is_late=True)
    return Judgement(
        workload=workload,
        verdict=Verdict.UNKNOWN,
        action=action,
        mode=policy.mode,
        units=(),
        reason=ReasonCode.LATE,
        message=UNREAD,
        hints=(),
        warnings=(UNREAD,) if action is Action.WARN else (),
        cache="late",
    )


def _containers(workload: Workload) -> tuple[Json, ...]:
    return tuple(unit.container_spec for unit in workload.units)
