"""What a unit declares of a card, in words.

NodeClass, Estimate -> phrases
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from admission.capacity.declared import raised
from admission.values import ClassVerdict, NodeClass

if TYPE_CHECKING:
    from estimator.result import Estimate


def as_declared(node_class: NodeClass) -> str:
    """Return what follows a budget that is no more than what is declared."""
    declared = node_class.declared
    return f", as it declares with {declared.share.text}" if declared else ""


def larger_declaration(found: ClassVerdict, estimate: Estimate) -> str:
    """Return the declaration with which the card holds the job, as a change; empty if none does."""
    declared = found.node_class.declared
    text = raised(declared, estimate.enough.device_bytes) if declared else ""
    return f"with {text}" if text else ""
