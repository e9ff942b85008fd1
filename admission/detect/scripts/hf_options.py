"""The lengths, adapters and sharding that the Trainer's flags ask for.

    flags -> adapter, quantization, parallelism, lengths in the draft

Source: transformers 5.24.0 `training_args.py`; trl `ModelConfig` for `--use_peft`, `--load_in_*`.
"""

from __future__ import annotations

from admission.codes import ReasonCode
from admission.detect.draft import SHARDED_HINT, Draft, integer_of
from admission.detect.flags import Flag, Flags
from admission.detect.scripts.family import Call, source_of_default
from admission.detect.scripts.tasks import LENGTH_FLAGS, Example

_LORA_RANK = 16
_LORA_ALPHA = 32
_LORA_DROPOUT = 0.05
_UNREAD_SHARING = (
    ("sharded_ddp", "parallelism.strategy"),
    ("parallelism_config", "parallelism.strategy"),
    ("mp_parameters", "parallelism.strategy"),
    ("accelerator_config", "input.batchSize"),
    ("split_batches", "input.batchSize"),
)
"""Flag -> the spec path it bears on; `split_batches` divides the batch by the processes."""


def put_length(flags: Flags, draft: Draft, example: Example, script: str) -> None:
    """Set sequence and target length by flags, or the script's certain defaults."""
    names = example.length_flags or LENGTH_FLAGS
    if not draft.integer("input.sequenceLength", flags.get(*names)) and example.length is not None:
        draft.put("input.sequenceLength", example.length, source_of_default(script))
    if example.target_flags and not draft.integer(
        "input.targetLength", flags.get(*example.target_flags)
    ):
        draft.put("input.targetLength", example.target, source_of_default(script))
    padded = flags.get("pad_to_max_length")
    pads = padded is not None and not padded.is_on
    if draft.get("input.sequenceLength") is not None and (
        pads or (example.pads and not flags.is_on("pad_to_max_length"))
    ):
        source = padded.source if padded is not None else source_of_default(script)
        draft.put("input.padding", "longest", source)


def put_adapter(flags: Flags, draft: Draft) -> None:
    """Set adapter and quantization by TRL's names for them."""
    peft = flags.get("use_peft")
    if peft is not None and peft.is_on:
        draft.put("adapter", {"type": "dora" if flags.is_on("use_dora") else "lora"}, peft.source)
        source = source_of_default("trl ModelConfig")
        if not draft.integer("adapter.rank", flags.get("lora_r", "lora_rank")):
            draft.put("adapter.rank", _LORA_RANK, source)
        _number(draft, "adapter.alpha", flags.get("lora_alpha"), _LORA_ALPHA, source)
        _number(draft, "adapter.dropout", flags.get("lora_dropout"), _LORA_DROPOUT, source)
        modules = flags.get("lora_target_modules")
        if modules is not None:
            texts = [text for word in modules.values for text in word.text.split(",") if text]
            draft.put("adapter.targetModules", texts, modules.source)
    for name, bits, scheme in (("load_in_4bit", 4, "nf4"), ("load_in_8bit", 8, "int8")):
        flag = flags.get(name)
        if flag is None or not flag.is_on:
            continue
        draft.put("quantization", {"bits": bits, "scheme": scheme}, flag.source)
        nested = flags.get("use_bnb_nested_quant")
        if nested is not None and nested.is_on:
            draft.put("quantization.doubleQuant", True, nested.source)
        kind = flags.get("bnb_4bit_quant_type")
        if bits == 4 and kind is not None and kind.value is not None:
            draft.put(
                "quantization.scheme", "fp4" if kind.value.text == "fp4" else "nf4", kind.source
            )


def put_parallelism(call: Call, draft: Draft) -> None:
    """Set what `--fsdp`, `--deepspeed` and the Trainer's own habits say about sharing."""
    flags = call.flags
    for name, path in _UNREAD_SHARING:
        other = flags.get(name)
        if other is not None and other.is_on:
            _unread(draft, other, "changes how cards share the work and is not read yet", path)
    config = flags.get("deepspeed")
    if config is not None and config.value is not None and config.value.text:
        draft.put("parallelism.implementation", "deepspeed", config.source)
        _unread(draft, config, "decides ZeRO stage, offload and precision and is not read yet")
        return
    fsdp = flags.get("fsdp")
    if fsdp is not None and fsdp.is_on and (fsdp.value is None or fsdp.value.text):
        _fsdp(draft, flags, fsdp)
        return
    if call.gpus > 1 and not call.ranks.is_distributed:
        source = "Trainer without a launcher: one process on all GPUs (DataParallel)"
        draft.put("parallelism.strategy", "dp", source)
        draft.put("parallelism.dataParallel", call.gpus, source)
    bucket = flags.get("ddp_bucket_cap_mb")
    size = integer_of(bucket.value.text) if bucket is not None and bucket.value else None
    if bucket is not None and size is not None:
        draft.put("parallelism.bucketBytes", size << 20, bucket.source)


def _fsdp(draft: Draft, flags: Flags, flag: Flag) -> None:
    """Set FSDP by the words after `--fsdp`; a config file beside it is not read."""
    words = flag.value.text.lower().replace(",", " ").split() if flag.value is not None else []
    strategy = "ddp" if "no_shard" in words else "fsdp"
    draft.put("parallelism.strategy", strategy, flag.source)
    if "shard_grad_op" in words or "hybrid_shard_zero2" in words:
        draft.put("parallelism.reshardAfterForward", False, flag.source)
    if "offload" in words:
        draft.put("parallelism.offload", "parameters", flag.source)
    if any(word.startswith("hybrid_shard") for word in words):
        _unread(draft, flag, "shards within a node only, which is not read yet")
    config = flags.get("fsdp_config")
    if config is not None and config.value is not None and config.value.text:
        _unread(draft, config, "names a file that is not read yet")


def _unread(draft: Draft, flag: Flag, reason: str, path: str = "parallelism.strategy") -> None:
    value = flag.value.text if flag.value is not None else ""
    draft.gap(
        path,
        code=ReasonCode.UNSUPPORTED,
        path=flag.field,
        reason=f"{flag.spelling} {value:.80} {reason}",
        hint=SHARDED_HINT,
    )


def _number(draft: Draft, path: str, flag: Flag | None, default: float, source: str) -> None:
    text = flag.value.text if flag is not None and flag.value is not None else ""
    try:
        number = float(text)
    except ValueError:
        draft.put(path, default, source)
        return
    draft.put(path, number, flag.source if flag is not None else source)
