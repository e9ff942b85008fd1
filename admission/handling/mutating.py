"""What `/mutate` does beyond judging: steer the pods, write down what was found.

    Asked -> Judgement of the object as patched, JSONPatch

The object is judged without our terms of an earlier time, then as it will be: a job that may land
on a card too small for it fits once it is steered. Writes nothing anywhere, dry run or not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import orjson
import structlog

from admission.codes import Action, Mode, Verdict
from admission.codes import Operation as Request
from admission.decision import Change, Policy
from admission.errors import PatchError
from admission.handling.asked import Asked, Counting
from admission.handling.gating import is_to_wait
from admission.handling.judging import Judging
from admission.handling.policies import Policies
from admission.judge.conclusion import conclude
from admission.review import Review
from admission.steer.checking import checked
from admission.steer.claims import claim_advice
from admission.steer.gates import is_gated
from admission.steer.operations import Operation, operations
from admission.steer.permission import Permission, permission_of
from admission.steer.permission import Place as Where
from admission.steer.plan import HELD, Steering, TemplatePlan, plans_of, steered_units
from admission.steer.seen import Seen
from admission.steer.writing import containers_of, unsteered, written
from admission.threads import aside
from admission.values import Json, Judgement

Patch = tuple[Operation, ...]

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutating:
    """Judges and patches the objects of reviews."""

    judging: Judging
    policies: Policies
    metrics: Counting
    seen: Seen = field(default_factory=Seen)
    """What was found of the cluster's nodes."""
    between: Callable[[Json, Json], Patch] = operations
    """Makes the patch from an object as received to the object as it should be."""

    async def mutated(self, asked: Asked) -> tuple[Judgement, Patch]:
        """Return the judgement of the object as it will be, and what makes it so."""
        review, policy = asked.review, self.policies.of(asked.review)
        bare = unsteered(review.object) if asked.has_record else review.object
        read = await self.judging.read(asked, bare)
        permission = Permission()
        if read is not None:
            permission = permission_of(
                read[0],
                review.operation,
                stored=review.old_object,
                relaxes=asked.relaxes,
                is_learnt=self.judging.has_learnt(read[0]),
            )
            if bare is not review.object and permission.place is Where.NOWHERE:
                read = await self.judging.read(asked, review.object)
        judgement = await self.judging.judged(asked, read, policy)
        steer = self.policies.steer(review, policy.mode)
        # Whoever made it may know more: its own notes stay, unless it waits for ours.
        is_owners = judgement.workload.controlled and judgement.verdict not in HELD
        is_owners = is_owners and not is_gated(review.object)
        if policy.mode is Mode.OFF or judgement.verdict is Verdict.SKIPPED:
            return await self.judging.answered(asked, judgement, policy), ()
        waits = is_to_wait(review, judgement, settings=self.policies.steering, steer=steer)
        if is_owners and not waits:
            return await self.judging.answered(asked, judgement, policy), ()
        plans = plans_of(
            review.object,
            judgement.workload,
            judgement.units,
            Steering(
                steer=steer,
                permission=permission,
                classes=asked.classes,
                seen=self.seen.among(asked.classes),
                is_update=review.operation is Request.UPDATE,
                renews=asked.renews,
                relaxes=asked.relaxes,
            ),
        )
        after = _with_advice(_steered(judgement, plans, policy))
        answered = await self.judging.answered(asked, after, policy)
        if answered.action is Action.DENY or (permission == Permission() and not waits):
            return answered, ()
        if is_owners:
            plans, permission = (), Permission()
        arguments = (review, answered, plans, permission, waits)
        if asked.is_small:
            patch = self._patch(*arguments)
        else:
            patch = await aside(self._patch, *arguments)
        if patch is None:
            asked.passing.add("a patch was dropped")
            return await self.judging.answered(asked, judgement, policy), ()
        if patch and any(plan.terms for plan in plans):
            self.metrics.steered(review.kind)
            answered = replace(answered, steered=terms_text(plans))
        return answered, patch

    def _patch(
        self,
        review: Review,
        judgement: Judgement,
        plans: tuple[TemplatePlan, ...],
        permission: Permission,
        waits: bool,
    ) -> Patch | None:
        """Return the patch, tried on the object as received; None if it must not be sent."""
        received: Json = review.object
        wanted = written(
            received,
            plans,
            judgement.units,
            verdict=judgement.verdict,
            permission=permission,
            termination_messages=self.policies.steering.termination_messages,
            gate=waits,
        )
        patch = self.between(received, wanted)
        try:
            checked(
                received,
                patch,
                templates=tuple(plan.place for plan in plans),
                containers=containers_of(judgement.units),
                gate=waits,
            )
        except PatchError as error:
            _log.error("patch dropped", uid=review.uid, kind=review.kind, reason=error.message)
            self.metrics.patch_dropped(review.kind)
            return None
        return patch


def terms_text(plans: tuple[TemplatePlan, ...]) -> str:
    """Return the terms of each pod template as JSON: `spec.template` (empty: a Pod) -> terms."""
    terms = {
        ".".join(map(str, plan.place)): orjson.Fragment(plan.terms.text())
        for plan in plans
        if plan.terms
    }
    return orjson.dumps(terms).decode()


def _steered(judgement: Judgement, plans: tuple[TemplatePlan, ...], policy: Policy) -> Judgement:
    """Return the judgement of the workload with its *plans* carried out."""
    units = steered_units(judgement.units, plans)
    if units == judgement.units:
        return judgement
    after = conclude(judgement.workload, units, policy=policy, change=Change())
    return replace(after, cache=judgement.cache)


def _with_advice(judgement: Judgement) -> Judgement:
    """Return *judgement* with what a person may write where devices are claimed (DRA)."""
    advice = claim_advice(judgement.units) if judgement.action is Action.WARN else ()
    return replace(judgement, warnings=(*judgement.warnings, *advice)) if advice else judgement
