"""Judge and steer objects that are in the cluster, as the webhooks would at their creation.

    object -> Judgement, JSONPatch

The same code and settings as a review's, without its deadline: an answer may take a worker's time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import structlog

from admission.codes import NOT_YET, Operation, Steer
from admission.controller.refs import Discovery, Ref, owner_of, ref_of
from admission.decision import Policy
from admission.errors import ClusterError
from admission.estimates import AskingPool, EstimatePool
from admission.handling.asked import Asked
from admission.handling.judging import Judging
from admission.handling.mutating import Mutating, Patch
from admission.handling.policies import Policies
from admission.objects import Objects
from admission.review import Review
from admission.steer.terms import RECORD
from admission.values import Json, Judgement

MOST_OWNERS = 8
"""Pod, Job, JobSet, TrainJob, a queue's own: longer chains are no training jobs."""

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenUp:
    """What is found of an object that is in the cluster, some time after it was admitted."""

    judgement: Judgement
    """Of the object as it is once it is steered."""
    patch: Patch
    """What steers it, and writes down what was found, as far as its kind lets it change now."""
    missing: frozenset[str]
    """What it refers to and was not to be had: with it the judgement may be another."""

    @property
    def is_late(self) -> bool:
        """Return whether an estimate may come: it goes on, or nobody could be asked for it."""
        return any(judged.reason in NOT_YET for judged in self.judgement.units) or (
            self.judgement.reason in NOT_YET
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Judges:
    """Reads and judges objects of the cluster."""

    objects: Objects
    discovery: Discovery
    pool: EstimatePool
    judging: Judging
    mutating: Mutating
    policies: Policies
    seconds: float = 90.0
    """How long an estimate is waited for: a worker's own limit and some queue."""
    clock: Callable[[], float] = time.monotonic

    async def read(self, ref: Ref) -> Json | None:
        """Return the whole object; None if it is gone, or another has its name.

        Raises:
            ClusterError: if the API server refuses, or does not answer.
        """
        return await asyncio.to_thread(self._read, ref)

    def _read(self, ref: Ref) -> Json | None:
        try:
            found = self.objects.read(self.discovery.path(ref)).document
        except ClusterError as error:
            if error.status == 404:
                return None
            raise
        if found is None or (ref.uid and (found.get("metadata") or {}).get("uid") != ref.uid):
            return None
        return {"apiVersion": ref.api_version, "kind": ref.kind, **found}

    async def root(self, obj: Json) -> Json:
        """Return the topmost controller of *obj* that is still there; *obj* if it has none.

        A controller that may not be read, or of a kind that is not served, ends the way there.

        Raises:
            ClusterError: if the API server does not answer.
        """
        return (await self.owners(obj))[-1]

    async def owners(self, obj: Json) -> tuple[Json, ...]:
        """Return *obj*, its controller, that one's controller, and so on to the topmost."""
        found = [obj]
        for _ in range(MOST_OWNERS):
            metadata = found[-1].get("metadata") or {}
            owner = owner_of(metadata, namespace=str(metadata.get("namespace") or ""))
            if owner is None:
                break
            try:
                above = await self.read(owner)
            except ClusterError as error:
                if error.status != 403:
                    raise
                _log.warning("owner not read", kind=owner.kind, reason=str(error))
                above = None
            if above is None:
                break
            found.append(above)
        return tuple(found)

    def policy(self, obj: Json) -> Policy:
        """Return how far an answer about *obj* may go."""
        return self.policies.of(self._asked(obj, Operation.CREATE, stored=None).review)

    def steer(self, obj: Json) -> Steer:
        """Return how hard the pods of *obj* are to be steered."""
        review = self._asked(obj, Operation.CREATE, stored=None).review
        return self.policies.steer(review, self.policies.mode_of(review))

    async def judged(self, obj: Json, *, seconds: float | None = None) -> Judgement:
        """Return the judgement of *obj* as it is, its terms of ours included.

        An estimate is waited for *seconds*, or as long as it may take.

        Raises:
            RequestError: if it is malformed.
        """
        asked = self._asked(obj, Operation.CREATE, stored=None)
        if seconds is not None:
            asked = replace(asked, ends=asked.started + min(seconds, self.seconds))
        policy = self.policies.of(asked.review)
        try:
            read = await self.judging.read(asked, obj)
            return await self.judging.judged(asked, read, policy)
        finally:
            asked.estimator.leave()

    async def steered(
        self,
        obj: Json,
        *,
        operation: Operation = Operation.UPDATE,
    ) -> tuple[Judgement, Patch]:
        """Return what `take_up` does: the judgement, and what steers it.

        Raises:
            RequestError: if it is malformed.
        """
        taken = await self.take_up(obj, operation=operation)
        return taken.judgement, taken.patch

    async def take_up(
        self,
        obj: Json,
        *,
        operation: Operation = Operation.UPDATE,
        seconds: float | None = None,
        renews: bool = False,
        relaxes: bool = False,
    ) -> TakenUp:
        """Return the judgement of *obj* once it is steered, and what steers it.

        Of an UPDATE the patch is what the kind lets change of an object stored as *obj* is;
        nothing of what is started, of a queue's, or of another controller's, but for a Pod that
        our gate holds. *seconds* is how long an estimate is waited for, *renews* has terms follow
        the cards that there are now, *relaxes* lets the pods onto the next smaller card.

        Raises:
            RequestError: if it is malformed.
        """
        stored = obj if operation is Operation.UPDATE else None
        asked = self._asked(obj, operation, stored=stored)
        ends = asked.ends if seconds is None else asked.started + min(seconds, self.seconds)
        asked = replace(asked, ends=ends, renews=renews, relaxes=relaxes)
        try:
            judgement, patch = await self.mutating.mutated(asked)
        finally:
            asked.estimator.leave()
        return TakenUp(judgement=judgement, patch=patch, missing=frozenset(asked.missing))

    def _asked(self, obj: Json, operation: Operation, *, stored: Json | None) -> Asked:
        ref, now = ref_of(obj), self.clock()
        review = Review(
            uid=f"controller/{ref.uid}",
            api_version=ref.api_version,
            kind=ref.kind,
            resource="",
            operation=operation,
            namespace=ref.namespace,
            name=ref.name,
            object=obj,
            old_object=stored,
        )
        return Asked(
            review=review,
            estimator=AskingPool(self.pool, asker=ref.namespace),
            classes=self.policies.cluster.classes,
            started=now,
            ends=now + self.seconds,
            is_small=False,
            has_record=RECORD in str(obj),
        )
