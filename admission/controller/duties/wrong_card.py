"""Pods on, or waiting for, a card that cannot hold them: the webhook was away, or a node changed.

    pod, cards -> its root judged anew -> Event, metric, and a move where the settings want one

Only what the least need says counts: a card that may do is nobody's fault. Told once for each root,
card and spec.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from admission.codes import Steer, Verdict
from admission.controller.acts import (
    NOTHING,
    Act,
    Cause,
    Look,
    Merge,
    Misplaced,
    Reason,
    Tell,
    Write,
)
from admission.controller.bounds import is_left_alone, is_own
from admission.controller.duty import Add, Quiet
from admission.controller.lessons import cards_text
from admission.controller.movable import CRONJOB, has_ended, suspension
from admission.controller.moving import MOVING, Moving, Step, moving_of, wanted
from admission.controller.next_steps import SETTLE_SECONDS, pods_below
from admission.controller.parts import Parts
from admission.controller.pods import PodView
from admission.controller.refs import ref_of
from admission.controller.tracked import Tracked
from admission.controller_settings import Moved
from admission.decision import budget_of, is_observed
from admission.errors import RequestError
from admission.steer.notes import LEAST, VERDICT
from admission.steer.permission import is_queued
from admission.steer.plan import HELD
from admission.steer.writing import unsteered
from admission.values import ClassVerdict, Json, Judgement, NodeClass
from estimator.units import gib_down, gib_up

PATIENCE_SECONDS = 15.0
PAUSE_SECONDS = 5.0
_POD = "pod:"
_AT_WORK = ("Pending", "Running")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wrong:
    """One pod where it cannot be held."""

    pod: PodView
    found: ClassVerdict
    """The class it is on, or the best that it waits for."""

    @property
    def state(self) -> str:
        return "pending" if self.pod.phase == "Pending" else "running"


class WrongCard(Quiet):
    """Looks after pods that are at work or wait."""

    name = "wrong-card"

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._classes: tuple[NodeClass, ...] = ()
        self._budgets: dict[str, int] = {}
        self._others: set[str] = set()
        """Nodes whose cards gave something else when their pods were last looked at."""
        self._judged: dict[str, tuple[int, int]] = {}
        """Roots that bear no word of ours -> generation, cards that they were judged by."""
        self._version = 0

    def pod_changed(self, pod: PodView, add: Add) -> None:
        """Look at the root of *pod* if the card may be wrong, or nobody ever judged it."""
        if pod.phase not in _AT_WORK or pod.is_going or is_own(pod.ref.namespace, self._parts):
            return
        root = self._root(pod)
        key = root.key if root is not None else f"{_POD}{pod.key}"
        if self._is_suspicious(pod) or (pod.node and self._is_unjudged(pod, root, key)):
            add(key, 0.0)

    def classes_changed(self, add: Add) -> None:
        """Look again at the pods of nodes whose cards give something else now."""
        self._refresh()
        nodes, self._others = self._others, set()
        if nodes:
            for pod in self._parts.store.pods():
                if pod.node in nodes:
                    self.pod_changed(pod, add)

    async def look(self, key: str) -> Look:
        """Judge one root, and say which of its pods cannot be held where they are."""
        obj = await self._object(key)
        if obj is None or has_ended(obj) or is_left_alone(obj, self._parts):
            return NOTHING
        try:
            judgement = await self._parts.judges.judged(unsteered(obj), seconds=PATIENCE_SECONDS)
        except RequestError:
            return NOTHING
        if is_observed(judgement.workload):
            return NOTHING
        if judgement.cache == "late":
            return Look(again_seconds=PAUSE_SECONDS)
        if len(self._judged) > 100_000:
            self._judged.clear()
        generation = int((obj.get("metadata") or {}).get("generation") or 0)
        self._judged[key] = (generation, self._version)
        wrong = list(self._wrong(key, obj, judgement))
        if not wrong:
            return NOTHING
        return Look(acts=(self._act(obj, judgement, wrong),))

    def _root(self, pod: PodView) -> Tracked | None:
        """Return the topmost followed workload above *pod*, without the CronJob of its Job."""
        found, owner = None, pod.owner
        for _ in range(8):
            above = self._parts.store.workload_of_uid(owner.uid) if owner else None
            if above is None or (above.ref.group, above.ref.kind) == CRONJOB:
                break
            found, owner = above, above.owner
        return found

    def _is_suspicious(self, pod: PodView) -> bool:
        """Return whether what is written on *pod* says that it is too large: a cheap filter."""
        if not pod.node:
            return pod.annotations.get(VERDICT) == Verdict.OOM
        text = pod.annotations.get(LEAST, "")
        least = int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else 0
        budget = self._budget(pod.node)
        return budget is not None and least > budget

    def _is_unjudged(self, pod: PodView, root: Tracked | None, key: str) -> bool:
        if VERDICT in pod.annotations or (root is not None and VERDICT in root.annotations):
            return False
        mark = (root.generation if root is not None else 0, self._version)
        return self._judged.get(key) != mark

    def _budget(self, node: str) -> int | None:
        """Return the most that a card of *node* gives."""
        self._refresh()
        return self._budgets.get(node)

    def _refresh(self) -> None:
        """Take the cards as they are now."""
        classes = self._parts.inventory.classes
        if classes is self._classes:
            return
        budgets: dict[str, int] = {}
        for each in classes:
            budget = budget_of(each)
            for name in each.nodes if budget is not None else ():
                budgets[name] = max(budget or 0, budgets.get(name, 0))
        others = {name for name, each in budgets.items() if self._budgets.get(name) != each}
        self._classes, self._budgets = classes, budgets
        self._others |= others
        self._version += bool(others)

    async def _object(self, key: str) -> Json | None:
        """Return what is judged: the topmost controller but for a CronJob.

        Of a pod that came before its controller was listed, or whose controller nobody follows,
        that is found now.
        """
        if key.startswith(_POD):
            pod = self._parts.store.pod(key.removeprefix(_POD))
            found = None if pod is None else await self._parts.judges.read(pod.ref)
            if found is None:
                return None
            owners = await self._parts.judges.owners(found)
            return [each for each in owners if each.get("kind") != CRONJOB[1]][-1]
        workload = self._parts.store.workload(key)
        return None if workload is None else await self._parts.judges.read(workload.ref)

    def _wrong(self, key: str, obj: Json, judgement: Judgement) -> Iterator[_Wrong]:
        pods = pods_below(self._parts, obj)
        if key.startswith(_POD):
            found = self._parts.store.pod(key.removeprefix(_POD))
            known = {each.uid for each in pods}
            pods += [found] if found is not None and found.uid not in known else []
        for pod in pods:
            if pod.phase in _AT_WORK and not pod.is_going:
                on = _on(judgement, pod.node) if pod.node else _best(judgement)
                if on is not None:
                    yield _Wrong(pod=pod, found=on)

    def _act(self, obj: Json, judgement: Judgement, wrong: list[_Wrong]) -> Act:
        first, ref = wrong[0], ref_of(obj)
        estimate = first.found.estimate
        assert estimate is not None, "a card is too small by an estimate"
        card = first.found.node_class
        text, moving = self._next(obj, judgement, wrong)
        writes: tuple[Write, ...] = ()
        moves = moving.count if moving is not None else 0
        if moving is not None:
            annotations = {MOVING: moving.text()}
            writes = (Merge(on=ref, changes={"metadata": {"annotations": annotations}}),)
        is_bound = first.pod.node is not None
        where = f"is on {card.name}, which" if is_bound else f"waits, and the largest, {card.name},"
        tell = Tell(
            about=ref,
            reason=Reason.WRONG_CARD,
            note=f"pod {first.pod.ref.name} {where} gives it {gib_down(budget_of(card) or 0)}; it "
            f"needs at least {gib_up(estimate.least.device_bytes)}; next: {text}",
            cause=f"{estimate.spec_digest} {card.name} {first.state} {moves}",
            is_warning=True,
            counts=Misplaced(state=first.state),
        )
        return Act(tell=tell, writes=writes)

    def _next(
        self, obj: Json, judgement: Judgement, wrong: list[_Wrong]
    ) -> tuple[str, Moving | None]:
        """Return what is done about it, and the move if there is to be one."""
        settings, metadata = self._parts.settings, obj.get("metadata") or {}
        holding = [
            found for judged in judgement.units for found in judged.classes if found.verdict in HELD
        ]
        if judgement.verdict not in HELD or not holding:
            return "no card that it may use holds it", None
        where = cards_text(sorted(holding, key=lambda each: budget_of(each.node_class) or 0))
        if is_queued(metadata):
            return f"its queue says where it goes; {where} would hold it", None
        allowed = Moved.PENDING if wrong[0].state == "pending" else Moved.RUNNING
        if allowed not in settings.moves:
            return f"{where} would hold it (controller.moves has no `{allowed.value}`)", None
        if self._parts.judges.steer(obj) is Steer.OFF:
            return f"steering is off here; {where} would hold it", None
        before = moving_of(metadata.get("annotations") or {})
        if before is not None and before.step is not Step.DONE:
            return f"it is being moved to {where}", None
        if (before.count if before else 0) >= settings.most_moves:
            return f"it was moved {settings.most_moves} times, the most; {where} holds it", None
        ref = ref_of(obj)
        is_whole = suspension(ref) is not None
        if ref.kind == "Pod":
            return f"nobody makes it anew; {where} would hold it", None
        moving = wanted(
            before,
            cause=Cause.WRONG_CARD,
            now=self._parts.now(),
            pause_seconds=settings.move_pause_seconds,
            settle_seconds=0.0 if is_whole else SETTLE_SECONDS,
            pods=() if is_whole else tuple(each.pod.uid for each in wrong),
        )
        return f"it is moved to {where}", moving


def _on(judgement: Judgement, node: str) -> ClassVerdict | None:
    """Return the verdict on the class of *node* if no unit is held there; None otherwise."""
    found = [
        each
        for judged in judgement.units
        for each in judged.classes
        if node in each.node_class.nodes
    ]
    is_wrong = bool(found) and all(
        each.verdict is Verdict.OOM and each.estimate is not None for each in found
    )
    return found[0] if is_wrong else None


def _best(judgement: Judgement) -> ClassVerdict | None:
    """Return the largest card that it may go to if that cannot hold it; None otherwise."""
    if judgement.verdict is not Verdict.OOM:
        return None
    found = [
        each
        for judged in judgement.units
        if judged.verdict is Verdict.OOM
        for each in judged.classes
        if each.estimate is not None
    ]
    return max(found, key=lambda each: budget_of(each.node_class) or 0, default=None)
