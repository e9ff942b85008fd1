"""What is heard of a fork, however soon it ends."""

from __future__ import annotations

import socket

from estimator.processes.frames import frame
from estimator.workers.exchange import ask_fork


async def test_an_answer_is_heard_though_the_question_was_never_read() -> None:
    """A fork that estimates nothing says so and ends, before it is asked on a busy machine."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours:
        with theirs:
            theirs.sendall(frame(b"this kernel gives no seccomp"))

        answer = await ask_fork(ours, b"a question")

    assert answer == b"this kernel gives no seccomp"


async def test_a_fork_that_ended_without_a_word_has_no_answer() -> None:
    """Its exit status says why."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours:
        theirs.close()

        assert await ask_fork(ours, b"a question") is None
