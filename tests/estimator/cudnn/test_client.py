"""What a fork makes of whatever is at the other end. No library, no process."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from threading import Thread

import orjson
import pytest

from estimator.cudnn import Answer, Plan
from estimator.cudnn.client import Plans
from estimator.errors import TraceError
from estimator.processes.frames import frame, read_frame
from tests.estimator.cudnn.cases import A100, convolution

GREETING = b'{"version":92600,"cuda":13}'
PLAN = Plan(engine=1, notes=(0, 4), workspace=512)
ANSWER = Answer(version=92600, instant=(PLAN,), fallback=())
WRITTEN = {"instant": [[1, [0, 4], 512]], "fallback": []}

Respond = Callable[[bytes], bytes]
Opposite = Callable[..., Plans]


@pytest.fixture
def opposite() -> Iterator[Opposite]:
    """Connect to a thread that greets and then answers each batch with a function of it."""
    ends: list[socket.socket] = []
    threads: list[Thread] = []

    def connect(respond: Respond, greeting: bytes = GREETING, limit: float = 60.0) -> Plans:
        ours, theirs = socket.socketpair()
        ends.extend((ours, theirs))
        threads.append(Thread(target=_serve, args=(theirs, respond, greeting)))
        threads[-1].start()
        return Plans(ours, limit_seconds=limit)

    yield connect
    for end in ends:
        end.close()
    for thread in threads:
        thread.join()


def _serve(connection: socket.socket, respond: Respond, greeting: bytes) -> None:
    with suppress(OSError, TraceError):
        connection.sendall(frame(greeting))
        while True:
            payload = respond(read_frame(connection))
            if not payload:
                connection.shutdown(socket.SHUT_RDWR)
                return
            connection.sendall(frame(payload))


def test_long_lists_travel_in_pieces(opposite: Opposite) -> None:
    """Forty different questions are three batches, each once; then they are remembered."""
    sizes: list[int] = []

    def respond(batch: bytes) -> bytes:
        sizes.append(len(orjson.loads(batch)["questions"]))
        return orjson.dumps([WRITTEN] * sizes[-1])

    plans = opposite(respond)
    questions = [convolution(batch=batch) for batch in range(1, 41)]

    assert plans.ask([*questions, *questions], A100) == [ANSWER] * 80
    assert plans.ask(questions[:1], A100) == [ANSWER]
    assert sizes == [16, 16, 8]
    assert plans.version == 92600
    assert plans.reason is None


def test_a_refused_question_is_unknown_alone(opposite: Opposite) -> None:
    """The others of its batch have answers, and the next question is asked."""
    answers = iter(([{"refused": "why"}, WRITTEN], [WRITTEN]))
    plans = opposite(lambda _: orjson.dumps(next(answers)))

    assert plans.ask([convolution(), convolution(batch=2)], A100) == [None, ANSWER]
    assert plans.reason == "why"
    assert plans.ask([convolution(batch=3)], A100) == [ANSWER]


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (b"", "ended"),
        (b"{", "not JSON"),
        (b"[]", "not as many answers"),
        (b"[1]", "other fields"),
        (b'[{"instant":[],"fallback":[[1]]}]', "other fields"),
        (b'[{"instant":[[1,2,3]],"fallback":[]}]', "other fields"),
    ],
)
def test_an_answer_that_is_none_ends_the_asking(
    opposite: Opposite, response: bytes, reason: str
) -> None:
    """After an end or garbage every question is unknown, and the reason stays."""
    plans = opposite(lambda _: response)

    assert plans.ask([convolution()], A100) == [None]
    assert plans.reason is not None
    assert reason in plans.reason
    assert plans.ask([convolution(batch=2)], A100) == [None]
    assert plans.version in (92600, None)


@pytest.mark.parametrize("greeting", [b"x", b"{}", b'{"version":"9","cuda":13}'])
def test_a_greeting_that_is_none_ends_the_asking(opposite: Opposite, greeting: bytes) -> None:
    """Who does not say which library it is is not asked."""
    plans = opposite(lambda _: b"[]", greeting=greeting)

    assert plans.version is None
    assert plans.ask([convolution()], A100) == [None]
    assert plans.reason is not None
    assert "answered wrongly" in plans.reason


def test_silence_ends_the_asking() -> None:
    """Nobody greets: the limit is waited for once."""
    ours, theirs = socket.socketpair()
    with theirs:
        plans = Plans(ours, limit_seconds=0.01)

        assert plans.ask([convolution(batch=batch) for batch in (1, 2)], A100) == [None, None]

    assert plans.reason == "cuDNN did not answer within 0.01 s"
    assert plans.version is None


def test_a_frame_that_announces_too_much_is_not_read() -> None:
    """A length over the limit ends the asking."""
    ours, theirs = socket.socketpair()
    with theirs:
        theirs.sendall(b"\xff\xff\xff\xff")
        plans = Plans(ours, limit_seconds=60)

        assert plans.version is None

    assert plans.reason is not None
    assert "are accepted" in plans.reason
