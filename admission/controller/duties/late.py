"""Objects that were let in unjudged are taken up again, and told what came of it.

    verdict `unknown` on an object -> judged anew -> Event, annotations, steering where that may be

Judged when first seen, when the cluster has other cards, when they change, and from time to time
while an estimate or a document is on its way. What stays unknown whatever happens is not said to
anybody. The root is judged; the pods that it made hear the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from admission.codes import ReasonCode, Verdict
from admission.controller.acts import NOTHING, Act, Cause, Look, Operate, Tell, Write
from admission.controller.bounds import is_left_alone, is_own
from admission.controller.duty import Add, Quiet
from admission.controller.judging import TakenUp
from admission.controller.parts import Parts
from admission.controller.pods import PodView
from admission.controller.refs import Ref, ref_of
from admission.controller.telling import moves_pods, noted, outcome, same_version
from admission.controller.tracked import Tracked
from admission.errors import RequestError
from admission.steer.notes import NOTES, VERDICT
from admission.steer.permission import is_queued
from admission.steer.terms import RECORD
from admission.values import Json

PATIENCE_SECONDS = 15.0
"""Of one look: others wait for it. The estimate goes on, and is asked for again."""
FIRST_PAUSES = {ReasonCode.LATE: 1.0, ReasonCode.DOCUMENT: 5.0}
"""Seconds until the next look, twice as long after each."""
LONGEST_PAUSE_SECONDS = 3600.0
MOST_PODS = 100
"""Told in one look."""
MOST_SEEN = 1000
"""Objects that are remembered before those that are gone are dropped."""
MOST_OWNERS = 8
_POD = "pod:"


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a look came to, so that the same is not asked again."""

    mark: str
    """Of the object as it was then."""
    code: ReasonCode | None
    """What it waits for; None: for nothing but a change of its own."""
    looks: int = 1


class Late(Quiet):
    """Looks after objects with the verdict `unknown`."""

    name = "late"

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._seen: dict[str, _Seen] = {}
        self._most_seen = MOST_SEEN

    def workload_changed(self, workload: Tracked, add: Add) -> None:
        """Look at *workload* if nothing is known of it yet."""
        if workload.owner is None and self._is_marked(workload):
            self._add(workload.key, _mark(workload), add)

    def pod_changed(self, pod: PodView, add: Add) -> None:
        """Look at the root of *pod* if nothing is known of it yet."""
        if not self._is_marked_pod(pod):
            return
        root = self._root(pod.owner)
        if root is None:
            self._add(f"{_POD}{pod.key}", pod.uid, add)
        else:
            self._add(root.key, _mark(root), add)

    def classes_changed(self, add: Add) -> None:
        """Look again at all that waits for something."""
        for key, seen in self._seen.items():
            if seen.code is not None:
                add(key, 0.0)

    async def look(self, key: str) -> Look:
        """Judge one root anew, if it is marked or one of its pods is."""
        if key.startswith(_POD):
            return await self._look_at_pod(key)
        workload = self._parts.store.workload(key)
        if workload is None or workload.ended:
            self._seen.pop(key, None)
            return NOTHING
        pods = self._pods_of(workload)
        if not pods and not self._is_marked(workload):
            self._seen.pop(key, None)
            return NOTHING
        obj = await self._parts.judges.read(workload.ref)
        if obj is None or is_left_alone(obj, self._parts):
            return NOTHING
        return await self._judged(key, _mark(workload), obj, pods)

    async def _look_at_pod(self, key: str) -> Look:
        """Look at a pod that nobody made, or whose maker is not followed."""
        pod = self._parts.store.pod(key.removeprefix(_POD))
        if pod is None or not self._is_marked_pod(pod):
            self._seen.pop(key, None)
            return NOTHING
        obj = await self._parts.judges.read(pod.ref)
        if obj is None or is_left_alone(obj, self._parts):
            return NOTHING
        root = await self._parts.judges.root(obj)
        pods = [] if root is obj else [pod]
        return await self._judged(key, pod.uid, root, pods)

    async def _judged(self, key: str, mark: str, obj: Json, pods: list[PodView]) -> Look:
        try:
            taken = await self._parts.judges.take_up(obj, seconds=PATIENCE_SECONDS)
        except RequestError:
            self._seen[key] = _Seen(mark, None)
            return NOTHING
        verdict = taken.judgement.verdict
        if verdict in (Verdict.UNKNOWN, Verdict.SKIPPED):
            return self._unknown(key, mark, taken)
        acts = []
        if _verdict_on(obj) == Verdict.UNKNOWN:
            acts.append(_act(obj, taken))
        if is_queued(obj["metadata"]):
            # Its queue says what may be written on it: what was said of it is not said again.
            self._seen[key] = _Seen(mark, None)
            return Look(acts=tuple(acts))
        self._seen.pop(key, None)
        acts += [_pod_act(pod.ref, taken) for pod in pods[:MOST_PODS]]
        return Look(acts=tuple(acts), again_seconds=0.0 if len(pods) > MOST_PODS else None)

    def _unknown(self, key: str, mark: str, taken: TakenUp) -> Look:
        """Return when to look again at what is still not known."""
        code = _waits_for(taken)
        before = self._seen.get(key)
        looks = before.looks + 1 if before and (before.mark, before.code) == (mark, code) else 1
        self._seen[key] = _Seen(mark, code, looks)
        self._forget()
        first = FIRST_PAUSES.get(code) if code else None
        if first is None:
            return NOTHING
        pause = min(first * 2.0 ** min(looks - 1, 20), LONGEST_PAUSE_SECONDS)
        return Look(again_seconds=pause)

    def _forget(self) -> None:
        """Drop what was seen of objects that are gone, now and then."""
        if len(self._seen) < self._most_seen:
            return
        store = self._parts.store
        self._seen = {
            key: seen
            for key, seen in self._seen.items()
            if store.workload(key) or store.pod(key.removeprefix(_POD))
        }
        self._most_seen = max(MOST_SEEN, 2 * len(self._seen))

    def _add(self, key: str, mark: str, add: Add) -> None:
        """Look at *key* unless it was seen as it is: then it has its time, or none."""
        seen = self._seen.get(key)
        if seen is None or seen.mark != mark:
            add(key, 0.0)

    def _is_marked(self, workload: Tracked) -> bool:
        """Return whether *workload* says that nothing is known of it."""
        is_open = workload.verdict == Verdict.UNKNOWN and not workload.ended
        return is_open and not is_own(workload.ref.namespace, self._parts)

    def _is_marked_pod(self, pod: PodView) -> bool:
        """Return whether *pod* says so. One with our gate is somebody else's duty."""
        return (
            pod.annotations.get(VERDICT) == Verdict.UNKNOWN
            and pod.phase in ("Pending", "Running")
            and not (pod.is_gated or pod.is_going or pod.queue)
            and not is_own(pod.ref.namespace, self._parts)
        )

    def _root(self, owner: Ref | None) -> Tracked | None:
        """Return the topmost workload above *owner* that is followed, if all below it are."""
        found = None
        for _ in range(MOST_OWNERS):
            if owner is None:
                return found
            found = self._parts.store.workload_of_uid(owner.uid)
            if found is None:
                return None
            owner = found.owner
        return found

    def _pods_of(self, root: Tracked) -> list[PodView]:
        """Return the marked pods that *root* made, itself or by what it made."""
        store = self._parts.store
        uids = [root.ref.uid]
        for uid in uids:
            children = (each for each in store.workloads() if each.owner and each.owner.uid == uid)
            uids += [each.ref.uid for each in children if each.ref.uid not in uids]
        return [pod for uid in uids for pod in store.pods_of(uid) if self._is_marked_pod(pod)]


