"""What a death by lack of GPU memory taught: the job needs more than that card gave.

container's name, card, bytes -> Floor
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """A lower bound on what one container needs of one card, learnt from an earlier run.

    It steers and warns, and never denies: the run may have died of something that is mended.
    """

    container: str
    nbytes: int
    """The need counts as at least this, without the driver's reservation."""
    gave: int
    """What that card gave the container, in bytes; 0 where that is not known."""
    card: str
    """The class of that card: `Tesla-T4`."""
    when: str
    """When it died, as the API server writes it."""
