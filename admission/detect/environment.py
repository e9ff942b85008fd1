"""A job whose program is inside the image, read by the names of its variables.

    variables -> model, batch and what else their names say

Source of the names: published manifests (docs: facts on finding the spec, section 8.3).
The program itself is not seen: what the names do not say is taken by default, with a warning.
"""

from __future__ import annotations

from collections.abc import Iterable

from admission.codes import ReasonCode
from admission.detect.container import Container
from admission.detect.draft import Draft, annotation_hint, integer_of
from admission.detect.names import hub_id
from admission.detect.words import Word

_MODEL = ("MODEL_NAME_OR_PATH", "MODEL_NAME", "MODEL_ID", "BASE_MODEL", "BASE_MODEL_NAME")
_BATCH = (
    "PER_DEVICE_TRAIN_BATCH_SIZE",
    "TRAIN_BATCH_SIZE_PER_DEVICE",
    "TRAIN_BATCH_SIZE",
    "PER_DEVICE_BATCH_SIZE",
    "BATCH_SIZE_PER_DEVICE",
    "BATCH_SIZE_PER_GPU",
    "MICRO_BATCH_SIZE",
)
_ANY_BATCH = ("BATCH_SIZE",)
"""Of one card or of all together: certain only with one GPU."""
_OTHERS = (
    (("MAX_SEQ_LENGTH", "MAX_SEQ_LEN", "MAX_LENGTH", "SEQ_LENGTH"), "input.sequenceLength"),
    (
        ("GRADIENT_ACCUMULATION_STEPS", "GRADIENT_ACCUMULATION"),
        "training.gradientAccumulationSteps",
    ),
)

_TRUE = frozenset({"true", "1", "yes", "on"})
_NOTHING = frozenset({"", "0", "none", "null", "no", "off", "false"})


def read_environment(container: Container, draft: Draft, *, gpus: int) -> bool:
    """Fill the draft by variable names; return whether they name a model or a batch."""
    word = _first(container, _MODEL)
    batch = _first(container, _BATCH if gpus > 1 else (*_BATCH, *_ANY_BATCH))
    if word is None and batch is None:
        return False
    if word is not None:
        _put_model(container, draft, word)
    if batch is not None:
        _put_integer(container, draft, "input.batchSize", batch)
    for names, path in _OTHERS:
        found = _first(container, names)
        if found is not None:
            _put_integer(container, draft, path, found)
    _put_adapter(container, draft)
    _put_switches(container, draft)
    if draft.get("model.name") is not None:
        draft.doubt(
            f"{container.path}: the program is inside the image; precision, optimizer, "
            "quantization and how several GPUs share the work are not visible and taken by default",
            "model.name",
        )
    return True


def _put_model(container: Container, draft: Draft, word: Word) -> None:
    name = hub_id(word.text) if word.is_known else None
    if name is None or "/" not in name:
        draft.gap(
            "model.name",
            code=ReasonCode.NO_MODEL if word.is_known else word.code,
            path=f"{container.path}.env",
            reason=f"{word.origin} {word.text:.120} names no model of the Hugging Face Hub",
            hint=annotation_hint("model.name"),
        )
        return
    draft.put("framework", "pytorch", "a model of the Hugging Face Hub")
    draft.put("model.source", "huggingface", word.origin)
    draft.put("model.name", name, word.origin)


def _put_adapter(container: Container, draft: Draft) -> None:
    """Set a LoRA adapter; a rank that is told and not known is a gap."""
    rank = _first(container, ("LORA_R", "LORA_RANK"))
    if rank is None or rank.text.strip().lower() in _NOTHING:
        return
    number = integer_of(rank.text) if rank.is_known else None
    if number is None or not 1 <= number <= 65536:
        draft.gap(
            "adapter",
            code=ReasonCode.UNSUPPORTED if rank.is_known else rank.code,
            path=f"{container.path}.env",
            reason=f"{rank.origin} {rank.text:.60} is no rank of an adapter",
            hint=annotation_hint("adapter.rank"),
        )
        return
    draft.put("adapter", {"type": "lora"}, rank.origin)
    draft.put("adapter.rank", number, rank.origin)
    alpha = _first(container, ("LORA_ALPHA",))
    value = integer_of(alpha.text) if alpha is not None and alpha.is_known else None
    if alpha is not None and value is not None:
        draft.put("adapter.alpha", value, alpha.origin)
    dropout = _first(container, ("LORA_DROPOUT",))
    share = _fraction(dropout) if dropout is not None else None
    if dropout is not None and share is not None:
        draft.put("adapter.dropout", share, dropout.origin)


def _put_switches(container: Container, draft: Draft) -> None:
    """Set bits of the base and checkpointing by variables that are switches."""
    for name, bits, scheme in (
        ("LOAD_IN_4BIT", 4, "nf4"),
        ("USE_4BIT", 4, "nf4"),
        ("LOAD_IN_8BIT", 8, "int8"),
        ("USE_8BIT", 8, "int8"),
    ):
        word = _first(container, (name,))
        if word is not None and word.text.strip().lower() in _TRUE:
            draft.put("quantization", {"bits": bits, "scheme": scheme}, word.origin)
            draft.put("quantization.bits", bits, word.origin)
            break
    word = _first(container, ("GRADIENT_CHECKPOINTING",))
    text = word.text.strip().lower() if word is not None else ""
    if word is not None and (text in _TRUE or text in _NOTHING):
        mode = "full" if text in _TRUE else "none"
        draft.put("training.gradientCheckpointing", mode, word.origin)


def _fraction(word: Word) -> float | None:
    try:
        value = float(word.text) if word.is_known else -1.0
    except ValueError:
        return None
    return value if 0.0 <= value <= 1.0 else None


def _put_integer(container: Container, draft: Draft, path: str, word: Word) -> None:
    number = integer_of(word.text) if word.is_known else None
    if number:
        draft.put(path, number, word.origin)
        return
    draft.gap(
        path,
        code=ReasonCode.NO_BATCH if word.is_known else word.code,
        path=f"{container.path}.env",
        reason=f"{word.origin} {word.text:.60} is no whole number",
        hint=annotation_hint(path),
    )


def _first(container: Container, names: Iterable[str]) -> Word | None:
    for name in names:
        for word in container.variables.get(name, ()):
            if word.text:
                return word
    return None
