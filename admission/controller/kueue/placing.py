"""The units of a job on flavors: the one each was assigned, and every other of its queue.

    Waiting, Judgement over all cards, Queue, Flavors -> Placed, by unit

The judgement is of the job as it would be without terms of ours, open to the taints that a flavor
tolerates: so it says something of every card that some flavor leads to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from admission.capacity.constraints import affinity_allows, rules_of, selects
from admission.codes import ReasonCode, Verdict
from admission.controller.kueue.flavors import (
    Flavor,
    Queue,
    behind,
    has_nodes,
    is_given,
    with_members,
)
from admission.controller.kueue.floors import raised
from admission.controller.kueue.moving import opens
from admission.controller.kueue.workloads import PodSet, Waiting
from admission.decision import best_of, budget_of, unit_verdict
from admission.floor import Floor
from admission.steer.places import mapping_at, place_of
from admission.values import ClassVerdict, Finding, Json, NodeClass, UnitJudgement
from admission.workloads.fields import part, parts

HELD = (Verdict.FITS, Verdict.TIGHT)
_NO_CARDS = ("cpu", "memory", "ephemeral-storage", "pods")


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One unit on one flavor that it was not assigned."""

    flavor: Flavor
    judged: UnitJudgement
    """With the cards behind the flavor alone."""

    @property
    def budget(self) -> int:
        """Return what the best card behind it gives, in bytes; 0 if none is known."""
        best = best_of(self.judged.classes)
        return (budget_of(best.node_class) or 0) if best else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """One unit on what it was assigned."""

    unit: UnitJudgement
    """Over every card of the cluster that it may use."""
    pod_set: PodSet
    resource: str | None
    """What of its pod set decides about cards: the GPUs, or what Kueue counts instead."""
    assigned: tuple[str, ...]
    """Names of its flavors, the card's first."""
    judged: UnitJudgement
    """With the cards behind them alone."""
    options: tuple[Option, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What units are placed in."""

    obj: Json
    """The job as it is, its terms of ours included."""
    unled: Json
    """The same without what led it to a flavor at an earlier time."""
    waiting: Waiting
    queue: Queue
    flavors: Mapping[str, Flavor]
    classes: Sequence[NodeClass] = ()
    """Of the whole cluster, whether the job may use them or not."""
    floors: Mapping[str, Floor] = field(default_factory=dict)
    """What a death taught of a container, by its path: cards that give no more do not hold it."""

    def without_floors(self) -> Scene:
        """Return the same as the estimates alone have it."""
        return replace(self, floors={})


def placed(units: Iterable[UnitJudgement], scene: Scene) -> tuple[Placed, ...]:
    """Return each unit on the flavors of its pod set.

    A unit whose pod set cannot be told is on each that it may be: the worst of them counts.
    """
    found = []
    for judged in units:
        if judged.verdict is Verdict.SKIPPED:
            continue
        high = raised(judged, scene.floors.get(judged.unit.container_path))
        found += [_placed(high, each, scene) for each in pod_sets_of(judged, scene.waiting)]
    return tuple(found)


def pod_sets_of(judged: UnitJudgement, waiting: Waiting) -> tuple[PodSet, ...]:
    """Return the pod sets that the pods of a unit may be in.

    Those whose template has that very container; where none does (a TrainJob's pods are made of
    two objects), those that ask for its GPUs. Of several the one called like its role: `Worker` is
    `worker` for Kueue.
    """
    unit = judged.unit
    same = [each for each in waiting.pod_sets if _has(each, unit.container, unit.container_spec)]
    found = same or [each for each in waiting.pod_sets if _asks(each, unit.gpu_resource)]
    named = [each for each in found if each.name == unit.role.lower()]
    return tuple(named or found)


def spec_at(obj: Json, template: str) -> Json:
    """Return the pod spec of *template*, a field path within *obj*."""
    place = place_of(template)
    return mapping_at(obj, (*place, "spec")) if place is not None else {}


def _placed(judged: UnitJudgement, pod_set: PodSet, scene: Scene) -> Placed:
    resource = _resource(judged, pod_set)
    card = pod_set.flavors[resource] if resource is not None else None
    names = tuple(dict.fromkeys(name for name in (card, *pod_set.flavors.values()) if name))
    pod = spec_at(scene.obj, judged.unit.template) or judged.unit.pod
    return Placed(
        unit=judged,
        pod_set=pod_set,
        resource=resource,
        assigned=names,
        judged=_assigned(judged, names, pod, scene),
        options=tuple(_options(judged, pod_set, resource, pod, scene)) if resource else (),
    )


def _resource(judged: UnitJudgement, pod_set: PodSet) -> str | None:
    """Return the resource whose flavor says which cards the pods get.

    Where Kueue counts something else than the GPUs (gigabytes of them, a device class), that.
    """
    if judged.unit.gpu_resource in pod_set.flavors:
        return judged.unit.gpu_resource
    others = sorted(pod_set.flavors, key=lambda each: (each in _NO_CARDS, each))
    return others[0] if others else None


def _assigned(
    judged: UnitJudgement, names: Sequence[str], pod: Json, scene: Scene
) -> UnitJudgement:
    """Return *judged* on its flavors: where its own terms let it go there, if they do anywhere."""
    flavors = [scene.flavors[name] for name in names if name in scene.flavors]
    if len(flavors) < len(names):
        return _unknown(judged, f"its flavor {', '.join(names)} is not there")
    classes = behind(judged.classes, flavors, pod=pod, resource=judged.unit.gpu_resource)
    allowed = _allowed(classes, pod)
    return _on(judged, allowed or classes, names)


def _options(
    judged: UnitJudgement, pod_set: PodSet, counted: str, pod: Json, scene: Scene
) -> Iterable[Option]:
    """Yield the unit on each other flavor of its queue that its pods may be given."""
    resource, card = judged.unit.gpu_resource, pod_set.flavors[counted]
    group = scene.queue.group_of(counted)
    rest = [
        name for key, name in pod_set.flavors.items() if not group or key not in group.resources
    ]
    others = [scene.flavors[name] for name in dict.fromkeys(rest) if name in scene.flavors]
    number = judged.unit.pod_gpus * max(1, pod_set.count)
    unled = spec_at(scene.unled, judged.unit.template) or pod
    alike = (
        [scene.flavors[name] for name in group.flavors if name in scene.flavors] if group else []
    )
    for flavor in alike:
        name = flavor.name
        if name == card or not is_given(flavor, pod=pod) or not opens(unled, flavor, alike):
            continue
        if not scene.queue.may_hold(name, resource, number=number):
            continue
        classes = behind(judged.classes, (flavor, *others), pod=pod, resource=resource)
        classes = _allowed(classes, unled)
        if not classes and has_nodes(scene.classes, flavor):
            continue  # it may not go to any of them
        yield Option(flavor=flavor, judged=_on(judged, classes, (name,)))


def _on(
    judged: UnitJudgement, classes: tuple[ClassVerdict, ...], names: Sequence[str]
) -> UnitJudgement:
    """Return *judged* with *classes* alone, the cards behind the flavors *names*."""
    if judged.verdict is Verdict.UNKNOWN and not any(
        each.verdict is not Verdict.UNKNOWN for each in classes
    ):
        return replace(judged, classes=classes)
    if not classes:
        flavor = " and ".join(names) or "it was given"
        return _unknown(judged, f"no GPU node that it may use bears the labels of flavor {flavor}")
    verdict, reason = unit_verdict(classes)
    best = best_of(classes)
    return replace(
        judged,
        verdict=verdict,
        reason=reason,
        classes=classes,
        estimate=best.estimate if best else None,
        findings=judged.findings if verdict is Verdict.UNKNOWN else (),
        elsewhere=(),
    )


def _unknown(judged: UnitJudgement, reason: str) -> UnitJudgement:
    finding = Finding(code=ReasonCode.NO_CLASS, path="", reason=reason)
    return replace(
        judged,
        verdict=Verdict.UNKNOWN,
        reason=ReasonCode.NO_CLASS,
        classes=(),
        estimate=None,
        findings=(finding,),
        elsewhere=(),
    )


def _allowed(classes: Iterable[ClassVerdict], pod: Json) -> tuple[ClassVerdict, ...]:
    """Return *classes* with the nodes that the selector and affinity of *pod* leave."""
    rules, found = rules_of(pod, "spec"), []
    for each in classes:
        members = tuple(
            node
            for node in each.node_class.members
            if selects(rules.selector, node.labels) and affinity_allows(rules.terms, node)
        )
        if members:
            found.append(replace(each, node_class=with_members(each.node_class, members)))
    return tuple(found)


def _asks(pod_set: PodSet, resource: str) -> bool:
    """Return whether a container of *pod_set* asks for *resource*."""
    containers = parts(part(pod_set.template.get("spec")).get("containers"))
    return any(resource in part(part(each.get("resources")).get("limits")) for each in containers)


def _has(pod_set: PodSet, name: str, container: Json) -> bool:
    """Return whether the template of *pod_set* has a container that runs the same."""
    spec = part(pod_set.template.get("spec"))
    for key in ("containers", "initContainers"):
        for each in parts(spec.get(key)):
            keys = ("image", "command", "args")
            if each.get("name") == name and all(
                (each.get(one) or None) == (container.get(one) or None) for one in keys
            ):
                return True
    return False
