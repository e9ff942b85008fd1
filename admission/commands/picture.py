"""What `-o html` and `-o picture` show: verdicts in words, beside drawings of the runs.

    JobDrawing, Fit -> Page; Judgements, JobDrawings -> Page

Judges nothing: the words are those of the commands' other answers.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import click

from admission.codes import Verdict
from admission.commands.drawing import Drawn
from admission.commands.picture_text import print_page
from admission.decision import budget_of
from admission.plaintext import plain, sentence
from admission.values import ClassVerdict, Judgement, UnitJudgement
from admission.version import package_version
from estimator.report.drawing import JobDrawing
from estimator.report.page.content import Card, Page, Part, Tone
from estimator.report.page.document import page_html
from estimator.report.page.figures import span
from estimator.result import Estimate, Fit
from estimator.units import gib_down

MAX_CHANGES = 6
BATCH_PATH = "input.batchSize"
TONES: Mapping[Verdict, Tone] = {
    Verdict.FITS: Tone.FITS,
    Verdict.TIGHT: Tone.TIGHT,
    Verdict.OOM: Tone.OOM,
}
WORDS: Mapping[Verdict, str] = {Verdict.OOM: "does not fit"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One judged workload with the drawings of its units, in order."""

    judgement: Judgement
    drawn: tuple[Drawn, ...] = ()
    remarks: tuple[str, ...] = field(default=())


def write(page: Page, *, is_html: bool) -> None:
    """Write *page* to standard output, as HTML or for a terminal.

    Raises:
        UsageError: if HTML would go to a terminal.
    """
    if is_html:
        write_page(page)
    else:
        print_page(page)


def write_page(page: Page) -> None:
    """Write *page* to standard output.

    Raises:
        UsageError: if that is a terminal, where nobody could read it.
    """
    if sys.stdout.isatty():
        raise click.UsageError("-o html is a page: send it to a file, -o html > picture.html")
    sys.stdout.write(page_html(page))


def estimate_page(drawn: Drawn) -> Page:
    """Return the page of one job on the cards it was estimated for."""
    drawing = drawn.drawing
    assert drawing is not None, "an estimate that failed has no page"
    estimate = drawing.estimate
    verdict = verdict_of(estimate)
    part = Part(
        title=job_of(estimate),
        tone=TONES.get(verdict, Tone.UNKNOWN),
        verdict=WORDS.get(verdict, str(verdict)) if estimate.device.budget_bytes else "no card",
        message=_message(estimate),
        changes=changes_of(drawn.fit),
        cards=tuple(map(_card, drawing.estimates)),
        drawing=drawing,
        remarks=drawn.remarks,
    )
    return Page(title="GPU memory of a job", parts=(part,), version=package_version())


def explained_page(found: Sequence[Shown]) -> Page:
    """Return the page of judged workloads, a part for each unit."""
    parts = [part for shown in found for part in _parts(shown)]
    return Page(title="GPU memory of these jobs", parts=tuple(parts), version=package_version())


def job_of(estimate: Estimate) -> str:
    """Return the job in words."""
    spec = estimate.spec
    job = f"{spec['model']['name']}, batch {spec['input']['batchSize']}"
    return f"{job}, {spec['training']['precision']}, {spec['phase']}"


def verdict_of(estimate: Estimate) -> Verdict:
    """Return how the need relates to the card; unknown for a card of unknown size."""
    budget = estimate.device.budget_bytes
    if budget is None:
        return Verdict.UNKNOWN
    if estimate.enough.device_bytes <= budget:
        return Verdict.FITS
    return Verdict.TIGHT if estimate.least.device_bytes <= budget else Verdict.OOM


