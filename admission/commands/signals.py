"""How a process that runs on is told to stop.

SIGTERM, SIGINT -> an event; SIGHUP -> a line in the log

From the first moment on: what is begun is put down in order also by who is told while it starts.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Iterator

import structlog

STOPPING = (signal.SIGTERM, signal.SIGINT)

_log = structlog.get_logger()


@contextlib.contextmanager
def told_to_stop() -> Iterator[asyncio.Event]:
    """Give the event that is set once this process is told to stop, until the block ends.

    A hangup, which ends who does not expect it, changes nothing: settings are looked at anyway.
    """
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in STOPPING:
        loop.add_signal_handler(number, told.set)
    loop.add_signal_handler(signal.SIGHUP, hung_up)
    try:
        yield told
    finally:
        for number in (*STOPPING, signal.SIGHUP):
            loop.remove_signal_handler(number)


def hung_up(*_: object) -> None:
    """Tell of a SIGHUP. A signal handler of either sort."""
    _log.info("hangup ignored")
