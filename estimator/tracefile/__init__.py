"""Trace files: one job's trace, written by `vramgate trace` and estimated anywhere.

    Recording <-> bytes

Pure: no file, no framework, nothing executed. Whoever reads one trusts nothing in it.
"""

from __future__ import annotations

from estimator.tracefile.document import MAX_CONTENT
from estimator.tracefile.kept import KeptTrace, job_digest, kept_content, read_kept
from estimator.tracefile.recording import (
    Recording,
    is_trace_file,
    read_recording,
    recorded,
)
from estimator.tracefile.restated import restated

__all__ = [
    "MAX_CONTENT",
    "KeptTrace",
    "Recording",
    "is_trace_file",
    "job_digest",
    "kept_content",
    "read_kept",
    "read_recording",
    "recorded",
    "restated",
]
