"""What the API server's audit log keeps of a review, and the words a table shows.

    Judgement -> short texts by name

The API server puts the webhook's name before each. Nobody reads them back as truth.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from admission.decision import best_of, budget_of
from admission.judge.conclusion import deciding_unit
from admission.message.naming import card_text
from admission.plaintext import plain
from admission.values import Judgement, UnitJudgement
from estimator.units import gib_down

if TYPE_CHECKING:
    from estimator.spec import JobSpec

MAX_TERMS = 2000
"""Characters of the terms that are kept: one pod template has some four hundred."""


def audit_of(judgement: Judgement) -> Mapping[str, str]:
    """Return verdict, mode, reason and, of the deciding unit, what was found and what it needs.

    Beside them what kept it from being denied, and where its pods were steered to.
    """
    notes = {
        "verdict": judgement.verdict.value,
        "mode": judgement.mode.value,
        "reason": judgement.reason,
        **_spared(judgement),
    }
    if judgement.steered:
        notes["steered"] = plain(judgement.steered, limit=MAX_TERMS)
    unit = deciding_unit(judgement)
    if unit is None:
        return notes
    if unit.reading.spec is not None:
        notes |= {"found": found_text(unit.reading.spec)}
    if (card := best_card_text(unit)) is not None:
        notes |= {"best-card": card}
    if unit.estimate is not None:
        notes |= {
            "least-bytes": str(unit.estimate.least.device_bytes),
            "enough-bytes": str(unit.estimate.enough.device_bytes),
            "peak-bytes": str(unit.estimate.peak.device_bytes),
            "spec-digest": unit.estimate.spec_digest,
        }
    return notes


def _spared(judgement: Judgement) -> Mapping[str, str]:
    """Return what a denial was withheld for, if mode `warn` or an exemption withheld one."""
    if not judgement.is_spared:
        return {}
    exemption = judgement.exemption
    if exemption is None:
        return {"would-deny": "mode-warn"}
    return {
        "would-deny": "exempt",
        "exempt-until": exemption.until_text,
        "exempt-by": exemption.source,
        "exempt-reason": plain(exemption.reason),
    }


def found_text(spec: JobSpec) -> str:
    """Return the job in a few words: model, batch, precision."""
    return plain(f"{spec.model.name}, batch {spec.input.batch_size}, {spec.training.precision}")


def best_card_text(unit: UnitJudgement) -> str | None:
    """Return the best card the unit may use and what it gives, or None if there is none."""
    best = best_of(unit.classes)
    if best is None:
        return None
    budget = gib_down(budget_of(best.node_class) or 0)
    return f"{card_text(best.node_class, unit.classes)}, {budget}"
