"""Whether a pod spec lets its pod onto a node, by the scheduler's own rules.

    pod spec -> PodRules; PodRules, NodeFacts -> bool

Source: kubernetes v1.36.3 `staging/src/k8s.io/component-helpers/scheduling/corev1`
(`nodeaffinity/nodeaffinity.go`, `helpers.go`) and `core/v1/toleration.go`.
Not modelled: preferred affinity, inter-pod affinity, topology spread, numeric tolerations (alpha).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from admission.values import Json, NodeFacts
from admission.workloads.fields import mapping, sequence, text

_INTEGER = re.compile(r"[+-]?\d{1,19}", re.ASCII)
_FORBIDDING = ("NoSchedule", "NoExecute")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One expression of a node selector term."""

    key: str
    operator: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """What has to hold together; a term without any requirement matches nothing."""

    labels: tuple[Requirement, ...]
    fields: tuple[Requirement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRules:
    """What a pod spec asks of a node, beside resources."""

    node_name: str
    selector: Json
    terms: tuple[Term, ...] | None
    """Alternatives of the required node affinity; None if there is none."""
    tolerations: tuple[Json, ...]

    @property
    def label_keys(self) -> tuple[str, ...]:
        """Return the labels that the rules look at."""
        of_terms = (each.key for term in self.terms or () for each in term.labels)
        return tuple(dict.fromkeys((*self.selector, *of_terms)))

    @property
    def asks_names(self) -> bool:
        """Return whether the rules look at a node's name."""
        return bool(self.node_name) or any(term.fields for term in self.terms or ())


def rules_of(pod: Json, path: str) -> PodRules:
    """Return the rules of the pod spec at *path*.

    Raises:
        RequestError: if a field is not of the type that Kubernetes accepts.
    """
    tolerations = sequence(pod.get("tolerations"), f"{path}.tolerations")
    return PodRules(
        node_name=text(pod.get("nodeName"), f"{path}.nodeName"),
        selector=mapping(pod.get("nodeSelector"), f"{path}.nodeSelector"),
        terms=_terms(mapping(pod.get("affinity"), f"{path}.affinity"), f"{path}.affinity"),
        tolerations=tuple(
            mapping(item, f"{path}.tolerations[{index}]") for index, item in enumerate(tolerations)
        ),
    )


def selects(selector: Json, labels: Json) -> bool:
    """Return whether a nodeSelector matches: every key has this very value."""
    return all(labels.get(key) == value for key, value in selector.items())


def affinity_allows(terms: Sequence[Term] | None, node: NodeFacts) -> bool:
    """Return whether the required node affinity allows *node*: one of its terms matches."""
    return terms is None or any(_matches(term, node) for term in terms)


def untolerated(
    tolerations: Sequence[Json], taints: Sequence[Json], *, resource: str
) -> tuple[Json, ...]:
    """Return the taints that keep a pod that asks for *resource* away.

    One that is keyed by the resource keeps nobody away who asks for it: the admission plugin
    ExtendedResourceToleration adds its toleration to each Pod, and never to the Job that makes it.
    Source: kubernetes v1.36.3 `plugin/pkg/admission/extendedresourcetoleration/admission.go`.
    """
    return tuple(
        taint
        for taint in taints
        if taint.get("effect") in _FORBIDDING
        and taint.get("key") != resource
        and not any(_tolerates(toleration, taint) for toleration in tolerations)
    )


def _terms(affinity: Json, path: str) -> tuple[Term, ...] | None:
    of_nodes = mapping(affinity.get("nodeAffinity"), f"{path}.nodeAffinity")
    if of_nodes.get(_REQUIRED) is None:
        return None
    where = f"{path}.nodeAffinity.{_REQUIRED}"
    required = mapping(of_nodes[_REQUIRED], where)
    terms = sequence(required.get("nodeSelectorTerms"), f"{where}.nodeSelectorTerms")
    return tuple(
        _term(item, f"{where}.nodeSelectorTerms[{index}]") for index, item in enumerate(terms)
    )


def _term(value: object, path: str) -> Term:
    term = mapping(value, path)
    return Term(
        labels=_requirements(term.get("matchExpressions"), f"{path}.matchExpressions"),
        fields=_requirements(term.get("matchFields"), f"{path}.matchFields"),
    )


def _requirements(value: object, path: str) -> tuple[Requirement, ...]:
    found = []
    for index, item in enumerate(sequence(value, path)):
        where = f"{path}[{index}]"
        body = mapping(item, where)
        values = sequence(body.get("values"), f"{where}.values")
        found.append(
            Requirement(
                key=text(body.get("key"), f"{where}.key"),
                operator=text(body.get("operator"), f"{where}.operator"),
                values=tuple(str(each) for each in values),
            )
        )
    return tuple(found)


def _matches(term: Term, node: NodeFacts) -> bool:
    of_node = {"metadata.name": node.name}
    checks = [_holds(requirement, node.labels) for requirement in term.labels]
    checks += [_holds(requirement, of_node) for requirement in term.fields]
    return bool(checks) and all(checks)


def _holds(requirement: Requirement, labels: Json) -> bool:
    key, values = requirement.key, requirement.values
    match requirement.operator:
        case "In":
            return key in labels and labels[key] in values
        case "NotIn":
            return key not in labels or labels[key] not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case "Gt":
            return _compare(labels.get(key), values) > 0
        case "Lt":
            return _compare(labels.get(key), values) < 0
        case _:
            return False


def _compare(label: object, values: Sequence[str]) -> int:
    """Return the sign of label - value; 0 (neither greater nor less) unless both are integers."""
    texts = [str(label), *values]
    if len(texts) != 2 or not all(_INTEGER.fullmatch(each) for each in texts):
        return 0
    left, right = map(int, texts)
    return (left > right) - (left < right)


def _tolerates(toleration: Json, taint: Json) -> bool:
    effect, key = toleration.get("effect") or "", toleration.get("key") or ""
    if effect and effect != taint.get("effect"):
        return False
    if key and key != taint.get("key"):
        return False
    match toleration.get("operator") or "Equal":
        case "Exists":
            return True
        case "Equal":
            return bool(key) and (toleration.get("value") or "") == (taint.get("value") or "")
        case _:
            return False
