"""A disk that is full: nobody takes what was not written for an answer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from estimator.errors import SpecError
from estimator.tracefile import read_recording
from tests.estimator.test_trace_file import recording_of


def test_answer_that_cannot_be_written_is_no_answer() -> None:
    """ENOSPC from the kernel: status 3, which is neither yes nor no, and the reason in a line."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "admission", "gpus"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    assert done.returncode == 3
    assert done.stderr.splitlines()[-1].endswith("No space left on device")


def test_trace_file_that_was_cut_off_is_refused() -> None:
    """Wherever the disk was full."""
    content = recording_of().content
    for length in range(0, len(content), 16):
        with pytest.raises(SpecError):
            read_recording(content[:length])
