"""What a person is told of a finding."""

from __future__ import annotations

from admission.message.findings import told_reason
from admission.values import Finding


def finding(path: str, reason: str) -> Finding:
    return Finding(code="parallelism", path=path, reason=reason, hint=None)


def test_the_path_that_the_sentence_begins_with_is_not_said_twice() -> None:
    path = "parallelism.strategy"

    assert told_reason(finding(path, f"{path}: 'dp' is not modelled")) == "'dp' is not modelled"
    assert told_reason(finding("", "no class is known")) == "no class is known"
