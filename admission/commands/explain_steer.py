"""Where the webhook would steer a job, and its verdict there.

    object, Judgement, NodeClasses -> Explained

The plan is `/mutate`'s, of an object that is created. Nothing is steered to a card that was only
named (`--gpu`): it is on no node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from admission.codes import Mode, Operation, Steer, Verdict
from admission.decision import Change, Policy, budget_of
from admission.judge.conclusion import conclude
from admission.values import Documents, Json, Judgement, NodeClass
from admission.workloads.resources import CLAIM
from estimator.deferred import Deferred

if TYPE_CHECKING:
    from admission import inventory
    from admission.steer import affinity, claims, permission, plan, writing
    from admission.steer.plan import TemplatePlan
else:
    affinity = Deferred("admission.steer.affinity")
    claims = Deferred("admission.steer.claims")
    inventory = Deferred("admission.inventory")
    permission = Deferred("admission.steer.permission")
    plan = Deferred("admission.steer.plan")
    writing = Deferred("admission.steer.writing")

HELD = (Verdict.FITS, Verdict.TIGHT)
_RECORD = "vramgate.dev/steered"
"""`steer.terms.RECORD`, which need not be imported for objects without it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """The judgement of a workload as its pods would be steered."""

    judgement: Judgement
    terms: Mapping[str, Json] = field(default_factory=dict)
    """Field path of a pod template -> what would be added to its affinity; or, where its GPUs are
    claimed, the claim templates beside it with the selector they lack."""
    sentence: str = ""
    """Where the pods would be steered, in words; empty if nowhere."""
    remarks: tuple[str, ...] = ()
    """Where the mode comes from, and what could not be told of it."""


def bare(obj: Json) -> Json:
    """Return *obj* without the terms that Vramgate added to it at an earlier time."""
    return writing.unsteered(obj) if _RECORD in repr(obj) else obj


def steered(
    obj: Json,
    judgement: Judgement,
    *,
    classes: Sequence[NodeClass],
    policy: Policy,
    default: Steer | None = None,
) -> Explained:
    """Return *judgement* of *obj* as the webhook would give it once the pods are steered.

    *default* is the word of the namespace or the settings, which the object's own label beats.
    """
    workload = judgement.workload
    is_held = any(judged.verdict in HELD for judged in judgement.units)
    if not is_held or not any(node_class.members for node_class in classes):
        return Explained(judgement=judgement)
    allowed = permission.permission_of(workload, Operation.CREATE, stored=None)
    if allowed.place is permission.Place.NOWHERE:
        return Explained(judgement=judgement)
    steering = plan.Steering(
        steer=_how(workload.metadata, policy.mode, default), permission=allowed, classes=classes
    )
    plans = plan.plans_of(obj, workload, judgement.units, steering)
    units = plan.steered_units(judgement.units, plans)
    if units != judgement.units:
        judgement = conclude(workload, units, policy=policy, change=Change())
    return Explained(
        judgement=judgement,
        terms={
            each.units[0].unit.template: affinity.with_terms({}, each.terms)["affinity"]
            for each in plans
            if each.terms.required or each.terms.preferred
        },
        sentence=_sentence(plans),
    )


def claimed(found: Explained, documents: Documents) -> Explained:
    """Return *found* with the claim templates among *documents* that lack a selector.

    The webhook cannot write it: another object, and one that never changes. Whoever creates it
    with the job can.
    """
    judgement = found.judgement
    if not any(judged.unit.gpu_resource == CLAIM for judged in judgement.units):
        return found
    terms, names = dict(found.terms), []
    for path in dict.fromkeys(judged.unit.template for judged in judgement.units):
        units = [judged for judged in judgement.units if judged.unit.template == path]
        templates = claims.claim_templates(units, documents)
        if templates:
            terms[path] = {**terms.get(path, {}), "resourceClaimTemplates": list(templates)}
            names += [str(each["metadata"]["name"]) for each in templates]
    if not names:
        return found
    where = ", ".join(dict.fromkeys(names))
    said = f"ResourceClaimTemplate {where} lacks a selector for memory: -o yaml shows it with one"
    sentence = f"{found.sentence}; {said}" if found.sentence else said
    return replace(found, terms=terms, sentence=sentence)


def _how(metadata: Json, mode: Mode, default: Steer | None) -> Steer:
    usual = Steer.REQUIRED if mode is Mode.ENFORCE else Steer.PREFERRED
    return inventory.steer_label(metadata) or default or usual


def _sentence(plans: Sequence[TemplatePlan]) -> str:
    """Return `would be steered to Tesla-T4 first, …`; only those that hold the pods are named."""
    led = [each for each in plans if each.terms]
    names = tuple(dict.fromkeys(name for each in led for name in _holding(each)))
    if not names:
        return ""
    is_hard = all(each.terms.required or each.terms.selector for each in led)
    first, others = names[0], names[1:]
    text = f"would be steered to {first}"
    if others:
        text = f"{text} first, then {', '.join(others)}"
    return f"{text}; to no other card" if is_hard else f"{text}; elsewhere if there is no room"


def _holding(each: TemplatePlan) -> tuple[str, ...]:
    """Return the names of the cards that hold the pods of a template, the smallest first."""
    found = [one for judged in each.units for one in judged.classes if one.verdict in HELD]
    sure = [one for one in found if one.verdict is Verdict.FITS] or found
    ordered = sorted(sure, key=lambda one: budget_of(one.node_class) or 0)
    return tuple(dict.fromkeys(one.node_class.name for one in ordered))
