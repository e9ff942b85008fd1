"""Put what was measured into estimates: `peak` and `most`, never what jobs are judged by.

    Estimate, Corrections -> Estimate

The figures of single ranks stay as traced. `least` and `enough` stay, too: a measured peak is what
a job took where it had room, and says nothing of how little it could do with. So no correction
makes or spares a denial.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from admission.learning.residuals import WIDEST, Correction, Group, Residuals, correction_of

if TYPE_CHECKING:
    from estimator.result import Breakdown, Estimate, Usage

CODE = "calibration"
MOST_NARROWED = 0.5
"""How much of the room between `peak` and `most` stays at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrections:
    """What the groups say; nothing, unless something was learnt."""

    by_group: Mapping[Group, Correction] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.by_group)

    def corrected(self, estimate: Estimate) -> Estimate:
        """Return *estimate* as measurements of its group have it; itself if there are too few."""
        if not self.by_group:
            return estimate
        found = self._of(estimate)
        return estimate if found is None else _corrected(estimate, found)

    def _of(self, estimate: Estimate) -> Correction | None:
        """Return the correction of its group: of its version, else of those that say none."""
        for group in groups_of(estimate, estimate.device.name):
            if group in self.by_group:
                return self.by_group[group]
        return None


NOTHING = Corrections()


def corrections_of(residuals: Residuals) -> Corrections:
    """Return the corrections of all groups that have enough samples for any."""
    found = {group: correction_of(samples) for group, samples in residuals.items()}
    return Corrections(
        by_group={
            group: correction
            for group, correction in found.items()
            if correction is not None and correction.may_widen
        }
    )


def groups_of(estimate: Estimate, product: str) -> tuple[Group, ...]:
    """Return the groups that *estimate* belongs to on a card, the closest first."""
    spec = estimate.spec
    version = ".".join(str(spec.get("frameworkVersion") or "").split("+")[0].split(".")[:2])
    framework, method = str(spec.get("framework") or ""), estimate.method.value

    def group(text: str) -> Group:
        return Group(framework=framework, method=method, product=product, version=text)

    return (group(version), group("")) if version else (group(""),)


def _corrected(estimate: Estimate, found: Correction) -> Estimate:
    raw, raw_most = estimate.peak.device_bytes, estimate.most.device_bytes
    peak = max(round(raw * found.shift), estimate.least.device_bytes)
    most = max(raw_most, min(round(raw * found.upper), round(raw_most * WIDEST)))
    if found.may_shift:
        narrow = peak + round(MOST_NARROWED * (raw_most - raw))
        most = min(max(round(raw * found.upper), narrow), round(raw_most * WIDEST))
    most = max(most, peak)
    if (peak, most) == (raw, raw_most):
        return estimate
    from estimator.result import AssumptionNote

    note = AssumptionNote(
        code=CODE,
        path="",
        value=f"{peak / raw:.3f}",
        reason=(
            f"{found.jobs} jobs of {found.namespaces} namespaces took {found.median:.2f} of their"
            f" estimates here, nearly all up to {found.upper:.2f}"
        ),
    )
    return estimate.model_copy(
        update={
            "peak": _moved(estimate.peak, peak - raw),
            "most": _moved(estimate.most, most - raw_most),
            "breakdown": _broken_down(estimate.breakdown, raw=raw, peak=peak),
            "assumptions": (*estimate.assumptions, note),
        }
    )


def _moved(usage: Usage, nbytes: int) -> Usage:
    """Return *usage* with *nbytes* more in what the driver counts: whose they are is not known."""
    reserved = max(usage.allocated_bytes, usage.reserved_bytes + nbytes)
    return usage.model_copy(
        update={"reserved_bytes": reserved, "device_bytes": usage.device_bytes + nbytes}
    )


def _broken_down(parts: Breakdown, *, raw: int, peak: int) -> Breakdown:
    """Return *parts* that add up to *peak*: more is nobody's part, less is taken of each."""
    if peak >= raw:
        return parts.model_copy(update={"other": parts.other + peak - raw})
    names = tuple(type(parts).model_fields)
    scaled = {name: getattr(parts, name) * peak // raw for name in names}
    largest = max(names, key=lambda name: scaled[name])
    scaled[largest] += peak - sum(scaled.values())
    return parts.model_copy(update=scaled)
