"""What a death teaches, beside what was estimated.

    Judgement of the root without our terms, node, Death -> Known, Lesson

Pure. The card is the one that the node has now.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from admission.codes import NOT_YET, Verdict
from admission.controller.deaths import Death
from admission.decision import budget_of
from admission.floor import Floor
from admission.learning.fingerprint import fingerprint
from admission.learning.lesson import Lesson
from admission.steer.notes import ENOUGH, LEAST
from admission.steer.selection import SAME_CARD_PERCENT
from admission.values import ClassVerdict, Judgement, NodeClass, UnitJudgement
from estimator.units import gib_down, gib_up

TIME_SLICING = "time-slicing"
_NUMBER = re.compile("[0-9]{1,15}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """What a job was said to need of one card, in bytes."""

    least: int
    enough: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """One death with what is known of its card and its job."""

    death: Death
    judged: UnitJudgement | None
    """The unit whose container it was; None: the root is not read."""
    card: NodeClass | None
    """The class of the node it died on; None: it is gone."""
    on_card: ClassVerdict | None
    """What was said of the unit on that class."""
    noted: Range | None = None
    """What was written on it as it was admitted: for people, where the estimate is late."""

    @property
    def gave(self) -> int:
        """Return what the card gave the container, in bytes; 0 if that is not known."""
        return (budget_of(self.card) or 0) if self.card else 0

    @property
    def is_shared(self) -> bool:
        """Return whether neighbours may have had the memory: then the card says little."""
        return self.card is not None and self.card.sharing == TIME_SLICING

    @property
    def predicted(self) -> bool | None:
        """Return whether the card was said to be too small, or perhaps so; None: nothing was."""
        if self.on_card is not None and self.on_card.estimate is not None:
            return self.on_card.verdict in (Verdict.OOM, Verdict.TIGHT)
        return None if self.noted is None or not self.gave else self.noted.enough > self.gave

    @property
    def estimated(self) -> Range | None:
        """Return what it was said to need on that card."""
        estimate = self.on_card.estimate if self.on_card else None
        if estimate is None:
            return self.noted
        return Range(least=estimate.least.device_bytes, enough=estimate.enough.device_bytes)

    @property
    def is_late(self) -> bool:
        """Return whether its estimate may come still."""
        return self.judged is not None and self.judged.reason in NOT_YET

    @property
    def framework(self) -> str:
        """Return the framework as the spec says it, else as the message does."""
        spec = self.judged.reading.spec if self.judged else None
        if spec is not None:
            return spec.framework.value
        return self.death.framework.value if self.death.framework else ""

    @property
    def said(self) -> str:
        """Return the death in words, with the estimate beside the truth."""
        what = "probably died of too little GPU memory" if self.death.is_likely else "died"
        parts = [f"{what} on {self._card_text()}"]
        if self.death.held:
            parts.append(f"it held {gib_up(self.death.held)} of it")
        said = self.estimated
        if said is None:
            parts.append("its need had not been estimated")
        else:
            least = gib_up(said.least).removesuffix(" GiB")
            parts.append(f"estimated {least} to {gib_up(said.enough)}")
        return "; ".join(parts)

    def _card_text(self) -> str:
        if self.card is None:
            return "a node that is not known any more"
        if not self.gave:
            return f"{self.card.name}, whose memory is not known"
        shared = " and its neighbours" if self.is_shared else ""
        return f"{self.card.name} that gave it{shared} {gib_down(self.gave)}"


def known_of(
    death: Death,
    judgement: Judgement | None,
    *,
    node: str | None,
    classes: Iterable[NodeClass],
    annotations: Mapping[str, object] | None = None,
) -> Known:
    """Return *death* on *node* with the unit of its container, the one that needs most."""
    units = [
        judged
        for judged in (judgement.units if judgement else ())
        if judged.unit.container == death.ending.container
    ]
    judged = max(units, key=_need, default=None)
    on_card = next(
        (found for found in (judged.classes if judged else ()) if node in found.node_class.nodes),
        None,
    )
    card = on_card.node_class if on_card else _card(node, judged, classes)
    noted = _noted(annotations or {})
    return Known(death=death, judged=judged, card=card, on_card=on_card, noted=noted)


def lesson_of(known: Known, judgement: Judgement | None) -> Lesson | None:
    """Return what is learnt: more than the card gave, and at least the estimate.

    Nothing of a card whose memory is not known, and nothing where nobody can tell the same
    container again. Of a time-sliced card what the container itself held counts, if it was seen.
    """
    if known.judged is None or judgement is None:
        return None
    estimate = known.on_card.estimate if known.on_card else known.judged.estimate
    if estimate is not None and estimate.allocator_limit_bytes is not None:
        return None  # it may have died of a limit of its own, which no card changes
    floor = known.death.held if known.is_shared else _more_than(known.gave)
    if not floor:
        return None
    expected = estimate.peak.device_bytes if estimate else 0
    return Lesson(
        floor=Floor(
            container=known.death.ending.container,
            nbytes=max(floor, expected),
            gave=known.gave,
            card=known.card.name if known.card else "",
            when=known.death.ending.finished,
        ),
        fingerprint=fingerprint(known.judged.unit, judgement.workload),
    )


def larger(known: Known, floor: Floor) -> tuple[ClassVerdict, ...]:
    """Return the classes that its pods may go to which give at least *floor*, the smallest first.

    Not those that the estimate says are too small, or whose memory is not known. While it is late
    all of them may hold it.
    """
    found = [
        each
        for each in (known.judged.classes if known.judged else ())
        if (each.verdict in (Verdict.FITS, Verdict.TIGHT) or known.is_late)
        and (budget_of(each.node_class) or 0) >= floor.nbytes
    ]
    return tuple(sorted(found, key=lambda each: budget_of(each.node_class) or 0))


def cards_text(found: Sequence[ClassVerdict]) -> str:
    """Return the names of the cards, the first three."""
    names = list(dict.fromkeys(each.node_class.name for each in found))
    more = f" and {len(names) - 3} more kinds" if len(names) > 3 else ""
    return f"{' or '.join(names[:3])}{more}"


def _noted(annotations: Mapping[str, object]) -> Range | None:
    least, enough = (str(annotations.get(key, "")) for key in (LEAST, ENOUGH))
    if not all(_NUMBER.fullmatch(text) for text in (least, enough)):
        return None
    return Range(least=int(least), enough=int(enough))


def _more_than(gave: int) -> int:
    """Return the least that a larger card gives; 0 if *gave* is not known.

    One card shows other totals by driver, so what is a little larger is the same card.
    """
    return gave * (100 + SAME_CARD_PERCENT) // 100 + 1 if gave else 0


def _need(judged: UnitJudgement) -> int:
    return judged.estimate.enough.device_bytes if judged.estimate else 0


def _card(
    node: str | None, judged: UnitJudgement | None, classes: Iterable[NodeClass]
) -> NodeClass | None:
    """Return the class of *node* for the resource that the container asks for."""
    resource = judged.unit.gpu_resource if judged else None
    return next(
        (
            found
            for found in classes
            if node in found.nodes and resource in (None, found.gpu_resource)
        ),
        None,
    )
