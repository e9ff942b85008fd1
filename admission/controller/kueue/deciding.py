"""What our check says of a job that has quota: by the cards behind the flavors it was assigned.

    Scene, Judgement, Policy -> Decision

Pure. It fails open: whatever is not known is let through, and the message says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from admission.codes import NOT_YET, Action, Mode, Verdict
from admission.controller.kueue.flavors import Flavor
from admission.controller.kueue.floors import least_of
from admission.controller.kueue.moving import is_built_of, led, place_for, terms_for
from admission.controller.kueue.placing import (
    HELD,
    Option,
    Placed,
    Scene,
    placed,
    pod_sets_of,
    spec_at,
)
from admission.decision import Change, Policy, budget_of
from admission.judge.conclusion import conclude
from admission.plaintext import sentence
from admission.steer.permission import Place
from admission.steer.terms import Terms
from admission.values import Json, Judgement, UnitJudgement
from estimator.units import gib_up


class Step(StrEnum):
    """What is to be done."""

    PASS = "pass"
    """The check is Ready."""
    WAIT = "wait"
    """It stays Pending: the estimate is on its way."""
    MOVE = "move"
    """The job is led to another flavor."""
    REJECT = "reject"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The answer, in words, and where the job goes."""

    step: Step
    message: str
    is_warning: bool = False
    is_too_large: bool = False
    """No flavor of its queue that it may have holds it."""
    job: Json = field(default_factory=dict)
    """MOVE: the job as it should be; equal to what it is where only the Workload is to go."""
    flavors: tuple[str, ...] = ()
    """MOVE: those it may get then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """Whether the job may be moved."""

    may_move: bool
    because: str = ""
    """Why not, as a clause: `it was moved 3 times already`."""


def decide(scene: Scene, judgement: Judgement, policy: Policy, leave: Leave) -> Decision:
    """Return what to do about a job with quota; *judgement* is over every card it may use."""
    if policy.mode is Mode.OFF:
        return _pass("not judged: mode is off here")
    if judgement.verdict is Verdict.SKIPPED:
        return _pass(judgement.message)
    units = placed(judgement.units, scene)
    if not units:
        return _unplaced(scene, judgement, policy)
    here = _concluded(judgement, [each.judged for each in units], policy)
    if here.reason in NOT_YET:
        return Decision(step=Step.WAIT, message=here.message)
    failing = [each for each in units if each.judged.verdict is Verdict.OOM]
    if not failing:
        return _passed(here, units, _unseen(judgement, scene), has_run=scene.waiting.has_run)
    return _elsewhere(failing, units, scene, judgement, policy, leave)


def _elsewhere(
    failing: Sequence[Placed],
    units: Sequence[Placed],
    scene: Scene,
    judgement: Judgement,
    policy: Policy,
    leave: Leave,
) -> Decision:
    """Return what to do about a job that the flavors of *failing* do not hold."""
    here = _concluded(judgement, [each.judged for each in units], policy)
    about = f"flavor {_names(failing)} is too small: {_said(here, scene)}"
    holding = {each.unit.unit.template: _holding(each, units, scene) for each in failing}
    if all(holding.values()):
        names = tuple(dict.fromkeys(one.name for some in holding.values() for one in some))
        is_held = f"flavor {' or '.join(names)} of queue {scene.queue.name} holds it"
        if not leave.may_move:
            return _pass(f"{about} {is_held}, but {leave.because}", is_warning=True)
        return _moved(failing, holding, scene, about=about, is_held=is_held)
    unknown = [one.flavor.name for each in failing for one in each.options if _is_unknown(one)]
    if unknown:
        text = f"whether flavor {' or '.join(dict.fromkeys(unknown))} holds it is not known"
        return _pass(f"{about} {sentence(text)}", is_warning=True)
    nowhere = _concluded(judgement, _anywhere(units), policy)
    # A death steers and warns, it never denies: what it died of may have been mended.
    bare = scene.without_floors()
    estimated = _concluded(judgement, _anywhere(placed(judgement.units, bare)), policy)
    text = f"no flavor of queue {scene.queue.name} that it may have holds it: "
    text += _said(nowhere, scene)
    # Nor is what ran before, and was taken back for another's sake.
    is_refused = estimated.verdict is Verdict.OOM and estimated.action is Action.DENY
    is_refused = is_refused and not scene.waiting.has_run
    return Decision(
        step=Step.REJECT if is_refused else Step.PASS,
        message=text if is_refused else f"admitted all the same. {sentence(text)}",
        is_warning=nowhere.action is not Action.ALLOW,
        is_too_large=True,
    )


def _moved(
    failing: Sequence[Placed],
    holding: Mapping[str, Sequence[Flavor]],
    scene: Scene,
    *,
    about: str,
    is_held: str,
) -> Decision:
    place = place_for(scene.obj)
    if place is Place.NOWHERE:
        text = f"{about} {is_held}, but a {scene.obj.get('kind')} cannot be moved once it is made"
        return _pass(f"{text}: choose the card in its pod template", is_warning=True)
    wanted: dict[str, Terms] = {}
    for each in failing:
        template = each.unit.unit.template
        group = _group(each, scene)
        terms = _terms(holding[template], group, place, spec_at(scene.unled, template))
        if terms is None:
            text = f"{about} {is_held}, but the labels of flavors do not lead there"
            return _pass(f"{text} together with its own terms", is_warning=True)
        wanted[template] = terms
    job = led(scene.obj, wanted)
    # The Workload was made of these very terms, and still it got the flavor that they close.
    is_followed = job == scene.obj and all(
        is_built_of(each.pod_set.template, spec_at(scene.obj, each.unit.unit.template))
        for each in failing
    )
    if is_followed:
        text = f"{about} {is_held}, but Kueue assigned this one against the job's terms"
        return _pass(text, is_warning=True)
    names = tuple(dict.fromkeys(one.name for some in holding.values() for one in some))
    return Decision(step=Step.MOVE, message=f"{about} {sentence(is_held)}", job=job, flavors=names)


def _terms(
    holding: Sequence[Flavor], group: Sequence[Flavor], place: Place, pod: Json
) -> Terms | None:
    """Return the terms for the first of *holding*, and those behind it, that can be had."""
    for first in range(len(holding)):
        terms = terms_for(holding[first:], group, place=place, pod=pod)
        if terms is not None:
            return terms
    return None


def _holding(each: Placed, units: Sequence[Placed], scene: Scene) -> tuple[Flavor, ...]:
    """Return the flavors that hold every unit of the template of *each*, the smallest first.

    Where none does so for sure, those that may.
    """
    template = each.unit.unit.template
    same = [one for one in units if one.unit.unit.template == template]
    rated = []
    for option in each.options:
        found = [_option(one, option.flavor.name) for one in same]
        if all(one is not None and _holds(one, scene) for one in found):
            sure = all(one is not None and one.judged.verdict is Verdict.FITS for one in found)
            rated.append((not sure, option.budget, option.flavor))
    best = [flavor for unsure, _, flavor in sorted(rated, key=_rank) if not unsure]
    return tuple(best or [flavor for _, _, flavor in sorted(rated, key=_rank)])


def _rank(rated: tuple[bool, int, Flavor]) -> tuple[bool, int]:
    return rated[0], rated[1]


def _option(each: Placed, name: str) -> Option | None:
    return next((one for one in each.options if one.flavor.name == name), None)


def _holds(option: Option, scene: Scene) -> bool:
    """Return whether *option* holds its unit; after a death, a larger card is worth trying."""
    if option.judged.verdict in HELD:
        return True
    floor = scene.floors.get(option.judged.unit.container_path)
    budgets = [budget_of(each.node_class) for each in option.judged.classes]
    return (
        floor is not None
        and option.judged.verdict is Verdict.UNKNOWN
        and bool(budgets)
        and all(budget is not None and budget >= least_of(floor) for budget in budgets)
    )


def _is_unknown(option: Option) -> bool:
    return option.judged.verdict is Verdict.UNKNOWN


def _group(each: Placed, scene: Scene) -> list[Flavor]:
    group = scene.queue.group_of(each.resource or "")
    names = group.flavors if group else ()
    return [scene.flavors[name] for name in names if name in scene.flavors]


def _anywhere(units: Iterable[Placed]) -> list[UnitJudgement]:
    """Return each unit on the flavor with the largest card of all that it may have."""
    found = []
    for each in units:
        best = each.judged
        if best.verdict is Verdict.OOM:
            judgements = (best, *(option.judged for option in each.options))
            best = replace(max(judgements, key=_largest), fits=each.unit.fits)
        found.append(best)
    return found


def _largest(judged: UnitJudgement) -> int:
    return max((budget_of(each.node_class) or 0 for each in judged.classes), default=0)


def _passed(here: Judgement, units: Sequence[Placed], unseen: str, *, has_run: bool) -> Decision:
    is_refused = here.action is Action.DENY and not has_run
    if is_refused:  # only of what is unknown, where the policy says so
        return Decision(step=Step.REJECT, message=here.message, is_warning=True)
    is_warning = here.action is not Action.ALLOW or bool(unseen)
    return _pass(f"flavor {_names(units)}: {here.message}{unseen}", is_warning=is_warning)


def _unseen(judgement: Judgement, scene: Scene) -> str:
    """Return a sentence about units that are in no pod set of the Workload; empty without any."""
    names = [
        each.unit.role or each.unit.container
        for each in judgement.units
        if each.verdict is not Verdict.SKIPPED and not pod_sets_of(each, scene.waiting)
    ]
    roles = ", ".join(dict.fromkeys(names))
    return f" Not judged: {roles}, which is in no pod set that Kueue knows." if names else ""


def _unplaced(scene: Scene, judgement: Judgement, policy: Policy) -> Decision:
    """Return the answer where no unit was found among the pods of the Workload."""
    if judgement.reason in NOT_YET:
        return Decision(step=Step.WAIT, message=judgement.message)
    if not judgement.units:
        is_refused = judgement.action is Action.DENY and not scene.waiting.has_run
        step = Step.REJECT if is_refused else Step.PASS
        is_warning = judgement.action is not Action.ALLOW
        return Decision(step=step, message=judgement.message, is_warning=is_warning)
    names = ", ".join(each.name for each in scene.waiting.pod_sets)
    text = f"not judged: its containers are not those of the pod sets {names}"
    return _pass(text, is_warning=policy.on_unknown is not Action.ALLOW)


def _concluded(judgement: Judgement, units: Sequence[UnitJudgement], policy: Policy) -> Judgement:
    return conclude(judgement.workload, units, policy=policy, change=Change())


def _said(judgement: Judgement, scene: Scene) -> str:
    if not scene.floors:
        return judgement.message
    least = max(map(least_of, scene.floors.values()))
    died = f"A pod of it died of lack of GPU memory: it needs {gib_up(least)} or more."
    is_known = any(each.estimate is not None for each in judgement.units)
    return f"{judgement.message} {died}" if is_known else died


def _names(units: Iterable[Placed]) -> str:
    return ", ".join(dict.fromkeys(each.assigned[0] for each in units if each.assigned)) or "?"


def _pass(message: str, *, is_warning: bool = False) -> Decision:
    return Decision(step=Step.PASS, message=message, is_warning=is_warning)
