"""What readers of many programs do with a flag.

    flag, draft -> values of the spec, or a named gap

Every verb takes a flag that may be absent (None: nothing is said) and keeps its source.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from admission.codes import ReasonCode
from admission.detect.draft import Draft, annotation_hint, integer_of
from admission.detect.flags import Flag
from admission.detect.names import hub_id
from admission.detect.scripts.family import Call
from admission.detect.scripts.optimizers import optimizer_of


class Scope(Enum):
    """What a batch size is counted over."""

    PROCESS = "process"
    NODE = "node"
    """All GPUs of one node; each process takes its share."""
    WORLD = "world"
    """All processes of the job together."""


def put_hub_model(draft: Draft, flag: Flag | None) -> str | None:
    """Set a model of the Hugging Face Hub; a path that only the container sees is a gap.

    A folder that a model of the Hub was fetched into before is that model.
    """
    text = draft.word("model.name", flag)
    if flag is None or text is None:
        return None
    name = hub_id(draft.models.get(text.rstrip("/"), text))
    if name is None:
        draft.gap(
            "model.name",
            code=ReasonCode.NO_MODEL,
            path=flag.field,
            reason=f"{flag.spelling} {text:.120} is a path that only the container sees",
            hint="name the Hub id, or the architecture, in the annotation vramgate.dev/spec: "
            "model: {source: huggingface, name: ORG/MODEL}",
        )
        return None
    draft.put("model.source", "huggingface", flag.source)
    draft.put("model.name", name, flag.source)
    return name


def put_zoo_model(draft: Draft, flag: Flag | None, *, zoo: str) -> str | None:
    """Set a model by its name in *zoo*: torchvision, timm, keras, mxnet, diffusers, …"""
    text = draft.word("model.name", flag)
    if flag is None or text is None:
        return None
    draft.put("model.source", zoo, flag.source)
    draft.put("model.name", text, flag.source)
    return text


def put_architecture(
    draft: Draft, model_type: str, keys: Mapping[str, Flag | None], *, name: str, source: str
) -> None:
    """Set a model by its dimensions: a transformers configuration of *model_type*.

    *keys*: configuration key -> flag with a whole number. One that is not resolved is a gap.
    """
    draft.put("model.source", "huggingface", source)
    draft.put("model.name", name, source)
    draft.put("model.config.model_type", model_type, source)
    for key, flag in keys.items():
        draft.integer(f"model.config.{key}", flag)


def put_batch(
    call: Call,
    draft: Draft,
    flag: Flag | None,
    *,
    scope: Scope = Scope.PROCESS,
    accumulation: int = 1,
) -> None:
    """Set the micro-batch of one process from a batch counted over *scope*.

    *accumulation*: micro-batches that the flag's number covers. A number that does not divide is
    rounded down, as scripts do, with a warning.
    """
    if not draft.integer("input.batchSize", flag) or flag is None:
        return
    if scope is not Scope.PROCESS and call.ranks.counts:
        open_count = call.ranks.counts[0].finding
        draft.document.get("input", {}).pop("batchSize", None)
        draft.gap(
            "input.batchSize",
            code=open_count.code,
            path=open_count.path,
            reason=f"{flag.spelling} is divided among all processes, and {open_count.reason}",
            hint=open_count.hint,
        )
        return
    number = draft.get("input.batchSize")
    per = {Scope.PROCESS: 1, Scope.NODE: call.ranks.per_pod, Scope.WORLD: call.ranks.total}[scope]
    share = per * accumulation
    if not isinstance(number, int) or share == 1:
        return
    if number % share:
        draft.warnings.append(
            f"{flag.field}: {flag.spelling} {number} does not divide by {share} micro-batches"
        )
    draft.put("input.batchSize", max(1, number // share), f"{flag.source} / {share}")


def put_choice(
    draft: Draft, path: str, flag: Flag | None, values: Mapping[str, Any], *, what: str
) -> Any:
    """Set what *values* says of the flag's word (lower case); a word it lacks is a gap."""
    text = draft.word(path, flag)
    if flag is None or text is None:
        return None
    if text.lower() not in values:
        draft.gap(
            path,
            code=ReasonCode.UNSUPPORTED,
            path=flag.field,
            reason=f"{flag.spelling} {text:.60} is no {what} that is known",
            hint=annotation_hint(path),
        )
        return None
    value = values[text.lower()]
    if value is not None:
        draft.put(path, value, flag.source)
    return value


def put_optimizer(draft: Draft, flag: Flag | None) -> None:
    """Set the optimizer by transformers' or torch's name for it."""
    text = draft.word("training.optimizer", flag)
    if flag is not None and text is not None:
        draft.put("training.optimizer", optimizer_of(text), flag.source)


def put_checkpointing(draft: Draft, flag: Flag | None, *, mode: str = "full") -> None:
    """Set gradient checkpointing by a switch."""
    if flag is not None:
        draft.put("training.gradientCheckpointing", mode if flag.is_on else "none", flag.source)


def put_adapter(
    draft: Draft,
    kind: str,
    *,
    source: str,
    rank: Flag | None = None,
    alpha: Flag | None = None,
    targets: Flag | None = None,
) -> None:
    """Set a peft adapter: lora, dora, ia3, …; *targets* lists modules."""
    draft.put("adapter", {"type": kind}, source)
    draft.integer("adapter.rank", rank)
    draft.integer("adapter.alpha", alpha)
    if targets is not None and targets.values:
        names = [name for word in targets.values for name in word.text.replace(",", " ").split()]
        draft.put("adapter.targetModules", names, targets.source)


def put_quantization(draft: Draft, bits: int, *, source: str, scheme: str | None = None) -> None:
    """Set a quantised base: 4 bits are nf4 unless *scheme* says otherwise, 8 are int8."""
    document = {"bits": bits, "scheme": scheme or ("nf4" if bits == 4 else "int8")}
    draft.put("quantization", document, source)


def put_parallel(draft: Draft, strategy: str, *, source: str, implementation: str = "") -> None:
    """Set how the cards share the work; how many they are is set from the launcher later."""
    draft.put("parallelism.strategy", strategy, source)
    if implementation:
        draft.put("parallelism.implementation", implementation, source)


def number_of(flag: Flag | None) -> int | None:
    """Return the whole number of *flag*, or None if it has none that is known."""
    if flag is None or flag.value is None or not flag.value.is_known:
        return None
    return integer_of(flag.value.text)
