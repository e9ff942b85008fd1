"""Commands that start workers keep them from their own memory."""

from __future__ import annotations

import subprocess
import sys

import pytest

COMMAND = """
import sys
from admission.cli import main
from estimator.processes import kernel
status = main([sys.argv[1], "--config", "/nowhere"])
print(status, kernel.control(kernel.GET_DUMPABLE, 0))
"""
"""Ends before it serves, since there are no settings; what it has hidden by then stays so."""


@pytest.mark.parametrize("command", ["serve", "controller"])
def test_commands_with_workers_hide_their_memory_before_all_else(command: str) -> None:
    """The key of the certificate and the token are read afterwards."""
    run = subprocess.run(
        [sys.executable, "-c", COMMAND, command], capture_output=True, text=True, check=True
    )

    assert run.stdout.split() == ["2", "True"]
