"""One job's measured peak, on its way to where such are kept.

text, Measured -> text
"""

from __future__ import annotations

from dataclasses import dataclass

from admission.learning import residuals_text
from admission.learning.residuals import Group, Sample, with_sample


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A sample and its group."""

    group: Group
    sample: Sample


def with_measured(text: str, measured: Measured) -> str:
    """Return *text*, as the ConfigMap has it, with *measured*."""
    before = residuals_text.read(text)
    return residuals_text.written(with_sample(before, measured.group, measured.sample))
