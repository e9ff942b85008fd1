"""A process that owns one cuDNN library, answers questions about it and does nothing else.

    python -m estimator.cudnn.process --library FOLDER --control FD --journal FD --parent PID …

Limits itself, loads the library, warms it up, says so, and serves. Has no network: connections
come over the control socket. May end at any question: that is what it is for.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import time
from pathlib import Path

import orjson

from estimator.cudnn.backend import LibraryError
from estimator.cudnn.desk import Desk
from estimator.cudnn.journal import Journal
from estimator.cudnn.library import Library
from estimator.cudnn.service import MAX_MESSAGE, Service
from estimator.cudnn.warmup import warm_up
from estimator.processes import jail
from estimator.processes.usage import resident_bytes
from estimator.units import GIB

MEMORY_BYTES = 2 * GIB
"""Private memory beyond what Python has at its start. 9.26 was measured to take 0.25 GiB of it."""


def main() -> None:
    """Load the library the command line names, and serve."""
    parser = argparse.ArgumentParser(prog="estimator.cudnn.process")
    parser.add_argument("--library", type=Path, required=True)
    parser.add_argument("--control", type=int, required=True)
    parser.add_argument("--journal", type=int, required=True)
    parser.add_argument("--question-seconds", type=float, required=True)
    parser.add_argument("--parent", type=int, required=True)
    options = parser.parse_args()
    jail.die_with_parent(options.parent)
    library_paths = (str(options.library), str(options.library.parent))
    isolation = jail.confine(memory_bytes=MEMORY_BYTES, reads=library_paths)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
    with socket.socket(fileno=options.control) as control:
        refused = [key.encode() for key in orjson.loads(control.recv(MAX_MESSAGE))["refused"]]
        started = time.monotonic()
        try:
            library = Library(options.library)
            warm_up(library)
        except LibraryError as error:
            control.send(orjson.dumps({"failed": str(error)}))
            return
        facts = {
            "version": library.release.version,
            "cuda": library.release.cuda,
            "seconds": time.monotonic() - started,
            "rss_bytes": resident_bytes(),
            "confined": isolation.system_calls,
        }
        control.send(orjson.dumps({"ready": facts}))
        journal = Journal(options.journal)
        seconds = options.question_seconds
        desk = Desk(library, journal, question_seconds=seconds, refused=refused)
        Service(control, desk).serve()


if __name__ == "__main__":
    main()
    os._exit(0)  # the library's exit handlers have nothing to say here
