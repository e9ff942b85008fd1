"""Clients that send reviews by the clock, over connections that are kept alive.

    Plan, server, Judge -> counts and latencies

A review is asked once and never again: what the server does not answer is lost, and counted.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import ssl
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from admission.review import Route
from tests.load.answering import Judge, Review
from tests.load.bodies import body_of
from tests.load.cases import Case
from tests.load.connection import Connection, StrayBytesError, connect
from tests.load.specs import CARRIERS, carrier, scripted, unseen_spec
from tests.load.states import Timeline

LOST = (OSError, TimeoutError, StrayBytesError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is sent, how fast and by how many."""

    reviews: int
    seed: int
    rate: float
    """Reviews a second; a client that is still waiting sends later."""
    clients: int
    unseen: float
    """The share of specs that nobody has seen before."""
    uses_torch: bool
    timeout_seconds: int
    """What the registration says: the API server gives up after it."""


class Reviews:
    """What is sent next: cases at random, and unseen specs by their number."""

    def __init__(self, plan: Plan, cases: Sequence[Case]) -> None:
        self._plan = plan
        self._rng = random.Random(plan.seed)
        self._numbers = itertools.count(1)
        self._config_maps = itertools.count(1)
        self._cases = [
            Review(
                body=case.body,
                subject=case.name,
                case=number,
                reads_document=case.reads_document,
            )
            for number, case in enumerate(cases)
        ]

    def case(self, number: int) -> Review:
        """Return the review of one case."""
        return self._cases[number]

    def next(self) -> Review:
        """Return the next review."""
        if self._rng.random() < self._plan.unseen:
            return self.unseen()
        return self._cases[int(self._rng.random() * len(self._cases))]

    def unseen(self) -> Review:
        """Return a review of a spec that nobody has seen."""
        number = next(self._numbers)
        spec = unseen_spec(number, uses_torch=self._plan.uses_torch)
        obj = carrier(number, spec)
        route = (Route.MUTATE, Route.VALIDATE)[number // len(CARRIERS) % 2]
        return Review(body=body_of(obj, route=route), subject=obj["metadata"]["name"])

    def from_config_map(self) -> Review:
        """Return a review of a spec in a ConfigMap that nobody has asked for."""
        obj = scripted(next(self._config_maps), namespace="team-0")
        body = body_of(obj, route=Route.MUTATE)
        return Review(body=body, subject=obj["metadata"]["name"], reads_document=True)


@dataclass(slots=True, kw_only=True)
class Sender:
    """Sends and counts. `broken` says what was lost, and why."""

    plan: Plan
    port: int
    context: ssl.SSLContext
    reviews: Reviews
    judge: Judge
    timeline: Timeline
    seconds: array[float] = field(default_factory=lambda: array("d"))
    """From the moment a review is written to the moment its answer is there."""
    broken: list[str] = field(default_factory=list)
    num_lost: int = 0
    uids: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    generation: int = 0
    """Raised where clients are to connect again, as to a certificate that was renewed."""

    @property
    def num_answered(self) -> int:
        """Return how many reviews were answered."""
        return len(self.seconds)

    @property
    def num_done(self) -> int:
        """Return how many reviews were answered or lost."""
        return self.num_answered + self.num_lost

    async def run(self, is_over: Callable[[], bool]) -> None:
        """Send until every review is answered and *is_over*."""
        began = time.perf_counter()
        tickets = itertools.count()

        async def client(number: int) -> None:
            connection, generation = await connect(self.port, self.context), self.generation
            for ticket in tickets:
                if ticket >= self.plan.reviews and is_over():
                    break
                wait = began + ticket / self.plan.rate - time.perf_counter()
                if wait > 0:
                    await asyncio.sleep(wait)
                # Every second client keeps the connection it has, whatever certificate it saw.
                is_stale = generation != self.generation and number % 2 == 0
                if is_stale or not connection.is_open:
                    connection.close()
                    connection, generation = await self._connected(), self.generation
                await self.ask(connection, self.reviews.next())
            connection.close()

        async with asyncio.TaskGroup() as group:
            for number in range(self.plan.clients):
                group.create_task(client(number))

    async def ask(self, connection: Connection, review: Review) -> str:
        """Send *review* and return what kind of answer it got, empty if none."""
        uid = self.new_uid()
        request = review.body.request(uid, timeout_seconds=self.plan.timeout_seconds)
        mark, sent = self.timeline.mark, time.perf_counter()
        try:
            reply = await connection.ask(request)
        except LOST as error:
            self.lose(review, error)
            return ""
        return self.take(review, uid, reply, mark=mark, sent=sent)

    async def ask_alone(self, review: Review) -> str:
        """Send *review* on a connection of its own."""
        connection = await connect(self.port, self.context)
        try:
            return await self.ask(connection, review)
        finally:
            connection.close()

    def forget(self) -> None:
        """Begin to count anew: what was sent so far was no load."""
        self.seconds = array("d")
        self.judge.forget()

    def new_uid(self) -> str:
        """Return the uid of one more review."""
        return f"{next(self.uids):08x}-0000-4000-8000-{self.plan.seed & 0xFFFFFFFFFFFF:012x}"

    def take(
        self, review: Review, uid: str, reply: tuple[int, bytes], *, mark: int, sent: float
    ) -> str:
        """Judge *reply* to what was sent at *sent*, and return its kind."""
        self.seconds.append(time.perf_counter() - sent)
        return self.judge.judge(review, uid, reply, self.timeline.since(mark))

    def lose(self, review: Review, error: BaseException) -> None:
        """Note that *review* got no answer."""
        self.num_lost += 1
        self.broken.append(f"{review.subject}: {type(error).__name__} {error}")

    async def _connected(self) -> Connection:
        return await connect(self.port, self.context)
