"""Convolutions of a trace, asked of cuDNN all at once.

    Trace, Device, PlanSource -> WorkspaceSource

Where there is no answer (no library, a card outside its support list, a process that died) the
bound of `layout_bound.py` stands in, and the assumption says so.
"""

from __future__ import annotations

from collections.abc import Mapping

from estimator.catalog.stacks import cudnn_of
from estimator.cudnn import Answer, PlanSource, Question, card_of
from estimator.device import Device
from estimator.kernels.asked_note import asked_note, older_note
from estimator.kernels.choosing import Choice, Switches, choice_of
from estimator.kernels.convolution import ConvolutionScratch, bounded_note
from estimator.kernels.dispatch import OPERATORS, convolution_of, is_native, questions_of
from estimator.kernels.layout_bound import bounded_choice, older_choice
from estimator.kernels.versions import version_of
from estimator.trace import Trace

V8_SINCE = (2, 0)
"""PyTorch before 2.0 uses cuDNN's older interface, which knows algorithms and no plans."""


def workspaces_of(
    trace: Trace, device: Device, plans: PlanSource | None, named: str | None = None
) -> ConvolutionScratch:
    """Return what answers for the convolutions of *trace* on *device*.

    *named* is the cuDNN the job says it runs on; absent: the one its framework brings.
    """
    questions = questions_in(trace)
    card = card_of(device)
    if version_of(trace.framework_version) < V8_SINCE:
        note = older_note(trace.framework, trace.framework_version)
        return ConvolutionScratch(older_choice, note)
    if not questions or plans is None:
        return ConvolutionScratch()
    if card is None:
        return ConvolutionScratch(assumption=bounded_note("its architecture is not in the catalog"))
    is_stated = named is not None or not any(
        note.path == "frameworkVersion" for note in trace.assumptions
    )
    wanted = cudnn_of(trace.framework, trace.framework_version, named) if is_stated else None
    answers = plans.ask(questions, card, wanted=wanted)
    known = {
        question: answer
        for question, answer in zip(questions, answers, strict=True)
        if answer is not None
    }
    if not known:
        return ConvolutionScratch(assumption=bounded_note(plans.reason or "it gave no answer"))
    note = asked_note(
        known,
        asked=len(questions),
        wanted=wanted,
        own=f"cuDNN {named}" if named else _release(trace),
        why=plans.reason,
    )
    chooser = _Chooser(known, wanted=wanted)
    return ConvolutionScratch(chooser.choice, note)


def _release(trace: Trace) -> str:
    """Return the framework's release, in the name people install it by."""
    name = "torch" if trace.framework == "pytorch" else trace.framework
    return f"{name} {trace.framework_version}"


class _Chooser:
    """Answers that were asked for before."""

    def __init__(self, answers: Mapping[Question, Answer], *, wanted: int | None) -> None:
        self._answers = answers
        self._wanted = wanted

    def choice(self, question: Question, switches: Switches, device: Device) -> Choice:
        """Return what PyTorch makes of the answer to *question*; a bound if there is none."""
        answer = self._answers.get(question)
        choice = answer and choice_of(
            answer,
            question,
            switches,
            wanted=self._wanted,
            capability=device.compute_capability,
        )
        return choice or bounded_choice(question, switches, device)


def questions_in(trace: Trace) -> list[Question]:
    """Return every question of *trace*, each once, in the order of its kernels."""
    found: dict[Question, None] = {}
    for kernel in trace.kernels:
        if kernel.operator not in OPERATORS:
            continue
        convolution = convolution_of(kernel)
        if convolution is not None and not is_native(convolution):
            found.update(dict.fromkeys(questions_of(convolution)))
    return list(found)
