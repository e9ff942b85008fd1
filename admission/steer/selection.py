"""Labels that tell the cards which hold a pod from those which do not.

    Candidates, Steer -> Terms

By memory, from the need: the same card shows other totals by driver. By product where nodes do not
say their memory. The smallest card that holds the pod is preferred, so that the large stay free.
Source of the labels: NVIDIA/k8s-device-plugin 1b826acc, `docs/gpu-feature-discovery`; CoreWeave,
GKE and EKS name the product by labels of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby

from admission.capacity.constraints import Requirement, Term, affinity_allows
from admission.codes import Steer
from admission.steer.candidates import Candidate
from admission.steer.seen import Seen
from admission.steer.terms import NOTHING, Terms
from admission.values import Json, NodeClass, NodeFacts
from admission.workloads.resources import GPU, MIG_PREFIX
from estimator.units import MIB

FIRST_WEIGHT = 100
MAX_TIERS = 4
_SHARED = ".shared"
_MOST_MIB = 10_000_000
"""Larger values of the memory label are bytes, of old GPU feature discovery."""
SAME_CARD_PERCENT = 5
"""Totals this near are one card with several drivers (A100-40GB: 39,538 or 40,960 MiB)."""
_OTHER_PRODUCTS = (
    "gpu.nvidia.com/model",
    "cloud.google.com/gke-accelerator",
    "k8s.amazonaws.com/accelerator",
)


def memory_label(resource: str) -> str:
    """Return the label of a card's memory in MiB: of the slice, where slices are asked for."""
    return f"{_prefix(resource)}.memory"


def has_memory(labels: Json, resource: str) -> bool:
    """Return whether a node says how much memory its cards have, in MiB."""
    return _mib(labels, resource) is not None


def selected(
    candidates: Sequence[Candidate],
    *,
    steer: Steer,
    is_labelled: bool,
    is_pinned: bool,
    seen: Seen,
) -> Terms:
    """Return the terms that lead to the candidates which hold the pod.

    Never required while no node says its memory (not *is_labelled*): an autoscaler's template of a
    node has no labels either, and a pool could never start. Nothing where the person's own terms
    (*is_pinned*) leave one kind of card.
    """
    candidates = [_distinct(found, seen) for found in candidates]
    held = [found for found in candidates if found.holds]
    if not held or steer is Steer.OFF:
        return NOTHING
    num_cards = len({found.node_class.name for found in candidates})
    if num_cards == 1 and is_pinned:
        return NOTHING
    expressions = _by_memory(held, candidates) or _by_product(held)
    if not expressions:
        return NOTHING
    if steer is Steer.REQUIRED and is_labelled:
        return Terms(required=expressions, preferred=_weighted(_tiers(held)))
    tiers = [(*expressions, *tier) for tier in _tiers(held)]
    return Terms(preferred=_weighted([*tiers, expressions]))


def smallest_product(candidates: Sequence[Candidate]) -> Terms:
    """Return a nodeSelector for the smallest card that holds the pod; nothing without a label."""
    held = sorted((found for found in candidates if found.holds), key=_total)
    if not held or len({found.node_class.name for found in candidates}) == 1:
        return NOTHING
    name = held[0].node_class.name
    same = [found for found in held if found.node_class.name == name]
    key = _product_key(same)
    if key is None:
        return NOTHING
    values = {str(node.labels[key]) for node in _nodes(same)}
    return Terms(selector={key: values.pop()}) if len(values) == 1 else NOTHING


def _distinct(candidate: Candidate, seen: Seen) -> Candidate:
    """Return *candidate* with one node of those whose labels say the same of their cards.

    A pool has thousands of nodes, and all that follows walks them again and again.
    """
    node_class = candidate.node_class
    return replace(candidate, node_class=seen.of(node_class, "", partial(_looks_of, node_class)))


def _looks_of(node_class: NodeClass) -> NodeClass:
    prefix = _prefix(node_class.gpu_resource)
    keys = (f"{prefix}.memory", f"{prefix}.product", *_OTHER_PRODUCTS)
    looks = {tuple([node.labels.get(key) for key in keys]): node for node in node_class.members}
    return replace(node_class, members=tuple(looks.values()))


