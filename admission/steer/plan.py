"""Where the pods of a workload should go, decided for each of its pod templates.

    object, UnitJudgements, Steer, Permission -> TemplatePlans

Pure. Nothing is decided where the verdict is `oom`, `unknown` or `skipped`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from admission.codes import NOT_YET, Steer, Verdict
from admission.steer.affinity import has_terms, missing_of, with_terms, without_terms
from admission.steer.candidates import Candidate, candidates_of
from admission.steer.narrowing import narrowed
from admission.steer.notes import DIGEST
from admission.steer.permission import Permission, Place, is_shared_template
from admission.steer.places import Place as Keys
from admission.steer.places import found, mapping_at, place_of
from admission.steer.seen import Seen
from admission.steer.selection import has_memory, selected, smallest_product
from admission.steer.terms import NOTHING, Terms, recorded
from admission.values import Json, NodeClass, UnitJudgement, Workload
from admission.workloads.resources import CLAIM

HELD = (Verdict.FITS, Verdict.TIGHT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Steering:
    """How to steer on this request."""

    steer: Steer
    permission: Permission
    classes: Sequence[NodeClass]
    """All of the cluster's, whether the workload may use them or not."""
    is_update: bool = False
    renews: bool = False
    """Terms of an earlier time give way to those of the cards that there are now."""
    relaxes: bool = False
    """The next smaller card, which may hold it, counts as one that does."""
    seen: Seen = field(default_factory=Seen, compare=False)
    """What was found of `classes` before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplatePlan:
    """One pod template: what it is to have, and the judgements of its units with it."""

    place: Keys
    """Of the pod template; empty for a Pod."""
    terms: Terms
    units: tuple[UnitJudgement, ...]

    @property
    def pod_place(self) -> Keys:
        """Return where the pod spec is."""
        return (*self.place, "spec")


def plans_of(
    obj: Json, workload: Workload, units: Sequence[UnitJudgement], steering: Steering
) -> tuple[TemplatePlan, ...]:
    """Return the plan of each pod template that stands in *obj*, as it was received.

    *units* were judged without our terms of an earlier time.
    """
    by_template: dict[str, list[UnitJudgement]] = {}
    for judged in units:
        by_template.setdefault(judged.unit.template, []).append(judged)
    is_held = all(judged.verdict in (*HELD, Verdict.SKIPPED) for judged in units)
    plans = []
    for template, same in by_template.items():
        place = place_of(template)
        if place is None or not _stands_in(obj, place, same):
            continue
        shared = is_shared_template(workload, template)
        plans.append(_plan(obj, place, same, steering, is_held=is_held and not shared))
    return tuple(plans)


def steered_units(
    units: Iterable[UnitJudgement], plans: Iterable[TemplatePlan]
) -> tuple[UnitJudgement, ...]:
    """Return *units* in their order, those of *plans* as they are once steered."""
    after = {judged.unit.container_path: judged for plan in plans for judged in plan.units}
    return tuple(after.get(judged.unit.container_path, judged) for judged in units)


def _stands_in(obj: Json, place: Keys, units: Sequence[UnitJudgement]) -> bool:
    """Return whether the pods are made of a pod template at *place*.

    An Argo template has containers of its own, a TrainJob's pods stand in another object.
    """
    pod = found(obj, (*place, "spec"))
    containers = [place_of(judged.unit.container_path) for judged in units]
    return isinstance(pod, dict) and all(
        keys is not None and keys[: len(place) + 1] == (*place, "spec") and found(obj, keys)
        for keys in containers
    )


def _plan(
    obj: Json,
    place: Keys,
    units: Sequence[UnitJudgement],
    steering: Steering,
    *,
    is_held: bool,
) -> TemplatePlan:
    received = mapping_at(obj, (*place, "spec"))
    metadata = mapping_at(obj, (*place, "metadata"))
    ours = recorded(metadata)
    training = [judged for judged in units if judged.verdict in HELD]
    is_learnt = any(judged.floor is not None for judged in training)
    if is_learnt and steering.steer is not Steer.OFF:
        # A preference would let it die on such a card again.
        steering = replace(steering, steer=Steer.REQUIRED)
    # What a claimed device has no label of a node says: `claims` has words for it.
    is_claimed = any(judged.unit.gpu_resource == CLAIM for judged in units)
    is_wanted = is_held and training and not is_claimed and steering.steer is not Steer.OFF
    if (
        steering.permission.place is Place.NOWHERE
        or _is_late(units)
        or (is_wanted and not is_learnt and _stays(received, metadata, ours, training, steering))
    ):
        after = tuple(_narrowed(judged, received, ours, steering) for judged in units)
        return TemplatePlan(place=place, terms=ours, units=after)
    if is_wanted:
        bare = without_terms(received, ours)
        candidates = candidates_of(training, relaxes=steering.relaxes)
        terms = missing_of(bare, _terms(bare, candidates, steering))
        if steering.permission.place is Place.SELECTOR and terms:
            # The affinity of an earlier time may not be changed any more, and does no harm.
            terms = replace(terms, required=ours.required, preferred=ours.preferred)
        steered = with_terms(bare, terms)
        after = tuple(_narrowed(judged, steered, terms, steering) for judged in units)
        if _is_open(after, candidates, terms):
            return TemplatePlan(place=place, terms=terms, units=after)
    return TemplatePlan(place=place, terms=NOTHING, units=tuple(units))


def _terms(pod: Json, candidates: Sequence[Candidate], steering: Steering) -> Terms:
    if not candidates:
        return NOTHING
    resource = candidates[0].node_class.gpu_resource
    is_labelled = any(
        has_memory(node.labels, resource)
        for node_class in steering.classes
        for node in node_class.members
    )
    if steering.permission.place is Place.SELECTOR:
        is_hard = steering.steer is Steer.REQUIRED and is_labelled
        return smallest_product(candidates) if is_hard else NOTHING
    return selected(
        candidates,
        steer=steering.steer,
        is_labelled=is_labelled,
        is_pinned=_is_pinned(pod),
        seen=steering.seen,
    )


def _narrowed(judged: UnitJudgement, pod: Json, terms: Terms, steering: Steering) -> UnitJudgement:
    is_narrower = judged.verdict in HELD and (terms.required or terms.selector)
    return narrowed(judged, pod, steering.seen) if is_narrower else judged


def _is_open(after: Iterable[UnitJudgement], candidates: Iterable[Candidate], terms: Terms) -> bool:
    """Return whether every node that holds the pod is open to it still; one, for a nodeSelector.

    It is while labels say what the classes were made of. If not, nothing is better than a pod that
    waits for ever.
    """
    holding = [found.node_class for found in candidates if found.holds]
    names = frozenset[str]()
    for judged in after:
        if judged.verdict is Verdict.SKIPPED:
            continue
        if holding and judged.verdict in HELD and _has_all(judged, holding):
            continue  # thousands of names need not be compared
        names = names or frozenset(name for found in holding for name in found.nodes)
        reached = {node for found in judged.classes for node in found.node_class.nodes}
        if judged.verdict not in HELD or not (names & reached):
            return False
        if not terms.selector and not names <= reached:
            return False
    return True


def _has_all(judged: UnitJudgement, holding: Iterable[NodeClass]) -> bool:
    """Return whether every class of *holding* is left whole: then it is the same one."""
    left = {id(found.node_class) for found in judged.classes}
    return all(id(node_class) in left for node_class in holding)


def _is_pinned(pod: Json) -> bool:
    """Return whether the person says anything about nodes by their labels or names."""
    affinity = found(pod, ("affinity", "nodeAffinity"))
    required = isinstance(affinity, dict) and any(
        key.startswith("required") and value for key, value in affinity.items()
    )
    return required or any(pod.get(key) for key in ("nodeSelector", "nodeName"))


def _stays(
    received: Json,
    metadata: Json,
    ours: Terms,
    training: Sequence[UnitJudgement],
    steering: Steering,
) -> bool:
    """Return whether the terms of an earlier time stay though the nodes may have changed.

    A job that is re-applied as it was must not change: it may be immutable by then. And a JobSet
    that has our affinity needs no nodeSelector.
    """
    if not ours or not steering.is_update or not has_terms(received, ours):
        return False
    if steering.permission.place is Place.SELECTOR and not ours.selector:
        return True
    if steering.renews or steering.relaxes:
        return False
    annotations = metadata.get("annotations")
    digest = annotations.get(DIGEST) if isinstance(annotations, dict) else None
    return digest in {judged.estimate.spec_digest for judged in training if judged.estimate}


def _is_late(units: Sequence[UnitJudgement]) -> bool:
    return any(judged.reason in NOT_YET for judged in units)
