"""Who answers questions about plans, as the kernels see it.

Questions, Card -> Answers
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from estimator.cudnn.cards import Card
from estimator.cudnn.questions import Answer, Question


class Edition(Protocol):
    """One version of cuDNN to ask. Never raises: what is not known is None, with a reason."""

    @property
    def version(self) -> int | None:
        """Return the version (9.26.0 is 92600), None if there is nobody to say it."""
        ...

    @property
    def reason(self) -> str | None:
        """Return why the last question without an answer has none, for people."""
        ...

    def ask(self, questions: Sequence[Question], card: Card) -> list[Answer | None]:
        """Return one answer a question, in order."""
        ...


class PlanSource(Protocol):
    """Versions of cuDNN to ask. Never raises: what is not known is None, with a reason."""

    @property
    def reason(self) -> str | None:
        """Return why the last question without an answer has none, for people."""
        ...

    def ask(
        self, questions: Sequence[Question], card: Card, *, wanted: int | None
    ) -> list[Answer | None]:
        """Return one answer a question, in order, of the version *wanted* where it can be had."""
        ...