def _by_memory(held: Sequence[Candidate], candidates: Sequence[Candidate]) -> tuple[Json, ...]:
    """Return `Gt N`, N one less than what the smallest card that holds it must have, in MiB.

    Raised over cards known to be too small. Cards that are large and give a pod a part only (MPS)
    are told by their product.
    """
    resource = held[0].node_class.gpu_resource
    totals = [_mib(node.labels, resource) for node in _nodes(held)]
    known = [total for total in totals if total is not None]
    if not known or len(known) < len(totals):
        return ()
    smallest = min(held, key=_total)
    others = [found for found in candidates if not found.holds]
    least = min(known)
    small = (_mib(node.labels, resource) or 0 for node in _nodes(others))
    below = max((total for total in small if total < least), default=0)
    over = min(max(-(-smallest.need_bytes // MIB) - 1, below), least - 1)
    label = {"key": memory_label(resource), "operator": "Gt", "values": [str(over)]}
    return (label, *_but_not((label,), held, others))


def _but_not(
    expressions: tuple[Json, ...], held: Sequence[Candidate], others: Sequence[Candidate]
) -> tuple[Json, ...]:
    """Return what keeps nodes of *others* out that *expressions* let in, if products tell them."""
    left = [node for node in _nodes(others) if _matches(expressions, node)]
    key = _product_key(held)
    if not left or key is None:
        return ()
    wrong = {str(node.labels[key]) for node in left if key in node.labels}
    right = {str(node.labels[key]) for node in _nodes(held)}
    if not wrong or wrong & right:
        return ()
    return ({"key": key, "operator": "NotIn", "values": sorted(wrong)},)


def _by_product(held: Sequence[Candidate]) -> tuple[Json, ...]:
    key = _product_key(held)
    if key is None:
        return ()
    values = sorted({str(node.labels[key]) for node in _nodes(held)})
    return ({"key": key, "operator": "In", "values": values},)


def _tiers(held: Sequence[Candidate]) -> list[tuple[Json, ...]]:
    """Return what holds of the smallest card, of the two smallest, …: never of all of them.

    A node of the smallest card is in each, so its weights add up to the most.
    """
    resource = held[0].node_class.gpu_resource
    tiers: list[tuple[Json, ...]] = []
    groups = _groups(held)
    labels = [_mib(node.labels, resource) for node in _nodes(held)]
    if None not in labels:
        for group in groups[1 : MAX_TIERS + 1]:
            least = min(_mib(node.labels, resource) or 0 for node in _nodes(group))
            label = {"key": memory_label(resource), "operator": "Lt", "values": [str(least)]}
            tiers.append((label,))
        return tiers
    for index in range(1, min(len(groups), MAX_TIERS + 1)):
        tiers.append(_by_product([found for group in groups[:index] for found in group]))
    return tiers


def _groups(held: Sequence[Candidate]) -> list[list[Candidate]]:
    """Return the candidates by card, the smallest first."""
    groups: list[list[Candidate]] = []
    for _, same in groupby(sorted(held, key=_total), key=_total):
        found = list(same)
        before = _total(groups[-1][0]) if groups else 0
        if groups and 100 * (_total(found[0]) - before) <= SAME_CARD_PERCENT * before:
            groups[-1] += found
        else:
            groups.append(found)
    return groups


def _weighted(tiers: Iterable[Sequence[Json]]) -> tuple[Json, ...]:
    return tuple(
        {"weight": FIRST_WEIGHT >> index, "preference": {"matchExpressions": list(tier)}}
        for index, tier in enumerate(tiers)
    )


def _prefix(resource: str) -> str:
    """Return what labels of the cards behind *resource* begin with."""
    plain = resource.removesuffix(_SHARED)
    return plain if plain.startswith(MIG_PREFIX) else GPU


def _total(found: Candidate) -> int:
    device = found.node_class.device
    return (device.total_bytes or 0) if device else 0


def _nodes(candidates: Iterable[Candidate]) -> list[NodeFacts]:
    return [node for found in candidates for node in found.node_class.members]


def _mib(labels: Json, resource: str) -> int | None:
    """Return the memory label; None if it is missing, no number, zero, or in bytes."""
    text = str(labels.get(memory_label(resource), ""))
    value = int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else 0
    return value if 0 < value <= _MOST_MIB else None


def _product_key(held: Sequence[Candidate]) -> str | None:
    """Return a label that names the product on every node of *held*."""
    nodes = _nodes(held)
    keys = (f"{_prefix(held[0].node_class.gpu_resource)}.product", *_OTHER_PRODUCTS)
    return next((key for key in keys if all(key in node.labels for node in nodes)), None)


def _matches(expressions: Sequence[Json], node: NodeFacts) -> bool:
    requirements = tuple(
        Requirement(key=each["key"], operator=each["operator"], values=tuple(each["values"]))
        for each in expressions
    )
    return affinity_allows((Term(labels=requirements, fields=()),), node)
