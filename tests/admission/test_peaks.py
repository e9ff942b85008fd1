"""The annotation is read back as it was written, and nothing else is taken for one."""

from __future__ import annotations

import json

import pytest

from admission.peaks import MAX_BYTES, MAX_PEAKS, read, written

PEAKS = {("b", "GPU-1"): 3, ("a", "GPU-2"): 2, ("a", "GPU-1"): 1}


def test_peaks_are_written_by_container_and_card() -> None:
    """In one order, so that equal peaks are equal texts."""
    text = written(PEAKS)

    assert text == '{"a":{"GPU-1":1,"GPU-2":2},"b":{"GPU-1":3}}'
    assert read(text) == PEAKS


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "7",
        '{"a": 7}',
        '{"a": {"GPU-1": "7"}}',
        '{"a": {"GPU-1": true}}',
        '{"a": {"GPU-1": -1}}',
        json.dumps({"a": {"GPU-1": MAX_BYTES}}),
        json.dumps({"a": {f"GPU-{n}": 1 for n in range(MAX_PEAKS + 1)}}),
        json.dumps({"a" * (1 << 20): {"GPU-1": 1}}),
    ],
)
def test_text_of_somebody_else_is_no_peak(text: str) -> None:
    """Whoever writes a pod can write its annotations."""
    assert read(text) == {}
