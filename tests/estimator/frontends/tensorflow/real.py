"""Run one of the programs that hold TensorFlow itself, and read what it says.

program, document -> records of TensorFlow's allocator, in its own order
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.estimator.frontends.tensorflow.allocation_order import NoOrderError, in_order

TIME_LIMIT_SECONDS = 900
TRIES = 3
"""How often a program is run until the profiler has all of its records. It drops those whose
time is before its start, which a clock that is set back gives (`ConvertCompleteEventsToXPlane`)."""


def records_of(
    program: str,
    document: dict[str, Any],
    folder: Path,
    environment: Mapping[str, str] | None = None,
    *,
    from_the_first: bool = False,
) -> list[dict[str, Any]]:
    """Return what *program*, a file beside this one, says of *document*.

    *from_the_first*: nothing was in use before the first record.

    Raises:
        NoOrderError: if the records of no try can be put into an order.
    """
    given = folder / "document.json"
    given.write_text(json.dumps(document))
    reasons = []
    for _ in range(TRIES):
        try:
            lines = _said(program, given, environment or {})
            return in_order(lines, begins_empty=from_the_first)
        except NoOrderError as error:
            reasons.append(str(error))
    raise NoOrderError(f"the profiler's records are not whole in any of {TRIES} runs: {reasons}")


def _said(program: str, given: Path, environment: Mapping[str, str]) -> list[list[dict[str, Any]]]:
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name(program)), str(given)],
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT_SECONDS,
        check=False,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: list[list[dict[str, Any]]] = json.loads(done.stdout.splitlines()[-1])
    return found
