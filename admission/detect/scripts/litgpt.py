"""litgpt: `litgpt finetune_lora CHECKPOINT`, `litgpt pretrain MODEL`.

the sub-command, flags over `--config` -> the draft

Source: the recipe `litgpt`, the table `litgpt_models`. Not modelled: what litgpt's own model code
does otherwise than transformers'.
"""

from __future__ import annotations

from admission.codes import ReasonCode
from admission.detect.draft import Draft, annotation_hint
from admission.detect.flags import Flag, Flags
from admission.detect.names import hub_id
from admission.detect.recipes.tables import load_table
from admission.detect.scripts.by_recipe import family_of
from admission.detect.scripts.family import Call, source_of_default
from admission.detect.scripts.optimizer_classes import put_optimizer_class
from admission.detect.scripts.shipped_files import with_shipped
from admission.detect.scripts.verbs import (
    number_of,
    put_adapter,
    put_batch,
    put_choice,
    put_parallel,
    put_quantization,
)

_NAME = "litgpt"
_BATCHES = {"pretrain": (4, 512)}
"""Sub-command -> micro-batch and global batch; (1, 16) for the others."""
_PRECISIONS = {
    "bf16-true": "bf16",
    "bf16-mixed": "amp-bf16",
    "16-true": "fp16",
    "16-mixed": "amp-fp16",
    "32-true": "fp32",
    "32": "fp32",
}
_QUANTIZED: dict[str, tuple[int, str, bool]] = {
    "bnb.nf4": (4, "nf4", False),
    "bnb.nf4-dq": (4, "nf4", True),
    "bnb.fp4": (4, "fp4", False),
    "bnb.fp4-dq": (4, "fp4", True),
    "bnb.int8-training": (8, "int8", False),
}
_TARGETS = (
    ("lora_query", ["q_proj"]),
    ("lora_key", ["k_proj"]),
    ("lora_value", ["v_proj"]),
    ("lora_projection", ["o_proj"]),
    ("lora_mlp", ["gate_proj", "up_proj", "down_proj"]),
    ("lora_head", ["lm_head"]),
)
_STEPS = "training.gradientAccumulationSteps"


def read(call: Call, draft: Draft) -> None:
    """Fill the draft."""
    command, positional = _command(call)
    files = load_table("litgpt_models")["files"]
    flags = with_shipped(call, draft, call.flags.get("config"), files, name=_NAME)
    _model(call, draft, flags, command, positional)
    total = _spread(call, draft, flags, command)
    _batch(call, draft, flags, command, total)
    draft.integer("input.sequenceLength", flags.setting("train.max_seq_length"))
    if command != "pretrain":
        draft.put("input.padding", "longest", source_of_default(_NAME))
    put_choice(
        draft, "training.precision", flags.setting("precision"), _PRECISIONS, what="precision"
    )
    put_optimizer_class(draft, flags.setting("optimizer.class_path", "optimizer"))
    if command == "finetune_lora":
        _adapter(draft, flags, call)
    elif command.startswith("finetune_adapter"):
        put_adapter(draft, "adaption_prompt", source=call.invocation.name)
    _quantization(draft, flags)


def _command(call: Call) -> tuple[str, Flag | None]:
    """Return the sub-command, and what stands behind it: a checkpoint or a model's name."""
    name = call.invocation.name.removeprefix("litgpt.").replace(".", "_")
    words = list(call.flags.positional)
    if name == "finetune":
        method = words[0].text if words else ""
        if method in ("lora", "full", "adapter", "adapter_v2"):
            name, words = f"finetune_{method}", words[1:]
        else:
            name = "finetune_lora"
    if not words:
        return name, None
    word = words[0]
    flag = Flag(
        name="checkpoint_dir",
        spelling="checkpoint",
        values=(word,),
        where=call.invocation.where,
        path=call.invocation.path,
        origin=word.origin,
    )
    return name, flag