def _act(obj: Json, taken: TakenUp) -> Act:
    """Return what is said of a root and written on it: its pods are steered where that may be."""
    ref, said = ref_of(obj), outcome(taken.judgement)
    patch, writes = taken.patch, list[Write]()
    is_moved = moves_pods(patch)
    if patch:
        writes.append(Operate(on=ref, operations=(same_version(obj), *patch)))
    elif not is_queued(obj["metadata"]):
        writes.append(noted(ref, taken.judgement))
    steered = " Its pods are steered there from now on." if is_moved else ""
    tell = Tell(
        about=ref,
        reason=said.reason,
        note=f"{said.note}{steered}",
        cause=said.digest,
        is_warning=said.is_warning,
    )
    return Act(tell=tell, writes=tuple(writes), cause=Cause.LATE if is_moved else None)


def _pod_act(ref: Ref, taken: TakenUp) -> Act:
    said = outcome(taken.judgement)
    tell = Tell(
        about=ref,
        reason=said.reason,
        note=said.note,
        cause=said.digest,
        is_warning=said.is_warning,
    )
    return Act(tell=tell, writes=(noted(ref, taken.judgement),))


def _waits_for(taken: TakenUp) -> ReasonCode | None:
    """Return what would have it judged otherwise without a change of its own; None if nothing."""
    judgement = taken.judgement
    if taken.is_late:
        return ReasonCode.LATE
    if taken.missing and judgement.verdict is Verdict.UNKNOWN:
        return ReasonCode.DOCUMENT
    codes = {finding.code for judged in judgement.units for finding in judged.findings}
    return ReasonCode.NO_CLASS if ReasonCode.NO_CLASS in codes else None


def _mark(workload: Tracked) -> str:
    """Return what of *workload* a judgement is made of, in short."""
    ours = {*NOTES, RECORD}
    words = sorted(item for item in workload.annotations.items() if item[0] not in ours)
    return f"{workload.ref.uid} {workload.generation} {words}"


def _verdict_on(obj: Json) -> str | None:
    annotations = obj["metadata"].get("annotations") or {}
    value: str | None = annotations.get(VERDICT)
    return value
