"""The annotations that say what was found, for people, controllers and metrics.

    UnitJudgement -> name, value

Nobody reads them back as truth: whoever writes the object can write them too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from admission.codes import ORDER, Verdict
from admission.values import UnitJudgement

PREFIX = "vramgate.dev/"
ESTIMATE = f"{PREFIX}estimate-bytes"
LEAST = f"{PREFIX}least-bytes"
ENOUGH = f"{PREFIX}enough-bytes"
VERDICT = f"{PREFIX}verdict"
DIGEST = f"{PREFIX}spec-digest"
NOTES = (ESTIMATE, LEAST, ENOUGH, VERDICT, DIGEST)


def notes_of(
    units: Iterable[UnitJudgement], *, verdict: Verdict | None = None
) -> Mapping[str, str]:
    """Return the annotations of an object with *units*: of the one that needs most.

    *verdict* is the workload's; without it the worst of the units.
    """
    units = tuple(units)
    worst = min((judged.verdict for judged in units), key=ORDER.index, default=Verdict.SKIPPED)
    notes = {VERDICT: str(verdict or worst)}
    estimates = [judged.estimate for judged in units if judged.estimate is not None]
    if not estimates:
        return notes
    largest = max(estimates, key=lambda found: found.enough.device_bytes)
    return notes | {
        ESTIMATE: str(largest.peak.device_bytes),
        LEAST: str(largest.least.device_bytes),
        ENOUGH: str(largest.enough.device_bytes),
        DIGEST: largest.spec_digest,
    }
