"""Is an answer the right one? Every reply becomes a word of a closed list, or a wrong answer.

    review, reply, states of the cluster meanwhile -> kind of answer

What an answer may lack is bound to its reason: too late, a document that could not be had, a
worker that was killed. Such an answer lets the object pass, and says nothing of what it needs.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from tests.load.bodies import UID, Body
from tests.load.expected import Answers, stripped

LATE, NO_DOCUMENT, FAILED = "late", "document not had", "estimator failed"
DURING_CHANGE = "as expected of nodes a moment ago"
UNSEEN = "unseen spec: "
WITHOUT_ESTIMATE = {
    "late": LATE,
    "document": NO_DOCUMENT,
    "estimator-failed": FAILED,
    "estimator-unavailable": FAILED,
}
NOT_HAD = ("what it refers to ", ", which took longer than ", ", which could not be asked for: ")
"""In the warning that says why a document could not be had, or a file of one (`admission/sources`).
A server that is slow to take a connection is one that does not answer."""
VERDICTS = frozenset({"fits", "tight", "oom"})
KEYS = frozenset({"uid", "allowed", "status", "patch", "patchType", "warnings", "auditAnnotations"})
SHOWN = 5
"""Wrong answers that are shown in full."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """What was sent: a case of those known beforehand, or a spec that nobody had seen."""

    body: Body
    subject: str
    """Tells specs apart where one failed: the name of a case, or of an unseen object."""
    case: int | None = None
    reads_document: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """An answer about an unseen spec, to be compared once the load is over."""

    body: Body
    answer: bytes
    states: tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class Judge:
    """Judges replies, and counts them."""

    known: Mapping[str, Sequence[Answers]]
    """State -> the answers to each case."""
    sample: int
    """How many answers about unseen specs are kept, chosen evenly among all of them."""
    rng: random.Random
    kinds: Counter[str] = field(default_factory=Counter)
    statuses: Counter[int] = field(default_factory=Counter)
    failed: set[str] = field(default_factory=set)
    """Subjects of which a worker failed."""
    num_counted: int = 0
    """Replies to reviews that the server counts."""
    num_wrong: int = 0
    num_other_uid: int = 0
    wrong: list[str] = field(default_factory=list)
    kept: list[Kept] = field(default_factory=list)
    _num_unseen: int = 0

    def forget(self) -> None:
        """Begin to count anew; what was wrong stays so."""
        self.kinds.clear()
        self.statuses.clear()
        self.num_counted = 0
        self.failed.clear()

    def judge(
        self, review: Review, uid: str, reply: tuple[int, bytes], states: tuple[str, ...]
    ) -> str:
        """Return what kind of answer *reply* is, given in one of *states*, and count it."""
        status, answer = reply
        self.statuses[status] += 1
        self.num_counted += review.body.is_judged
        kind = self._kind(review, uid, answer, states) if status == 200 else f"HTTP {status}"
        if not kind or status != 200:
            self._note_wrong(review, reply, states)
            kind = "wrong"
        self.kinds[kind] += 1
        return kind

    def _kind(self, review: Review, uid: str, answer: bytes, states: tuple[str, ...]) -> str:
        """Return the kind of *answer*, empty if it is wrong."""
        text = stripped(answer, uid)
        if review.case is not None:
            kind = self.known[states[-1]][review.case].get(text)
            if kind is not None:
                return kind
            if any(text in self.known[state][review.case] for state in states[:-1]):
                return DURING_CHANGE
        response = _response(answer)
        if response.get("uid") != uid or text.count(UID.encode()) != 1:
            self.num_other_uid += 1
            return ""
        if response.keys() - KEYS:
            return ""
        facts: Mapping[str, Any] = response.get("auditAnnotations") or {}
        verdict, reason = facts.get("verdict"), facts.get("reason")
        if verdict == "unknown":
            return self._without_estimate(review, reason, response)
        if review.case is not None or verdict not in VERDICTS:
            return ""
        self._keep(Kept(body=review.body, answer=text, states=states))
        return f"{UNSEEN}{verdict}"

    def _without_estimate(self, review: Review, reason: object, response: Mapping[str, Any]) -> str:
        """Return why there is no estimate, if that may be and nothing was made up instead."""
        kind = WITHOUT_ESTIMATE.get(str(reason), "")
        # Where the container says nothing either, that is the first reason of the two.
        told = "\n".join(response.get("warnings", ()))
        if review.reads_document and any(text in told for text in NOT_HAD):
            kind = NO_DOCUMENT
        says_need = any(name.endswith("-bytes") for name in response["auditAnnotations"])
        if says_need or response.get("allowed") is not True or "status" in response:
            return ""
        if kind == NO_DOCUMENT and not review.reads_document:
            return ""
        if kind == FAILED:
            self.failed.add(review.subject)
        return kind

    def _keep(self, found: Kept) -> None:
        """Keep *found* with the chance that every other one has (algorithm R)."""
        self._num_unseen += 1
        if len(self.kept) < self.sample:
            self.kept.append(found)
        elif (place := self.rng.randrange(self._num_unseen)) < self.sample:
            self.kept[place] = found

    def _note_wrong(
        self, review: Review, reply: tuple[int, bytes], states: tuple[str, ...]
    ) -> None:
        self.num_wrong += 1
        if len(self.wrong) >= SHOWN:
            return
        lines = [f"{review.subject}, nodes {', '.join(states)}", f"  got  {_text(reply)}"]
        if review.case is not None:
            known = (next(iter(self.known[state][review.case])) for state in states)
            lines += [f"  want {_text((200, answer))}" for answer in known]
        self.wrong.append("\n".join(lines))


def _response(answer: bytes) -> dict[str, Any]:
    """Return the response in *answer*; nothing if there is none."""
    try:
        document = orjson.loads(answer)
    except orjson.JSONDecodeError:
        return {}
    found = document.get("response") if isinstance(document, dict) else None
    return found if isinstance(found, dict) else {}


def _text(reply: tuple[int, bytes]) -> str:
    return f"{reply[0]} {reply[1][:1500].decode(errors='replace')}"
