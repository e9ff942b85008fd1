"""How the cards share the work, as transformers' Trainer is told.

    --fsdp, --fsdp_config, --deepspeed, its own habits -> parallelism in the draft

Source: transformers 5.24.0 `training_args.py` (`fsdp`, `fsdp_config`) and `trainer.py`
(DataParallel where one process sees several cards); accelerate 1.15.0 `utils/dataclasses.py`
FullyShardedDataParallelPlugin.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from admission.codes import ReasonCode
from admission.detect.configs import document_flags, read_config
from admission.detect.deepspeed import deepspeed_of
from admission.detect.deepspeed import put_deepspeed as put_found
from admission.detect.draft import SHARDED_HINT, Draft, integer_of
from admission.detect.flags import Flag, Flags
from admission.detect.scripts.family import Call
from admission.detect.scripts.nested import mapping_of, mapping_text, nested_flags
from admission.detect.scripts.shipped import shipped_deepspeed

_IN_IMAGE = "inside the image"
"""In why a file is not seen: one on a volume is somebody's own."""
_UNREAD = (
    ("sharded_ddp", "parallelism.strategy"),
    ("parallelism_config", "parallelism.strategy"),
    ("mp_parameters", "parallelism.strategy"),
    ("accelerator_config", "input.batchSize"),
    ("split_batches", "input.batchSize"),
)
"""Flag -> the spec path it bears on; `split_batches` divides the batch by the processes."""
_STRATEGIES: Mapping[str, tuple[str, bool | None]] = {
    "full_shard": ("fsdp", None),
    "shard_grad_op": ("fsdp", False),
    "no_shard": ("ddp", None),
    "hybrid_shard": ("fsdp", None),
    "hybrid_shard_zero2": ("fsdp", False),
    "1": ("fsdp", None),
    "2": ("fsdp", False),
    "3": ("ddp", None),
    "4": ("fsdp", None),
    "5": ("fsdp", False),
}
"""FSDP's words and accelerate's numbers -> strategy, whether parameters are sharded again."""
_HYBRID = frozenset({"hybrid_shard", "hybrid_shard_zero2", "4", "5"})


def put_sharing(call: Call, draft: Draft, *, has_data_parallel: bool = True) -> None:
    """Set what the Trainer's flags and its own habits say about sharing.

    *has_data_parallel*: one process takes all the cards it sees, as the Trainer does. Precision is
    to be set before.
    """
    _put_told(call, draft, has_data_parallel=has_data_parallel)
    settle_precision(call, draft)


def settle_precision(call: Call, draft: Draft) -> None:
    """Set what mixed precision means under DeepSpeed and FSDP, where there is no autocast alone.

    DeepSpeed holds the weights in it beside an fp32 copy, FSDP computes in it on fp32 shards.
    Source: accelerate 1.15.0 `utils/dataclasses.py`, set_mixed_precision of both plugins.
    """
    precision = draft.get("training.precision")
    if not isinstance(precision, str) or not precision.startswith("amp-"):
        return
    low, told = precision.removeprefix("amp-"), draft.sources["training.precision"]
    launched = call.invocation.launch.parallelism
    kind, _ = launched.get("parallelism.implementation", ("", ""))
    strategy, _ = launched.get("parallelism.strategy", ("", ""))
    if "deepspeed" in (draft.get("parallelism.implementation"), kind):
        draft.put("training.precision", low, told)
        draft.put("training.masterWeights", True, f"DeepSpeed with {told}")
    elif "fsdp" in (draft.get("parallelism.strategy"), strategy):
        draft.put("parallelism.mixedPrecision", {"param": low, "reduce": low}, f"FSDP with {told}")


def _put_told(call: Call, draft: Draft, *, has_data_parallel: bool) -> None:
    flags = call.flags
    for name, path in _UNREAD:
        other = flags.setting(name)
        if other is not None and other.is_on:
            note_unread(draft, other, "changes how cards share the work and is not read yet", path)
    deepspeed = flags.setting("deepspeed")
    if deepspeed is not None and deepspeed.value is not None and deepspeed.value.text:
        put_deepspeed(call, draft, deepspeed)
        return
    below = mapping_of(flags, "deepspeed")
    if below is not None:
        put_deepspeed(call, draft, below)
        return
    fsdp = flags.setting("fsdp")
    if fsdp is not None and fsdp.is_on and (fsdp.value is None or fsdp.value.text):
        put_fsdp(call, draft, fsdp)
        return
    if has_data_parallel and call.gpus > 1 and not call.ranks.is_distributed:
        source = "Trainer without a launcher: one process on all GPUs (DataParallel)"
        draft.put("parallelism.strategy", "dp", source)
        draft.put("parallelism.dataParallel", call.gpus, source)
    bucket = flags.setting("ddp_bucket_cap_mb")
    size = integer_of(bucket.value.text) if bucket is not None and bucket.value else None
    if bucket is not None and size is not None and size <= 1 << 20:
        draft.put("parallelism.bucketBytes", size << 20, bucket.source)


