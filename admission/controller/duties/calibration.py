"""Jobs that succeeded and were measured: told, and kept for the estimates of others.

    peaks on pods, the estimate of their root -> Event, a sample

The agent writes a pod's last peaks as it ends, so a look waits a moment. Of all pods of one root
the largest peak on one card counts, against the estimate for that card, without any correction. Not
measured: frameworks that take the card whole, cards that several share.
"""

from __future__ import annotations

from dataclasses import dataclass

from admission.controller.acts import NOTHING, Act, Look, Reason, Remember, Tell
from admission.controller.bounds import is_left_alone, is_own
from admission.controller.duty import Add, Quiet
from admission.controller.parts import Parts
from admission.controller.pods import PodView
from admission.controller.refs import ref_of
from admission.errors import RequestError
from admission.learning.corrections import groups_of
from admission.learning.measured import Measured
from admission.learning.residuals import RATIOS, Sample, namespace_digest
from admission.peaks import ANNOTATION, read
from admission.steer.writing import unsteered
from admission.values import ClassVerdict, Json
from estimator.units import gib_up

SETTLE_SECONDS = 15.0
"""From a pod's end to a look: for the agent's last word, and its fellows'."""
OLD_SECONDS = 3000.0
"""Ends of longer ago are left: the Event that told them may be gone, and it would be told again."""
SECONDS_PER_DAY = 86400
_WHOLE = ("none", "mig")
MOST_OWNERS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class _Peak:
    nbytes: int
    node: str
    pod: str


class Calibration(Quiet):
    """Looks after pods that succeeded with a peak written on them."""

    name = "calibration"

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def pod_changed(self, pod: PodView, add: Add) -> None:
        """Look at *pod* a while after it succeeded."""
        if pod.phase == "Succeeded" and ANNOTATION in pod.annotations and self._is_new(pod):
            add(pod.key, SETTLE_SECONDS)

    async def look(self, key: str) -> Look:
        """Take the peak of the pod's root, once all of its pods have ended."""
        pod = self._parts.store.pod(key)
        if pod is None or not self._is_new(pod) or is_own(pod.ref.namespace, self._parts):
            return NOTHING
        peak = self._peak(pod)
        if peak is None:
            return NOTHING
        chain = await self._chain(pod)
        if not chain or any(is_left_alone(obj, self._parts) for obj in chain):
            return NOTHING
        root = chain[-1]
        found = await self._estimated(root, peak)
        if found is None or found.estimate is None:
            return NOTHING
        estimate, ref = found.estimate, ref_of(root)
        ratio = peak.nbytes / estimate.peak.device_bytes
        note = (
            f"its most on one card was {gib_up(peak.nbytes)} (pod {peak.pod},"
            f" {found.node_class.name}); estimated {gib_up(estimate.peak.device_bytes)}"
        )
        tell = Tell(about=ref, reason=Reason.MEASURED, note=note, cause=str(peak.nbytes))
        if not RATIOS[0] <= ratio <= RATIOS[1]:
            return Look(acts=(Act(tell=tell),))
        sample = Sample(
            namespace=namespace_digest(ref.namespace),
            spec=estimate.spec_digest.rpartition(":")[2][:16],
            ratio=ratio,
            day=int(self._parts.now().timestamp()) // SECONDS_PER_DAY,
        )
        group = groups_of(estimate, estimate.device.name)[0]
        kept = Remember(measured=Measured(group=group, sample=sample))
        return Look(acts=(Act(tell=tell, writes=(kept,)),))

    def _is_new(self, pod: PodView) -> bool:
        ended = pod.finished
        return ended is None or (self._parts.now() - ended).total_seconds() < OLD_SECONDS

    def _peak(self, pod: PodView) -> _Peak | None:
        """Return the largest peak of all pods of the root; None while one of them runs or waits."""
        root = self._root_uid(pod)
        fellows = [
            each for each in self._parts.store.pods() if root and self._root_uid(each) == root
        ] or [pod]
        if any(each.phase in ("Pending", "Running") for each in fellows):
            return None
        peaks = [
            _Peak(nbytes=nbytes, node=each.node or "", pod=each.ref.name)
            for each in fellows
            if each.phase == "Succeeded"
            for nbytes in read(each.annotations.get(ANNOTATION, "")).values()
        ]
        return max(peaks, key=lambda each: (each.nbytes, each.pod), default=None)

    def _root_uid(self, pod: PodView) -> str:
        """Return the UID of the topmost owner that is known; empty for a pod of nobody's."""
        owner, uid = pod.owner, ""
        for _ in range(MOST_OWNERS):
            if owner is None:
                break
            uid = owner.uid
            above = self._parts.store.workload_of_uid(uid)
            owner = above.owner if above else None
        return uid

    async def _chain(self, pod: PodView) -> tuple[Json, ...]:
        whole = await self._parts.judges.read(pod.ref)
        return () if whole is None else await self._parts.judges.owners(whole)

    async def _estimated(self, root: Json, peak: _Peak) -> ClassVerdict | None:
        """Return the class that *peak* was measured on with its estimate: of the largest unit."""
        try:
            judgement = await self._parts.judges.judged(unsteered(root))
        except RequestError:
            return None
        found = [
            each
            for unit in judgement.units
            for each in unit.classes
            if peak.node in each.node_class.nodes
            and each.estimate is not None
            and each.estimate.preallocated_bytes is None
            and each.node_class.sharing in _WHOLE
            and peak.nbytes <= (each.estimate.device.total_bytes or 0)
        ]
        return max(
            found,
            key=lambda each: each.estimate.peak.device_bytes if each.estimate else 0,
            default=None,
        )
