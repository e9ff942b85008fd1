"""What people read: one breath, needs rounded up, capacities down, no tricks of the terminal."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission.capacity.named import declared_class
from admission.codes import ReasonCode, Verdict
from admission.decision import Cause, class_verdict
from admission.message.hints import article
from admission.message.sentences import (
    MAX_MESSAGE,
    MAX_WARNING,
    MAX_WARNINGS,
    bounded,
    hints_of,
    message_of,
    warnings_of,
)
from admission.message.wording import Wording, wording_of
from admission.plaintext import plain
from admission.values import Finding, Reading, UnitJudgement
from estimator.result import Knob
from estimator.spec import parse_spec
from estimator.units import GIB, MIB
from tests.builders import (
    device,
    estimate,
    fit,
    job_spec,
    judged,
    node_class,
    spec_document,
    verdict_on,
)

T4 = node_class("Tesla-T4", budget=15000 * MIB, num_nodes=1, gpus=8)
"""14.6 GiB and a little."""
A10 = node_class("NVIDIA-A10", budget=22 * GIB, num_nodes=2, gpus=1)
A100 = node_class("NVIDIA-A100-SXM4-40GB", budget=39 * GIB, num_nodes=1, gpus=8)

NEED = {"least": 215 * GIB // 10, "enough": 218 * GIB // 10, "activations": 196 * GIB // 10}
"""21.5 GiB at least, of which 19.6 GiB are activations."""


def too_large(**more: object) -> UnitJudgement:
    """Return a job of 21.5 GiB that may use T4 only."""
    reason = Cause.TOO_LARGE
    found = judged(Verdict.OOM, verdict_on(T4, **NEED), reason=reason)
    return replace(found, **more)  # type: ignore[arg-type]


def said(unit: UnitJudgement) -> str:
    """Return the message about one unit."""
    return message_of(wording_of(unit))


def test_job_that_cannot_fit_is_told_need_card_cause_and_every_way_out() -> None:
    """The sentence of the design: need, largest card, what takes it, smallest changes."""
    unit = too_large(
        fits=(fit(largest_batch=160, knobs=["gradient checkpointing"]),),
        elsewhere=(verdict_on(A10, **NEED), verdict_on(A100, **NEED)),
    )

    assert said(unit) == (
        "needs at least 21.5 GiB on one GPU; the largest card this job may use (Tesla-T4 ×8) "
        "gives it 14.6 GiB. Activations are most of it, 19.6 GiB at the expected peak. It fits "
        "with batch size 160, or with gradient checkpointing, or on the 2 nodes with an NVIDIA-A10."
    )


def test_warnings_say_the_same_in_lines() -> None:
    """Need, cause and hint each have a line of their own."""
    unit = too_large(
        fits=(fit(largest_batch=160, knobs=["gradient checkpointing"]),),
        elsewhere=(verdict_on(A10, **NEED),),
    )

    assert warnings_of(wording_of(unit)) == (
        "needs at least 21.5 GiB on one GPU; the largest card this job may use (Tesla-T4 ×8) "
        "gives it 14.6 GiB",
        "activations are most of it, 19.6 GiB at the expected peak",
        "hint: it fits with batch size 160, or with gradient checkpointing, or on the 2 nodes with "
        "an NVIDIA-A10",
    )


def test_hints_are_phrases_of_their_own() -> None:
    """Each can be shown alone."""
    unit = too_large(fits=(fit(largest_batch=160),), elsewhere=(verdict_on(A10, **NEED),))

    assert hints_of(wording_of(unit)) == (
        "fits with batch size 160",
        "fits on the 2 nodes with an NVIDIA-A10",
    )


def test_long_hints_take_several_warnings() -> None:
    """Lines stay about as short as clients are asked to keep them."""
    changes = tuple(f"with {'x' * 40} {number}" for number in range(4))

    lines = warnings_of(Wording(need="n", changes=changes))[1:]

    assert lines == (
        f"hint: it fits {changes[0]}, or {changes[1]}",
        f"hint: or {changes[2]}, or {changes[3]}",
    )


def test_job_without_hints_is_told_the_need_alone() -> None:
    """No time was left to search: nothing is made up."""
    assert said(too_large()) == (
        "needs at least 21.5 GiB on one GPU; the largest card this job may use (Tesla-T4 ×8) "
        "gives it 14.6 GiB. Activations are most of it, 19.6 GiB at the expected peak."
    )


def test_search_without_success_is_said() -> None:
    """Someone who was told nothing would try batch sizes."""
    assert said(too_large(fits=(fit(),))).endswith(
        "Hint: no single change that was tried makes it fit; spread it over more GPUs."
    )


def test_card_elsewhere_that_would_be_tight_is_no_way_out() -> None:
    """Only a class that holds the job surely is advised."""
    tight = node_class("NVIDIA-L4", budget=216 * GIB // 10)

    assert "L4" not in said(too_large(elsewhere=(verdict_on(tight, **NEED),)))


def test_batch_knob_is_not_said_beside_the_largest_batch() -> None:
    """Halving the batch is the same advice in worse words."""
    search = fit(largest_batch=160)
    halved = Knob(path="input.batchSize", value=128, text="batch size 128")
    search = search.model_copy(update={"knobs": (halved,)})

    assert "128" not in said(too_large(fits=(search,)))


def test_declared_card_is_named_without_a_count() -> None:
    """`--gpu` knows of no nodes."""
    found = class_verdict(declared_class(device("t4", budget=GIB)), estimate(least=2 * GIB))

    assert said(judged(Verdict.OOM, found, reason=Cause.TOO_LARGE)) == (
        "needs at least 2.0 GiB on one GPU; t4 gives it 1.0 GiB. Parameters are most of it, "
        "2.0 GiB at the expected peak."
    )


def test_need_is_rounded_up_and_budget_down() -> None:
    """One byte over a budget never reads as equal to it."""
    found = verdict_on(node_class(budget=2 * GIB), least=2 * GIB + 1)

    message = said(judged(Verdict.OOM, found, reason=Cause.TOO_LARGE))

    assert message.startswith("needs at least 2.1 GiB on one GPU")
    assert "gives it 2.0 GiB" in message


@given(least=st.integers(1, 100 * GIB), short=st.integers(1, GIB))
def test_need_never_reads_as_if_it_were_within_the_budget(least: int, short: int) -> None:
    """Whatever is too large says a larger figure for the need than for the card."""
    where = node_class(budget=max(0, least - short))

    need = wording_of(
        judged(Verdict.OOM, verdict_on(where, least=least), reason=Cause.TOO_LARGE)
    ).need

    figures = [float(word) for word in need.replace(";", " ").split() if word[:1].isdigit()]
    assert figures[0] > figures[-1]


def test_job_over_its_own_limit_is_told_of_the_limit() -> None:
    """No card is to blame."""
    limited = estimate(least=8 * GIB, allocator_limit=7 * GIB)
    unit = judged(Verdict.OOM, class_verdict(A100, limited), reason=Cause.OWN_LIMIT)

    assert wording_of(unit).need == (
        "needs at least 8.0 GiB in its framework's memory pool, "
        "which the job itself limits to 7.0 GiB"
    )


def test_tight_job_is_told_its_span() -> None:
    """It may run, if all uncertain terms turn out well."""
    unit = judged(
        Verdict.TIGHT,
        verdict_on(T4, least=14 * GIB, enough=15 * GIB),
        reason=Cause.LITTLE_ROOM,
    )

    assert wording_of(unit).need == (
        "may run out of GPU memory: needs 14.0 GiB to 15.0 GiB on one GPU; the largest card this "
        "job may use (Tesla-T4 ×8) gives it 14.6 GiB"
    )


def test_small_card_among_large_ones_is_named() -> None:
    """The message says where it must not land, where it fits and how to choose the smallest."""
    larger = node_class("NVIDIA-A100-SXM4-80GB", budget=79 * GIB)
    unit = judged(
        Verdict.TIGHT,
        *(verdict_on(where, **NEED) for where in (larger, A100, T4)),
        reason=Cause.SMALL_CARD,
    )

    assert said(unit) == (
        "may land on a card that is too small: Tesla-T4 ×8, which it may also use, gives it 14.6 "
        "GiB, and it needs at least 21.5 GiB there. It fits NVIDIA-A100-SXM4-40GB ×8 and "
        "NVIDIA-A100-SXM4-80GB ×8. Hint: choose the card, for example with nodeSelector "
        "nvidia.com/gpu.product: NVIDIA-A100-SXM4-40GB."
    )


def test_time_sliced_card_is_named_with_the_reason() -> None:
    """Its memory is shared with neighbours that nobody knows."""
    shared = node_class("Tesla-T4/time-slicing", sharing="time-slicing", gpus=32)
    unit = judged(Verdict.TIGHT, verdict_on(shared, least=3 * GIB), reason=Cause.SHARED_CARD)

    assert wording_of(unit).need == (
        "may run out of GPU memory: Tesla-T4/time-slicing ×32 shares 14.0 GiB between pods by "
        "time-slicing, and it needs up to 3.0 GiB of them"
    )


def test_card_of_unknown_memory_beside_one_that_fits_is_named() -> None:
    """The pod may land there."""
    unknown = node_class("NVIDIA-Z900", budget=None, unknown_reason="no label")
    unit = judged(
        Verdict.TIGHT,
        verdict_on(A100, **NEED),
        class_verdict(unknown, None),
        reason=Cause.UNKNOWN_CARD,
    )

    assert wording_of(unit).need == (
        "fits NVIDIA-A100-SXM4-40GB ×8, but may land on NVIDIA-Z900 ×8, whose memory is not known: "
        "no label"
    )


@pytest.mark.parametrize(
    ("activations", "expected"),
    [
        (21, "activations are most of it, 21.0 GiB at the expected peak"),
        (15, "activations are most of it, 15.0 GiB at the expected peak"),
        (14, "activations are the largest part, 14.0 GiB at the expected peak"),
    ],
)
def test_largest_part_is_told_as_of_the_expected_peak(activations: int, expected: str) -> None:
    """The parts are counted there (30 GiB); the job may get by on less, so none is `of` that."""
    found = estimate(least=20 * GIB, enough=30 * GIB, activations=activations * GIB)
    rest = (30 - activations) * GIB
    shares = {"parameters": rest // 2, "gradients": rest - rest // 2}
    parts = found.breakdown.model_copy(update=shares)
    unit = judged(
        Verdict.OOM,
        class_verdict(T4, found.model_copy(update={"breakdown": parts})),
        reason=Cause.TOO_LARGE,
    )

    assert wording_of(unit).why == (expected,)


def test_batch_of_data_parallel_training_is_told_per_gpu() -> None:
    """The flag of a script may mean all GPUs together: the figure says which it is."""
    document = {**spec_document(batch_size=256), "parallelism": {"dataParallel": 4}}
    reading = Reading(spec=parse_spec(document))

    unit = too_large(reading=reading, fits=(fit(largest_batch=120),))

    assert hints_of(wording_of(unit)) == ("fits with batch size 120 per GPU",)


TAINT = {"key": "team", "value": "vision", "effect": "NoSchedule"}


def test_card_behind_a_taint_is_named_with_the_taint() -> None:
    """The smallest that holds it: a toleration that the cluster adds later may open it."""
    behind = [
        verdict_on(node_class(name, budget=budget * GIB, taints=[TAINT]), **NEED)
        for name, budget in (("NVIDIA-H100", 79), ("NVIDIA-A100", 39), ("NVIDIA-L4", 20))
    ]
    unit = judged(
        Verdict.TIGHT, verdict_on(T4, **NEED), reason=Cause.TAINTED_CARD, elsewhere=tuple(behind)
    )

    assert said(unit) == (
        "needs at least 21.5 GiB on one GPU; the largest card this job may use as it is (Tesla-T4 "
        "×8) gives it 14.6 GiB. It fits NVIDIA-A100 ×8, if the pod tolerates taint "
        "team=vision:NoSchedule. Hint: add the toleration, unless the cluster adds it to the pod "
        "(RuntimeClass, Kueue)."
    )


def test_job_that_only_cards_behind_taints_could_hold_is_told_so() -> None:
    """No card is open to it: the taints are all that is in the way."""
    taints = [TAINT, {"key": "spot", "effect": "NoSchedule"}]
    where = verdict_on(node_class("NVIDIA-A100", budget=216 * GIB // 10, taints=taints), **NEED)
    unit = judged(Verdict.TIGHT, reason=Cause.TAINTED_CARD, elsewhere=(where,))

    assert wording_of(unit).need == (
        "may fit NVIDIA-A100 ×8, if the pod tolerates taints team=vision:NoSchedule and "
        "spot:NoSchedule; no other GPU node is open to it"
    )


def test_many_cards_that_fit_are_counted() -> None:
    """The message stays one breath."""
    large = [node_class(f"card-{gib}", budget=gib * GIB, gpus=1) for gib in range(30, 35)]
    unit = judged(
        Verdict.TIGHT,
        *(verdict_on(where, **NEED) for where in (*large, T4)),
        reason=Cause.SMALL_CARD,
    )

    assert wording_of(unit).why == (
        "it fits card-30 ×1 and card-31 ×1 and card-32 ×1 and 2 more kinds of card",
    )


def test_job_that_fits_is_told_the_smallest_card() -> None:
    """The narrowest place it may land is the one that matters."""
    unit = judged(
        Verdict.FITS, verdict_on(A100, **NEED), verdict_on(A10, **NEED), reason=Cause.FITS
    )

    assert said(unit) == (
        "fits: 21.8 GiB is enough on the smallest card this job may use (NVIDIA-A10 ×2), which "
        "gives it 22.0 GiB."
    )


def unknown(*findings: Finding, sources: dict[str, str] | None = None) -> UnitJudgement:
    """Return a unit that could not be judged."""
    reading = Reading(spec=job_spec(), sources=sources or {})
    return judged(
        Verdict.UNKNOWN, reason=findings[0].code, reading=reading, findings=tuple(findings)
    )


def test_unreadable_job_is_told_the_one_thing_that_would_have_helped() -> None:
    """Where it was looked for, what is missing, what to do."""
    finding = Finding(
        code=ReasonCode.NO_BATCH,
        path="spec.template.spec.containers[0].args",
        reason="no batch size",
        hint="say it in annotation vramgate.dev/spec: {input: {batchSize: …}}",
    )

    assert said(unknown(finding)) == (
        "cannot tell how much GPU memory it needs: spec.template.spec.containers[0].args: no batch "
        "size. Hint: say it in annotation vramgate.dev/spec: {input: {batchSize: …}}."
    )


def test_part_that_is_not_modelled_is_named_with_where_it_was_read() -> None:
    """A path in the spec means little to someone who wrote a flag."""
    finding = Finding(
        code="optimizer",
        path="training.optimizer.name",
        reason="optimizer 'adafactor' is not modelled; known: adamw, sgd",
    )

    assert said(unknown(finding, sources={finding.path: "containers[0].args --optim"})) == (
        "cannot tell how much GPU memory it needs: training.optimizer.name (from "
        "containers[0].args --optim): optimizer 'adafactor' is not modelled; known: adamw, sgd."
    )


def test_further_findings_are_counted() -> None:
    """The first is told whole, a second too, more are only counted."""
    one, two, three = (Finding(code="c", path="", reason=text) for text in ("a", "b", "c"))

    assert said(unknown(one, two)).endswith("needs: a. Also: b.")
    assert said(unknown(one, two, three)).endswith("needs: a. 2 more things could not be read.")


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        (ReasonCode.NO_GPU, "not judged: asks for no GPU."),
        (ReasonCode.NO_TRAINING, "not judged: is no training job."),
        ("something-new", "not judged: something-new."),
    ],
)
def test_skipped_unit_says_why(reason: str, expected: str) -> None:
    """Silence would read as approval."""
    assert said(judged(Verdict.SKIPPED, reason=reason)) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("NVIDIA-A10", "an"),
        ("A100-PCIE-40GB", "an"),
        ("H100", "an"),
        ("RTX-6000", "an"),
        ("Tesla-T4", "a"),
        ("GB200", "a"),
        ("V100", "a"),
        ("Quadro-RTX-8000", "a"),
        ("", "a"),
    ],
)
def test_article_follows_how_a_name_is_spoken(name: str, expected: str) -> None:
    """Letters that are spelled out count by their names."""
    assert article(name) == expected


@given(st.lists(st.text(), max_size=40))
def test_warnings_are_always_safe_to_show(lines: list[str]) -> None:
    """Short, few, one line each, nothing that a terminal would obey."""
    warnings = bounded(lines)

    assert len(warnings) <= MAX_WARNINGS
    assert all(0 < len(warning) <= MAX_WARNING for warning in warnings)
    assert all(
        character == " " or character.isprintable() or character in " 　"
        for warning in warnings
        for character in warning
        if not 0xD800 <= ord(character) <= 0xDFFF
    )
    assert sum(map(len, warnings)) < 4096


@given(st.text())
def test_message_is_one_bounded_line(text: str) -> None:
    """Whatever people call their things."""
    message = message_of(Wording(need=text, why=(text,), changes=(text,), advice=text))

    assert len(message) <= MAX_MESSAGE
    assert len(message.splitlines()) == 1


def test_control_and_direction_characters_are_taken_out() -> None:
    """A name cannot start a new line, recolour the terminal or turn the text around."""
    assert plain("a\x1b[31mb\nc\u202ed\u2028e\x00") == "ab cd e"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x9b31mred", "red"),
        ("\x1b]0;title\x07name", "name"),
        ("\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPq data\x1b\\name", "name"),
        ("\x1b(Bname\x1bc", "name"),
        ("\x1b]0;never ends", "0;never ends"),
        ("name\x1b", "name"),
        ("\x1b\x1b[31m[31mname", "[31mname"),
        ("[31m", "[31m"),
    ],
)
def test_escape_sequences_go_whole(text: str, expected: str) -> None:
    """Without its ESC the rest of one would be left as noise; text that only looks alike stays."""
    assert plain(text) == expected


def test_long_text_is_cut_with_a_mark() -> None:
    """The reader sees that something is missing."""
    assert plain("x" * 30, limit=10) == "x" * 9 + "…"
