"""What an earlier run of the same containers taught, in words.

Floor -> one sentence
"""

from __future__ import annotations

from admission.floor import Floor
from estimator.units import gib_down


def learnt_text(floor: Floor) -> str:
    """Return what a person is told of the earlier run."""
    gave = f", which gave it {gib_down(floor.gave)}" if floor.gave else ""
    card = floor.card or "a card that is not known any more"
    return f"an earlier run of the same containers died of too little GPU memory on {card}{gave}"
