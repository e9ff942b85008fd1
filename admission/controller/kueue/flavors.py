"""ClusterQueues and ResourceFlavors, and the nodes behind them.

    ResourceFlavor -> labels, tolerations; classes of nodes -> those behind a flavor

Flavors are compared by the nodes that bear their labels, never by their names. Kueue puts the
labels and tolerations of every flavor a pod set got on its pods, the CPU's as the card's.
Source: kubernetes-sigs/kueue v0.19.2 `pkg/podset/podset.go` (`FromAssignment`),
`pkg/scheduler/flavorassigner/flavorassigner.go` (`checkFlavorForPodSets`, `flavorSelector`).
Not modelled: topologies of a flavor, quota that others hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from admission.capacity.constraints import untolerated
from admission.values import ClassVerdict, Json, NodeClass, NodeFacts
from admission.workloads.fields import part, parts, word, words_of

MAX_FLAVORS = 256
"""Of one ClusterQueue: as many as Kueue allows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flavor:
    """One ResourceFlavor."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Json, ...] = ()
    """What pods must tolerate for Kueue to give it to them, unless its own tolerations do."""
    tolerations: tuple[Json, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Resources of a ClusterQueue that are taken from one flavor together."""

    resources: tuple[str, ...]
    flavors: tuple[str, ...]
    """In the order in which Kueue tries them."""
    quotas: Mapping[tuple[str, str], str]
    """Flavor, resource -> nominal quota."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """One ClusterQueue."""

    name: str
    groups: tuple[Group, ...]
    borrows: bool = False
    """It is in a cohort: its own quota is not all it may have."""

    def group_of(self, resource: str) -> Group | None:
        """Return the group that covers *resource*."""
        return next((group for group in self.groups if resource in group.resources), None)

    def may_hold(self, flavor: str, resource: str, *, number: int) -> bool:
        """Return whether *number* of *resource* can ever be had of *flavor*.

        A quota that is no plain number (`1k`) is taken for enough: Kueue says what is short.
        """
        group = self.group_of(resource)
        quota = group.quotas.get((flavor, resource), "") if group else ""
        return self.borrows or not quota.isdecimal() or len(quota) > 20 or int(quota) >= number


def flavor_of(obj: Json) -> Flavor:
    """Return what is kept of a ResourceFlavor."""
    metadata, spec = (part(part(obj).get(key)) for key in ("metadata", "spec"))
    return Flavor(
        name=word(metadata.get("name")),
        labels=words_of(spec.get("nodeLabels")),
        taints=parts(spec.get("nodeTaints")),
        tolerations=parts(spec.get("tolerations")),
    )


def queue_of(obj: Json) -> Queue:
    """Return what is kept of a ClusterQueue."""
    metadata, spec = (part(part(obj).get(key)) for key in ("metadata", "spec"))
    return Queue(
        name=word(metadata.get("name")),
        groups=tuple(_group(each) for each in parts(spec.get("resourceGroups"))),
        # `cohort` until v1beta1, `cohortName` since.
        borrows=bool(spec.get("cohortName") or spec.get("cohort")),
    )


def behind(
    classes: Iterable[ClassVerdict], flavors: Sequence[Flavor], *, pod: Json, resource: str
) -> tuple[ClassVerdict, ...]:
    """Return *classes* with the nodes alone that pods of *flavors* together may go to.

    *pod* is their spec: its tolerations and those of the flavors count.
    """
    labels = {key: text for flavor in flavors for key, text in flavor.labels.items()}
    tolerations = tolerations_of(pod, flavors)

    def is_behind(node: NodeFacts) -> bool:
        return all(node.labels.get(key) == text for key, text in labels.items()) and not (
            untolerated(tolerations, node.taints, resource=resource)
        )

    found = []
    for each in classes:
        members = tuple(node for node in each.node_class.members if is_behind(node))
        if members:
            found.append(replace(each, node_class=with_members(each.node_class, members)))
    return tuple(found)


def has_nodes(classes: Iterable[NodeClass], flavor: Flavor) -> bool:
    """Return whether a node of *classes* bears the labels of *flavor*."""
    return any(
        all(node.labels.get(key) == text for key, text in flavor.labels.items())
        for node_class in classes
        for node in node_class.members
    )


def is_given(flavor: Flavor, *, pod: Json) -> bool:
    """Return whether Kueue gives *flavor* to pods like *pod*, for all their tolerations say."""
    return not untolerated(tolerations_of(pod, (flavor,)), flavor.taints, resource="")


def with_members(node_class: NodeClass, members: tuple[NodeFacts, ...]) -> NodeClass:
    """Return *node_class* with these nodes alone."""
    return replace(
        node_class,
        count=len(members),
        nodes=tuple(node.name for node in members),
        labels=members[0].labels,
        taints=members[0].taints,
        members=members,
    )


def tolerations_of(pod: Json, flavors: Iterable[Flavor]) -> tuple[Json, ...]:
    """Return what pods like *pod* tolerate once they have *flavors*."""
    own = parts(pod.get("tolerations"))
    return (*own, *(each for flavor in flavors for each in flavor.tolerations))


def _group(obj: Json) -> Group:
    flavors, covered = parts(obj.get("flavors"))[:MAX_FLAVORS], obj.get("coveredResources")
    return Group(
        resources=tuple(filter(None, map(word, covered))) if isinstance(covered, list) else (),
        flavors=tuple(word(each.get("name")) for each in flavors),
        quotas={
            (word(flavor.get("name")), word(each.get("name"))): str(each.get("nominalQuota"))
            for flavor in flavors
            for each in parts(flavor.get("resources"))
        },
    )