def changes_of(fit: Fit | None) -> tuple[str, ...]:
    """Return what would make the job fit, each change on its own."""
    if fit is None:
        return ()
    found = [f"{knob.text} ({knob.path}: {knob.value})" for knob in fit.knobs]
    if fit.largest_batch is not None and all(knob.path != BATCH_PATH for knob in fit.knobs):
        found.insert(0, f"batch size {fit.largest_batch} ({BATCH_PATH}: {fit.largest_batch})")
    tried = ", ".join(fit.searched) or "nothing"
    if not found:
        return (f"no single change of those tried makes it fit: {tried}",)
    return tuple(found[:MAX_CHANGES])


def _message(estimate: Estimate) -> str:
    device = estimate.device
    need = span(estimate.least.device_bytes, estimate.enough.device_bytes)
    if device.budget_bytes is None:
        return f"Needs {need} on one card."
    return f"Needs {need}; {device.name} gives {gib_down(device.budget_bytes)}."


def _card(estimate: Estimate) -> Card:
    verdict = verdict_of(estimate)
    return Card(
        name=estimate.device.name,
        gives_bytes=estimate.device.budget_bytes,
        tone=TONES.get(verdict, Tone.UNKNOWN),
        verdict=WORDS.get(verdict, str(verdict)),
        least_bytes=estimate.least.device_bytes,
        enough_bytes=estimate.enough.device_bytes,
        peak_bytes=estimate.peak.device_bytes,
        most_bytes=estimate.most.device_bytes,
    )


def _parts(shown: Shown) -> Sequence[Part]:
    judgement = shown.judgement
    ref = judgement.workload.ref
    name = ref.name or str(judgement.workload.metadata.get("generateName") or ref.kind)
    title = f"{ref.namespace}/{name}" if ref.namespace else name
    units = judgement.units or (None,)
    several = len(units) > 1
    return [
        _part(shown, unit, drawn=_at(shown.drawn, index), title=title, several=several)
        for index, unit in enumerate(units)
    ]


def _at(drawn: Sequence[Drawn], index: int) -> Drawn:
    return drawn[index] if index < len(drawn) else Drawn()


def _part(
    shown: Shown, unit: UnitJudgement | None, *, drawn: Drawn, title: str, several: bool
) -> Part:
    judgement = shown.judgement
    verdict = unit.verdict if unit is not None else judgement.verdict
    is_deciding = verdict is judgement.verdict
    role = (unit.unit.role or unit.unit.container) if unit is not None and several else ""
    drawing = drawn.drawing
    return Part(
        title=f"{title} {role}".rstrip(),
        subtitle=_subtitle(judgement, drawing),
        tone=TONES.get(verdict, Tone.UNKNOWN),
        verdict=WORDS.get(verdict, str(verdict)),
        message=sentence(judgement.message) if is_deciding else f"{verdict} by itself.",
        changes=tuple(judgement.hints[:MAX_CHANGES]) if is_deciding else (),
        cards=tuple(map(_class_card, unit.classes)) if unit is not None else (),
        drawing=drawing,
        remarks=(
            f"Action in mode {judgement.mode}: {judgement.action}.",
            *(plain(remark, limit=400) for remark in (*shown.remarks, *drawn.remarks)),
        ),
    )


def _subtitle(judgement: Judgement, drawing: JobDrawing | None) -> str:
    kind = judgement.workload.ref.kind
    return f"{kind}: {job_of(drawing.estimate)}" if drawing is not None else kind


def _class_card(found: ClassVerdict) -> Card:
    estimate = found.estimate
    return Card(
        name=found.node_class.name,
        count=found.node_class.count if found.node_class.members else None,
        gives_bytes=budget_of(found.node_class),
        tone=TONES.get(found.verdict, Tone.UNKNOWN),
        verdict=WORDS.get(found.verdict, str(found.verdict)),
        least_bytes=estimate.least.device_bytes if estimate else None,
        enough_bytes=estimate.enough.device_bytes if estimate else None,
        peak_bytes=estimate.peak.device_bytes if estimate else None,
        most_bytes=estimate.most.device_bytes if estimate else None,
    )
