"""How far an answer may go: the switch, three modes in three places, exemptions that end."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from admission.codes import Mode
from admission.exemption import moment_of
from admission.policy_settings import ExemptionSettings, PolicySettings
from admission.review import Route
from tests.admission.test_handler import FITS, TOO_LARGE, Bench, job, review_of

UNTIL = "vramgate.dev/exempt-until"
END = datetime(2026, 12, 31, tzinfo=UTC)


def exempting(**changes: Any) -> PolicySettings:
    """Return an enforcing policy with one exemption, as *changes* make it."""
    given = {"namespace": "team", "name": "train", "until": END, "reason": "OPS-7", **changes}
    return PolicySettings(mode=Mode.ENFORCE, exemptions=(ExemptionSettings(**given),))


def loose(**changes: Any) -> PolicySettings:
    """Return an enforcing policy under which workloads may loosen."""
    return PolicySettings(mode=Mode.ENFORCE, workloads_may_loosen=True, **changes)


async def test_policy_that_is_off_lets_everything_pass_in_silence() -> None:
    """Nothing is read or estimated, even of what cannot be read, and reviews are counted."""
    bench = Bench(PolicySettings(enabled=False, mode=Mode.ENFORCE))
    bench.cluster.is_broken = True

    for route in Route:
        response = await bench.response(review_of(job(batch_size=TOO_LARGE)), route=route)
        assert response == {
            "uid": "0815",
            "allowed": True,
            "auditAnnotations": {"verdict": "skipped", "mode": "off", "reason": "disabled"},
        }

    assert bench.workers.num_asked == 0
    assert bench.series("vramgate_reviews_total") == {
        '{action="allow",kind="Job",mode="off",verdict="skipped"}': 2
    }


async def test_policy_that_is_off_still_refuses_what_is_no_review() -> None:
    """A broken request is the sender's, whatever the policy."""
    answer = await Bench(PolicySettings(enabled=False)).answer({"kind": "Pod"})

    assert answer.status == 400


PLACES = (None, *Mode)


@pytest.mark.parametrize("may_loosen", [False, True])
@pytest.mark.parametrize(
    ("install", "namespace", "own"), list(itertools.product(Mode, PLACES, PLACES))
)
async def test_nearest_word_counts_and_the_objects_own_only_where_it_may(
    install: Mode, namespace: Mode | None, own: Mode | None, may_loosen: bool
) -> None:
    """The object before its namespace before the install, in every combination."""
    bench = Bench(PolicySettings(mode=install, workloads_may_loosen=may_loosen))
    if namespace is not None:
        bench.cluster.modes["team"] = namespace
    labels = {"vramgate.dev/mode": own.value} if own else {}

    response = await bench.response(review_of(job(batch_size=TOO_LARGE, labels=labels)))

    mode = (own if may_loosen else None) or namespace or install
    assert response["auditAnnotations"]["mode"] == mode.value
    assert response["allowed"] is (mode is not Mode.ENFORCE)
    assert bool(response.get("warnings")) is (mode is Mode.WARN)


async def test_fault_is_as_silent_as_the_mode_of_the_object() -> None:
    """Where a job may switch its check off, a fault of ours is no news to it either."""
    bench = Bench(loose())
    bench.cluster.is_broken = True

    response = await bench.response(review_of(job(labels={"vramgate.dev/mode": "off"})))

    assert "warnings" not in response


async def test_exempt_job_is_warned_and_told_so_until_the_moment_comes() -> None:
    """Both webhooks say it, the audit log keeps it; at the very moment it is denied again."""
    bench = Bench(exempting())
    review = review_of(job(batch_size=TOO_LARGE))

    bench.now = END - timedelta(seconds=1)
    before = [await bench.response(review, route=route) for route in Route]
    bench.now = END
    after = [await bench.response(review, route=route) for route in Route]

    for response in before:
        assert response["allowed"] is True
        said = "exempt from denial until 2026-12-31T00:00:00Z (by settings): OPS-7"
        assert said in response["warnings"][0]
        assert any("25.6 GiB" in warning for warning in response["warnings"])
        notes = response["auditAnnotations"]
        assert (notes["verdict"], notes["would-deny"]) == ("oom", "exempt")
        assert notes["exempt-until"] == "2026-12-31T00:00:00Z"
        assert (notes["exempt-by"], notes["exempt-reason"]) == ("settings", "OPS-7")
    for response in after:
        assert response["allowed"] is False
        assert any("ended at 2026-12-31T00:00:00Z" in text for text in response["warnings"])
        assert "would-deny" not in response["auditAnnotations"]
    assert bench.series("vramgate_would_deny_total") == {'{because="exempt",kind="Job"}': 1}


