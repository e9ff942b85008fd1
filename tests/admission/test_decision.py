"""Needs against budgets become verdicts, and verdicts become actions."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission.codes import ORDER, Action, Mode, Operation, ReasonCode, Verdict
from admission.decision import (
    OBSERVED_KINDS,
    Cause,
    Change,
    Policy,
    action_of,
    best_of,
    class_verdict,
    may_deny,
    unit_verdict,
    worst_verdict,
)
from admission.exemption import Exemption
from admission.values import ClassVerdict
from estimator.units import GIB
from tests.builders import estimate, node_class, unit, workload

LEAST, ENOUGH = 12 * GIB, 14 * GIB
ENFORCE = Policy(mode=Mode.ENFORCE)


def on(budget: int | None, *, sharing: str = "none") -> ClassVerdict:
    """Return the verdict of a job of 12 to 14 GiB on a card with *budget*."""
    where = node_class(f"card-{budget}", budget=budget, sharing=sharing)
    return class_verdict(where, estimate(least=LEAST, enough=ENOUGH))


def action(
    verdict: Verdict,
    *,
    policy: Policy = ENFORCE,
    change: Change | None = None,
    kind: str = "Job",
    controlled: bool = False,
    started: bool = False,
    is_late: bool = False,
    is_certain: bool = True,
) -> Action:
    """Return the action on a Job that is created in an enforcing namespace, unless said."""
    submitted = workload(unit(), kind=kind, controlled=controlled, started=started)
    return action_of(
        verdict,
        submitted,
        policy=policy,
        change=change or Change(),
        is_late=is_late,
        is_certain=is_certain,
    )


def test_a_job_whose_program_was_not_seen_is_warned_and_never_denied() -> None:
    """What is taken by default may be wrong: a wrong no is the worst answer."""
    assert action(Verdict.OOM, is_certain=False) is Action.WARN
    assert action(Verdict.OOM) is Action.DENY


@pytest.mark.parametrize(
    ("budget", "verdict", "cause"),
    [
        (ENOUGH, Verdict.FITS, Cause.FITS),
        (ENOUGH - 1, Verdict.TIGHT, Cause.LITTLE_ROOM),
        (LEAST, Verdict.TIGHT, Cause.LITTLE_ROOM),
        (LEAST - 1, Verdict.OOM, Cause.TOO_LARGE),
    ],
)
def test_class_is_judged_by_least_and_enough(budget: int, verdict: Verdict, cause: Cause) -> None:
    """It fits from `enough`, is out of memory below `least`, and is tight between them."""
    found = on(budget)

    assert (found.verdict, found.reason) == (verdict, cause)


def test_time_sliced_card_is_never_better_than_tight() -> None:
    """The neighbours' share is not known, however large the card."""
    assert on(80 * GIB, sharing="time-slicing").verdict is Verdict.TIGHT
    assert on(LEAST - 1, sharing="time-slicing").verdict is Verdict.OOM


def test_mps_and_mig_shares_may_fit() -> None:
    """Their memory is kept apart."""
    assert on(ENOUGH, sharing="mps").verdict is Verdict.FITS
    assert on(ENOUGH, sharing="mig").verdict is Verdict.FITS


def test_job_over_its_own_allocator_limit_is_out_of_memory_on_any_card() -> None:
    """A pool limited to less than it has to hold cannot be helped by a larger card."""
    limited = estimate(least=LEAST, enough=ENOUGH, allocator_limit=LEAST - 1)

    found = class_verdict(node_class(budget=80 * GIB), limited)

    assert (found.verdict, found.reason) == (Verdict.OOM, Cause.OWN_LIMIT)


def test_card_of_unknown_memory_is_unknown_with_the_reason() -> None:
    """What is not known is said, not taken for nothing."""
    where = node_class(budget=None, unknown_reason="no label nvidia.com/gpu.memory")

    found = class_verdict(where, estimate(least=LEAST))

    assert found == ClassVerdict(
        node_class=where,
        verdict=Verdict.UNKNOWN,
        estimate=None,
        reason="no label nvidia.com/gpu.memory",
    )


@pytest.mark.parametrize(
    ("budgets", "verdict", "reason"),
    [
        ([16, 40], Verdict.FITS, Cause.FITS),
        ([13], Verdict.TIGHT, Cause.LITTLE_ROOM),
        ([13, 8], Verdict.TIGHT, Cause.LITTLE_ROOM),
        ([16, 8], Verdict.TIGHT, Cause.SMALL_CARD),
        ([16, 13], Verdict.TIGHT, Cause.SMALL_CARD),
        ([8, 11], Verdict.OOM, Cause.TOO_LARGE),
        ([16, None], Verdict.TIGHT, Cause.UNKNOWN_CARD),
        ([8, None], Verdict.UNKNOWN, ReasonCode.NO_CLASS),
        ([None], Verdict.UNKNOWN, ReasonCode.NO_CLASS),
        ([], Verdict.UNKNOWN, ReasonCode.NO_CLASS),
    ],
)
def test_unit_is_judged_over_every_class_it_may_use(
    budgets: list[int | None], verdict: Verdict, reason: str
) -> None:
    """`fits` needs all of them, `oom` needs none of them and all known; no class is `unknown`."""
    classes = [on(None if gib is None else gib * GIB) for gib in budgets]

    assert unit_verdict(classes) == (verdict, reason)


