"""What comes after a death: a move, or why there is none, in words.

    pod, its controllers, what is known and learnt -> Next

Asks the estimator only where no larger card is left, for what would fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from admission.codes import Steer
from admission.controller.acts import Cause
from admission.controller.lessons import Known, cards_text, larger
from admission.controller.movable import CRONJOB, JOB, no_retry, suspension
from admission.controller.moving import Moving, Step, moving_of, wanted
from admission.controller.parts import Parts
from admission.controller.pods import PodView
from admission.controller.refs import owner_of, ref_of
from admission.controller_settings import Moved
from admission.decision import budget_of
from admission.errors import RequestError
from admission.floor import Floor
from admission.learning.lesson import Lesson
from admission.steer.permission import is_queued
from admission.steer.writing import unsteered
from admission.values import Json
from estimator.units import gib_up

SETTLE_SECONDS = 0.5
"""Before pods are made anew every webhook has to know what was learnt: a watch takes some ms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    """What comes next, and the move that is wanted, if one is."""

    text: str
    moved: Json | None = None
    """The object that is to be moved."""
    moving: Moving | None = None


async def next_of(
    parts: Parts, pod: PodView, chain: tuple[Json, ...], known: Known, lesson: Lesson | None
) -> Next:
    """Return what is done about a death of *pod*."""
    if lesson is None:
        return Next(text=_untaught(known))
    floor = lesson.floor
    if known.judged is None or known.judged.reading.spec is None:
        return Next(
            text=f"choose a card that gives it more than {gib_up(floor.nbytes)}: what it runs "
            "could not be read, so it is not steered"
        )
    cards = larger(known, floor)
    if not cards or known.is_shared:
        return Next(text=await _no_card(parts, chain[-1], known, lesson))
    where = f"a card that gives it at least {gib_up(floor.nbytes)} ({cards_text(cards)})"
    steer = parts.judges.steer(chain[-1])
    if steer is Steer.OFF:
        return Next(text=f"steering is off here, so choose {where}")
    if any(is_queued(obj.get("metadata") or {}) for obj in chain):
        return Next(text=f"its queue says when it runs again, and it needs {where}")
    if chain[0].get("kind") == "Pod":
        return Next(text=f"a pod of its name is steered to {where} when it is created")
    return _of_retry(parts, pod, chain, floor, where)


def _of_retry(
    parts: Parts, pod: PodView, chain: tuple[Json, ...], floor: Floor, where: str
) -> Next:
    """Return what is done where a card would hold it: that depends on its controllers."""
    settings = parts.settings
    is_cron = _name(chain[-1]) == CRONJOB
    movable = [obj for obj in chain if _name(obj) != CRONJOB]
    siblings = parts.store.pods_of(pod.owner.uid) if pod.owner else []
    reason = no_retry(movable, num_failed=sum(each.phase == "Failed" for each in siblings))
    if reason:
        anew = "its next run is" if is_cron else "what is created of its name again is"
        return Next(text=f"no retry is left ({reason}); {anew} steered to {where}")
    if Moved.DEAD not in settings.moves:
        return Next(text=f"pods made anew are steered to {where} (controller.moves has no `dead`)")
    moved = movable[-1]
    before = moving_of((moved.get("metadata") or {}).get("annotations") or {})
    if before is not None and before.step is not Step.DONE:
        return Next(text=f"it is being moved to {where}")
    if (before.count if before is not None else 0) >= settings.most_moves:
        return Next(
            text=f"it is not moved again, after {settings.most_moves} times "
            f"(controller.mostMoves); it needs {where}"
        )
    alive = tuple(_too_small(parts, pods_below(parts, moved), floor))
    is_alone = _name(moved) == JOB and any(_large(parts, pods_below(parts, moved), floor))
    is_whole = suspension(ref_of(moved)) is not None and not is_alone and _is_topmost(moved)
    if not is_whole and not alive:
        return Next(text=f"its next pod is steered to {where} as it is created")
    pods = () if is_whole else alive
    moving = wanted(
        before,
        cause=Cause.OUT_OF_MEMORY,
        now=parts.now(),
        pause_seconds=settings.move_pause_seconds,
        settle_seconds=SETTLE_SECONDS if pods else 0.0,
        pods=pods,
    )
    left = (moving.since - parts.now()).total_seconds()
    later = f" in {left:.0f} s" if left >= 1 else ""
    text = f"it is moved{later} to {where}"
    if not is_whole:
        text = f"its pods there are deleted{later}, and made anew on {where}"
    return Next(text=text, moved=moved, moving=moving)


def _is_topmost(obj: Json) -> bool:
    """Return whether no controller but a CronJob has *obj*: another would set it right again."""
    metadata = obj.get("metadata") or {}
    owner = owner_of(metadata, namespace=str(metadata.get("namespace") or ""))
    return owner is None or (owner.group, owner.kind) == CRONJOB


def pods_below(parts: Parts, obj: Json) -> list[PodView]:
    """Return the pods of *obj* and of what it made."""
    uid = ref_of(obj).uid
    found = parts.store.pods_of(uid)
    for workload in parts.store.workloads():
        if workload.owner is not None and workload.owner.uid == uid:
            found += parts.store.pods_of(workload.ref.uid)
    return found


def with_lesson(obj: Json, lesson: Lesson) -> Json:
    """Return *obj* as it is once *lesson* is written on it."""
    metadata = obj.get("metadata") or {}
    annotations = {**(metadata.get("annotations") or {}), **lesson.annotations()}
    return {**obj, "metadata": {**metadata, "annotations": annotations}}


def _too_small(parts: Parts, pods: Iterable[PodView], floor: Floor) -> Iterator[str]:
    for pod in _at_work(pods):
        budget = _budget(parts, pod)
        if budget is not None and budget < floor.nbytes:
            yield pod.uid


def _large(parts: Parts, pods: Iterable[PodView], floor: Floor) -> Iterator[str]:
    for pod in _at_work(pods):
        budget = _budget(parts, pod)
        if budget is not None and budget >= floor.nbytes:
            yield pod.uid


def _at_work(pods: Iterable[PodView]) -> Iterator[PodView]:
    return (each for each in pods if each.phase in ("Pending", "Running") and not each.is_going)


def _budget(parts: Parts, pod: PodView) -> int | None:
    for node_class in parts.inventory.classes:
        if pod.node in node_class.nodes:
            return budget_of(node_class)
    return None


def _untaught(known: Known) -> str:
    """Return what there is to do where nothing was learnt."""
    estimate = known.on_card.estimate if known.on_card else None
    if estimate is not None and estimate.allocator_limit_bytes is not None:
        return "it limits its own use of the card: raise that limit, or make it need less"
    if known.is_shared:
        return "its neighbours on the time-sliced card may have had the memory"
    if known.judged is None:
        return "its container is none that is read, so nothing is learnt"
    return "what its card gives is not known, so nothing is learnt"


async def _no_card(parts: Parts, root: Json, known: Known, lesson: Lesson) -> str:
    """Return what would fit, where it died on the largest card that it may use."""
    if known.is_shared:
        return "its neighbours on the time-sliced card may have had the memory: have it alone"
    hints: tuple[str, ...] = ()
    try:
        judgement = await parts.judges.judged(with_lesson(unsteered(root), lesson))
        hints = judgement.hints
    except RequestError:
        pass
    first = "no larger card that it may use is known, so it is not retried by Vramgate"
    return "; ".join((first, *(f"it {hint}" for hint in hints[:3] if hint.startswith("fits"))))


def _name(obj: Json) -> tuple[str, str]:
    ref = ref_of(obj)
    return ref.group, ref.kind
