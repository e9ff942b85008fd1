"""Where questions are answered: from memory, by the library, or not at all.

    Card, question -> encoded Answer | encoded reason

Runs in the cuDNN process. What its predecessor died on is not asked again.
"""

from __future__ import annotations

import signal
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

from estimator.cudnn import wire
from estimator.cudnn.backend import LibraryError
from estimator.cudnn.cards import Card, properties_of
from estimator.cudnn.checks import QuestionError, question_in
from estimator.cudnn.journal import Journal
from estimator.cudnn.library import Library
from estimator.cudnn.questions import Question
from estimator.cudnn.support import is_supported

MAX_REMEMBERED = 1 << 14
"""Answers kept; one takes about 1 KiB."""


class Desk:
    """The library with its memory."""

    def __init__(
        self,
        library: Library,
        journal: Journal,
        *,
        question_seconds: float,
        refused: Iterable[bytes] = (),
    ) -> None:
        self.release = library.release
        self._library = library
        self._journal = journal
        self._seconds = question_seconds
        self._refused = frozenset(refused)
        self._known: OrderedDict[bytes, bytes] = OrderedDict()

    def respond(self, payload: bytes) -> bytes:
        """Return the answers to the batch in *payload*.

        Raises:
            WireError: if it is no batch.
        """
        card, items = wire.decode_batch(payload)
        properties = properties_of(card)
        if properties is None or not is_supported(self.release, card.compute_capability):
            major, minor = card.compute_capability
            reason = f"{self.release} has no answers for compute capability {major}.{minor}"
            return wire.encode_answers([wire.encode_refusal(reason)] * len(items))
        return wire.encode_answers([self._respond(card, properties, item) for item in items])

    def _respond(self, card: Card, properties: bytes, item: Any) -> bytes:
        try:
            question = question_in(item)
        except QuestionError as error:
            return wire.encode_refusal(f"cuDNN was not asked: {error}")
        key = wire.encode_key(card, question)
        if key in self._refused:
            return wire.encode_refusal("cuDNN ended or hung on this convolution before")
        known = self._known.pop(key, None) or self._think(key, properties, question)
        self._known[key] = known
        if len(self._known) > MAX_REMEMBERED:
            self._known.popitem(last=False)
        return known

    def _think(self, key: bytes, properties: bytes, question: Question) -> bytes:
        """Ask the library. The journal says what; a timer ends the process if it hangs.

        Any other exception ends the process too, and leaves the question in the journal.
        """
        self._journal.write(key)
        signal.setitimer(signal.ITIMER_REAL, self._seconds)
        try:
            encoded = wire.encode_answer(self._library.answer(properties, question))
        except LibraryError as error:
            encoded = wire.encode_refusal(f"cuDNN refused this convolution: {error}")
        signal.setitimer(signal.ITIMER_REAL, 0)
        self._journal.clear()
        return encoded