def test_time_sliced_card_beside_one_that_fits_is_named_as_the_cause() -> None:
    """The whole card fits; the shared one makes it tight."""
    classes = [on(16 * GIB), on(40 * GIB, sharing="time-slicing")]

    assert unit_verdict(classes) == (Verdict.TIGHT, Cause.SHARED_CARD)


@pytest.mark.parametrize(
    ("budgets", "tainted", "verdict", "reason"),
    [
        ([8], [16], Verdict.TIGHT, Cause.TAINTED_CARD),
        ([8], [13], Verdict.TIGHT, Cause.TAINTED_CARD),
        ([], [16], Verdict.TIGHT, Cause.TAINTED_CARD),
        ([8], [11, 16, None], Verdict.TIGHT, Cause.TAINTED_CARD),
        ([8], [11], Verdict.OOM, Cause.TOO_LARGE),
        ([8], [11, None], Verdict.UNKNOWN, ReasonCode.NO_CLASS),
        ([], [11], Verdict.UNKNOWN, ReasonCode.NO_CLASS),
        ([8, None], [16], Verdict.UNKNOWN, ReasonCode.NO_CLASS),
        ([16], [8], Verdict.FITS, Cause.FITS),
        ([13], [16], Verdict.TIGHT, Cause.LITTLE_ROOM),
    ],
)
def test_card_behind_a_taint_keeps_a_job_from_being_refused_and_changes_nothing_else(
    budgets: list[int | None], tainted: list[int | None], verdict: Verdict, reason: str
) -> None:
    """`oom` would be a guess that the toleration never comes; a held job does not need it."""
    classes, behind = (
        [on(None if gib is None else gib * GIB) for gib in each] for each in (budgets, tainted)
    )

    assert unit_verdict(classes, tainted=behind) == (verdict, reason)


def test_best_class_is_by_verdict_then_by_budget() -> None:
    """The largest of the cards that hold it best; unknown ones do not count."""
    small, large, unknown = on(16 * GIB), on(40 * GIB), on(None)

    assert best_of([small, unknown, large]) == large
    assert best_of([unknown]) is None


BUDGETS = st.lists(st.none() | st.integers(min_value=0, max_value=100), max_size=4)


@given(budgets=BUDGETS, least=st.integers(0, 100), spread=st.integers(0, 20), more=st.data())
def test_larger_budget_never_worsens_the_verdict(
    budgets: list[int | None], least: int, spread: int, more: st.DataObject
) -> None:
    """Replacing one card by a larger one leaves the unit as it was or makes it better."""
    known = [index for index, budget in enumerate(budgets) if budget is not None]
    larger = list(budgets)
    for index in known[:1]:
        larger[index] = (budgets[index] or 0) + more.draw(st.integers(0, 100))

    def verdict(values: list[int | None]) -> Verdict:
        found = estimate(least=least, enough=least + spread)
        return unit_verdict([class_verdict(node_class(budget=each), found) for each in values])[0]

    assert ORDER.index(verdict(larger)) >= ORDER.index(verdict(budgets))


@given(st.lists(st.sampled_from(list(Verdict)), min_size=1))
def test_workload_is_as_bad_as_its_worst_unit(verdicts: list[Verdict]) -> None:
    """No unit is worse than the workload, and one is as bad."""
    worst = worst_verdict(verdicts)

    assert worst in verdicts
    assert all(ORDER.index(worst) <= ORDER.index(verdict) for verdict in verdicts)


def test_workload_without_units_is_skipped() -> None:
    """Nothing asks for a GPU."""
    assert worst_verdict([]) is Verdict.SKIPPED


@pytest.mark.parametrize(
    ("verdict", "enforce", "warn"),
    [
        (Verdict.OOM, Action.DENY, Action.WARN),
        (Verdict.TIGHT, Action.WARN, Action.WARN),
        (Verdict.UNKNOWN, Action.WARN, Action.WARN),
        (Verdict.FITS, Action.ALLOW, Action.ALLOW),
        (Verdict.SKIPPED, Action.ALLOW, Action.ALLOW),
    ],
)
def test_mode_says_how_far_a_verdict_goes(verdict: Verdict, enforce: Action, warn: Action) -> None:
    """`enforce` denies what cannot fit, `warn` says so, `off` is silent."""
    assert action(verdict, policy=Policy(mode=Mode.ENFORCE)) is enforce
    assert action(verdict, policy=Policy(mode=Mode.WARN)) is warn
    assert action(verdict, policy=Policy(mode=Mode.OFF)) is Action.ALLOW


