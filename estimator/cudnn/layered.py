"""Several versions of cuDNN as one.

    Questions, Card, wanted version -> Answers

The version that is wanted is asked first, then the others in their order. Each is asked what
those before it have no answer for.
"""

from __future__ import annotations

from collections.abc import Sequence

from estimator.cudnn.cards import Card
from estimator.cudnn.questions import Answer, Question
from estimator.cudnn.source import Edition


class Layers:
    """A `PlanSource` over editions."""

    def __init__(self, editions: Sequence[Edition]) -> None:
        """Prefer *editions* in this order where none is of the wanted version."""
        self._editions = tuple(editions)
        self.reason: str | None = None

    def ask(
        self, questions: Sequence[Question], card: Card, *, wanted: int | None
    ) -> list[Answer | None]:
        """Return one answer a question, in order, None for those nobody has one for."""
        found: dict[Question, Answer] = {}
        reasons: list[str] = []
        for edition in sorted(self._editions, key=lambda each: each.version != wanted):
            missing = [question for question in dict.fromkeys(questions) if question not in found]
            if not missing:
                break
            answers = zip(missing, edition.ask(missing, card), strict=True)
            new = {question: answer for question, answer in answers if answer is not None}
            if len(new) < len(missing) and edition.reason is not None:
                reasons.append(edition.reason)
            found |= new
        if any(question not in found for question in questions):
            reasons = reasons or ["there is no cuDNN to ask"]
        self.reason = "; ".join(reasons) or None
        return [found.get(question) for question in questions]
