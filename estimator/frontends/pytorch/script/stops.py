"""How a script is ended from inside.

enough steps seen, time over -> an exception that no `except Exception` holds
"""

from __future__ import annotations

from dataclasses import dataclass


class Cut(BaseException):
    """Ends the script. Not an `Exception`: loops that go on after errors must not go on."""


class Enough(Cut):
    """What was to be seen has been seen."""


class TimeUp(Cut):
    """The script took longer than it may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """How much of a script is watched."""

    steps: int = 2
    """Steps of the optimizer. The first makes its state, the second has it during backward."""
    seconds: float = 300.0
    """Wall time of the script, from its first line."""
