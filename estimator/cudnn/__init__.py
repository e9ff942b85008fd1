"""cuDNN asked about cards that are not there.

    Question, Card -> plans and their workspaces

A process of its own owns the library (`process.py`, `library.py`): cuDNN may abort, crash or
hang, and nothing else must. Everybody else holds a connection to it (`client.py`), or none.
"""

from __future__ import annotations

from estimator.cudnn.cards import Card, card_of
from estimator.cudnn.questions import Answer, Direction, Plan, Question
from estimator.cudnn.source import Edition, PlanSource
from estimator.cudnn.support import version_text

__all__ = [
    "Answer",
    "Card",
    "Direction",
    "Edition",
    "Plan",
    "PlanSource",
    "Question",
    "card_of",
    "version_text",
]