def put_deepspeed(call: Call, draft: Draft, flag: Flag) -> None:
    """Set what the DeepSpeed configuration says that *flag* names or holds.

    Where it leaves bf16 or fp16 to the Trainer's own flag, DeepSpeed holds the weights in it beside
    an fp32 copy: there is no autocast then.
    """
    found = _deepspeed_document(call, draft, flag)
    if found is None:
        draft.put("parallelism.implementation", "deepspeed", flag.source)
        return
    document, source = found
    for name in ("bf16", "fp16"):
        part = document.get(name)
        told_on = part.get("enabled") if isinstance(part, Mapping) else None
        own = call.flags.setting(name)
        is_auto = told_on == "auto" and own is not None and own.is_on
        if (told_on is True or is_auto) and draft.get("training.precision") in (
            name,
            f"amp-{name}",
        ):
            told = draft.sources["training.precision"]
            draft.put("training.precision", name, told)
            draft.put("training.masterWeights", True, f"{source} {name}.enabled")
    values = deepspeed_of(document, source=source)
    put_found(draft, values, path=flag.field, world=call.ranks.total)


def _deepspeed_document(
    call: Call, draft: Draft, flag: Flag
) -> tuple[Mapping[str, Any], str] | None:
    """Return the configuration and its name: on the command line, a file, or a shipped one."""
    if flag.value is None or not flag.value.is_known:
        note_unread(draft, flag, "is not resolved")
        return None
    inline = mapping_text(flag)
    if inline is not None:
        return inline, flag.source
    path = flag.value.text
    config = read_config(call.read_file(path))
    if not config.problem:
        return config.document, config.source
    shipped = shipped_deepspeed(path)
    if shipped is not None and _IN_IMAGE in config.problem:
        return shipped, f"default of {path:.120}"
    note_unread(draft, flag, config.problem)
    return None


def put_fsdp(call: Call, draft: Draft, flag: Flag) -> None:
    """Set FSDP by the words after `--fsdp` and what `--fsdp_config` says of it."""
    words = [part for word in flag.values for part in _words(word.text)]
    if any(not word.is_known for word in flag.values):
        note_unread(draft, flag, "is not resolved")
        return
    draft.put("parallelism.strategy", "fsdp", flag.source)
    for word in words:
        put_shard(draft, word, flag)
    if "offload" in words:
        draft.put("parallelism.offload", "parameters", flag.source)
    config = _config(call, draft)
    if config is not None:
        put_fsdp_config(draft, config)


def put_shard(draft: Draft, word: str, flag: Flag) -> None:
    """Set what one of FSDP's words for sharding means; others are left."""
    known = _STRATEGIES.get(word.lower())
    if known is None:
        return
    strategy, reshards = known
    draft.put("parallelism.strategy", strategy, flag.source)
    if reshards is not None:
        draft.put("parallelism.reshardAfterForward", reshards, flag.source)
    if word.lower() in _HYBRID:
        note_unread(draft, flag, "shards within a node only, which is not read yet")


def put_fsdp_config(draft: Draft, config: Flags) -> None:
    """Set what an FSDP configuration says; keys with and without `fsdp_` in front are the same."""

    def setting(name: str) -> Flag | None:
        return config.setting(name, f"fsdp_{name}")

    version = setting("version")
    if version is not None and version.value is not None and version.value.text in ("1", "2"):
        draft.put("parallelism.implementation", f"fsdp{version.value.text}", version.source)
    sharding = setting("sharding_strategy")
    if sharding is not None and sharding.value is not None:
        put_shard(draft, sharding.value.text, sharding)
    reshard = setting("reshard_after_forward")
    if reshard is not None and reshard.value is not None:
        text = reshard.value.text.lower()
        if text in _STRATEGIES:
            put_shard(draft, text, reshard)
        else:
            draft.put("parallelism.reshardAfterForward", reshard.is_on, reshard.source)
    offload = setting("offload_params") or config.setting("cpu_offload")
    if offload is not None and offload.is_on:
        draft.put("parallelism.offload", "parameters", offload.source)
    smallest = setting("min_num_params")
    wrap = setting("auto_wrap_policy")
    by_size = wrap is not None and wrap.value is not None and "SIZE" in wrap.value.text.upper()
    if smallest is not None and smallest.value is not None and smallest.value.text != "0":
        draft.put("parallelism.wrap", "size", smallest.source)
    elif wrap is not None and by_size:
        draft.put("parallelism.wrap", "size", wrap.source)
    checkpointing = setting("activation_checkpointing")
    if checkpointing is not None and checkpointing.is_on:
        draft.put("training.gradientCheckpointing", "full", checkpointing.source)


def note_unread(draft: Draft, flag: Flag, reason: str, path: str = "parallelism.strategy") -> None:
    """Note that what *flag* says of sharing is not read."""
    value = flag.value.text if flag.value is not None else ""
    draft.gap(
        path,
        code=ReasonCode.UNSUPPORTED,
        path=flag.field,
        reason=f"{flag.spelling} {value:.80} {reason}",
        hint=SHARDED_HINT,
    )


def _config(call: Call, draft: Draft) -> Flags | None:
    """Return the FSDP configuration: keys of the same file, text on the command line, or a file."""
    nested = nested_flags(call.flags, "fsdp_config")
    if nested.given:
        return nested
    flag = call.flags.setting("fsdp_config")
    if flag is None or flag.value is None or not flag.value.text:
        return None
    inline = mapping_text(flag)
    if inline is not None:
        return document_flags(inline, told_by=flag.source, path=flag.field)
    if not flag.value.is_known:
        note_unread(draft, flag, "is not resolved")
        return None
    config = read_config(call.read_file(flag.value.text))
    if config.problem:
        note_unread(draft, flag, config.problem)
        return None
    return document_flags(config.document, told_by=config.source, path=flag.field)


def _words(text: str) -> list[str]:
    return text.lower().replace(",", " ").split()
