"""The judge of a load run has teeth: what is not right is wrong, whatever it looks like."""

from __future__ import annotations

import random

import pytest

from admission.response import Answer, allowed, denied
from admission.review import Route
from tests.load.answering import DURING_CHANGE, LATE, NO_DOCUMENT, Judge, Review
from tests.load.bodies import UID, body_of
from tests.load.expected import WHOLE, Answers
from tests.load.specs import annotated, mxnet_spec

OURS, OTHER = "00000001-0000-4000-8000-000000000001", "00000002-0000-4000-8000-000000000001"
FITS = {"verdict": "fits", "mode": "warn", "reason": "fits", "least-bytes": "1"}
BODY = body_of(
    annotated("Job", mxnet_spec(), name="train", namespace="team-0"), route=Route.VALIDATE
)
KNOWN = Review(body=BODY, subject="known", case=0)
UNSEEN = Review(body=BODY, subject="unseen")
READING = Review(body=BODY, subject="reading", reads_document=True)


def judge() -> Judge:
    """Return a judge that knows one case, in a cluster with and without a node."""
    before: Answers = {allowed(UID, audit=FITS).body: WHOLE}
    after: Answers = {allowed(UID, audit={**FITS, "least-bytes": "2"}).body: WHOLE}
    return Judge(known={"before": [before], "after": [after]}, sample=2, rng=random.Random(1))


def unknown(reason: str, **more: str) -> dict[str, str]:
    """Return what an answer without an estimate says."""
    return {"verdict": "unknown", "mode": "warn", "reason": reason, **more}


SLOW_FILE = "--deepspeed /conf/ds.json is in the ConfigMap ds, which took longer than 2.0 s"
UNASKED_FILE = (
    "--deepspeed /conf/ds.json is in the ConfigMap ds, "
    "which could not be asked for: the API server does not answer"
)
RIGHT: dict[str, tuple[Review, Answer, str]] = {
    "as expected": (KNOWN, allowed(OURS, audit=FITS), WHOLE),
    "late": (KNOWN, allowed(OURS, audit=unknown("late")), LATE),
    "without a document": (READING, allowed(OURS, audit=unknown("document")), NO_DOCUMENT),
    "without a file, and more is not known": (
        READING,
        allowed(OURS, audit=unknown("unsupported"), warnings=[SLOW_FILE]),
        NO_DOCUMENT,
    ),
    "without a file that nobody could be asked for": (
        READING,
        allowed(OURS, audit=unknown("unsupported"), warnings=[UNASKED_FILE]),
        NO_DOCUMENT,
    ),
    "unseen": (UNSEEN, allowed(OURS, audit=FITS), "unseen spec: fits"),
}
WRONG: dict[str, tuple[Review, Answer]] = {
    "for another review": (KNOWN, allowed(OTHER, audit=FITS)),
    "unseen, for another review": (UNSEEN, allowed(OTHER, audit=FITS)),
    "another verdict": (KNOWN, denied(OURS, message="no", audit={**FITS, "verdict": "oom"})),
    "a patch too many": (KNOWN, allowed(OURS, audit=FITS, patch=[{"op": "remove", "path": "/x"}])),
    "of other nodes": (KNOWN, allowed(OURS, audit={**FITS, "least-bytes": "2"})),
    "late and denied": (KNOWN, denied(OURS, message="no", audit=unknown("late"))),
    "late with a need": (KNOWN, allowed(OURS, audit=unknown("late", **{"least-bytes": "1"}))),
    "a document nobody wanted": (KNOWN, allowed(OURS, audit=unknown("document"))),
    "a file nobody wanted": (
        KNOWN,
        allowed(OURS, audit=unknown("unsupported"), warnings=[SLOW_FILE]),
    ),
    "our fault": (UNSEEN, allowed(OURS, warnings=["this job could not be checked"])),
    "an error": (UNSEEN, Answer(status=500, body=b"")),
    "no JSON": (UNSEEN, Answer(status=200, body=b"{")),
}


@pytest.mark.parametrize(("review", "answer", "kind"), RIGHT.values(), ids=RIGHT)
def test_right_answer_is_told_by_its_kind(review: Review, answer: Answer, kind: str) -> None:
    """What an answer may lack is bound to its reason."""
    judging = judge()

    assert judging.judge(review, OURS, (answer.status, answer.body), ("before",)) == kind
    assert judging.num_wrong == 0


@pytest.mark.parametrize(("review", "answer"), WRONG.values(), ids=WRONG)
def test_wrong_answer_is_wrong(review: Review, answer: Answer) -> None:
    """Another uid, another object's answer, a denial without a verdict, a fault of ours."""
    judging = judge()

    assert judging.judge(review, OURS, (answer.status, answer.body), ("before",)) == "wrong"
    assert judging.num_wrong == len(judging.wrong) == 1


def test_answer_of_either_state_is_right_while_nodes_change() -> None:
    """A review may have been judged by the nodes of a moment ago, or by those there are now."""
    judging = judge()
    answers = [next(iter(known[0])) for known in judging.known.values()]

    for answer in answers:
        reply = answer.replace(UID.encode(), OURS.encode())
        judging.judge(KNOWN, OURS, (200, reply), ("before", "after"))

    assert judging.kinds == {WHOLE: 1, DURING_CHANGE: 1}