async def test_exemption_says_nothing_of_a_job_that_fits() -> None:
    """There is no denial that it withholds."""
    response = await Bench(exempting()).response(review_of(job(batch_size=FITS)))

    assert "warnings" not in response
    assert "would-deny" not in response["auditAnnotations"]


@pytest.mark.parametrize(
    ("changes", "is_exempt"),
    [
        ({}, True),
        ({"name": "tr*"}, True),
        ({"name": "*"}, True),
        ({"name": "tr?in", "kind": "Job"}, True),
        ({"name": "rain"}, False),
        ({"name": "train-*"}, False),
        ({"kind": "PyTorchJob"}, False),
        ({"namespace": "other"}, False),
    ],
)
async def test_exemption_is_for_the_jobs_that_it_names(
    changes: Mapping[str, Any], is_exempt: bool
) -> None:
    """By namespace, name with wildcards, and kind."""
    response = await Bench(exempting(**changes)).response(review_of(job(batch_size=TOO_LARGE)))

    assert response["allowed"] is is_exempt


async def test_generated_name_is_compared_as_it_is_begun() -> None:
    """The API server makes the rest after we were asked."""
    nameless = job(batch_size=TOO_LARGE)
    nameless["metadata"] |= {"name": "", "generateName": "sweep-"}
    review = review_of(nameless)
    review["request"]["name"] = ""

    response = await Bench(exempting(name="sweep-*")).response(review)

    assert response["allowed"] is True


async def test_of_two_exemptions_the_later_end_counts() -> None:
    """One that is over takes nothing from another."""
    over, valid = exempting(until=datetime(2020, 1, 1, tzinfo=UTC)), exempting()
    policy = PolicySettings(mode=Mode.ENFORCE, exemptions=(*over.exemptions, *valid.exemptions))

    response = await Bench(policy).response(review_of(job(batch_size=TOO_LARGE)))

    assert response["allowed"] is True


@pytest.mark.parametrize(
    ("policy", "text", "is_exempt", "said"),
    [
        (loose(), "2026-12-31T00:00:00Z", True, "by vramgate.dev/exempt-until"),
        (
            loose(),
            "2026-06-01T02:00:01+02:00",
            True,
            "exempt from denial until 2026-06-01T00:00:01Z",
        ),
        (loose(), "2026-06-01T02:00:00+02:00", False, "ended at 2026-06-01T00:00:00Z"),
        (loose(), "next week", False, "'next week' is no moment like"),
        (loose(), "2026-12-31", False, "is no moment like"),
        (loose(), "2026-02-31T00:00:00Z", False, "is no moment like"),
        (PolicySettings(mode=Mode.ENFORCE), "2026-12-31T00:00:00Z", False, "does not count here"),
    ],
)
async def test_annotation_exempts_where_workloads_may_loosen(
    policy: PolicySettings, text: str, is_exempt: bool, said: str
) -> None:
    """And where it does not count the person is told why."""
    review = review_of(job(batch_size=TOO_LARGE, annotations={UNTIL: text}))

    response = await Bench(policy).response(review)

    assert response["allowed"] is is_exempt
    assert any(said in warning for warning in response["warnings"])


async def test_exemption_ends_silence_nowhere() -> None:
    """Mode `off` stays silent, and counts nothing as withheld."""
    bench = Bench(exempting())
    bench.cluster.modes["team"] = Mode.OFF

    response = await bench.response(review_of(job(batch_size=TOO_LARGE)))

    assert "warnings" not in response
    assert bench.series("vramgate_would_deny_total") == {}


async def test_unseen_change_of_an_exempt_job_is_not_called_a_denial() -> None:
    """An update of what was as bad before is never denied: nothing was withheld."""
    bench = Bench(exempting())
    review = review_of(job(batch_size=TOO_LARGE), old=job(batch_size=TOO_LARGE))

    response = await bench.response(review)

    assert response["allowed"] is True
    assert "would-deny" not in response["auditAnnotations"]
    assert not any("exempt" in warning for warning in response["warnings"])


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-12-31T00:00:00Z", END),
        ("2026-12-31t00:00:00z", END),
        ("2026-12-31T01:30:00.250+01:30", END + timedelta(milliseconds=250)),
        ("2026-12-31T00:00:00", None),
        ("2026-12-31 00:00:00Z", None),
        ("20261231T000000Z", None),
        ("2026-12-31T24:00:01Z", None),
        ("", None),
    ],
)
def test_moments_are_those_of_rfc_3339(text: str, moment: datetime | None) -> None:
    """With a time zone always: whose midnight it is must not be guessed."""
    assert moment_of(text) == moment
