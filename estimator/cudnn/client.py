"""The connection of a fork to the cuDNN process.

    Questions, Card -> Answers

Blocks, with a limit, on a socket that is already connected: a fork may open none. Never raises:
after a timeout, an end or an answer that is none, every further question is unknown.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence

from estimator.cudnn import wire
from estimator.cudnn.cards import Card
from estimator.cudnn.questions import Answer, Question
from estimator.cudnn.support import Release
from estimator.errors import TraceError
from estimator.processes.frames import frame, read_frame


class Plans:
    """An `Edition` over a connection. Remembers what it was answered."""

    def __init__(self, connection: socket.socket, *, limit_seconds: float) -> None:
        """Ask through *connection*, at most *limit_seconds* for what is asked at once."""
        self._connection = connection
        self._limit = limit_seconds
        self._deadline = 0.0
        self._is_usable = True
        self._release: Release | None = None
        self._known: dict[tuple[Card, Question], Answer | None] = {}
        self.reason: str | None = None

    @property
    def version(self) -> int | None:
        """Return the library's version (9.26.0 is 92600), None if it does not say."""
        self._deadline = time.monotonic() + self._limit
        release = self._greeted()
        return release.version if release else None

    def ask(self, questions: Sequence[Question], card: Card) -> list[Answer | None]:
        """Return one answer a question, in order, None for those without (see `reason`)."""
        self._deadline = time.monotonic() + self._limit
        asked = dict.fromkeys(questions)
        unknown = [question for question in asked if (card, question) not in self._known]
        for start in range(0, len(unknown), wire.MAX_BATCH):
            self._ask(unknown[start : start + wire.MAX_BATCH], card)
        return [self._known.get((card, question)) for question in questions]

    def close(self) -> None:
        """End the connection: every further question is unknown."""
        self._give_up("the connection to cuDNN was closed")

    def _ask(self, batch: Sequence[Question], card: Card) -> None:
        release = self._greeted()
        if release is None:
            return
        payload = self._exchange(frame(wire.encode_batch(card, batch)))
        if payload is None:
            return
        try:
            answers = wire.decode_answers(payload, len(batch), version=release.version)
        except wire.WireError as error:
            self._give_up(f"cuDNN's process answered wrongly: {error}")
            return
        for question, answer in zip(batch, answers, strict=True):
            if isinstance(answer, str):
                self.reason = answer
            self._known[card, question] = None if isinstance(answer, str) else answer

    def _greeted(self) -> Release | None:
        """Return which library it is, once it has said so."""
        if self._release is None and (payload := self._exchange(b"")) is not None:
            try:
                self._release = wire.decode_greeting(payload)
            except wire.WireError as error:
                self._give_up(f"cuDNN's process answered wrongly: {error}")
        return self._release if self._is_usable else None

    def _exchange(self, request: bytes) -> bytes | None:
        """Send *request* and return the next frame, None if there is none in time."""
        if not self._is_usable:
            return None
        try:
            self._connection.settimeout(max(self._deadline - time.monotonic(), 1e-3))
            self._connection.sendall(request)
            return read_frame(self._connection, most=wire.MAX_RESPONSE)
        except TimeoutError:
            self._give_up(f"cuDNN did not answer within {self._limit:g} s")
        except OSError as error:
            self._give_up(f"cuDNN's process ended ({error.strerror})")
        except TraceError as error:
            self._give_up(f"cuDNN's process ended ({error.message})")
        return None

    def _give_up(self, reason: str) -> None:
        self._is_usable = False
        self.reason = reason
        self._connection.close()
