"""Answers given before: the same question is answered the same while all that it rests on holds.

    AdmissionReview as JSON, route -> Question; Question, Grounds -> Given, or None

Found by the digest of the whole question, namespace and user among it, less what names the object:
a gang's pods that bear no index, or a job that is submitted again, differ in nothing else.
Nothing is kept that another name, a later moment or an answer on its way could change; whoever
finds an answer has sent all that it was made of. Not for several threads.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from admission.cache import Cache
from admission.codes import Operation
from admission.errors import RequestError
from admission.estimates import EstimatePool, Known
from admission.handling.asked import Asked
from admission.handling.counting import Entry
from admission.handling.policies import Policies
from admission.learning.floors import Learnt
from admission.response import Readdressed
from admission.review import Review, Route, read_review
from admission.values import Json, Judgement, NodeClass

ENTRIES = 256
"""Answers. Some 10 KiB each as a rule."""
MOST_ASKED = 1024
"""Questions of which it is remembered that they were asked."""
MAX_TEXT = 8 << 10
"""Bytes of JSON in one question: what is parsed of it takes five times as much, and is kept."""

NAMING = ("creationTimestamp", "generation", "managedFields", "name", "resourceVersion", "uid")
"""Of an object's metadata, what the API server keeps of it and what tells it from its like."""
_ASIDE = ("uid", "name", "object")
"""Of a request, what is the question's own, and what is looked at by itself."""


class Question(NamedTuple):
    """One review that may have been answered before."""

    digest: bytes
    review: Review
    document: object
    """The whole of it, which nobody has walked yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """One answer, and what is written of it."""

    answer: Readdressed
    entry: Entry
    known: tuple[Known, ...]
    """The estimates that it rests on."""


class Grounds(NamedTuple):
    """What answers rest on beside their question: each is another one once it has changed."""

    settings: object
    classes: Sequence[NodeClass]
    num_lessons: int
    """How often something new was learnt."""

    def are(self, other: Grounds | None) -> bool:
        """Return whether nothing has changed since *other*."""
        return (
            other is not None
            and self.settings is other.settings
            and self.classes is other.classes
            and self.num_lessons == other.num_lessons
        )


class Recalled:
    """The last answers, as long as their grounds hold."""

    def __init__(self, *, entries: int = ENTRIES) -> None:
        self._entries = entries
        self._grounds: Grounds | None = None
        self._given: Cache[Hashable, Given] = Cache(entries=entries)
        self._asked: Cache[Hashable, bool] = Cache(entries=MOST_ASKED)
        """What was asked once: as a rule it is not asked again."""

    def find(self, memory: Memory, pool: EstimatePool) -> Given | None:
        """Return what was answered, if *pool* still remembers all that it rests on."""
        self._stand_on(memory.grounds)
        given = self._given.get(memory.key)
        for digest, devices in given.known if given is not None else ():
            if pool.remembered(digest, devices) is None:
                return None
        return given

    def keep(self, memory: Memory, given: Given) -> None:
        """Remember what was *given*."""
        self._stand_on(memory.grounds)
        self._given.put(memory.key, given)

    def is_again(self, memory: Memory) -> bool:
        """Return whether the same was asked before, and note that it was asked."""
        if self._asked.get(memory.key):
            return True
        self._asked.put(memory.key, True)
        return False

    def _stand_on(self, grounds: Grounds) -> None:
        """Forget every answer that rests on other grounds."""
        if not grounds.are(self._grounds):
            self._grounds, self._given = grounds, Cache(entries=self._entries)


class Memory(NamedTuple):
    """The place of one question's answer: what holds as it is asked."""

    question: Question
    grounds: Grounds
    told: Hashable
    """What namespace and clock say of the policy."""

    @property
    def key(self) -> Hashable:
        """Return by what it is found."""
        return self.question.digest, self.told

    def holds(self, now: Memory) -> bool:
        """Return whether the same holds *now*."""
        return self.grounds.are(now.grounds) and self.told == now.told


def memory_of(
    question: Question,
    *,
    settings: object,
    policies: Policies,
    classes: Sequence[NodeClass],
    learnt: Learnt | None,
) -> Memory | None:
    """Return the place of the answer to *question*; None where names tell jobs apart."""
    review = question.review
    if learnt is not None and any(map(learnt.knows_jobs_of, _namespaces(review))):
        return None
    grounds = Grounds(
        settings=settings,
        classes=classes,
        num_lessons=learnt.num_lessons if learnt is not None else 0,
    )
    return Memory(question=question, grounds=grounds, told=policies.passing(review))


def is_lasting(asked: Asked, judgement: Judgement, *, now: float) -> bool:
    """Return whether *judgement* was made in time, of nothing but what was remembered."""
    estimator = asked.estimator
    is_known = estimator.is_settled and bool(estimator.known)
    return is_known and not asked.passing and judgement.cache != "late" and now < asked.ends


def question_of(document: object, route: Route) -> Question | None:
    """Return the question in *document*; None if it is one that is not remembered.

    What is malformed is none: whoever reads it says what is wrong. So are updates, which are about
    two objects, and long ones.
    """
    try:
        review = read_review(document)
        if review.operation is not Operation.CREATE or not isinstance(document, dict):
            return None
        text = orjson.dumps([route, *_asked(document["request"], review.object)])
    except (RequestError, orjson.JSONEncodeError):
        return None
    if len(text) > MAX_TEXT:
        return None
    digest = hashlib.blake2b(text, digest_size=32).digest()
    return Question(digest=digest, review=review, document=document)


def nameless(obj: Json) -> Json:
    """Return *obj* as a question has it: without what names it."""
    metadata = obj.get("metadata")
    return {**obj, "metadata": _without(metadata, NAMING)} if isinstance(metadata, dict) else obj


def _namespaces(review: Review) -> set[str]:
    """Return the namespace of *review*, and the one that its object names."""
    own = review.metadata.get("namespace")
    return {review.namespace, *([own] if isinstance(own, str) else [])}


def _asked(request: Json, obj: Json) -> tuple[Any, ...]:
    return _without(request, _ASIDE), nameless(obj)


def _without(mapping: Json, left_out: Sequence[str]) -> Json:
    left = {**mapping}
    for key in left_out:
        left.pop(key, None)
    return left