@pytest.mark.parametrize(
    ("on_unknown", "enforce", "warn"),
    [
        (Action.ALLOW, Action.ALLOW, Action.ALLOW),
        (Action.WARN, Action.WARN, Action.WARN),
        (Action.DENY, Action.DENY, Action.WARN),
    ],
)
def test_unknown_follows_its_policy_and_never_denies_in_mode_warn(
    on_unknown: Action, enforce: Action, warn: Action
) -> None:
    """`onUnknown: deny` counts where the mode enforces."""
    for mode, expected in ((Mode.ENFORCE, enforce), (Mode.WARN, warn)):
        policy = Policy(mode=mode, on_unknown=on_unknown)

        assert action(Verdict.UNKNOWN, policy=policy) is expected


@pytest.mark.parametrize(
    ("on_late", "expected"),
    [(Action.ALLOW, Action.ALLOW), (Action.WARN, Action.WARN), (Action.DENY, Action.WARN)],
)
def test_late_answer_follows_its_own_policy_and_never_denies(
    on_late: Action, expected: Action
) -> None:
    """That we were slow is not the job's fault, even where unknown jobs are denied."""
    policy = Policy(mode=Mode.ENFORCE, on_unknown=Action.DENY, on_late=on_late)

    assert action(Verdict.UNKNOWN, policy=policy, is_late=True) is expected


@pytest.mark.parametrize("verdict", list(Verdict))
def test_what_a_controller_made_is_never_denied_or_warned_about(verdict: Verdict) -> None:
    """Its owner was judged; denying a Job's pod makes the Job controller try without end."""
    policy = Policy(mode=Mode.ENFORCE, on_unknown=Action.DENY)

    assert action(verdict, policy=policy, controlled=True) is Action.ALLOW


@pytest.mark.parametrize("verdict", list(Verdict))
@pytest.mark.parametrize("kind", sorted(OBSERVED_KINDS))
def test_observed_kinds_are_only_counted(kind: str, verdict: Verdict) -> None:
    """Notebooks, services and the like pass without a word."""
    policy = Policy(mode=Mode.ENFORCE, on_unknown=Action.DENY)

    assert action(verdict, policy=policy, kind=kind) is Action.ALLOW


@pytest.mark.parametrize("verdict", list(Verdict))
@pytest.mark.parametrize("observed", [True, False])
def test_what_is_only_observed_or_explained_passes(observed: bool, verdict: Verdict) -> None:
    """A service, or a template that others start jobs from: nobody is refused over it."""
    policy = Policy(mode=Mode.ENFORCE, on_unknown=Action.DENY)
    submitted = replace(workload(unit()), observe_only=observed, explain_only=not observed)

    found = action_of(verdict, submitted, policy=policy, change=Change(), is_late=False)

    assert found is Action.ALLOW
    assert not may_deny(submitted, Change())


@pytest.mark.parametrize(
    ("started", "was_oom", "resumes", "expected"),
    [
        (False, False, False, Action.DENY),
        (True, False, False, Action.WARN),
        (False, True, False, Action.WARN),
        (False, False, True, Action.WARN),
    ],
)
def test_update_is_denied_only_before_the_start_and_if_it_makes_things_worse(
    started: bool, was_oom: bool, resumes: bool, expected: Action
) -> None:
    """A running job, one that was as bad before, or a mere resume gets a warning."""
    change = Change(operation=Operation.UPDATE, was_oom=was_oom, resumes=resumes)

    assert action(Verdict.OOM, change=change, started=started) is expected


def test_exemption_warns_where_enforce_would_deny_and_loosens_nothing_else() -> None:
    """Neither a warning nor what passes is changed by it."""
    leave = Exemption(until=datetime(2026, 12, 31, tzinfo=UTC), source="settings")
    exempt = Policy(mode=Mode.ENFORCE, on_unknown=Action.DENY, exemption=leave)

    found = {verdict: action(verdict, policy=exempt) for verdict in Verdict}

    assert found == {
        Verdict.OOM: Action.WARN,
        Verdict.UNKNOWN: Action.WARN,
        Verdict.TIGHT: Action.WARN,
        Verdict.FITS: Action.ALLOW,
        Verdict.SKIPPED: Action.ALLOW,
    }
    assert action(Verdict.OOM, policy=exempt.strict()) is Action.DENY
