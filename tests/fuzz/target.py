"""What is fuzzed: a function of bytes, what to begin with, and what one input may take.

    bytes -> Target.run -> nothing, or a finding

A finding is an exception that is not of the documented ones (`run` lets those of people's own
mistakes end quietly), an answer that breaks a rule (`run` raises `Broken`), more time than
`seconds`, more memory than `mebibytes`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass


class Broken(AssertionError):
    """Something that was answered breaks a rule that holds for every input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One door that bytes of others come in by."""

    name: str
    """Lower case with dashes; the folder of its findings too."""

    run: Callable[[bytes], None]
    """Takes one input. What it needs besides is made once, at the first call (`cache`)."""

    seeds: Callable[[], Iterable[bytes]]
    """Return inputs to begin with; called once, before the first input."""

    dictionary: tuple[bytes, ...] = ()
    """Words of the format, put in at random."""

    seconds: float = 1.0
    """CPU seconds that one input may take, on code slowed down by instrumentation (about 3 x)."""

    mebibytes: int = 256
    """How much memory all inputs together may add to the process: one input's most, and leaks."""

    max_bytes: int = 64 * 1024
    """The longest input that is made."""

    begins: tuple[bytes, ...] = ()
    """What inputs of one word again and again begin with; none where bytes are decisions."""
