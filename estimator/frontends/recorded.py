"""A trace that was made before, as a frontend.

    Recording, Traits -> Trace

What a card changes of a trace is which fused attention kernels there are. Where the card is of
another kind than the recorded one, the trace says what that does to the figures.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from estimator.errors import UnsupportedJobError
from estimator.notes import Assumption, AssumptionCode, UnknownCode
from estimator.spec import Framework, JobSpec
from estimator.trace import AT_MOST, OTHER_CARD, Kernel, Trace
from estimator.tracefile import Recording
from estimator.traits import Traits

PRODUCTS = ("aten.bmm", "aten.baddbmm")
"""What attention without a fused kernel is made of, among other things."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """The frontend of one recording (`estimator.frontends.Frontend`)."""

    recording: Recording

    FRAMEWORK = "recorded"

    def trace_job(self, spec: JobSpec, *, traits: Traits) -> Trace:
        """Return the recorded trace, as it is on cards with *traits*.

        Raises:
            UnsupportedJobError: if *spec* is another job, or of a framework that is not modelled.
        """
        if spec.framework is not Framework.PYTORCH:
            raise UnsupportedJobError(
                f"framework: a Trace file of '{spec.framework}' is not modelled; "
                f"known: {Framework.PYTORCH}",
                code=UnknownCode.FRAMEWORK,
                path="framework",
            )
        if spec.document() != self.recording.spec.document():
            raise another_job()
        return on_card(self.recording.trace, recorded=self.recording.traits, card=traits)


def another_job() -> UnsupportedJobError:
    """Return that nothing but the recorded job can be estimated."""
    return UnsupportedJobError(
        "model.source: a Trace file is one job at one batch size; no other can be tried",
        code=UnknownCode.FEATURE,
        path="model.source",
        hint="write a file of another job with `vramgate trace`",
    )


def on_card(trace: Trace, *, recorded: Traits, card: Traits) -> Trace:
    """Return *trace* for cards with other traits than the *recorded* ones.

    * No attention in it: it is the same on every card.
    * The card has kernels the recorded one had not: it may need much less, `least` is the weights.
    * Flash kernels in it, and the card has only memory-efficient ones: about the same need.
    * Fused kernels in it, and the card has none for them: scores are kept, which nobody counted.

    Raises:
        UnsupportedJobError: in the last case.
    """
    if recorded == card:
        return trace
    fused = [kernel for kernel in trace.kernels if "attention" in kernel.operator]
    lost = [kernel for kernel in fused if not _has(card, kernel)]
    if any(not _has_efficient(card, kernel) for kernel in lost):
        raise UnsupportedJobError(
            "model.source: the trace was recorded for a card with fused attention; this one has "
            "none for its dtype and keeps scores that are not in the trace",
            code=UnknownCode.KERNEL,
            path="model.source",
            hint="write the file with `vramgate trace --gpu` of this card",
        )
    if lost:
        return _marked(trace, "memory-efficient", "this one has no flash kernels")
    gains = _gains(recorded, card)
    if gains and (fused or any(kernel.operator in PRODUCTS for kernel in trace.kernels)):
        facts = {**trace.facts, AT_MOST: trace.facts.get(AT_MOST, "attention")}
        return _marked(
            replace(trace, facts=facts),
            "as recorded",
            "this one has more fused kernels, so it may need much less; `least` is the weights",
        )
    return trace


def _marked(trace: Trace, value: str, reason: str) -> Trace:
    note = Assumption(
        code=AssumptionCode.ATTENTION_BACKEND,
        path="model.attention",
        value=value,
        reason=f"recorded for another kind of card; {reason}",
    )
    return replace(
        trace,
        assumptions=(*trace.assumptions, note),
        facts={**trace.facts, OTHER_CARD: "attention"},
    )


def _gains(recorded: Traits, card: Traits) -> bool:
    return (
        card.flash_attention > recorded.flash_attention
        or card.efficient_attention > recorded.efficient_attention
        or card.native_bf16 > recorded.native_bf16
    )


def _has(card: Traits, kernel: Kernel) -> bool:
    """Return whether *card* runs the fused *kernel* as recorded."""
    if "efficient" in kernel.operator:
        return _has_efficient(card, kernel)
    return card.flash_attention


def _has_efficient(card: Traits, kernel: Kernel) -> bool:
    is_bf16 = any(operand.dtype == "bfloat16" for operand in kernel.operands)
    return card.efficient_attention and (card.native_bf16 or not is_bf16)
