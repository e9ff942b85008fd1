"""Cards in sentences: which one is meant, what it gives, how to choose it.

    NodeClass, ClassVerdicts -> text

Capacities are rounded down. Names are as people wrote them: `sentences.py` cleans them.
"""

from __future__ import annotations

from collections.abc import Sequence

from admission.codes import ORDER, Verdict
from admission.decision import budget_of
from admission.message.shares import as_declared
from admission.values import ClassVerdict, NodeClass
from estimator.units import gib_down

MAX_CARDS = 3
"""Kinds of card that are named; further ones are counted."""


def card_text(node_class: NodeClass, classes: Sequence[ClassVerdict]) -> str:
    """Return `Tesla-T4 ×8`: the card and how many of them the job may use."""
    cards = sum(
        found.node_class.count * found.node_class.gpus_per_node
        for found in classes
        if found.node_class.name == node_class.name
    )
    return f"{node_class.name} ×{cards}" if cards else node_class.name


def largest_text(
    node_class: NodeClass, classes: Sequence[ClassVerdict], *, but_for_taints: bool = False
) -> str:
    """Return what the largest card gives the job, or the one card that was named."""
    budget = gib_down(budget_of(node_class) or 0)
    if not node_class.members:
        return f"{node_class.name} gives it {budget}{as_declared(node_class)}"
    may = "may use as it is" if but_for_taints else "may use"
    card = card_text(node_class, classes)
    declared = as_declared(node_class)
    return f"the largest card this job {may} ({card}) gives it {budget}{declared}"


def smaller_text(found: ClassVerdict, classes: Sequence[ClassVerdict]) -> str:
    """Return what another card gives the job, which it may land on as well."""
    budget = gib_down(budget_of(found.node_class) or 0)
    declared = as_declared(found.node_class)
    card = card_text(found.node_class, classes)
    return f"{card}, which it may also use, gives it {budget}{declared}"


def smallest_class(classes: Sequence[ClassVerdict], *verdicts: Verdict) -> ClassVerdict | None:
    """Return the worst class with one of *verdicts*, the smallest budget among equals."""
    return min(
        (found for found in classes if found.verdict in verdicts),
        key=lambda found: (ORDER.index(found.verdict), budget_of(found.node_class) or 0),
        default=None,
    )


def fitting_text(classes: Sequence[ClassVerdict]) -> str:
    """Return the cards that surely hold the job, the smallest first: `Tesla-T4 ×8 and …`."""
    cards = dict.fromkeys(card_text(node_class, classes) for node_class in _fitting(classes))
    shown = list(cards)[:MAX_CARDS]
    more = [f"{len(cards) - MAX_CARDS} more kinds of card"] if len(cards) > MAX_CARDS else []
    return " and ".join([*shown, *more])


def choosing_text(classes: Sequence[ClassVerdict]) -> str:
    """Return how to keep the job on the smallest card that holds it."""
    label = "nvidia.com/gpu.product"
    node_class = _fitting(classes)[0]
    product = node_class.labels.get(label, node_class.product)
    return f"choose the card, for example with nodeSelector {label}: {product}"


def _fitting(classes: Sequence[ClassVerdict]) -> list[NodeClass]:
    """Return the classes that hold the job surely, the smallest first."""
    fitting = [found.node_class for found in classes if found.verdict is Verdict.FITS]
    return sorted(fitting, key=lambda node_class: budget_of(node_class) or 0)
