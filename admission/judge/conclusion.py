"""From the verdicts of units to the answer about their workload.

UnitJudgements, Policy -> Judgement
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from admission.codes import NOT_YET, OURS, Action, Mode, ReasonCode, Verdict
from admission.decision import Change, Policy, action_of, is_observed, worst_verdict
from admission.message.learnt import learnt_text
from admission.message.sentences import MAX_MESSAGE, bounded, hints_of, message_of, warnings_of
from admission.message.wording import Wording, problem_wording, skip_text, wording_of
from admission.plaintext import plain
from admission.values import Judgement, UnitJudgement, Workload


def conclude(
    workload: Workload, units: Sequence[UnitJudgement], *, policy: Policy, change: Change
) -> Judgement:
    """Return the judgement of *workload*: the worst of its units decides."""
    verdict = worst_verdict(judged.verdict for judged in units)
    deciding = [judged for judged in units if judged.verdict is verdict]
    problem = workload.problems[0] if workload.problems and not units else None
    if problem is not None:
        verdict, reason = Verdict.UNKNOWN, str(problem.code)
    else:
        reason = str(deciding[0].reason if deciding else workload.skip or ReasonCode.NO_GPU)
    decided = partial(
        action_of,
        verdict,
        workload,
        change=change,
        is_late=problem is None and all(judged.reason in NOT_YET for judged in deciding),
        is_certain=problem is not None or any(map(_may_deny, deciding)),
    )
    action, strictly = decided(policy=policy), decided(policy=policy.strict())
    is_spared = policy.mode is not Mode.OFF and strictly is Action.DENY and action is not strictly
    nothing = problem_wording(problem) if problem else Wording(need=skip_text(reason))
    spoken = _spoken(deciding, num_units=len(units)) or (("", nothing),)
    return Judgement(
        workload=workload,
        verdict=verdict,
        action=action,
        mode=policy.mode,
        units=tuple(units),
        reason=reason,
        message=_message(spoken),
        hints=tuple(dict.fromkeys(hint for _, wording in spoken for hint in hints_of(wording))),
        warnings=_warnings(workload, units, spoken, action=action, policy=policy, spared=is_spared),
        cache=_cache(units),
        is_spared=is_spared,
        exemption=policy.exemption if is_spared else None,
    )


def _may_deny(judged: UnitJudgement) -> bool:
    """Return whether a denial may rest on *judged*: its program was seen, nothing of ours broke."""
    return judged.reading.is_certain and judged.reason not in OURS


def deciding_unit(judgement: Judgement) -> UnitJudgement | None:
    """Return the unit whose verdict is the workload's; None if it has no units."""
    return next((unit for unit in judgement.units if unit.verdict is judgement.verdict), None)


def noticed(units: Iterable[UnitJudgement]) -> tuple[str, ...]:
    """Return what was noticed while reading: conflicts, requests without limits."""
    return tuple(warning for judged in units for warning in judged.reading.warnings)


def _spoken(
    deciding: Iterable[UnitJudgement], *, num_units: int
) -> tuple[tuple[str, Wording], ...]:
    """Return what to say, and of which units, where there are several: `Master, Worker: `."""
    roles: dict[Wording, list[str]] = {}
    for judged in deciding:
        roles.setdefault(wording_of(judged), []).append(_unit_name(judged))
    return tuple(
        (f"{plain(', '.join(dict.fromkeys(names)))}: " if num_units > 1 else "", wording)
        for wording, names in roles.items()
    )


def _unit_name(judged: UnitJudgement) -> str:
    return judged.unit.role or judged.unit.container


def _message(spoken: Iterable[tuple[str, Wording]]) -> str:
    """Return one line a wording, together within the bound of a denial."""
    text = "\n".join(f"{about}{message_of(wording)}" for about, wording in spoken)
    return text if len(text) <= MAX_MESSAGE else f"{text[: MAX_MESSAGE - 1]}…"


def _warnings(
    workload: Workload,
    units: Iterable[UnitJudgement],
    spoken: Iterable[tuple[str, Wording]],
    *,
    action: Action,
    policy: Policy,
    spared: bool,
) -> tuple[str, ...]:
    """Return what the person is warned of: the verdict, exemptions, conflicts found in reading."""
    if policy.mode is Mode.OFF or workload.controlled or is_observed(workload):
        return ()
    lines = list(map(learnt_text, (judged.floor for judged in units if judged.floor)))
    if spared and policy.exemption is not None:
        lines.append(policy.exemption.sentence())
    if action is Action.WARN:
        for about, wording in spoken:
            lines += warnings_of(wording, about=about)
    if policy.remark and (spared or action is Action.DENY):
        lines.append(policy.remark)
    return bounded((*lines, *noticed(units)))


def _cache(units: Iterable[UnitJudgement]) -> str:
    """Return `late` if an answer was; who owns the cache knows whether others hit it."""
    reasons = {judged.reason for judged in units if judged.verdict is Verdict.UNKNOWN}
    return "late" if reasons & {*NOT_YET} else "none"
