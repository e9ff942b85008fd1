"""A log that cannot be written costs lines, and never whoever writes them."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import orjson
import pytest
import structlog

from admission.config import LogFormat, LogLevel
from admission.log_stream import PATIENCE_SECONDS, LogStream
from admission.logs import configure_logs

PIPE_BYTES = 1 << 16


def told(number: int) -> str:
    """Return the line for so many that were lost."""
    return f"lost {number}"


def drained(descriptor: int) -> bytes:
    """Return what is in a pipe now."""
    os.set_blocking(descriptor, False)
    found = b""
    while True:
        try:
            piece = os.read(descriptor, PIPE_BYTES)
        except BlockingIOError:
            return found
        if not piece:
            return found
        found += piece


def test_pipe_that_nobody_reads_holds_nobody_up() -> None:
    """Lines are lost, none is waited for after the first, and how many is said afterwards."""
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as stream:
        lines = LogStream(stream, lost=told)
        for number in range(2000):
            lines.write(f"{number} {'x' * 100}\n")

        before = drained(reading).decode().splitlines()
        lines.write("after\n")
        after = drained(reading).decode().splitlines()

    os.close(reading)
    assert [line.split()[0] for line in before] == [str(number) for number in range(len(before))]
    assert 0 < len(before) < 2000
    assert after == [f"lost {2000 - len(before)}", "after"]


def test_line_longer_than_a_pipe_is_broken_off_and_told() -> None:
    """What comes after it begins on a line of its own."""
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as stream:
        lines = LogStream(stream, lost=told)
        lines.write("x" * (2 * PIPE_BYTES) + "\n")
        broken = drained(reading)
        lines.write("after\n")
        after = drained(reading)

    os.close(reading)
    assert set(broken) == {ord("x")}
    assert after == b"\nlost 1\nafter\n"


def test_first_lost_line_is_waited_for_and_no_other() -> None:
    """A reader that is slow by a moment loses nothing; one that is gone costs one wait."""
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as stream:
        lines = LogStream(stream, lost=told)
        waits: list[float] = []
        while not waits or waits[-1]:
            lines.write("x" * 1000 + "\n")
            waits.append(lines._patience)

    os.close(reading)
    assert set(waits) == {PATIENCE_SECONDS, 0.0}


def test_full_disk_loses_lines_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """ENOSPC from the kernel: our loggers and the library's raise nothing and print nothing."""
    with Path("/dev/full").open("w") as full:
        configure_logs(LogLevel.INFO, form=LogFormat.JSON, stream=full)
        structlog.get_logger().info("reviewed")
        logging.getLogger("library").warning("something")

    assert capsys.readouterr() == ("", "")


def test_reader_that_is_gone_loses_lines_alone() -> None:
    """EPIPE: the container runtime let go of its end."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as stream:
        LogStream(stream, lost=told).write("line\n")


def test_lost_lines_are_told_in_json() -> None:
    """As any other line of ours."""
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as stream:
        configure_logs(LogLevel.INFO, form=LogFormat.JSON, stream=stream)
        log = structlog.get_logger()
        for number in range(1000):
            log.info("reviewed", number=number, text="x" * 100)
        kept = drained(reading).splitlines()
        log.info("stopped")
        lost, last = map(orjson.loads, drained(reading).splitlines())

    os.close(reading)
    assert (lost["event"], lost["level"]) == ("log lines lost", "warning")
    assert lost["lines"] == 1000 - len(kept)
    assert last["event"] == "stopped"
