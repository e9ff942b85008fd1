"""Pages to test with: a plain one, a hostile one, and one of a long run.

drawings of stubs -> Page
"""

from __future__ import annotations

from estimator.report.drawing import JobDrawing
from estimator.report.drawn import job_drawing
from estimator.report.page.content import Card, Page, Part, Tone
from estimator.spec import JobSpec
from estimator.trace import Phase, Role, Trace, TraceBuilder
from estimator.traits import Traits
from estimator.units import GIB, MIB
from tests.estimator.stub import StubFrontend, card, spec_of

HOSTILE = (
    "</script><script>alert(1)</script>",
    "</title><img src=https://evil.example/a onerror=alert(2)>",
    "\" onload='alert(3)' x=\"",
    "]]>--><!--<svg onload=alert(4)>",
    "a\u202egnp.exe\u2066\u200bb\u2028c\x00\x1b[31md",
    "e" + "\u0300" * 500 + "\ud800",
    "javascript:alert(5)",
)
"""What a name may be made of."""


class HostileFrontend:
    """The stub with names that attack whoever shows them."""

    FRAMEWORK = "pytorch"

    def trace_job(self, spec: JobSpec, *, traits: Traits) -> Trace:  # noqa: ARG002 (a stub)
        """Return one tensor for each hostile name."""
        builder = TraceBuilder(framework="pytorch", framework_version="2.15.0")
        for name in HOSTILE:
            builder.at(step=1, phase=Phase.FORWARD, operator=name, module=name)
            builder.alloc(64 * MIB, Role.ACTIVATION)
        return builder.build()


class LongFrontend:
    """A run of *num_events* events in 400 modules, two steps, with every role."""

    FRAMEWORK = "pytorch"

    def __init__(self, num_events: int) -> None:
        self.num_events = num_events

    def trace_job(self, spec: JobSpec, *, traits: Traits) -> Trace:  # noqa: ARG002 (a stub)
        """Return layers whose activations die in backward, and states that stay."""
        builder = TraceBuilder(framework="pytorch", framework_version="2.15.0")
        layers = [f"model.layers.{index // 4}.part{index % 4}" for index in range(400)]
        for name in layers:
            builder.at(step=0, phase=Phase.LOAD, operator="", module=name)
            builder.alloc(4 * MIB, Role.PARAMETER)
        each = self.num_events // (2 * len(layers) * 10)
        for step in (1, 2):
            kept: list[tuple[str, list[int]]] = []
            for name in layers:
                tensors = []
                for index in range(each):
                    operator = f"aten.operator_{index % 40}"
                    builder.at(step=step, phase=Phase.FORWARD, operator=operator, module=name)
                    tensors.append(builder.alloc(64 * 1024 + 512 * index, Role.ACTIVATION))
                    for role in (Role.TEMPORARY, Role.WORKSPACE):
                        builder.free(builder.alloc(MIB * (1 + index % 5), role))
                kept.append((name, tensors))
            for name, tensors in reversed(kept):
                builder.at(step=step, phase=Phase.BACKWARD, operator="aten.mm", module=name)
                for tensor in tensors:
                    builder.free(builder.alloc(2 * MIB, Role.GRADIENT))
                    builder.free(builder.alloc(MIB, Role.TEMPORARY))
                    builder.free(tensor)
        return builder.build()


def plain_drawing(batch: int = 8) -> JobDrawing:
    """Return the stub's job on three cards."""
    cards = (card(GIB, name="small"), card(8 * GIB, name="middle"), card(80 * GIB, name="large"))
    return job_drawing(spec_of(batch), cards, frontend=StubFrontend())


def hostile_drawing() -> JobDrawing:
    """Return a job whose every name is an attack."""
    found = job_drawing(spec_of(8), [card(8 * GIB, name=HOSTILE[0])], frontend=HostileFrontend())
    estimate = found.estimates[0]
    note = {"path": HOSTILE[1], "reason": HOSTILE[4]}
    changed = estimate.model_copy(
        update={
            "spec": {**estimate.spec, "model": {**estimate.spec["model"], "name": HOSTILE[2]}},
            "unknowns": tuple(each.model_copy(update=note) for each in estimate.unknowns),
            "assumptions": tuple(
                each.model_copy(update={**note, "value": HOSTILE[3]})
                for each in estimate.assumptions
            ),
            "warnings": HOSTILE,
        }
    )
    return found.model_copy(update={"estimates": (changed,)})


def long_drawing(num_events: int = 200_000) -> JobDrawing:
    """Return the drawing of a long run."""
    return job_drawing(spec_of(8), [card(16 * GIB)], frontend=LongFrontend(num_events))


def page_of(drawing: JobDrawing, *, title: str = "a job", words: str = "words") -> Page:
    """Return a page of one job; *words* stand wherever somebody's words may."""
    cards = tuple(
        Card(
            name=estimate.device.name,
            gives_bytes=estimate.device.budget_bytes,
            tone=Tone.FITS,
            verdict=words,
            least_bytes=estimate.least.device_bytes,
            enough_bytes=estimate.enough.device_bytes,
            peak_bytes=estimate.peak.device_bytes,
        )
        for estimate in drawing.estimates
    )
    part = Part(
        title=title,
        subtitle=words,
        tone=Tone.FITS,
        verdict=words,
        message=words,
        changes=(words, words),
        cards=cards,
        drawing=drawing,
        remarks=(words,),
    )
    return Page(title=title, parts=(part,), version="0")