def _model(call: Call, draft: Draft, flags: Flags, command: str, positional: Flag | None) -> None:
    keys = ("model_name",) if command == "pretrain" else ("checkpoint_dir",)
    flag = positional or flags.setting(*keys)
    text = draft.word("model.name", flag)
    if flag is None and not any("model.name" in gap.closed_by for gap in draft.gaps):
        draft.gap(
            "model.name",
            code=ReasonCode.NO_MODEL,
            path=call.origin,
            reason=f"litgpt {command} is given no model",
            hint=annotation_hint("model.name"),
        )
    if flag is None or text is None:
        return
    plain = text.removeprefix("./").removeprefix("checkpoints/").rstrip("/")
    models = load_table("litgpt_models")["models"]
    name = models.get(plain) or (hub_id(plain) if "/" in plain else None)
    if name is None:
        draft.gap(
            "model.name",
            code=ReasonCode.NO_MODEL,
            path=flag.field,
            reason=f"{flag.spelling} {text:.120} names no model that is known",
            hint="give it as ORG/MODEL, or " + annotation_hint("model.name"),
        )
        return
    draft.put("model.source", "huggingface", flag.source)
    draft.put("model.name", name, flag.source)


def _spread(call: Call, draft: Draft, flags: Flags, command: str) -> int | None:
    """Set the strategy; return how many processes there are, or None if that is not known."""
    devices, nodes = flags.setting("devices"), flags.setting("num_nodes")
    text = devices.value.text if devices is not None and devices.value is not None else ""
    is_all = text in ("auto", "-1") or (devices is None and command == "pretrain")
    number = call.gpus if is_all else 1 if devices is None else number_of(devices)
    source = devices.source if devices is not None else source_of_default(_NAME)
    if number is None or not number or (nodes is not None and not number_of(nodes)):
        draft.integer("parallelism.dataParallel", nodes if number else devices)
        return None
    total = number * (number_of(nodes) or 1)
    checkpointing = "none"
    if total > 1:
        put_parallel(draft, "fsdp", source=source)
        draft.put("parallelism.dataParallel", total, source)
        checkpointing = "none" if command == "pretrain" else "full"
        if command == "pretrain" and total > number:
            draft.put("parallelism.shardGroup", number, source)
    else:
        put_parallel(draft, "none", source=source)
    draft.put("training.gradientCheckpointing", checkpointing, source_of_default(_NAME))
    return total


def _batch(call: Call, draft: Draft, flags: Flags, command: str, total: int | None) -> None:
    micro_default, whole_default = _BATCHES.get(command, (1, 16))
    micro = flags.setting("train.micro_batch_size")
    if micro is not None:
        put_batch(call, draft, micro)
    elif not any("input.batchSize" in gap.closed_by for gap in draft.gaps):
        draft.put("input.batchSize", micro_default, source_of_default(_NAME))
    whole = flags.setting("train.global_batch_size")
    number = number_of(whole) if whole is not None else whole_default
    size = draft.get("input.batchSize")
    if number is None:
        draft.integer(_STEPS, whole)
    elif isinstance(size, int) and total:
        source = whole.source if whole is not None else source_of_default(_NAME)
        draft.put(_STEPS, max(1, number // total // size), f"{source} / ({size} * {total})")


def _adapter(draft: Draft, flags: Flags, call: Call) -> None:
    rank, alpha = flags.setting("lora_r"), flags.setting("lora_alpha")
    put_adapter(draft, "lora", source=call.invocation.name, rank=rank, alpha=alpha)
    targets: list[str] = []
    for key, modules in _TARGETS:
        switch = flags.setting(key)
        if switch is not None and switch.is_on:
            targets += modules
    if targets:
        draft.put("adapter.targetModules", targets, source_of_default(_NAME))


def _quantization(draft: Draft, flags: Flags) -> None:
    flag = flags.setting("quantize")
    text = draft.word("quantization", flag)
    if flag is None or text is None:
        return
    known = _QUANTIZED.get(text)
    if known is None:
        draft.gap(
            "quantization",
            code=ReasonCode.UNSUPPORTED,
            path=flag.field,
            reason=f"{flag.spelling} {text:.40} is no quantisation that is known",
            hint=annotation_hint("quantization.bits"),
        )
        return
    bits, scheme, is_double = known
    put_quantization(draft, bits, source=flag.source, scheme=scheme)
    draft.put("quantization.doubleQuant", is_double, flag.source)


FAMILY = family_of("litgpt", read, is_closed=False)
